// What bench_cpu found: what figures mean, as a table for people and as JSON, which deploy/figures.py reduces
// to what is kept (tests/bench/results). Neither names the host: results of one kind of CPU compare.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/cpu/contestant.h"
#include "tests/bench/cpu/shapes.h"

namespace tuner {

// Rounds' lower quartile: neither the one lucky round nor the preempted ones.
inline constexpr double kBenchQuantile = 0.25;

// Ours against the fastest peer.
struct Against {
  std::string peer;
  Figure ratio;  // peer / ours: above 1 ours is faster
};

struct ShapeReport {
  BenchShape shape;
  int64_t flops = 0, bytes = 0;
  std::string level;  // where the operands live: "L2"; rotated and flushed ones: "DRAM"
  std::string error;  // why nothing is told; empty when ours is right and timed
  std::vector<Contestant> contestants;
  std::vector<MissingPeer> missing;
  int sets = 1;
  // Filled by judge().
  std::optional<Against> any, direct;                // all algorithms; direct ones on both sides
  double share_of_peak = 0, share_of_bandwidth = 0;  // of ours; 0: not known. The peak is that of its type
  // With several threads: our time on one / on all; the peak of all cores / of one, in the same rounds.
  double scaling = 0, cores = 0;
};

struct RunReport {
  std::string date, cpu, target, toolchain;
  std::vector<std::string> libraries;  // with their versions: "oneDNN 2.6.3"
  int threads = 1, rounds = 0;
  double fill_ns = 0;
  Caches caches = Caches::kWarm;
  uint64_t seed = 0;
  std::vector<MissingPeer> missing;
  std::vector<ShapeReport> shapes;
  std::string stopped;  // why shapes are missing; empty when none is
};

// Figures of several threads count where the peak of all cores is at least 0.96 times as many of one: 1.92 of
// two.
bool cores_are_free(const ShapeReport& report, int threads);
double time_ns(const Contestant& c);  // kBenchQuantile of its rounds
// Ratios and shares out of the contestants' samples.
void judge(ShapeReport& report, uint64_t seed);

// Figures of the shapes of one group, of those that count (cores_are_free).
struct GroupSummary {
  std::string group;
  size_t shapes = 0;
  double mean = 0, worst = 0;  // of `any`: geometric mean, smallest
  std::string worst_shape;
  double direct_mean = 0, direct_worst = 0;  // 0: no direct pair
  std::string direct_worst_shape;
};
std::vector<GroupSummary> summarise(const RunReport& run);

// The sum over a network's layers that count, each as often as it is used.
struct NetworkSum {
  std::string set;
  int layers = 0;                          // uses counted
  double ours_ns = 0, ours_direct_ns = 0;  // fastest of ours; fastest direct one
  double peer_ns = 0, peer_direct_ns = 0;  // fastest peer per layer, and fastest direct one
};
std::vector<NetworkSum> network_sums(const RunReport& run);

// "2026-11-21T14:00:00Z".
std::string utc_now();
// How the operands were when a call began: "warm", "rotated", "flushed".
std::string_view operands_text(Caches caches);

void print_head(const RunReport& run);
void print_shape(const ShapeReport& report, size_t number, size_t of, int threads, uint64_t seed);
void print_summary(const RunReport& run);
// Whole or not at all (temporary file, rename). Samples are there unrounded.
Status write_json(const RunReport& run, const std::string& path);

}  // namespace tuner
