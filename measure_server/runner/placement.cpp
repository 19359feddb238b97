#include "measure_server/runner/placement.h"

#include <sys/mman.h>

#include "compiler_core/base/int_math.h"

namespace tuner {
namespace {

constexpr uint64_t kPage = 64 << 10;  // of every system, or a multiple
constexpr uint64_t kSmallPage = 4 << 10;
// Far from what the system maps by itself, which is near the end of 47 bits. Where there are fewer bits, it
// does not take our word.
constexpr uint64_t kBegin = uint64_t{32} << 40, kOfOne = uint64_t{1} << 40;
// Tags and predictors use address bits up to 30 or so; a gap within what one page table spans is cheap.
constexpr uint64_t kFirstGap = uint64_t{1} << 30, kGap = 4 << 20;

}  // namespace

Placement::Placement(uint64_t number, size_t contestant)
    : drawn_(true), random_(number), at_(kBegin + contestant * kOfOne) {
  at_ += draw(kFirstGap / kSmallPage) * kSmallPage;
}

void* Placement::next(int64_t bytes) {
  if (!drawn_) return nullptr;
  const uint64_t here = at_ + draw(kGap / kSmallPage) * kSmallPage;
  at_ = here + static_cast<uint64_t>(round_up(bytes, static_cast<int64_t>(kPage)));
  return reinterpret_cast<void*>(here);
}

void Placement::shift_what_is_loaded() {
  // The system fills gaps between mappings first: one piece alone would leave small ones where they were.
  constexpr uint64_t kMostPieces = 64, kMostPages = 16;
  for (uint64_t left = drawn_ ? draw(kMostPieces) : 0; left > 0; --left)
    (void)mmap(nullptr, (1 + draw(kMostPages)) * kSmallPage, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

size_t Placement::stack_bytes() { return drawn_ ? draw(kSmallPage / 16) * 16 : 0; }

}  // namespace tuner
