// The messages between worker and runner: length-prefixed JSON over a socket pair (fd 3 of the runner).
//
// The runner is a small executable (no gRPC, no LLVM, never sanitizer-instrumented), exec'ed before gRPC
// starts. It forks one child per candidate, so a candidate can at worst kill its own child. The worker
// asks, and the runner answers every request exactly once. A message is a 4-byte little-endian length and
// that many bytes of JSON, 16 MiB at most. Only a cancel may arrive while a request is being answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/outcome.h"
#include "compiler_core/base/status.h"

namespace tuner {

// Raised whenever candidates are run, checked or timed in another way: results of two harness ABIs are not
// compared.
//   2: a run beside a disturbed sentinel is repeated, and sampling stops at a stated precision
//   3: samples begin when operands lie as a loop of calls leaves them
//   4: only calls that had the core to themselves count
//   5: outputs are checked while a candidate is timed, and once on inputs it has not seen
//   6: packed constants and workspaces of 2 MiB or more lie on large pages, where the system gives them
inline constexpr int kHarnessAbi = 6;

// Says how an output is compared with the reference answer.
struct CheckSpec {
  // Element-wise: |out - reference| <= absolute + relative * |reference| for every element.
  // Checksums, for answers too large to store: row and column sums, and sampled elements. See
  // reference_file.h.
  double absolute = 1e-4, relative = 1e-4;
};

// What a GPU's caches hold when a timed call begins (CPU candidates ignore it).
enum class Caches : uint8_t {
  kWarm,    // what the previous call left there
  kFlush,   // none of the operands: a buffer twice as large as L2 is written before each call
  kRotate,  // calls rotate through copies of the operands that together are over three times as large as L2
};
std::string_view caches_name(Caches caches);  // warm, flush, rotate
std::optional<Caches> caches_from_name(std::string_view name);

struct RunRequest {
  uint64_t id = 0;
  std::string artifact_dir, digest;  // for load_artifact(); the runner verifies the digest again
  // Data files, one for each argument of the *unpacked* kernel, by name. Inputs and constants are raw,
  // little-endian and exactly ArgInfo::bytes long; outputs have the reference answer (reference_file.h).
  // The worker writes them once per (workload, seed). The runner keeps sealed copies, so a file must not be
  // changed in place.
  struct Data {
    std::string arg, path;
  };
  std::vector<Data> inputs, references;
  // CPU, and wary runs: further numbers for arguments of role "input", each list with the answers to it.
  // The candidate is asked for one of these answers at a moment it cannot know. Empty: its inputs never
  // change, and an answer kept from an earlier call is not found out.
  struct InputSet {
    std::vector<Data> inputs, references;
  };
  std::vector<InputSet> others;
  // Which of them it is asked for, counted from 1; 0: one that is drawn.
  int prove_with = 0;
  CheckSpec check;
  double min_repeat_ms = 1;  // one sample is as many calls as last this long
  int repeats = 9;           // samples at most
  // Sampling may stop early at this precision of the median; 0: take all `repeats`. See sampling.h.
  double precision = 0.02;
  double run_timeout_s = 10;  // wall clock from fork (GPU: its turn) to exit, less its waits for a core
  // CPU: limits the resident size of the candidate's process. GPU: limits its operands on the device.
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_above_ns = 0;   // stop after a warm sample above this; 0: never
  double slow_above_ns = 0;  // stop once the median is certainly above this; 0: never
  // CPU only: flush constants, packed or not, out of the caches before each timed call; a sample is then
  // one call. Changes nothing without constants.
  bool cold_constants = false;
  // CPU only. `calm_pulse_ns`: an undisturbed pulse at an even clock (pulse.h); 0: not known. `patience_ms`:
  // how long disturbed calls may be repeated, all together (in a race: per turn), before they count; 0: no
  // pulses, every call counts.
  double calm_pulse_ns = 0, patience_ms = 50;
  std::vector<int> cpus;  // CPUs to pin the kernel's threads to (GPU: the launching thread); empty: not
                          // pinned
  // GPU only: the device, by the driver's count, and the state of its caches.
  int device = 0;
  std::string device_uuid;  // for the lock that RunnerClient takes (device_lock.h); not sent. Empty: none
  Caches caches = Caches::kWarm;
  // GPU only: a file with the kernels that compare outputs and inputs on the device (device_check.h).
  // Empty: they are copied to the host for that.
  std::string checker;
  // What the candidate does is looked at more closely, at the price of times that may differ a little from
  // those of other runs (changing_inputs.h, float_mode.h). GPU: in a fresh context, each timed call begins
  // with empty caches, whatever `caches` says (device_wary.h); a race is not wary.
  bool wary = false;
};

// The first element of an output that was found to be wrong: both values as text, "nan" among them.
struct Difference {
  std::string output;
  std::vector<int64_t> index;  // empty: no single element was seen to differ
  std::string found, expected;
};

struct RunReply {
  uint64_t id = 0;
  // kBuildError: cannot be loaded. None: see `error`.
  std::optional<Outcome> outcome;
  std::string message;    // "out[0, 3, 17, 5] is 1.25, reference 1.5, tolerance 1e-4"; "signal 11 (SIGSEGV)"
  Difference difference;  // of kWrongAnswer
  bool doubted = false;   // of kCrashed: nothing ended it; its times cannot be true
  // Per call, one value per sample: wall clock, and CPU time of the calling thread.
  std::vector<double> run_ns, cpu_ns;
  bool cut = false;
  std::string isolation;  // CPU only: the level reached, see isolation.h
  int input_sets = 1;     // how many inputs the candidate was run on
  double max_error = 0;   // in units of the tolerance
  double sentinel_before_ns = 0, sentinel_after_ns = 0;
  // Times of the memory sentinel; 0: not timed, because the operands fit the core's own caches or run on a
  // GPU.
  double memory_before_ns = 0, memory_after_ns = 0;
  // CPU only: how many of run_ns were taken while the core was not calm; how many slices of calls were
  // taken (0: not counted), and how many of these repeated because of that; one of the fastest of the
  // latest pulses, at an even clock.
  int disturbed = 0, slices = 0, retaken = 0;
  double pulse_ns = 0;
  bool exact_clock = false;  // run_ns are of a device's clock that says the same of every call
  double run_ms = 0;         // from fork to the end of the check
  double check_ms = 0;       // part of run_ms: the comparison of the outputs with the reference
  std::string device_state;  // GPU: clocks, temperature, throttling right after timing; see nvml.h
  // Further numbers of the run, named as in the record's message (record.proto, of_run). They travel from
  // the candidate's process to the record, and no code in between knows them. Range: 0 to 1e9.
  std::map<std::string, double> facts;
  // If not empty, the runner could not do its part (missing file, no memory, ...). This says nothing about
  // the candidate, and there is no `outcome`. RunnerClient turns it into a Status.
  std::string error;
  bool refused = false;      // set together with `error`: the request itself is wrong, and will be so again
  bool device_sick = false;  // set together with `error`: the GPU does not work now, but may later
};

// Candidates for one task, timed against each other in turns: race.h. `base` holds what they have in
// common. Its digest, check, repeats and cut are ignored; its run_timeout_s is for the whole race.
struct RaceRequest {
  struct Candidate {
    std::string digest;
    CheckSpec check;
  };
  RunRequest base;
  std::vector<Candidate> candidates;
  int rounds = 3;         // turns per candidate
  int samples = 3;        // samples per turn of the time that ranks
  int other_samples = 1;  // samples per turn with the other kind of constants; none without constants
  // A turn beside a memory sentinel above this is repeated, like a turn whose own calls were disturbed, if
  // some candidate's operands exceed the core's own caches. This takes at most a second per heat. 0: never.
  double memory_disturbed_above_ns = 0;
};

struct RaceReply {
  uint64_t id = 0;
  // In the order of the request. If the outcome is kOk: run and CPU time per call for each sample of the
  // turns that count, and the sentinels of its turn (mean of before and after; memory_ns is empty if not
  // timed).
  struct Candidate {
    std::optional<Outcome> outcome;  // none: see `error`
    std::string message;
    Difference difference;  // as in RunReply
    bool doubted = false;   // likewise
    std::vector<double> run_ns, cpu_ns, sentinel_ns, memory_ns;
    std::vector<double> other_ns;  // with the other kind of constants
    // Turns taken; turns thrown away because another one was calm; turns that count although they were
    // disturbed.
    int turns = 0, discarded = 0, disturbed = 0;
    int slices = 0, retaken = 0;  // as in RunReply, of all turns
    double pulse_ns = 0;          // likewise
    bool exact_clock = false;     // likewise
    double max_error = 0;
  };
  std::vector<Candidate> candidates;
  double run_ms = 0;
  std::string error;                          // the runner's own trouble, as in RunReply
  bool refused = false, device_sick = false;  // likewise
};

// How long a GPU's driver may take to answer for the first time: 120 s, or $TUNER_DEVICE_START_S. It starts
// with every GPU of the host, and in a container with checks of its own. Later a sixth of it is enough
// (device_host.h).
std::chrono::seconds first_device_start();

// Describes one GPU; see CudaDevice.
struct DeviceInfo {
  std::string family;  // of its targets: TargetFamily::word()
  int ordinal = 0;
  std::string name, arch, uuid;
  int multiprocessors = 0, driver_version = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  double peak_gflops = 0;  // float32 fused multiply-adds, from the data sheet
  // The same of matrix units for 16-bit types and for bytes; 0: none.
  double half_peak_gflops = 0, byte_peak_gflops = 0;
  std::string fingerprint;  // the `hardware` of records made on it

