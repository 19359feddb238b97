// How a trial ended. Messages, files and people have the names; code has the enumerators. The names stand in
// outcome.cpp alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace tuner {

// The outcomes of proto/record.proto, with its numbers. Databases and JSON use the same names in lower case.
enum class Outcome : uint8_t {
  kOk = 1,
  kInvalidConfig,
  kBuildError,
  kBuildTimeout,
  kRunTimeout,
  kCrashed,
  kWrongAnswer,
  kOutOfMemory,
  kDeviceLost,
};
std::string_view outcome_name(Outcome outcome);  // "wrong_answer"
std::optional<Outcome> outcome_from_name(std::string_view name);
std::ostream& operator<<(std::ostream& out, Outcome outcome);

// What came of an order to build: an outcome that a trial can have, with the same number, or why it was not
// made.
enum class BuildOutcome : uint8_t {
  kOk = 1,
  kInvalidConfig,
  kBuildError,
  kBuildTimeout,
  kUnable = 101,  // a problem of the host
  kOtherVersion,  // this release has the template in another version, or not at all
};
std::string_view build_outcome_name(BuildOutcome outcome);
std::optional<BuildOutcome> build_outcome_from_name(std::string_view name);
std::ostream& operator<<(std::ostream& out, BuildOutcome outcome);
// The outcome of a trial that is built so; none: it was not made, which says nothing about the trial.
std::optional<Outcome> trial_outcome(BuildOutcome outcome);

}  // namespace tuner
