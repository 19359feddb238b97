// Copies by TMA and the barriers that they arrive at, for the host. Part of host_cuda_shim.h. Barriers are
// counted here by the words of the PTX manual ("mbarrier"), boxes are copied by
// ../support/software_tensor_map.h.
#pragma once

#include <map>

#include "../support/software_tensor_map.h"

// The parameters of the printed functions.
#define HOST_COORDINATES_1 c0
#define HOST_COORDINATES_2 c0, c1
#define HOST_COORDINATES_3 c0, c1, c2
#define HOST_COORDINATES_4 c0, c1, c2, c3
#define HOST_COORDINATES_5 c0, c1, c2, c3, c4

namespace host_cuda {

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
static std::map<const void*, ArrivalBarrier> arrival_barriers;
static bool barriers_are_seen = true;  // by the copy engine: a fence stood behind their begin
static bool is_stuck = false;          // a phase that never ends was waited for
static int64_t turns_in_vain = 0;

static void clear_fetches() {
  arrival_barriers.clear();
  barriers_are_seen = true;
  is_stuck = false;
  turns_in_vain = 0;
}
// Copies that nobody waited for, when the block is done.
static bool fetches_left() {
  for (const auto& [place, barrier] : arrival_barriers)
    if (!barrier.on_way.empty() || barrier.bytes != 0) return true;
  return false;
}

static void begin_barrier(const void* barrier, int arrivals) {
  misused |= arrivals < 1 || (size_t)barrier % 8 != 0;
  barriers_are_seen = false;
  ArrivalBarrier& b = arrival_barriers[barrier];
  b = ArrivalBarrier();
  b.arrivals = b.pending = arrivals;
}
static void show_barriers() { barriers_are_seen = true; }

static ArrivalBarrier& barrier_at(const void* barrier) {
  misused |= arrival_barriers.find(barrier) == arrival_barriers.end() || !barriers_are_seen;
  return arrival_barriers[barrier];
}
static void expect_bytes(const void* barrier, int64_t bytes) {
  ArrivalBarrier& b = barrier_at(barrier);
  misused |= b.pending < 1;
  --b.pending;
  b.bytes += bytes;
  b.end_phase();
}
// Lane 0 is as good as any.
static unsigned elect() { return running->linear % 32 == 0; }

static void fetch(const void* map, const int* coordinates, int rank, const void* to, const void* barrier) {
  Fetch f{{}, {}, (size_t)((const unsigned char*)to - shared_memory)};
  memcpy(f.coordinates, coordinates, rank * sizeof(int));
  memcpy(&f.map, map, sizeof f.map);
  misused |= (size_t)map % 64 != 0 || f.map.magic != software_map::kMagic || f.map.rank != rank ||
             f.to + software_map::box_bytes(f.map) > sizeof shared_memory;
  if (misused) return;
  memset(shared_memory + f.to, 0xff,
         software_map::box_bytes(f.map));  // nobody may read there before it has come
  f.bytes = software_map::box_bytes(f.map);
  barrier_at(barrier).on_way.push_back(f);
}
static void fetch_bytes(const void* to, const void* from, int64_t bytes, const void* barrier) {
  Fetch f{{}, {}, (size_t)((const unsigned char*)to - shared_memory), from, bytes};
  misused |=
      f.to % 16 != 0 || (size_t)from % 16 != 0 || bytes % 16 != 0 || f.to + bytes > sizeof shared_memory;
  if (misused) return;
  memset(shared_memory + f.to, 0xff, bytes);
  barrier_at(barrier).on_way.push_back(f);
}

// One try of a wait. In vain it lets the others go on.
static unsigned phase_is_over(const void* barrier, unsigned parity) {
  ArrivalBarrier& b = barrier_at(barrier);
  if ((b.phases & 1) == parity) {
    for (const Fetch& f : b.on_way) {
      if (f.from != nullptr)
        memcpy(shared_memory + f.to, f.from, f.bytes);
      else
        misused |= !software_map::copy_box(f.map, f.coordinates, shared_memory, f.to);
      b.bytes -= f.bytes;
    }
    b.on_way.clear();
    b.end_phase();
  }
  const bool over = (b.phases & 1) != parity;
  turns_in_vain = over ? 0 : turns_in_vain + 1;
  if (turns_in_vain > 100000) is_stuck = true;
  if (!over) wait_for(Wait::kNone);
  return over || is_stuck;
}

}  // namespace host_cuda

// Of lane 0: a kernel shows with it that all lanes have the same.
static inline int __shfl_sync(unsigned, int value, int lane) {
  const int self = host_cuda::running->linear;
  host_cuda::exchanged[self] = (float)value;
  host_cuda::wait_for(host_cuda::Wait::kWarp);
  const int other = (int)host_cuda::exchanged[self / 32 * 32 + lane];
  host_cuda::wait_for(host_cuda::Wait::kWarp);
  return other;
}
