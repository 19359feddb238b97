// TaskLikeness: how much the search of one task says about another.
//
// What a search gains depends on the kind of work more than on its size: a depthwise convolution is like
// another depthwise one of twelve times the channels, and unlike a dense one of its own. So kernels, strides,
// groups, layouts and constant operands stand for far more than an extent that doubles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

class TaskLikeness {
 public:
  // A key that this program cannot read is like nothing.
  TaskLikeness(std::string_view workload_key, std::string_view target);

  // 0 for the same task, and near 1 for another target, another layout or 32 times the size. Infinite for
  // another operator or another kind of target.
  double distance(const TaskLikeness& other) const;
  // Returns the weight of what is known of the other task: 1 for the same one, a little for another operator,
  // 0 for another kind of target.
  double weight(const TaskLikeness& other) const;
  // True if configs of the other mean the same here: only extents and the epilogue differ.
  bool same_variant(const TaskLikeness& other) const {
    return !words_.empty() && target_ == other.target_ && words_ == other.words_ &&
           grouped_ == other.grouped_;
  }

 private:
  struct Dimension {
    double weight, doublings;
  };
  std::string target_;
  std::vector<std::string> words_;  // operator, types, layouts, constant operands; empty: not readable
  std::vector<Dimension> dimensions_;
  bool grouped_ = false, memory_bound_ = false;
};

}  // namespace tuner
