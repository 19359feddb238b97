#include "measure_server/runner/device_wary.h"

#include <algorithm>

#include "compiler_core/base/statistics.h"
#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr size_t kFewestTimes = 5;
constexpr double kMostOfSame = 1.5, kSlackNs = 5e3;    // a call behind a change
constexpr double kMostRest = 0.5, kRestSlackNs = 2e5;  // of a call's time; the host's own waking among it

}  // namespace

std::optional<DifferingSpan> differing_span(std::string_view one, std::string_view other) {
  const size_t size = std::min(one.size(), other.size());
  size_t begin = 0, end = size;
  while (begin < size && one[begin] == other[begin]) ++begin;
  if (begin == size) return std::nullopt;
  while (one[end - 1] == other[end - 1]) --end;
  return DifferingSpan{begin, end};
}

void WaryTimes::note_call(bool inputs_changed, double call_ns) {
  (inputs_changed ? changed_ns_ : same_ns_).push_back(call_ns);
}

void WaryTimes::note_rest(double rest_ns) { rest_ns_.push_back(rest_ns); }

// Whoever uses the device meanwhile slows some of the calls of both kinds; work that is left over is there
// behind all of them.
std::string WaryTimes::doubt() const {
  if (changed_ns_.size() >= kFewestTimes && same_ns_.size() >= kFewestTimes) {
    const double changed_ns = lower_quartile(changed_ns_), same_ns = lower_quartile(same_ns_);
    if (!(changed_ns <= kMostOfSame * same_ns + kSlackNs))
      return str("a call takes ", same_ns / 1e6, " ms on the inputs of the call before, and ",
                 changed_ns / 1e6, " ms after some elements of them changed");
  }
  if (rest_ns_.size() < kFewestTimes || same_ns_.empty()) return "";
  const double rest_ns = *std::ranges::min_element(rest_ns_);
  if (rest_ns <= kMostRest * lower_quartile(same_ns_) + kRestSlackNs) return "";
  return str("the device works for ", rest_ns / 1e6, " ms after each call has ended");
}

std::vector<SpoiltElement> elements_to_spoil(int64_t elements, std::minstd_rand& random) {
  constexpr int kMost = 4;
  std::vector<SpoiltElement> spoilt;
  if (elements < 2) return spoilt;
  for (int i = 0; i < kMost; ++i) {
    const auto drawn = [&] {
      return static_cast<int64_t>(((uint64_t{random()} << 31) ^ random()) % static_cast<uint64_t>(elements));
    };
    spoilt.push_back({drawn(), drawn()});
  }
  return spoilt;
}

}  // namespace tuner
