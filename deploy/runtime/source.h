// Source: where kernels come from. A database's answers are compiled; a bundle's kernels are loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "db/records.h"
#include "db/resolve/answer_lock.h"
#include "deploy/runtime/function.h"

namespace tuner::runtime {

struct SourceOptions {
  std::string target;  // as in job files; empty: this host with one thread; for a bundle: any kernel that
                       // runs here
  std::string cache_dir;
  std::string artifact_dir;  // empty: no folder
  std::string algorithms;    // algorithms that kernels may use, canonical as in JobRow::Task; empty: any
  Constants constants = Constants::kWarm;  // the kind of times to rest on; ignored for a bundle
  std::string fix;                         // the command that a note tells people to run
  std::shared_ptr<const AnswerLock> lock;  // kernels have its configs, or there are none; null: no lock file
  std::string lock_fix;                    // the command that adds an entry to it
};

class Source {
 public:
  // Opens a database or bundle. If `path` is empty, opens the default database, which need not exist.
  // NotFound: no such file. Failed: what is wrong with the file.
  static Result<std::unique_ptr<Source>> open(const std::string& path, const SourceOptions& options);
  virtual ~Source() = default;

  // Returns the kernel for a workload. NotFound: none that runs here. Any thread may call it.
  virtual Result<Choice> choose(const Workload& workload) const = 0;
  // The same for a user's kernel, by its key: only what was built has such kernels, as their sources are
  // elsewhere. Any thread may call it.
  virtual Result<Choice> choose_own(std::string_view key) const {
    return not_found("a database has no code of ", key, ". Build it: tuner build FILE -o DIR, and open DIR");
  }
  // Returns the kernel of the workload's default config, for the target of `chosen`, which choose() returned.
  // Nothing: `chosen` has that config itself. NotFound: it is not there, and cannot be compiled. Any thread
  // may call it.
  virtual Result<std::optional<Choice>> default_for(const Workload& workload, const Choice& chosen) const = 0;
  // Returns the canonical target of this source; empty for a bundle that takes any.
  virtual std::string target() const = 0;
};

// The two kinds, which open() tells apart. The path of a bundle is its manifest.json.
Result<std::unique_ptr<Source>> open_database(const std::string& path, const SourceOptions& options);
Result<std::unique_ptr<Source>> open_bundle(const std::string& path, const SourceOptions& options);

}  // namespace tuner::runtime
