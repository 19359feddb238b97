#include "tuner/study/task_likeness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "db/learning/task_shape.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

constexpr double kNothingInCommon = std::numeric_limits<double>::infinity();
constexpr double kOtherTarget = 1, kOtherWord = 1, kGrouped = 4;
constexpr double kReach = 0.7;  // the weight falls to 1/e at this distance
// Weights of tasks of other operators. Those that read and write more than they compute are a bit like each
// other.
constexpr double kOtherOperator = 0.005, kOtherOfItsKind = 0.02;

// Distance of one doubling.
double weight_of(std::string_view dimension) {
  if (dimension == "kh" || dimension == "kw") return 0.6;
  if (dimension == "sh" || dimension == "sw") return 0.5;
  if (dimension == "oh" || dimension == "ow") return 0.1;
  // Padding follows from the kernel; groups are told apart as a kind.
  if (dimension == "pad" || dimension == "groups") return 0;
  return 0.2;
}

std::string_view kind_of(std::string_view target) { return target.substr(0, target.find(' ')); }

}  // namespace

TaskLikeness::TaskLikeness(std::string_view workload_key, std::string_view target) : target_(target) {
  const Result<Workload> workload = workload_from_key(workload_key);
  if (!workload) return;
  memory_bound_ = workload->memory_bound();
  const TaskShape shape = shape_of(*workload);
  std::istringstream words(shape.variant);
  for (std::string word; words >> word;) words_.push_back(word);
  for (const auto& [name, extent] : shape.dimensions) {
    dimensions_.push_back({weight_of(name), std::log2(static_cast<double>(extent))});
    grouped_ |= name == "groups" && extent > 1;
  }
}

double TaskLikeness::distance(const TaskLikeness& other) const {
  if (words_.empty() || other.words_.empty() || words_[0] != other.words_[0] ||
      words_.size() != other.words_.size() || kind_of(target_) != kind_of(other.target_))
    return kNothingInCommon;
  double sum = (target_ == other.target_ ? 0 : kOtherTarget) + (grouped_ == other.grouped_ ? 0 : kGrouped);
  for (size_t i = 1; i < words_.size(); ++i) sum += words_[i] == other.words_[i] ? 0 : kOtherWord;
  for (size_t i = 0; i < std::min(dimensions_.size(), other.dimensions_.size()); ++i)
    sum += dimensions_[i].weight * std::abs(dimensions_[i].doublings - other.dimensions_[i].doublings);
  return sum;
}

double TaskLikeness::weight(const TaskLikeness& other) const {
  if (words_.empty() || other.words_.empty() || kind_of(target_) != kind_of(other.target_)) return 0;
  const double others = memory_bound_ == other.memory_bound_ ? kOtherOfItsKind : kOtherOperator;
  const double d = distance(other);
  return std::isfinite(d) ? std::max(kOtherOperator, std::exp(-d / kReach)) : others;
}

}  // namespace tuner
