// What the worker and the runner say to each other: length-prefixed JSON over a socket pair (fd 3 of the
// runner).
//
// The runner is a small executable (no gRPC, no LLVM, never sanitizer-instrumented), exec'ed before any gRPC
// starts. It forks one child per candidate, so a candidate can at worst kill its own child. The worker asks;
// the runner answers every request exactly once. A message is a 4-byte little-endian length and that many
// bytes of JSON, 16 MiB at most. The one message that may arrive while a request is being answered is cancel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

// Grows when the way candidates are run, checked or timed changes: results of two harness ABIs are not
// compared. 2: a run beside a disturbed sentinel is taken anew, and sampling stops at a stated precision, so
// other times stand than did in 1. 3: samples begin when operands lie as a loop of calls leaves them. 4:
// calls count that had the core to themselves.
inline constexpr int kHarnessAbi = 4;

// How an output is compared with the reference answer.
struct CheckSpec {
  // Element-wise: |out - reference| <= absolute + relative * |reference|, every element.
  // Checksum (answers too large to store): row and column sums, and sampled elements. See reference_file.h.
  double absolute = 1e-4, relative = 1e-4;
};

// What a GPU's caches hold when a timed call begins (CPU candidates: always kNone).
enum class Caches : uint8_t {
  kWarm,    // what the call before left there
  kFlush,   // nothing of the operands: a buffer twice as large as L2 is written before each call
  kRotate,  // calls take turns on copies of the operands that together are over three times as large as L2
};
std::string_view caches_name(Caches caches);  // warm, flush, rotate
std::optional<Caches> caches_from_name(std::string_view name);

struct RunRequest {
  uint64_t id = 0;
  std::string artifact_dir, digest;  // load_artifact(); verified again by the runner
  // Data files, one per argument of the *unpacked* kernel by name: inputs and constants raw little-endian,
  // exactly ArgInfo::bytes long; outputs have the reference answer (reference_file.h). Written by the worker,
  // once a (workload, seed); the runner keeps sealed copies, so a file is not to be changed in place.
  struct Data {
    std::string arg, path;
  };
  std::vector<Data> inputs, references;
  CheckSpec check;
  double min_repeat_ms = 1;  // one sample is as many calls as fill this
  int repeats = 9;           // samples at most
  // Of the median, at which sampling may stop before; 0: all `repeats`. See sampling.h.
  double precision = 0.02;
  double run_timeout_s = 10;  // wall clock from fork (GPU: from its turn) to exit
  // Of a CPU candidate: resident size of its process. Of a GPU candidate: its operands on the device.
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_above_ns = 0;   // stop after a warm sample above this; 0: never
  double slow_above_ns = 0;  // stop when the median is certainly above this; 0: never
  // Of a CPU candidate: constants, packed or not, are flushed out of the caches before each timed call, and a
  // sample is one call. Without constants nothing changes.
  bool cold_constants = false;
  // Of a CPU candidate: what a pulse takes when nobody disturbs (pulse.h), 0: not known; and how long it may
  // take disturbed calls anew, all of them together (in a race: of a turn), before they count. A patience of
  // 0: no pulses, every call counts.
  double calm_pulse_ns = 0, patience_ms = 50;
  std::vector<int> cpus;  // to pin the kernel's threads (GPU: the launching thread) to; empty: not pinned
  // Of GPU candidates: which device, by the driver's count, and the state of its caches.
  int device = 0;
  Caches caches = Caches::kWarm;
};

struct RunReply {
  uint64_t id = 0;
  std::string
      outcome;  // ok, crashed, run_timeout, out_of_memory, wrong_answer, build_error (cannot be loaded)
  std::string message;  // "out[0, 3, 17, 5] is 1.25, reference 1.5, tolerance 1e-4"; "signal 11 (SIGSEGV)"
  std::vector<double> run_ns,
      cpu_ns;  // per call, one value a sample; wall clock and CPU time of the calling thread
  bool cut = false;
  double max_error = 0;  // in tolerances
  double sentinel_before_ns = 0, sentinel_after_ns = 0;
  // The memory sentinel; 0: not timed, the operands fit the core's own caches, or it is a GPU.
  double memory_before_ns = 0, memory_after_ns = 0;
  // Of run_ns, beside which the core was not calm; slices of calls that were taken anew for that; one of the
  // fastest of the latest pulses. A GPU has none of these.
  int disturbed = 0, retaken = 0;
  double pulse_ns = 0;
  double run_ms = 0;         // from fork to the end of the check
  double check_ms = 0;       // of these, comparing the outputs with the reference
  std::string device_state;  // GPU: clocks, temperature, throttling right after timing; see nvml.h
  // Further numbers of the run, by the names that the record's message gives them (record.proto, of_run):
  // they pass from the candidate's process to the record, and nobody between knows them. From 0 to 1e9.
  std::map<std::string, double> facts;
  // Not empty: the runner could not do its part (missing file, no memory...); says nothing about the
  // candidate, and outcome is empty. RunnerClient turns it into a Status.
  std::string error;
  bool device_sick = false;  // with `error`: the GPU does not work now; it may later
};

