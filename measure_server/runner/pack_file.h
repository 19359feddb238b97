// Pack: compiled candidates and how to measure them, in one file, for a host that has a GPU and nothing of
// ours but the runner. Written by `tuner pack`, run by `runner run-pack`.
//
// The file, little-endian: "TUNERPAK", u32 version (3; 2 is read), u32 zero, u64 bytes of the index, its
// SHA-256 (32 bytes), the index (JSON), then the blobs. Each blob stands in the index with its offset from
// the start of the file, its size and its SHA-256, which are verified when it is read: a torn or altered pack
// is refused, never run. Blobs are binaries (cubins or shared objects) and reference answers
// (reference_file.h); the same bytes are stored once. Inputs are not stored: they follow from their seed
// (input_data.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// One round of successive halving: measure all that are left, keep the fastest.
struct PackRound {
  int repeats = 3;       // samples of each candidate at most
  double keep = 1;       // share of the right ones that go on, rounded up; 0 < keep <= 1
  int keep_at_most = 0;  // and no more than so many; 0: no such limit
};

// Of a plan that run-pack takes; `tuner pack` refuses others before it compiles.
inline constexpr double kMostMinRepeatMs = 1e6, kMostRunTimeoutS = 1e6, kMostDeadlineS = 1e9;

struct PackPlan {
  std::vector<PackRound> rounds;
  double min_repeat_ms = 1, run_timeout_s = 2;
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_factor =
      3;  // a candidate slower than this times the best of its task is not sampled on; 0: never
  double deadline_s = 600;  // of the whole run, when nobody says another
  Caches caches = Caches::kWarm;
};
// 3 samples each; the best quarter 10; the ten best 50.
PackPlan default_pack_plan();

// Why a candidate is in a pack.
enum class PackPick : uint8_t {
  kDefault,   // of its template
  kEstimate,  // among the fastest by estimate
  kRandom,    // drawn evenly
};
std::string_view pack_pick_name(PackPick pick);  // "default", "estimate", "random"

struct PackCandidate {
  std::string template_name, config;
  int template_version = 0;
  double build_ms = 0;
  PackPick picked = PackPick::kRandom;
  // What was expected of it before anything ran; results repeat it, so that the estimate can be judged.
  double estimated_ns = 0;  // 0: no estimate for this target
  int predicted_rank = -1;  // among the candidates of its task, 0 the fastest; -1: no estimate
  Artifact artifact;        // as read from a file: only the manifest, see PackFile::binary()
};

struct PackTask {
  std::string workload_key;
  std::string target;  // of the records: "cuda -arch=sm_90a", or "... -emulated"
  uint64_t input_seed = 0;
  // Inputs, in the order of the workload's arguments: random_values(input_seed, position, count, dtype).
  struct Input {
    std::string arg;
    int position = 0;
    int64_t count = 0;
    DType dtype = DType::kFloat32;
  };
  std::vector<Input> inputs;
  struct Reference {
    std::string arg;
    std::string bytes;  // of a reference file; as read from a file: empty, see PackFile::reference()
  };
  std::vector<Reference> references;
  CheckSpec check;
  std::vector<PackCandidate> candidates;  // in the order they are to be measured
};

struct Pack {
  std::string about;  // for people: what made it
  PackPlan plan;
  std::vector<PackTask> tasks;
};

// Whole or not at all (OutputFile). InvalidArgument when the pack makes no sense.
Status write_pack(const Pack& pack, const std::string& path);

// A pack on disk. Blobs are read when asked for.
class PackFile {
 public:
  // InvalidArgument naming the file and what is wrong with it. The whole index is checked.
  static Result<PackFile> open(const std::string& path);

  const Pack& pack() const { return pack_; }
  const std::string& id() const { return id_; }  // SHA-256 of the index: two packs differ in it
  // Failed when the bytes are not those that were written.
  Result<Artifact> artifact(size_t task, size_t candidate) const;
  Result<std::string> reference(size_t task, size_t output) const;
  // Reads all blobs, one at a time. InvalidArgument when one is not what was written.
  Status verify() const;

 private:
  struct Blob {
    int64_t offset = 0, bytes = 0;
    std::string sha256;
  };
  Result<std::string> read(size_t blob) const;

  std::string path_, id_;
  std::shared_ptr<const int> fd_;  // closed with the last copy
  Pack pack_;
  std::vector<Blob> blobs_;
  std::vector<std::vector<size_t>> binaries_, references_;  // blob of [task][candidate], [task][output]

  friend class PackIndexReader;
};

}  // namespace tuner
