// The accumulators that a fragment has. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

// rows x blocks of the array's columns, block by block, `copies` times. One copy is in use.
class FragmentSums {
 public:
  enum class State : uint8_t { kUnset, kZero, kSummed };

  FragmentSums(int64_t rows, int64_t blocks) : rows_(rows), states_(rows * blocks, State::kUnset) {}

  int64_t size() const { return static_cast<int64_t>(states_.size()); }
  int64_t rows() const { return rows_; }
  void place(int64_t begin, int64_t copies) { begin_ = begin, copies_ = copies; }

  // In the accumulators.
  int64_t row(int64_t r, int64_t block) const { return begin_ + copy_ * size() + block * rows_ + r; }
  State& state(int64_t r, int64_t block) { return states_[block * rows_ + r]; }

  // A row is to be 0. Where it holds a sum, all of the fragment begins anew, in the next copy.
  void set_zero(int64_t r, int64_t block) {
    if (state(r, block) == State::kSummed) {
      copy_ = (copy_ + 1) % copies_;
      states_.assign(states_.size(), State::kUnset);
    }
    state(r, block) = State::kZero;
  }

 private:
  int64_t rows_, begin_ = 0, copies_ = 1, copy_ = 0;
  std::vector<State> states_;
};

}  // namespace tuner
