#include "measure_server/runner/changing_inputs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

constexpr size_t kMostElements = 512;  // of an input: what they cost is no part of a time, but of a run's
constexpr size_t kOneOf = 64;
constexpr size_t kFewestTimes = 6, kMostTimes = 256;
// Drawn freely, six of each kind took up to 25 touches; a run has a dozen. Two ahead leave nothing to
// foretell.
constexpr int kMostAhead = 2;

}  // namespace

void ChangingInputs::Element::write() const { std::memcpy(at, values[is_other ? 1 : 0], size); }

void ChangingInputs::add(const GuardedBuffer& buffer, DType dtype, const char* other, Random& random) {
  const auto size = static_cast<size_t>(dtype_bytes(dtype));
  const size_t count = static_cast<size_t>(buffer.bytes()) / size;
  const size_t wanted = std::clamp<size_t>(count / kOneOf, 1, kMostElements);
  std::set<size_t> places;
  const size_t before = elements_.size();
  for (size_t tries = 0; tries < 4 * wanted + 16 && places.size() < wanted; ++tries) {
    const size_t place = random() % count;
    Element e{.buffer = buffers_.size(), .at = buffer.data() + place * size, .size = size};
    if (std::memcmp(e.at, other + place * size, size) == 0 || !places.insert(place).second) continue;
    std::memcpy(e.values[0], e.at, size);
    std::memcpy(e.values[1], other + place * size, size);
    elements_.push_back(e);
  }
  if (elements_.size() == before) return;
  buffers_.push_back(&buffer);
  std::shuffle(elements_.begin(), elements_.end(), random);
}

ChangingInputs::Touch ChangingInputs::touch(Random& random, bool by_turns) {
  if (!any()) return Touch::kSame;
  if (by_turns && !is_restored()) {
    restore();
    return Touch::kRestored;
  }
  const bool change = std::abs(changes_ahead_) < kMostAhead ? random() % 2 == 0 : changes_ahead_ < 0;
  changes_ahead_ += change ? 1 : -1;
  // As often few as many.
  size_t n = 1;
  while (n < elements_.size() && random() % 4 != 0) n *= 2;
  n = std::min(n, elements_.size());
  const size_t first = random() % elements_.size();
  for (const GuardedBuffer* buffer : buffers_) buffer->make_writable();
  for (size_t i = 0; i < n; ++i) {
    Element& e = elements_[(first + i) % elements_.size()];
    e.is_other = e.is_other != change;
    e.write();
  }
  for (const GuardedBuffer* buffer : buffers_) buffer->make_read_only();
  return change ? Touch::kChanged : Touch::kSame;
}

bool ChangingInputs::is_restored() const { return std::ranges::none_of(elements_, &Element::is_other); }

void ChangingInputs::restore() {
  if (is_restored()) return;
  for (const GuardedBuffer* buffer : buffers_) buffer->make_writable();
  for (Element& e : elements_) {
    e.is_other = false;
    e.write();
  }
  for (const GuardedBuffer* buffer : buffers_) buffer->make_read_only();
}

void ChangingInputs::note(Touch touch, double call_ns) {
  if (touch == Touch::kRestored) return;
  std::vector<double>& times_ns = touch == Touch::kChanged ? changed_ns_ : same_ns_;
  if (times_ns.size() < kMostTimes) times_ns.push_back(call_ns);
}

bool ChangingInputs::is_known() const {
  return !any() || std::min(changed_ns_.size(), same_ns_.size()) >= kFewestTimes;
}

double ChangingInputs::quartile(const std::vector<double>& times_ns) {
  return times_ns.size() < kFewestTimes ? 0 : lower_quartile(times_ns);
}

}  // namespace tuner
