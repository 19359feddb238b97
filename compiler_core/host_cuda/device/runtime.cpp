// Runs the blocks of a launch one after the other, each with its threads as fibers of this one OS thread.
#include "runtime.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace host_cuda {

std::vector<Fiber> fibers;
Fiber* running = nullptr;
unsigned block_number = 0, epoch = 0, warp_epochs[32] = {};
size_t dynamic_bytes = 0;
bool has_fenced = false;
static Place scheduler;
static void (*body)() = nullptr;
static bool is_stopped = false;
static char* stacks[kMostThreads] = {};  // made once, for all launches

std::string thread_text(unsigned linear, unsigned block) {
  const unsigned b = block - 1, x = blockDim.x, y = blockDim.y, gx = gridDim.x, gy = gridDim.y;
  char text[128];
  snprintf(text, sizeof text, "thread (%u, %u, %u) of block (%u, %u, %u)", linear % x, linear / x % y,
           linear / x / y, b % gx, b / gx % gy, b / gx / gy);
  return text;
}

static std::string where(const Fiber& f) { return std::string(f.file) + ":" + std::to_string(f.line); }

void wait_for(Wait what) {
  settle_write();
  running->wait = what;
  change_stack(running->place, scheduler);
}
void stop() {
  is_stopped = true;
  if (running != nullptr) change_stack(running->place, scheduler);
}
void report_unit(const char* what, const char* file, int line) {
  report("unit",
         std::string(what) + ": " + thread_text(running->linear, block_number) +
             (line > 0 ? std::string(" at ") + file + ":" + std::to_string(line) : ""),
         nullptr, nullptr);
}
static void fiber_main() {
  body();
  wait_for(Wait::kDone);
}

void* memory_apart(size_t bytes) {
  char* const all =
      (char*)mmap(nullptr, bytes + 2 * kApart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) _exit(92);
  return all + kApart;
}

// Who writes far outside of a buffer must not meet his own stack, where he may write.
static char* stack_of(size_t thread) {
  static char* const all = (char*)memory_apart(kMostThreads * kStackBytes);
  char* const stack = all + thread * kStackBytes;
  // Its lowest page stays closed: a stack that overflows crashes, and harms no other.
  if (mprotect(stack + 4096, kStackBytes - 4096, PROT_READ | PROT_WRITE) != 0) _exit(92);
  return stack;
}

static void start(Fiber& f) {
  char*& stack = stacks[f.linear];
  if (stack == nullptr) stack = stack_of(f.linear);
  f.stack = stack;
  begin_stack(f.place, f.stack, kStackBytes, fiber_main);
  f.wait = Wait::kNone;
}

// Lets the block go on if all its threads that have not ended wait for it.
static bool release_block() {
  const Fiber* first = nullptr;
  const Fiber* left = nullptr;
  for (const Fiber& f : fibers) {
    if (f.wait == Wait::kDone) left = &f;
    if (f.wait != Wait::kDone && f.wait != Wait::kBlock) return false;
    if (f.wait != Wait::kBlock) continue;
    if (first == nullptr) first = &f;
    if (f.line != first->line || strcmp(f.file, first->file) != 0)
      report("divergent",
             "a barrier in divergent code: " + thread_text(first->linear, block_number) + " waits at " +
                 where(*first) + ", " + thread_text(f.linear, block_number) + " at " + where(f),
             nullptr, nullptr);
  }
  if (first == nullptr) return false;
  if (left != nullptr)
    report("note",
           "threads wait at the barrier of " + where(*first) + " when others of their block have ended",
           nullptr, nullptr);
  for (Fiber& f : fibers)
    if (f.wait == Wait::kBlock) f.wait = Wait::kNone;
  ++epoch;
  return true;
}

// Lets the lanes go on that wait for each other: all of a mask, by one kind of call.
static bool release_warps() {
  bool any = false;
  for (size_t i = 0; i < fibers.size(); ++i) {
    if (fibers[i].wait != Wait::kWarp) continue;
    const unsigned mask = fibers[i].mask;
    const Op op = fibers[i].op;
    const size_t warp = i / 32 * 32;
    bool all = true;
    for (size_t l = warp; l < warp + 32 && l < fibers.size(); ++l)
      if ((mask >> (l - warp) & 1) != 0 && fibers[l].wait != Wait::kDone)
        all &= fibers[l].wait == Wait::kWarp && fibers[l].mask == mask && fibers[l].op == op;
    if (!all) continue;
    for (size_t l = warp; l < warp + 32 && l < fibers.size(); ++l)
      if ((mask >> (l - warp) & 1) != 0 && fibers[l].wait == Wait::kWarp) fibers[l].wait = Wait::kNone;
    if (op == Op::kSyncWarp) ++warp_epochs[warp / 32];
    any = true;
  }
  return any;
}

static void report_stuck() {
  const Fiber* first = nullptr;
  std::string text = "threads wait for each other for ever:";
  for (const Fiber& f : fibers) {
    if (f.wait == Wait::kDone) continue;
    if (first != nullptr && f.wait == first->wait && f.line == first->line && f.mask == first->mask) continue;
    char mask[32];
    snprintf(mask, sizeof mask, " for lanes 0x%08x", f.mask);
    text += (first == nullptr ? " " : ", ") + thread_text(f.linear, block_number) + " at " + where(f) +
            (f.wait == Wait::kWarp ? mask : " for its block");
    if (first != nullptr) break;
    first = &f;
  }
  report("stuck", text, nullptr, nullptr);
}

