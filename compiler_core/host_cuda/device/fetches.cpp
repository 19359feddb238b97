// Copies by TMA and the barriers that they arrive at. Barriers are counted by the words of the PTX manual
// ("mbarrier"), boxes are copied by software_tensor_map.h.
#include <string.h>

#include <map>
#include <vector>

#include "software_tensor_map.h"
#include "state.h"
#include "units.h"

namespace host_cuda {

namespace {
struct Fetch {
  software_map::Map map;
  int coordinates[5];
  size_t to;                   // from the start of shared memory
  const void* from = nullptr;  // without a map: so many bytes
  int64_t bytes = 0;
};
// An mbarrier. What is under way comes with the wait for its phase, and not before.
struct ArrivalBarrier {
  int arrivals = 0, pending = 0;
  int64_t bytes = 0;  // announced and not there yet; below 0: there and not announced yet
  unsigned phases = 0;
  std::vector<Fetch> on_way;

  void end_phase() {
    if (pending != 0 || bytes != 0) return;
    pending = arrivals;
    ++phases;
  }
};
std::map<const void*, ArrivalBarrier> barriers;
bool are_seen = true;  // by the copy engine: a fence stood behind their begin
int64_t turns_in_vain = 0;

void expect(bool holds, const char* otherwise) {
  if (!holds) report_unit(otherwise, "", 0);
}
ArrivalBarrier& barrier_at(const void* barrier) {
  expect(barriers.find(barrier) != barriers.end(), "an mbarrier is used that nobody began");
  expect(are_seen, "an mbarrier is used that no fence.mbarrier_init shows the copy engine");
  return barriers[barrier];
}
size_t place_of(const void* to) { return (size_t)((const unsigned char*)to - host_cuda_dynamic); }
// Nobody may read there before it has come.
void ask(const Fetch& f, const void* barrier) {
  memset(host_cuda_dynamic + f.to, 0xff, (size_t)f.bytes);
  barrier_at(barrier).on_way.push_back(f);
}
}  // namespace

void forget_fetches() {
  barriers.clear();
  are_seen = true;
  turns_in_vain = 0;
}
bool fetches_left() {
  for (const auto& [place, barrier] : barriers)
    if (!barrier.on_way.empty() || barrier.bytes != 0) return true;
  return false;
}

void begin_barrier(const void* barrier, int arrivals) {
  expect(arrivals >= 1 && (size_t)barrier % 8 == 0,
         "an mbarrier of no arrivals, or at no multiple of 8 bytes");
  are_seen = false;
  ArrivalBarrier& b = barriers[barrier];
  b = ArrivalBarrier();
  b.arrivals = b.pending = arrivals;
}
void show_barriers() { are_seen = true; }

void expect_bytes(const void* barrier, int64_t bytes) {
  ArrivalBarrier& b = barrier_at(barrier);
  expect(b.pending >= 1, "more threads arrive at an mbarrier than it waits for");
  --b.pending;
  b.bytes += bytes;
  b.end_phase();
}
// Lane 0 is as good as any.
unsigned elect() { return running->linear % 32 == 0; }

void fetch(const void* map, const int* coordinates, int rank, const void* to, const void* barrier) {
  Fetch f{{}, {}, place_of(to)};
  memcpy(f.coordinates, coordinates, (size_t)rank * sizeof(int));
  memcpy(&f.map, map, sizeof f.map);
  f.bytes = software_map::box_bytes(f.map);
  if ((size_t)map % 64 != 0 || f.map.magic != software_map::kMagic || f.map.rank != rank ||
      f.to + (size_t)f.bytes > kMostShared)
    return expect(false, "a copy of a box by no tensor map of that rank, or to no shared memory");
  ask(f, barrier);
}
void fetch_bytes(const void* to, const void* from, int64_t bytes, const void* barrier) {
  const Fetch f{{}, {}, place_of(to), from, bytes};
  if (f.to % 16 != 0 || (size_t)from % 16 != 0 || bytes % 16 != 0 || f.to + (size_t)bytes > kMostShared)
    return expect(false, "a bulk copy of bytes or addresses that are no multiples of 16");
  ask(f, barrier);
}

unsigned phase_is_over(const void* barrier, unsigned parity) {
  ArrivalBarrier& b = barrier_at(barrier);
  if ((b.phases & 1) == parity) {
    for (const Fetch& f : b.on_way) {
      if (f.from != nullptr)
        memcpy(host_cuda_dynamic + f.to, f.from, (size_t)f.bytes);
      else
        expect(software_map::copy_box(f.map, f.coordinates, host_cuda_dynamic, f.to),
               "a copy of a box to a place where no box may begin");
      b.bytes -= f.bytes;
    }
    b.on_way.clear();
    b.end_phase();
  }
  const bool over = (b.phases & 1) != parity;
  turns_in_vain = over ? 0 : turns_in_vain + 1;
  if (turns_in_vain > 100000) {
    report("stuck", "a phase of an mbarrier never ends", nullptr, nullptr);
    stop();
  }
  if (!over) wait_for(Wait::kNone);
  return over;
}

}  // namespace host_cuda
