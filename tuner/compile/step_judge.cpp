#include "tuner/compile/step_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tuner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBase = 1e-4;          // allowed of every element
constexpr double kRoundings = 8;        // of 16-bit floats
constexpr double kOfLargest = 0x1p-20;  // of the largest element of its group: 16 units of float32
// By how much each number of a disturbed computation is off: 32 units of float32. A sum of 10^4 terms, 32 of
// them side by side, is off by some 12 units of its terms.
constexpr double kDisturbance32 = 0x1p-19;
constexpr double kDisturbance16 = 4;  // units, where floats of 16 bits are passed on

// Sizes of a value's elements. Those that are far apart, as the numbers of a mask and what they are added to,
// are groups of their own: a small element is not judged by huge ones.
struct Sizes {
  struct Group {
    double least = 0, typical = 0, largest = 0;  // typical: the median
  };
  std::vector<Group> groups;  // from small to large; never empty
  double largest = 0;         // of all

  const Group& group_of(double y) const {
    size_t g = groups.size() - 1;
    while (g > 0 && std::fabs(y) < groups[g].least) --g;
    return groups[g];
  }
};
Sizes sizes_of(const ReferenceTensor& value) {
  constexpr int64_t kSampled = 8192;
  constexpr double kApart = 1e5;
  const int64_t n = value.elements(), step = std::max<int64_t>(1, n / kSampled);
  Sizes sizes;
  std::vector<double> sample;
  for (int64_t k = 0; k < n; ++k) {
    const double size = std::fabs(value.at(k));
    if (!std::isfinite(size)) continue;
    sizes.largest = std::max(sizes.largest, size);
    if (k % step == 0 && size > 0) sample.push_back(size);
  }
  std::ranges::sort(sample);
  for (size_t begin = 0, end = 0; begin < sample.size(); begin = end) {
    while (end < sample.size() && (end == begin || sample[end] < kApart * sample[end - 1])) ++end;
    sizes.groups.push_back({sample[begin], sample[(begin + end) / 2], sample[end - 1]});
  }
  if (sizes.groups.empty()) sizes.groups.push_back({0, sizes.largest, sizes.largest});
  // The largest element may be in no sample.
  if (sizes.largest < kApart * sizes.groups.back().largest) sizes.groups.back().largest = sizes.largest;
  return sizes;
}

class Judge {
 public:
  Judge(const ReferenceCone& cone, const ReferenceTensor& expected, const ReferenceTensor& found,
        const JudgeOptions& options)
      : cone_(cone), expected_(expected), found_(found), options_(options), sizes_(sizes_of(expected)) {
    is_float_ = is_float(expected.type().dtype);
  }

  // The elements that are not near.
  std::vector<int64_t> far() {
    std::vector<int64_t> bad;
    for (int64_t k = 0, n = expected_.elements(); k < n; ++k) {
      const double x = found_.at(k), y = expected_.at(k);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (is_same_overflow(x, y)) continue;
      const double difference = std::fabs(x - y);
      if (std::isfinite(difference))
        error_ = std::max(error_, difference);
      else
        error_ = kInfinity;
      if (!(difference <= allowed(y))) bad.push_back(k);
    }
    return bad;
  }
  double allowed(double y) const {
    const DType dtype = expected_.type().dtype;
    const double accepted = options_.accepted * sizes_.largest;
    if (!is_float_) return std::max(accepted, 0.0);
    const Sizes::Group& group = sizes_.group_of(y);
    const double near = allowed_error(cone_) * std::max(std::fabs(y), group.typical) +
                        kOfLargest * group.largest + least_normal_of(dtype);
    return std::max(near, accepted);
  }
  // What a computation in the model's types may be off beside a disturbed one.
  double slack(double y) const {
    const double relative = std::max(kOfLargest, 2 * cone_.unit);
    return is_float_ ? relative * std::max(std::fabs(y), sizes_.group_of(y).typical) +
                           least_normal_of(expected_.type().dtype)
                     : 0;
  }
  // Floats that became integers, a few of them by one step: ties that were rounded to the other side.
  bool are_ties(const std::vector<int64_t>& bad) const {
    if (is_float_ || !cone_.rounds || expected_.type().dtype == DType::kBool) return false;
    const auto most = std::max<size_t>(2, static_cast<size_t>(expected_.elements()) / 64);
    return bad.size() <= most && std::ranges::all_of(bad, [&](int64_t k) {
             return std::fabs(found_.at(k) - expected_.at(k)) <= 1;
           });
  }
  Verdict verdict(const std::vector<int64_t>& bad) const {
    Verdict verdict{.error = sizes_.largest > 0 ? error_ / sizes_.largest
                             : error_ > 0       ? kInfinity
                                                : 0,
                    .wrong = {},
                    .num_wrong = bad.size()};
    double worst = -1;
    for (const int64_t k : bad) {
      const double x = found_.at(k), y = expected_.at(k);
      if (std::isfinite(x - y) && sizes_.largest > 0)
        verdict.accepts = std::max(verdict.accepts, std::fabs(x - y) / sizes_.largest);
      else
        verdict.accepts = kInfinity;
      const double excess = std::isfinite(x - y) ? std::fabs(x - y) / (allowed(y) + 1e-300) : kInfinity;
      if (excess <= worst) continue;
      worst = excess;
      verdict.wrong = Verdict::Wrong{k, x, y, allowed(y)};
    }
    return verdict;
  }

