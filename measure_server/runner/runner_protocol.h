// What the worker and the runner say to each other: length-prefixed JSON over a socket pair (fd 3 of the runner).
//
// The runner is a small executable (no gRPC, no LLVM, never sanitizer-instrumented), exec'ed before any gRPC starts. It
// forks one child per candidate, so a candidate can at worst kill its own child. The worker asks; the runner answers every
// request exactly once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// How an output is compared with the reference answer.
struct CheckSpec {
  // Element-wise: |out - reference| <= absolute + relative * |reference|, every element.
  // Checksum (answers too large to store): row and column sums, and sampled elements. See reference_file.h.
  double absolute = 1e-4, relative = 1e-4;
};

struct RunRequest {
  uint64_t id = 0;
  std::string artifact_dir, digest;    // load_artifact(); verified again by the runner
  // Data files, one per argument of the *unpacked* kernel by name: inputs and constants raw little-endian; outputs have the
  // reference answer (doubles). Written by the worker, once a (workload, seed).
  struct Data { std::string arg, path; };
  std::vector<Data> inputs, references;
  CheckSpec check;
  double min_repeat_ms = 1;
  int repeats = 9;
  double run_timeout_s = 10;
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_above_ns = 0;             // stop after a warm sample above this; 0: never
  std::vector<int> cpus;               // to pin the kernel's threads to; empty: not pinned
};

struct RunReply {
  uint64_t id = 0;
  std::string outcome;                 // outcome_name(): ok, crashed, run_timeout, out_of_memory, wrong_answer, build_error (cannot be loaded)
  std::string message;                 // "out[0, 3, 17, 5] is 1.25, reference 1.50, tolerance 1e-4"; "signal 11 (SIGSEGV)"
  std::vector<double> run_ns, cpu_ns;  // per call, one value a sample
  bool cut = false;
  double max_error = 0;                // in tolerances
  double sentinel_before_ns = 0, sentinel_after_ns = 0;
  double run_ms = 0;
};

std::string to_json(const RunRequest& request);
std::string to_json(const RunReply& reply);
Result<RunRequest> parse_run_request(std::string_view json);
Result<RunReply> parse_run_reply(std::string_view json);

}  // namespace tuner
