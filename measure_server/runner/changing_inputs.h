// ChangingInputs: elements of a candidate's inputs that change while it is timed.
//
// A candidate that keeps answers for inputs it has seen is right wherever it is asked, and does nothing in
// calls that are timed, since their inputs are the same. So before some timed calls elements get other
// values, drawn as theirs were; before as many, which are drawn, the same elements get the values that they
// have. Both touch the same memory, so that work is all that can differ between them.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "measure_server/runner/guarded_memory.h"

namespace tuner {

class ChangingInputs {
 public:
  using Random = std::minstd_rand;

  // Elements of `buffer`, which is private memory, read-only by now, and outlives this. `other`: as many
  // bytes, from which other values are taken. Where both are the same there is nothing to change.
  void add(const GuardedBuffer& buffer, DType dtype, const char* other, Random& random);
  bool any() const { return !elements_.empty(); }

  enum class Touch { kSame, kChanged, kRestored };
  // Writes to some elements, of which nobody knows how many and which. They change or stay as they are. With
  // `by_turns`, what was changed is restored before anything else changes.
  Touch touch(Random& random, bool by_turns);
  // All elements have the values that they had in the beginning.
  void restore();
  bool is_restored() const;

  // The time of the call behind a touch. Only the first few hundred count, and those behind kRestored do not:
  // those inputs were seen before.
  void note(Touch touch, double call_ns);
  // Both kinds are known, or there is nothing to change. A run that ends before has shown nothing.
  bool is_known() const;
  // Lower quartiles of these, 0 where fewer than six are known.
  double changed_ns() const { return quartile(changed_ns_); }
  double same_ns() const { return quartile(same_ns_); }

 private:
  struct Element {
    size_t buffer = 0;  // in buffers_
    char* at = nullptr;
    size_t size = 0;
    char values[2][8] = {};  // its own, the other
    bool is_other = false;
    void write() const;
  };
  static double quartile(const std::vector<double>& times_ns);

  std::vector<const GuardedBuffer*> buffers_;
  std::vector<Element> elements_;  // in an order that is drawn
  std::vector<double> changed_ns_, same_ns_;
  int changes_ahead_ = 0;  // touches that changed elements, less those that did not
};

}  // namespace tuner
