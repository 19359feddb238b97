#include "db/staleness.h"

#include <algorithm>

#include "compiler_core/base/printable.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target.h"

namespace tuner {

namespace {

// The toolchain of the family today; empty: not known.
std::string toolchain_of(const TargetFamily& family, const Present& now) {
  for (const std::string& toolchain : now.toolchains)
    if (family_of_toolchain(toolchain) == &family) return toolchain;
  return {};
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
    s.reason += str(s.reason.empty() ? "" : "; ", stale_cause_name(cause), ": ", printable(was), " then, ",
                    printable(is), " now");
  };
  if (now.template_version) {
    const int version = now.template_version(template_name);
    if (version == 0)
      add(StaleCause::kTemplate, str(template_name, " version ", template_version), "no such template");
    else if (version != template_version)
      add(StaleCause::kTemplate, str(template_name, " version ", template_version), str("version ", version));
  }
  // A toolchain of no family is of a harness of somebody's own; it says nothing of our compilers, and of the
  // device as much as the default family of targets.
  const TargetFamily* family = family_of_toolchain(then.toolchain);
  std::string toolchain;
  if (family != nullptr)
    toolchain = toolchain_of(*family, now);
  else if (now.other_toolchain)
    toolchain = now.other_toolchain(then.toolchain);
  if (!toolchain.empty() && toolchain != then.toolchain)
    add(StaleCause::kToolchain, then.toolchain, toolchain);
  if (!now.hardware.empty() && !then.hardware.empty()) {
    const TargetFamily& of = family != nullptr ? *family : *Target().family;
    const std::string was = of.device_of(then.hardware), is = of.device_of(now.hardware);
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
