// Releases: the templates of this program, and what people are told of a worker that lacks some of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/daemon/tables/work.h"

namespace tuner {

// The templates of this program's release.
std::vector<TemplateVersion> own_templates();

// One line without its worker, at most eight templates by name: "gets no trials of matmul_cpu (found version
// 3, expected version 4). Update the worker: ...". `lacks` has at least one.
std::string lacks_text(const std::vector<Lack>& lacks);
// The same with the worker.
std::string lacks_line(std::string_view worker_id, const std::vector<Lack>& lacks);
// "version 3", or "none".
std::string version_text(int version);

}  // namespace tuner