// Candidates for one task timed against each other, in turns: race.h. `base` says all they have in common
// (its digest, check, repeats and cut are not looked at; run_timeout_s is of the whole race).
struct RaceRequest {
  struct Candidate {
    std::string digest;
    CheckSpec check;
  };
  RunRequest base;
  std::vector<Candidate> candidates;
  int rounds = 3;         // turns of each candidate
  int samples = 3;        // of the time that ranks, in a turn
  int other_samples = 1;  // of the time with constants the other way, in a turn; none without constants
  // Turns beside a memory sentinel above this, where some candidate's operands do not fit the core's own
  // caches, are taken anew as those are whose own calls were disturbed: for a second a heat at most. 0:
  // never.
  double memory_disturbed_above_ns = 0;
};

struct RaceReply {
  uint64_t id = 0;
  // As in the request. Of those whose outcome is ok, for each sample of the turns that count: run and CPU
  // time per call, and the sentinels of its turn, the mean of before and after (memory_ns is empty where not
  // timed).
  struct Candidate {
    std::string outcome, message;
    std::vector<double> run_ns, cpu_ns, sentinel_ns, memory_ns;
    std::vector<double> other_ns;  // with constants the other way
    // Turns taken; of these thrown away, because another turn was calm; of those that count, still disturbed.
    int turns = 0, discarded = 0, disturbed = 0;
    double pulse_ns = 0;  // as in RunReply
    double max_error = 0;
  };
  std::vector<Candidate> candidates;
  double run_ms = 0;
  std::string error;  // the runner's own trouble, as in RunReply
};

// One GPU; see CudaDevice.
struct DeviceInfo {
  std::string family;  // of its targets: TargetFamily::word()
  int ordinal = 0;
  std::string name, arch, uuid;
  int multiprocessors = 0, driver_version = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  double peak_gflops = 0;   // float32 fused multiply-adds, by the data sheet
  std::string fingerprint;  // the `hardware` of records made on it
};

// The most the CPUs can do, in G operations a second (a product and its addition are two), with 1, 2, .. n
// threads: fused multiply-adds of float32, dot products of the smaller types.
struct CpuPeaks {
  std::vector<double> float32, bfloat16, int8;
  // For work on elements of that type; 0 where it was not measured.
  double of(DType dtype, int threads) const;
};

// How fast operands can be read, by the cache that holds them all.
struct CpuBandwidths {
  struct Level {
    int64_t capacity_bytes = 0;  // of one core; of memory, the last: INT64_MAX
    std::vector<double> gbps;    // of 1, 2, ... n threads together
  };
  std::vector<Level> levels;  // smallest first
  // Of the first level that holds `bytes` over the threads; 0 where it was not measured.
  double of(int64_t bytes, int threads) const;
};

// What this machine is and can do.
struct ProbeReply {
  int harness_abi = kHarnessAbi;
  std::string version;    // of the runner: "0.1.0"
  std::string hardware;   // fingerprint, see hardware.h
  std::string isolation;  // seccomp: candidates cannot fork, signal others, write files; process: they could
  CpuPeaks peaks;
  CpuBandwidths bandwidths;
  std::vector<DeviceInfo> devices;  // GPUs; asked of the driver by a process of its own
  std::string no_device;            // why there are none; empty when there are, or nothing was measured
};

struct ProbeRequest {
  int max_threads = 0;        // of peaks and bandwidths; 0: every CPU; -1: look at nothing (a sign of life)
  bool devices_only = false;  // peaks and bandwidths are known to who asks
};
// Ends the run with this id; it is answered with `error` "cancelled". Ignored when that run is over.
struct CancelRequest {
  uint64_t id = 0;
};
using RunnerMessage = std::variant<RunRequest, RaceRequest, ProbeRequest, CancelRequest>;

std::string to_json(const RunRequest& request);
std::string to_json(const RaceRequest& request);
std::string to_json(const ProbeRequest& request);
std::string to_json(const CancelRequest& request);
std::string to_json(const RunReply& reply);
std::string to_json(const RaceReply& reply);
std::string to_json(const ProbeReply& reply);
// Each refuses what it does not understand with InvalidArgument naming the key. Unknown keys are ignored.
Result<RunnerMessage> parse_runner_message(std::string_view json);
Result<RunRequest> parse_run_request(std::string_view json);
Result<RunReply> parse_run_reply(std::string_view json);
Result<RaceReply> parse_race_reply(std::string_view json);
Result<ProbeReply> parse_probe_reply(std::string_view json);

}  // namespace tuner
