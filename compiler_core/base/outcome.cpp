#include "compiler_core/base/outcome.h"

#include <array>
#include <ostream>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

// Names in the order of their enumerators, which count from 1.
constexpr std::array<std::string_view, 9> kOutcomes = {
    "ok",      "invalid_config", "build_error",   "build_timeout", "run_timeout",
    "crashed", "wrong_answer",   "out_of_memory", "device_lost"};
constexpr std::string_view kUnable = "unable", kOtherVersion = "other_version";
constexpr auto kLastOfBuilds = BuildOutcome::kBuildTimeout;
static_assert(static_cast<int>(kLastOfBuilds) == static_cast<int>(Outcome::kBuildTimeout));

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  const size_t i = static_cast<size_t>(outcome) - 1;
  CHECK(i < kOutcomes.size()) << "outcome " << static_cast<int>(outcome);
  return kOutcomes[i];
}

std::optional<Outcome> outcome_from_name(std::string_view name) {
  for (size_t i = 0; i < kOutcomes.size(); ++i)
    if (kOutcomes[i] == name) return static_cast<Outcome>(i + 1);
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, Outcome outcome) { return out << outcome_name(outcome); }

std::string_view build_outcome_name(BuildOutcome outcome) {
  if (outcome == BuildOutcome::kUnable) return kUnable;
  if (outcome == BuildOutcome::kOtherVersion) return kOtherVersion;
  return outcome_name(*trial_outcome(outcome));
}

std::optional<BuildOutcome> build_outcome_from_name(std::string_view name) {
  if (name == kUnable) return BuildOutcome::kUnable;
  if (name == kOtherVersion) return BuildOutcome::kOtherVersion;
  const std::optional<Outcome> outcome = outcome_from_name(name);
  if (!outcome || *outcome > Outcome::kBuildTimeout) return std::nullopt;
  return static_cast<BuildOutcome>(*outcome);
}

std::ostream& operator<<(std::ostream& out, BuildOutcome outcome) {
  return out << build_outcome_name(outcome);
}

std::optional<Outcome> trial_outcome(BuildOutcome outcome) {
  if (outcome > kLastOfBuilds) return std::nullopt;
  return static_cast<Outcome>(outcome);
}

}  // namespace tuner
