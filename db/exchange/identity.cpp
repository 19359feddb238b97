#include "db/exchange/identity.h"

#include <openssl/sha.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "compiler_core/base/status.h"
#include "db/crc32c.h"

namespace tuner {

using nlohmann::json;

namespace {

bool same_task(const JobRow::Task& a, const JobRow::Task& b) {
  return a.workload_key == b.workload_key && a.target == b.target && a.algorithms == b.algorithms;
}

}  // namespace

Digest digest_of(std::initializer_list<std::string_view> texts) {
  std::string bytes;
  for (const std::string_view text : texts) {
    bytes += std::to_string(text.size());
    bytes += ':';
    bytes += text;
  }
  unsigned char sha[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), sha);
  const auto word = [&](int at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | sha[at + i];
    return static_cast<int64_t>(value);
  };
  return {word(0), word(8)};
}

int64_t content_of(const TrialRow& trial, const JobRow::Task& task) {
  return digest_of({task.workload_key, task.target, task.algorithms, trial.template_name,
                    std::to_string(trial.template_version), trial.config})
      .high;
}

int index_of(const JobRow& job, const JobRow::Task& task, int hint) {
  const auto at = static_cast<size_t>(hint);
  if (hint >= 0 && at < job.tasks.size() && same_task(job.tasks[at], task)) return hint;
  for (size_t i = 0; i < job.tasks.size(); ++i)
    if (same_task(job.tasks[i], task)) return static_cast<int>(i);
  for (size_t i = 0; i < job.tasks.size(); ++i)  // a file need not tell the algorithms
    if (job.tasks[i].workload_key == task.workload_key && job.tasks[i].target == task.target)
      return static_cast<int>(i);
  return -1;
}

std::string tasks_json(const std::vector<JobRow::Task>& tasks) {
  json out = json::array();
  for (const JobRow::Task& task : tasks) {
    out.push_back({task.workload_key, task.target});
    const bool cold = task.constants == Constants::kCold, uses = task.uses != 1 || cold;
    if (!task.algorithms.empty() || uses) out.back().push_back(task.algorithms);
    if (uses) out.back().push_back(task.uses);
    if (cold) out.back().push_back(constants_name(task.constants));
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string job_uid(const JobRow& job) {
  // Of the results of a pack: by the pack, whenever and wherever they were imported.
  const bool pack = job.search == kPackImport;
  const std::string asked =
      str(job.request_id, '\n', tasks_json(job.tasks), '\n', job.search, '\n', job.seed);
  char crc[12];
  std::snprintf(crc, sizeof crc, "%08x", db::crc32c(asked));
  return str(job.id, "@", pack ? 0 : job.submitted_at_us, "#", crc);
}

}  // namespace tuner
