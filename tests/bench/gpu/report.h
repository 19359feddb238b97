// What bench_gpu found, as a table for people and as JSON, which deploy/figures.py reduces to what is kept
// (tests/bench/results). Neither names the host or the one card: results of one kind of card compare.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "measure_server/runner/runner_protocol.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/gpu/calibration.h"
#include "tests/bench/gpu/peer_search.h"

namespace tuner {

// Times of a contestant beside ours, sample by sample.
struct Timed {
  std::vector<double> ns;
  Figure time_ns, ratio;  // its time / ours: above 1 ours is faster
};

// A way of a library that does the task on other terms than the peer: told beside it.
struct AlsoReport {
  std::string name, note;
  Facts facts;
  double max_error = 0;
  Timed timed;
};

struct PeerReport {
  std::string name;       // "cuBLAS", "copy"; empty: this operator has none
  std::string missing;    // why there is no time; empty when there is one
  bool failed = false;    // it was asked, and refused or was wrong, whatever the algorithm
  std::string library;    // whose way the fastest is: of a convolution cuDNN's or cuBLASLt's
  std::string note;       // the function or algorithm, and what it does besides or leaves away
  Facts facts;            // the algorithm in numbers
  double max_error = -1;  // in tolerances; -1: a copy has no answer
  Timed timed, plain;     // plain: calls queued one by one; none where `timed` is that
  std::vector<SearchReport> searches;
  std::vector<AlsoReport> also;
};

// Another kernel of ours in the same rounds, one of the best after the first.
struct OtherReport {
  std::string template_name, config, artifact;
  std::string error;  // why it has no time; empty when it was right
  std::vector<double> ns;
  double max_error = 0;
  Figure time_ns;
};

struct TaskReport {
  std::string workload, target, template_name, config, artifact;
  int64_t flops = 0, bytes = 0;
  bool memory_bound = false;
  DType dtype = DType::kFloat32;
  bool allow_tf32 = false;
  std::string error;  // why nothing is told of it; empty when it was measured and right
  std::vector<double> ns;
  int64_t calls = 0;             // in a batch
  std::string one_by_one;        // why batches were no CUDA graphs; empty: they were
  std::vector<double> plain_ns;  // of calls queued one by one, beside that; none where `ns` is that
  Figure plain_time_ns;
  int sets = 1;
  double max_error = 0;
  std::string output;  // SHA-256 of what it wrote, of all outputs together
  Figure time_ns;
  std::vector<OtherReport> others;
  PeerReport peer;
  std::vector<std::string> states;  // of the device while it ran
};

struct RunReport {
  std::string date;  // UTC, "2026-11-21T14:00:00Z"
  CudaDevice device;
  std::string cublas, cublaslt, cudnn;  // versions, or why they are not here
  std::string pack, pack_about;
  Caches caches = Caches::kWarm;
  int rounds = 0;  // 0: kernels are run and compared, and nothing is timed
  double fill_ns = 0;
  uint64_t seed = 0;       // of the bootstrap
  double copy_gbps = 0;    // read and written, of a copy far larger than L2
  double ffma_gflops = 0;  // of multiply-adds that touch no memory; 0: `ffma_missing` says why
  std::string ffma_missing;
  // 10^9 operations a second of products of tiles out of registers, of 16-bit floats and of bytes; likewise.
  double mma_16bit_gops = 0, mma_int8_gops = 0;
  std::string mma_missing;
  double mma_tf32_gops = 0;  // likewise; packs that have the others may lack it
  std::string tf32_missing;
  std::optional<Calibration> calibration;  // where it was asked for
  std::vector<TaskReport> tasks;
  std::string stopped;  // why tasks are missing; empty when none is
};

void print_head(const RunReport& run);
void print_task(const RunReport& run, const TaskReport& task, size_t number, size_t of);
void print_calibration(const Calibration& found);
// Geometric means, one a peer: they are ratios to different things.
void print_summary(const RunReport& run);

// Whole or not at all (temporary file, rename). Samples are there unrounded.
Status write_json(const RunReport& run, const std::string& path);
Status write_text(const std::string& text, const std::string& path);

}  // namespace tuner
