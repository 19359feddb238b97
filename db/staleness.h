// Staleness: would the config of a record be built and run today as it was when it was measured?
//
// It is computed for every question and never stored. Records do not change, so a record that is stale under
// this compiler is current again under the one that measured it. A stale record ranks behind current ones,
// but stays the best known until it is measured again (tuner revalidate).
//
// This file knows no template, compiler or device. The caller fills in what is present today; empty fields
// are not judged.
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
  // What a toolchain of no family, as a user's compiler, is today; it returns an empty text where that is not known. Null: such ones are
  // not judged.
  std::function<std::string(std::string_view then)> other_toolchain;
  // Fingerprint of the machine that the target stands for here; empty: it stands for another one.
  std::string hardware;
  int harness_abi = 0;  // 0: not judged
  // Returns the version of a template; 0 if there is none of this name. Null: versions are not judged.
  std::function<int(std::string_view template_name)> template_version;
};

// Ordered by weight. Another template version may mean another kernel or none; another compiler makes another
// kernel; on another device the same kernel takes another time.
enum class StaleCause : uint8_t { kTemplate, kToolchain, kHardware, kHarness };
std::string_view stale_cause_name(
    StaleCause cause);  // "template version", "compiler", "device", "harness ABI"

struct Staleness {
  std::vector<StaleCause> causes;  // in the order above; empty if current
  // One line for people: "compiler: llvm 22.1.8 codegen 2 then, llvm 22.1.8 codegen 4 now". Empty if current.
  std::string reason;
  bool stale() const { return !causes.empty(); }
};

// For CPUs it compares model and caches. It ignores microcode, the number of CPUs the process had, and
// instruction sets (the target names those that are used). For GPUs it compares the whole fingerprint, with
// the driver.
Staleness staleness(const Environment& then, std::string_view template_name, int template_version,
                    const Present& now);
Staleness staleness(const TunedConfig& tuned, const Present& now);
// For a trial and its record. Without a record the trial is current.
Staleness staleness(const TrialWithRecord& trial, const Present& now);

}  // namespace tuner
