// Options of the provider, as a session gives them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::ort {

inline constexpr char kProviderName[] = "TunerExecutionProvider";

struct ProviderOptions {
  std::string cache;           // folder of libraries; by default ~/.cache/tuner/onnxruntime
  std::string db;              // of measurements; empty: the default one of `tuner`
  std::string program;         // path of `tuner`; empty: found (part_store.h)
  std::string target = "cpu";  // of `tuner compile`
  int threads = 1;             // that a part runs on
  double tune_seconds = 0;     // for each part that is compiled; 0: best known configs
  bool compile = true;         // false: only what the cache has
  bool strict = false;         // true: a part without a library ends the session's creation
};

// `entries` of a session: those behind "ep.tunerexecutionprovider." (in any case) are ours, the others are
// skipped. InvalidArgument with the option: unknown, or a value that it cannot have.
Result<ProviderOptions> provider_options(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace tuner::ort
