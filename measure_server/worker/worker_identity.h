// Who a worker is: its host, its life, its id and the folder that is its own. The same for all kinds of
// workers.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/worker/work_folder.h"

namespace tuner {

std::string host_name();
// A name for one life of a worker, new at each call: 16 hexadecimal digits.
std::string random_incarnation();
// The folder, or, if `next`, the first of it, it-2, it-3, ... that is free. Waits a moment for a former life
// on its way out.
Result<WorkFolder> open_work_folder(const std::string& path, bool next);
// `given`, or the name in the worker's credentials (with .2, .3, ... in a next folder; with the folder's id
// where they are a fleet's), or the id that the folder keeps.
std::string worker_id_in(const WorkFolder& folder, const std::string& host, const std::string& given,
                         const std::string& name_in_credentials);

}  // namespace tuner