 private:
  // The largest numbers of a type are a rounding away from infinity.
  bool is_same_overflow(double x, double y) const {
    if (!is_float_ || std::isnan(x) || std::isnan(y) || std::isfinite(x) == std::isfinite(y)) return false;
    const double finite = std::isfinite(x) ? x : y, infinite = std::isfinite(x) ? y : x;
    return std::signbit(finite) == std::signbit(infinite) &&
           std::fabs(finite) * (1 + allowed_error(cone_)) >= largest_of(expected_.type().dtype);
  }

  const ReferenceCone& cone_;
  const ReferenceTensor& expected_;
  const ReferenceTensor& found_;
  const JudgeOptions& options_;
  Sizes sizes_;
  bool is_float_ = true;
  double error_ = 0;
};

// What disturbed computations make of one element.
struct Range {
  double low = kInfinity, high = -kInfinity;
  bool has_nan = false;

  void add(double x) {
    has_nan = has_nan || std::isnan(x);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  // Some runs do not reach the ends of what is possible: as much again on either side is.
  bool holds(double x, double slack) const {
    if (std::isnan(x)) return has_nan;
    if (x == low || x == high) return true;
    const double beyond = std::isfinite(high - low) ? high - low : 0;
    return x >= low - beyond - slack && x <= high + beyond + slack;
  }
};

}  // namespace

double allowed_error(const ReferenceCone& cone) { return kBase + kRoundings * cone.unit; }

Result<Verdict> judge_step(const graph::Graph& model, const ReferenceCone& cone, const KnownValues& known,
                           const void* found_elements, ReferencePrograms& programs,
                           const JudgeOptions& options) {
  ASSIGN_OR_RETURN(const ReferenceTensor expected, compute_cone(model, cone, known, programs));
  const ReferenceTensor found = ReferenceTensor::of(model[cone.value].type, found_elements);
  Judge judge(cone, expected, found, options);
  std::vector<int64_t> bad = judge.far();
  if (bad.empty() || judge.are_ties(bad)) return judge.verdict({});
  // A rounding goes to either side of a border in half of the runs: 16 runs miss it once in 65,536 elements.
  constexpr int kRuns = 16, kRunsWithoutProgress = 4;
  std::vector<Range> ranges(bad.size());
  for (size_t i = 0; i < bad.size(); ++i) ranges[i].add(expected.at(bad[i]));
  const size_t first = bad.size();
  for (int run = 0; run < kRuns && !bad.empty(); ++run) {
    if (run == kRunsWithoutProgress && bad.size() == first) break;
    if (options.stop()) return Status(StatusCode::kAborted, "interrupted");
    const Disturbance disturbance{std::max(kDisturbance32, kDisturbance16 * cone.unit),
                                  static_cast<uint64_t>(run) + 1};
    ASSIGN_OR_RETURN(const ReferenceTensor other, compute_cone(model, cone, known, programs, disturbance));
    size_t kept = 0;
    for (size_t i = 0; i < bad.size(); ++i) {
      const int64_t k = bad[i];
      ranges[i].add(other.at(k));
      if (ranges[i].holds(found.at(k), judge.slack(expected.at(k)))) continue;
      bad[kept] = k;
      ranges[kept++] = ranges[i];
    }
    bad.resize(kept);
  }
  if (judge.are_ties(bad)) bad.clear();
  return judge.verdict(bad);
}

}  // namespace tuner
