// Staleness: would the config of a record be built and run today as it was when it was measured?
//
// Computed at every question, never stored: records do not change, so one that is stale under this compiler
// is current again under the one that measured it. A stale record is still the best that is known until it is
// measured again (tuner revalidate); it ranks behind current ones.
//
// Knows no template, compiler or device: the caller says what there is at present, and what he leaves empty
// is not judged.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/records.h"

namespace tuner {

struct Present {
  // As in Environment::toolchain, one for each family that can be compiled for here: "llvm 22.1.8 codegen 4",
  // "nvrtc 13.0 cuda codegen 3". Records of other families are not judged by it.
  std::vector<std::string> toolchains;
  // Fingerprint of the machine that the target stands for here; empty: it stands for another one.
  std::string hardware;
  int harness_abi = 0;  // 0: not judged
  // The version a template has, 0: there is none of this name. Null: not judged.
  std::function<int(std::string_view template_name)> template_version;
};

// Ordered by how much they take away: a config of another template version may mean another kernel or none, a
// kernel of another compiler is another kernel, the same kernel on another device has another time.
enum class StaleCause : uint8_t { kTemplate, kToolchain, kHardware, kHarness };
std::string_view stale_cause_name(
    StaleCause cause);  // "template version", "compiler", "device", "harness ABI"

struct Staleness {
  std::vector<StaleCause> causes;  // in the order above; empty: current
  // One line, for people: "compiler: llvm 22.1.8 codegen 2 then, llvm 22.1.8 codegen 4 now". Empty: current.
  std::string reason;
  bool stale() const { return !causes.empty(); }
};

// Of CPUs model and caches are compared, not microcode, how many CPUs the process had, nor instruction sets
// (the target names those that are used). Of GPUs all that the fingerprint has, the driver included.
Staleness staleness(const Environment& then, std::string_view template_name, int template_version,
                    const Present& now);
Staleness staleness(const TunedConfig& tuned, const Present& now);
// Of a trial whose record is there; without one it is current.
Staleness staleness(const TrialWithRecord& trial, const Present& now);

}  // namespace tuner
