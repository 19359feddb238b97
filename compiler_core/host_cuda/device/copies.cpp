// Asynchronous copies of each thread (cp.async).
#include <string.h>

#include <deque>
#include <vector>

#include "state.h"
#include "units.h"

size_t __cvta_generic_to_shared(const void* at) {  // NOLINT(bugprone-reserved-identifier): CUDA's name
  return (size_t)((const unsigned char*)at - host_cuda_dynamic);
}

namespace host_cuda {

bool unfenced[kMostThreads] = {};

namespace {
struct Copy {
  void* to;
  const void* from;  // null: zeros
  int bytes;
  const void* pc;
};
struct Copies {
  std::vector<Copy> open;                // since the last commit
  std::deque<std::vector<Copy>> groups;  // under way, the oldest first
};
Copies copies[kMostThreads];
}  // namespace

void forget_copies() {
  for (const Fiber& f : fibers) {
    copies[f.linear] = {};
    unfenced[f.linear] = false;
  }
}

// Nobody may read what was there; and others may touch the place neither now nor when the copy lands.
void copy_async(void* to, const void* from, int bytes, int read) {
  const void* const pc = __builtin_return_address(0);
  if ((size_t)to % bytes != 0 || (read != 0 && (size_t)from % bytes != 0))
    report("aligned",
           thread_text(running->linear, block_number) + " copies " + std::to_string(bytes) +
               " bytes from or to an address that is not a multiple of that, at {1}",
           pc, nullptr);
  if (read != 0) touch(from, bytes, Access::kRead, pc);
  touch(to, bytes, Access::kWrite, pc);
  memset(to, 0xff, bytes);
  copies[running->linear].open.push_back({to, read != 0 ? from : nullptr, bytes, pc});
}
void commit_copies() {
  Copies& own = copies[running->linear];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}
void wait_copies(size_t in_flight) {
  Copies& own = copies[running->linear];
  if (own.groups.size() > in_flight) unfenced[running->linear] = true;
  for (; own.groups.size() > in_flight; own.groups.pop_front())
    for (const Copy& c : own.groups.front()) {
      touch(c.to, c.bytes, Access::kWrite, c.pc);
      if (c.from != nullptr)
        memcpy(c.to, c.from, c.bytes);
      else
        memset(c.to, 0, c.bytes);
    }
}

}  // namespace host_cuda
