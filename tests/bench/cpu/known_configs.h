// KnownConfigs: the configs a database holds a right time of, fastest first, read once.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

enum class Algorithms : uint8_t {
  kAny,
  kDirect,  // templates whose algorithm is "direct": like for like with a library's direct kernels
};

struct TimedConfig {
  std::string template_name, config;
  int template_version = 1;
  double time_ns = 0;  // its best trial
};

class KnownConfigs {
 public:
  KnownConfigs() = default;  // knows nothing
  // No file is no error: nothing is known.
  static Result<KnownConfigs> load(const std::string& db);

  // At most `count` different ones of this task by templates of these algorithms, fastest first.
  std::vector<TimedConfig> fastest(const std::string& workload_key, const std::string& target,
                                   Algorithms algorithms, int count) const;

 private:
  using Task = std::pair<std::string, std::string>;  // workload key, target
  std::map<Task, std::vector<TimedConfig>> tasks_;   // sorted by time
};

}  // namespace tuner