  // The peak for elements of that type: of the fastest unit that kernels use for it.
  double peak_of(DType dtype) const {
    const int64_t bytes = dtype_bytes(dtype);
    const double of_type = bytes == 2 ? half_peak_gflops : bytes == 1 ? byte_peak_gflops : 0;
    return of_type > 0 ? of_type : peak_gflops;
  }
};

// The CPUs' peak rates in G operations per second with 1, 2, .. n threads; a product and its addition count
// as two. Fused multiply-adds for float32, dot products for the smaller types.
struct CpuPeaks {
  std::vector<double> float32, bfloat16, int8;
  // Returns the peak for elements of that type; 0 if it was not measured.
  double of(DType dtype, int threads) const;
};

// Read bandwidths, by the cache that holds all operands.
struct CpuBandwidths {
  struct Level {
    int64_t capacity_bytes = 0;  // per core; for memory, the last level: INT64_MAX
    std::vector<double> gbps;    // of 1, 2, ... n threads together
  };
  std::vector<Level> levels;  // smallest first
  // Returns the bandwidth of the first level that holds `bytes` spread over the threads; 0 if not measured.
  double of(int64_t bytes, int threads) const;
};

// Describes this machine and what it can do.
struct ProbeReply {
  int harness_abi = kHarnessAbi;
  std::string version;   // the runner's: "0.1.0"
  std::string hardware;  // fingerprint, see hardware.h
  // The highest level that candidates get here: none, process or strict (isolation.h), and why no higher
  // one is to be had, or which pieces are missing: one line, empty if everything is there.
  std::string isolation, isolation_missing;
  CpuPeaks peaks;
  CpuBandwidths bandwidths;
  std::vector<DeviceInfo> devices;  // GPUs, as a separate process learned from the driver
  std::string no_device;            // why there are no GPUs; empty if there are some, or if nobody looked
};

struct ProbeRequest {
  int max_threads = 0;        // for peaks and bandwidths; 0: every CPU; -1: measure nothing (a sign of life)
  bool devices_only = false;  // look for GPUs only: the caller already knows peaks and bandwidths
};
// Ends the run with this id, which is then answered with `error` "cancelled". Ignored if that run is over.
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
// Parse a message. InvalidArgument names the key that was not understood. Unknown keys are ignored.
Result<RunnerMessage> parse_runner_message(std::string_view json);
Result<RunRequest> parse_run_request(std::string_view json);
Result<RunReply> parse_run_reply(std::string_view json);
Result<RaceReply> parse_race_reply(std::string_view json);
Result<ProbeReply> parse_probe_reply(std::string_view json);

// "2.00 GiB", for messages.
std::string gib_text(int64_t bytes);

}  // namespace tuner
