#include "db/staleness.h"

#include <algorithm>

#include "compiler_core/base/status.h"

namespace tuner {

namespace {

// "a | b" -> {"a", "b"}.
std::vector<std::string> parts_of(std::string_view fingerprint) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= fingerprint.size();) {
    const size_t bar = std::min(fingerprint.find(" | ", from), fingerprint.size());
    parts.emplace_back(fingerprint.substr(from, bar - from));
    from = bar + 3;
  }
  return parts;
}

bool is_caches(const std::string& part) { return part.starts_with("L1") || part.starts_with("L2"); }

// "AMD EPYC 26.2.1 microcode 0x1 | 2 cpus | L1d 48K L2 1024K | avx2" -> "AMD EPYC 26.2.1, L1d 48K L2 1024K".
std::string cpu_generation(std::string_view fingerprint) {
  const std::vector<std::string> parts = parts_of(fingerprint);
  std::string out = parts.front().substr(0, parts.front().find(" microcode "));
  for (const std::string& part : parts)
    if (is_caches(part)) out += ", " + part;
  return out;
}

bool is_gpu(std::string_view toolchain) { return toolchain.starts_with("nvrtc "); }

std::string device_of(std::string_view fingerprint, bool gpu) {
  return gpu ? std::string(fingerprint) : cpu_generation(fingerprint);
}

}  // namespace

std::string_view stale_cause_name(StaleCause cause) {
  switch (cause) {
    case StaleCause::kTemplate:
      return "template version";
    case StaleCause::kToolchain:
      return "compiler";
    case StaleCause::kHardware:
      return "device";
    case StaleCause::kHarness:
      return "harness ABI";
  }
  CHECK(false) << "no such cause";
  return "";
}

Staleness staleness(const Environment& then, std::string_view template_name, int template_version,
                    const Present& now) {
  Staleness s;
  const auto add = [&](StaleCause cause, const std::string& was, const std::string& is) {
    s.causes.push_back(cause);
    s.reason += str(s.reason.empty() ? "" : "; ", stale_cause_name(cause), ": ", was, " then, ", is, " now");
  };
  if (now.template_version) {
    const int version = now.template_version(template_name);
    if (version == 0)
      add(StaleCause::kTemplate, str(template_name, " version ", template_version), "no such template");
    else if (version != template_version)
      add(StaleCause::kTemplate, str(template_name, " version ", template_version), str("version ", version));
  }
  // Text of neither form is of a harness of somebody's own; it says nothing of our compilers.
  const bool gpu = is_gpu(then.toolchain);
  const bool ours = gpu || then.toolchain.starts_with("llvm ");
  const std::string& toolchain = gpu ? now.gpu_toolchain : now.cpu_toolchain;
  if (ours && !toolchain.empty() && toolchain != then.toolchain)
    add(StaleCause::kToolchain, then.toolchain, toolchain);
  if (!now.hardware.empty() && !then.hardware.empty()) {
    const std::string was = device_of(then.hardware, gpu), is = device_of(now.hardware, gpu);
    if (was != is) add(StaleCause::kHardware, was, is);
  }
  if (now.harness_abi != 0 && now.harness_abi != then.harness_abi)
    add(StaleCause::kHarness, std::to_string(then.harness_abi), std::to_string(now.harness_abi));
  return s;
}

Staleness staleness(const TunedConfig& tuned, const Present& now) {
  return staleness(tuned.environment, tuned.template_name, tuned.template_version, now);
}

Staleness staleness(const TrialWithRecord& trial, const Present& now) {
  if (!trial.record) return {};
  return staleness(trial.record->environment, trial.trial.template_name, trial.trial.template_version, now);
}

}  // namespace tuner
