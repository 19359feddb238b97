// Races: two threads touch the same bytes, one of them writes, and nothing orders them.
#include <string.h>
#include <sys/mman.h>

#include "regions.h"

namespace host_cuda {

// One access that others may meet. Times are numbers of epochs (state.h).
struct Mark {
  unsigned block = 0, epoch = 0, warp_epoch = 0, pc = 0;  // the program's code lies below 4 GiB
  unsigned short thread = 0;
  bool is_atomic = false;
};
// The last write, and reads: one of any thread, one of another lane of its warp, one of another warp. Where
// cells are bytes, the first of an aligned word stands for all four until somebody touches a part of it.
struct Cell {
  Mark write, reads[3];
  bool is_split = false;
};
constexpr size_t kWord = 4;
Cell* make_cells(size_t count) {
  count += kWord;  // the last word may have bytes behind its end
  void* const p = mmap(nullptr, count * sizeof(Cell) + 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : (Cell*)p;
}

// Two threads write the same bytes to one place: allowed if they write the same values. The second write has
// not happened yet when it is announced, so it is looked at with the thread's next step.
static struct {
  const unsigned char* at = nullptr;
  size_t bytes = 0;
  unsigned char before[16];
  std::string text;
  const void *first = nullptr, *second = nullptr;
} doubtful;

void settle_write() {
  if (doubtful.at != nullptr && memcmp(doubtful.at, doubtful.before, doubtful.bytes) != 0)
    report("race", doubtful.text, doubtful.first, doubtful.second);
  doubtful.at = nullptr;
}

// Whether nothing orders what a mark stands for before what the running thread does now.
static bool is_concurrent(const Mark& m, bool is_shared) {
  if (m.block == 0) return false;
  if (m.block != block_number) return !is_shared && !has_fenced;
  const unsigned self = running->linear;
  if (m.thread == self || m.epoch != epoch) return false;
  return m.thread / 32 != self / 32 || m.warp_epoch == warp_epochs[self / 32];
}

static void report_race(const Region& r, size_t offset, size_t bytes, Access how, const Mark& other,
                        bool other_writes, const void* pc) {
  const bool write_write = how == Access::kWrite && other_writes && !other.is_atomic;
  const std::string text =
      std::string("a race on ") + r.name + (r.is_shared ? " (shared memory)" : "") + " at byte " +
      std::to_string(offset) + ": " + thread_text(running->linear, block_number) +
      (how == Access::kRead    ? " reads it"
       : how == Access::kWrite ? " writes it"
                               : " changes it atomically") +
      " at {1}, " + thread_text(other.thread, other.block) +
      (other.is_atomic ? " changes it atomically"
       : other_writes  ? " writes it"
                       : " reads it") +
      " at {2}, " + (other.block == block_number ? "with no barrier between" : "and nothing orders blocks");
  if (!write_write || bytes > sizeof doubtful.before)
    return report("race", text, pc, (void*)(size_t)other.pc);
  doubtful.at = r.begin + offset;
  doubtful.bytes = bytes;
  memcpy(doubtful.before, doubtful.at, bytes);
  doubtful.text = text;
  doubtful.first = pc;
  doubtful.second = (void*)(size_t)other.pc;
}

static void note_read(Cell& c, const Mark& now, bool is_shared) {
  Mark* place = &c.reads[0];
  if (is_concurrent(c.reads[0], is_shared))
    place = c.reads[0].block == now.block && c.reads[0].thread / 32 == now.thread / 32 ? &c.reads[1]
                                                                                       : &c.reads[2];
  *place = now;
}

// One access to what a cell stands for, `bytes` from `offset` on.
static void look_at_cell(const Region& r, Cell& c, size_t offset, size_t bytes, Access how, const Mark& now,
                         const void* pc) {
  const bool both_atomic = how == Access::kAtomic && c.write.is_atomic;
  if (!both_atomic && is_concurrent(c.write, r.is_shared))
    report_race(r, offset, bytes, how, c.write, true, pc);
  if (how == Access::kRead) return note_read(c, now, r.is_shared);
  for (const Mark& read : c.reads)
    if (is_concurrent(read, r.is_shared)) report_race(r, offset, bytes, how, read, false, pc);
  c.write = now;
}

// Gives each byte of a word a cell of its own, which knows what the word's knew.
static void split(Cell* word) {
  if (word->is_split) return;
  word->is_split = true;
  for (size_t i = 1; i < kWord; ++i) word[i] = word[0];
}

void look_for_race(const Region& r, size_t offset, size_t bytes, Access how, const void* pc) {
  const unsigned self = running->linear;
  const Mark now{block_number,           epoch,
                 warp_epochs[self / 32], (unsigned)(size_t)pc,
                 (unsigned short)self,   how == Access::kAtomic};
  const size_t end = offset + bytes;
  if (r.granule != 1) {
    for (size_t g = offset / r.granule; g * r.granule < end; ++g)
      look_at_cell(r, r.cells[g], offset, bytes, how, now, pc);
    return;
  }
  for (size_t at = offset; at < end;) {
    const size_t word = at / kWord * kWord, behind = word + kWord < end ? word + kWord : end;
    if (at == word && behind == word + kWord && !r.cells[word].is_split) {
      look_at_cell(r, r.cells[word], offset, bytes, how, now, pc);
      at = behind;
      continue;
    }
    split(r.cells + word);
    for (; at < behind; ++at) look_at_cell(r, r.cells[at], offset, bytes, how, now, pc);
  }
}

}  // namespace host_cuda
