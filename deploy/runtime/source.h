// Source: where kernels come from: a database whose answers are compiled, or a bundle whose kernels are
// loaded.
#pragma once

#include <memory>
#include <string>

#include "db/records.h"
#include "deploy/runtime/function.h"

namespace tuner::runtime {

struct SourceOptions {
  std::string target;  // as in job files; empty: this host, one thread; of a bundle: any that runs here
  std::string cache_dir;
  std::string artifact_dir;  // empty: none
  std::string algorithms;    // that kernels may use, canonical as JobRow::Task has them; empty: any
  Constants constants = Constants::kWarm;  // what the times of an answer mean; of a bundle: not looked at
  std::string fix;                         // what a note tells people to run
};

class Source {
 public:
  // `path` empty: the default database, which need not be there. NotFound, or Failed with what is wrong with
  // the file.
  static Result<std::unique_ptr<Source>> open(const std::string& path, const SourceOptions& options);
  virtual ~Source() = default;

  // The kernel for a workload. NotFound: none that runs here. Any thread.
  virtual Result<Choice> choose(const Workload& workload) const = 0;
  // The target that a workload is asked for, canonical; of a bundle that takes any, empty.
  virtual std::string target() const = 0;
};

// The two kinds; open() tells them apart. `path` of a bundle is its manifest.json.
Result<std::unique_ptr<Source>> open_database(const std::string& path, const SourceOptions& options);
Result<std::unique_ptr<Source>> open_bundle(const std::string& path, const SourceOptions& options);

}  // namespace tuner::runtime