// Between two barriers the threads run from the last to the first: what leans on their order fails.
static void run_block() {
  for (Fiber& f : fibers) start(f);
  if (forget_copies != nullptr) forget_copies();
  if (forget_products != nullptr) forget_products();
  if (forget_fetches != nullptr) forget_fetches();
  for (;;) {
    for (size_t i = fibers.size(); i-- > 0;) {
      if (fibers[i].wait != Wait::kNone) continue;
      running = &fibers[i];
      threadIdx = running->index;
      change_stack(scheduler, running->place);
      running = nullptr;
      if (is_stopped) return;
    }
    bool all_done = true, any_runs = false;  // waits for copies by TMA try again
    for (const Fiber& f : fibers) {
      all_done &= f.wait == Wait::kDone;
      any_runs |= f.wait == Wait::kNone;
    }
    if (all_done) break;
    const bool block = release_block();
    if (release_warps() || block || any_runs) continue;
    report_stuck();
    return stop();
  }
  if (fetches_left != nullptr && fetches_left())
    report("unit", "a block ends before its copies by TMA have come", nullptr, nullptr);
}

bool launch(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void (*kernel)()) {
  body = kernel;
  dynamic_bytes = shared_bytes;
  gridDim = dim3(grid[0], grid[1], grid[2]);
  blockDim = dim3(block[0], block[1], block[2]);
  is_stopped = false;
  fibers.resize((size_t)block[0] * block[1] * block[2]);
  for (unsigned i = 0; i < fibers.size(); ++i) {
    fibers[i].linear = i;
    fibers[i].index = {i % block[0], i / block[0] % block[1], i / block[0] / block[1]};
  }
  const size_t blocks = (size_t)grid[0] * grid[1] * grid[2];
  for (size_t b = 0; b < blocks && !is_stopped; ++b) {
    blockIdx = {(unsigned)(b % grid[0]), (unsigned)(b / grid[0] % grid[1]),
                (unsigned)(b / grid[0] / grid[1])};
    block_number = (unsigned)b + 1;
    ++epoch;
    clear_shared();
    run_block();
  }
  return !is_stopped;
}

// --- calls of kernels ---

void sync_block(const char* file, int line) {
  running->file = file;
  running->line = line;
  wait_for(Wait::kBlock);
}
int lane() { return (int)(running->linear % 32); }
void fence() { has_fenced = true; }

static Fiber* lane_of_warp(unsigned lane) {
  const size_t at = running->linear / 32 * 32 + lane;
  return at < fibers.size() ? &fibers[at] : nullptr;
}
unsigned active() {
  unsigned mask = 0;
  for (unsigned l = 0; l < 32; ++l)
    if (const Fiber* f = lane_of_warp(l); f != nullptr && f->wait != Wait::kDone) mask |= 1u << l;
  return mask;
}

void sync_warp(unsigned mask, Op op, const char* file, int line) {
  running->file = file;
  running->line = line;
  running->mask = mask;
  running->op = op;
  if ((mask >> lane() & 1) == 0) {
    report("warp",
           thread_text(running->linear, block_number) + " is not in the mask of its own call at " +
               where(*running),
           nullptr, nullptr);
    return stop();  // nobody can release it
  }
  wait_for(Wait::kWarp);
}

const void* exchange(unsigned mask, const void* value, size_t bytes, int from, Op op, const char* file,
                     int line) {
  Fiber* const self = running;
  memcpy(self->brought, value, bytes < 16 ? bytes : 16);
  sync_warp(mask, op, file, line);
  static unsigned char taken[1024][16];
  const Fiber* const other = lane_of_warp((unsigned)from);
  if (from != lane() && (other == nullptr || other->wait == Wait::kDone || (mask >> from & 1) == 0))
    report("warp",
           "a shuffle at " + where(*self) + " reads of a lane that does not take part: " +
               thread_text(self->linear, block_number) + " of lane " + std::to_string(from),
           nullptr, nullptr);
  memcpy(taken[self->linear], other == nullptr ? self->brought : other->brought, 16);
  sync_warp(mask, op, file, line);
  return taken[self->linear];
}

unsigned vote(unsigned mask, bool value, const char* file, int line) {
  running->brought[0] = value;
  sync_warp(mask, Op::kVote, file, line);
  unsigned set = 0;
  for (unsigned l = 0; l < 32; ++l)
    if (const Fiber* f = lane_of_warp(l); f != nullptr && f->wait != Wait::kDone && (mask >> l & 1) != 0)
      set |= (f->brought[0] != 0 ? 1u : 0u) << l;
  sync_warp(mask, Op::kVote, file, line);
  return set;
}

int count_block(bool value, int* of, const char* file, int line) {
  running->brought[0] = value;
  sync_block(file, line);
  int count = 0, all = 0;
  for (const Fiber& f : fibers)
    if (f.wait != Wait::kDone) ++all, count += f.brought[0];
  if (of != nullptr) *of = all;
  sync_block(file, line);
  return count;
}

}  // namespace host_cuda
