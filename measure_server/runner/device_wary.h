// What a wary run on a GPU needs beside the device: where two sets of inputs differ, and what the times of
// its calls say. device_wary_run.cpp tells the run.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// The bytes from the first to the last one in which two texts of one length differ; nothing: they are the
// same.
struct DifferingSpan {
  size_t begin = 0, end = 0;
};
std::optional<DifferingSpan> differing_span(std::string_view one, std::string_view other);

// Timed calls of a wary run: behind some of them the inputs had changed, behind others the same bytes were
// written once more.
class WaryTimes {
 public:
  void note_call(bool inputs_changed, double call_ns);
  // What the context took to be idle after the call's end was told.
  void note_rest(double rest_ns);
  // Why they cannot be true; empty: they may be.
  std::string doubt() const;

 private:
  std::vector<double> changed_ns_, same_ns_, rest_ns_;
};

// Where an element is copied over another one, so that an output that holds the answer holds it no more.
struct SpoiltElement {
  int64_t from = 0, to = 0;
};
std::vector<SpoiltElement> elements_to_spoil(int64_t elements, std::minstd_rand& random);

}  // namespace tuner
