// Job files that clients send as text: for those that have no reader of job files of their own.
#pragma once

#include <map>
#include <string>

#include "compiler_core/base/status.h"
#include "tuning.pb.h"

namespace tuner {

// What the text asks for, as Submit takes it. `cpus`: CPU targets that workers offer, each with the most
// threads there are for it (Workers::cpus); "cpu" in the file means the one of them. Errors name the entry.
Status read_job_text(const v1::ReadJobFileRequest& request, const std::map<std::string, int>& cpus,
                     v1::ReadJobFileReply* reply);

}  // namespace tuner
