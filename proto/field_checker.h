// Helpers of convert*.cpp for the fields of a peer's message, and for times of day.
#pragma once

#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/plausible.h"
#include "proto/convert.h"

namespace tuner {

// FieldChecker checks fields in turn and keeps the first refusal, so a conversion reads as a list of fields.
class FieldChecker {
 public:
  explicit FieldChecker(std::string_view path) : path_(path) {}

  template <class... Args>
  void refuse(std::string_view field, const Args&... args) {
    if (status_.is_ok()) status_ = invalid_argument(path_, ".", field, ": ", args...);
  }
  std::string text(std::string_view field, const std::string& value) {
    if (value.size() > kMaxTextBytes)
      refuse(field, "expected at most ", kMaxTextBytes, " bytes, found ", value.size());
    return value;
  }
  std::string needed(std::string_view field, const std::string& value) {
    if (value.empty()) refuse(field, "expected a value, found nothing");
    return text(field, value);
  }
  double finite(std::string_view field, double value) {
    if (!countable(value)) refuse(field, "expected a finite number, found ", value);
    return value;
  }
  double at_least_zero(std::string_view field, double value) {
    if (!countable(value) || value < 0) refuse(field, "expected a finite number >= 0, found ", value);
    return value;
  }
  // A time of a race, or 0 for none.
  double call_or_none(std::string_view field, double value) {
    if (!is_plausible_or_none(value)) refuse(field, "expected ", kPlausibleCall, ", or 0, found ", value);
    return value;
  }
  // Finite, and large enough to divide by: nothing that is measured is denormal.
  static bool countable(double value) { return value == 0 || std::isnormal(value); }
  template <class T>
  T in_range(std::string_view field, T value, T low, T high) {
    if (value < low || value > high)
      refuse(field, "expected an integer from ", low, " to ", high, ", found ", value);
    return value;
  }
  void at_most(std::string_view field, int count, int limit) {
    if (count > limit) refuse(field, "expected at most ", limit, " items, found ", count);
  }
  template <class Repeated>
  std::vector<double> times(std::string_view field, const Repeated& values, bool zero_is_fine) {
    at_most(field, static_cast<int>(values.size()), kMaxSamples);
    if (!status_.is_ok()) return {};
    int i = 0;
    for (const double value : values) {
      if (zero_is_fine ? !countable(value) || value < 0 : !is_plausible_call(value))
        refuse(str(field, "[", i, "]"), "expected ", zero_is_fine ? "a finite number >= 0" : kPlausibleCall,
               ", found ", value);
      ++i;
    }
    return {values.begin(), values.end()};
  }
  template <class T>
  T part(const Result<T>& result) {
    if (!result && status_.is_ok()) status_ = result.status();
    return result ? *result : T{};
  }
  Constants constants(std::string_view field, const std::string& name) {
    const std::optional<Constants> found = constants_from_name(name);
    if (!found && !name.empty()) refuse(field, "expected warm or cold, found ", name.substr(0, 40));
    return found.value_or(Constants::kWarm);
  }
  std::string path(std::string_view field) const { return str(path_, ".", field); }
  bool failed() const { return !status_.is_ok(); }
  const Status& status() const { return status_; }
  // Takes over the error of a part.
  void take(const Status& status) {
    if (status_.is_ok()) status_ = status;
  }

  template <class T>
  Result<T> finish(T value) const {
    if (failed()) return status_;
    return value;
  }

 private:
  std::string path_;
  Status status_;
};

inline google::protobuf::Timestamp timestamp(int64_t us) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(us);
}

inline int64_t microseconds(FieldChecker& check, std::string_view field,
                            const google::protobuf::Timestamp& t) {
  // The range protobuf itself documents; beyond it TimeUtil stops the process.
  constexpr int64_t kMin = -62'135'596'800, kMax = 253'402'300'799;
  check.in_range<int64_t>(str(field, ".seconds"), t.seconds(), kMin, kMax);
  check.in_range<int64_t>(str(field, ".nanos"), t.nanos(), 0, 999'999'999);
  return check.failed() ? 0 : t.seconds() * 1'000'000 + t.nanos() / 1'000;
}

}  // namespace tuner
