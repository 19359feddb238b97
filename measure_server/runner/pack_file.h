// Pack: compiled candidates and how to measure them, in one file, for a host that has a GPU and nothing of
// ours except the runner. `tuner pack` writes it, `runner run-pack` runs it.
//
// The file, little-endian: "TUNERPAK", u32 version (6; 2 to 5 are read too), u32 zero, u64 bytes of the
// index, its SHA-256 (32 bytes), the index (JSON), then the blobs. The index lists each blob's offset from
// the start of the file, size and SHA-256. They are verified when it is read, so a torn or altered pack is
// refused, never run. Blobs are binaries (cubins or shared objects), checking kernels (check_kernels.h) and
// reference answers (reference_file.h); equal blobs are stored once. Inputs follow from their seed
// (input_data.h) and are not stored, unless the operator says what they are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/measure_limits.h"
#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// One round of successive halving: measures all candidates that are left and keeps the fastest.
struct PackRound {
  int repeats = 3;       // samples per candidate, at most
  double keep = 1;       // share of the correct ones that go on, rounded up; 0 < keep <= 1
  int keep_at_most = 0;  // at most this many go on; 0: no limit
};

// The largest values in a plan that run-pack accepts; `tuner pack` refuses others before it compiles.
inline constexpr double kMostMinRepeatMs = kMinRepeatMs.most, kMostRunTimeoutS = kRunTimeoutS.most,
                        kMostDeadlineS = 1e9;

// What one candidate may take in a round.
struct PackLimits {
  double run_timeout_s = 2;
  int64_t memory_limit_bytes = int64_t{4} << 30;
};

struct PackPlan {
  std::vector<PackRound> rounds;
  double min_repeat_ms = 1;
  PackLimits limits;        // of a task that has none of its own
  double cut_factor = 3;    // no more samples of a candidate slower than this times its task's best; 0: never
  double deadline_s = 600;  // for the whole run, unless the command line sets another
  Caches caches = Caches::kWarm;
};
// Returns three rounds: 3 samples of each; 10 of the best quarter; 50 of the ten best.
PackPlan default_pack_plan();

// The reason why a candidate is in a pack.
enum class PackPick : uint8_t {
  kDefault,   // its template's default config
  kKnown,     // one of the fastest in a database
  kEstimate,  // one of the fastest by estimate
  kRandom,    // drawn at random
};
std::string_view pack_pick_name(PackPick pick);  // "default", "known", "estimate", "random"

struct PackCandidate {
  std::string template_name, config;
  int template_version = 0;
  double build_ms = 0;
  PackPick picked = PackPick::kRandom;
  // Estimates made before anything ran. Results repeat them, so that the estimates can be judged.
  double estimated_ns = 0;  // 0: no estimate for this target
  int predicted_rank = -1;  // rank among the candidates of its task, 0 is the fastest; -1: no estimate
  Artifact artifact;        // when read from a file: only the manifest, see PackFile::artifact()
};

struct PackTask {
  std::string workload_key;
  std::string target;  // the target in the records: "cuda -arch=sm_90a", or "... -emulated"
  uint64_t input_seed = 0;
  // Inputs, in the order of the workload's arguments: random_values(input_seed, position, count, dtype),
  // times `factor`, which is drawn_factor() (templates/workload/tolerance.h). One that is `stored` has its
  // bytes in the pack instead; as read from a file see PackFile::input().
  struct Input {
    std::string arg;
    int position = 0;
    int64_t count = 0;
    DType dtype = DType::kFloat32;
    float factor = 1;
    bool stored = false;
    std::string bytes;
  };
  std::vector<Input> inputs;
  std::string input_bytes(const Input& input) const;  // its elements, as they lie in memory
  struct Reference {
    std::string arg;
    std::string bytes;  // content of a reference file; empty when read from a pack, see PackFile::reference()
  };
  std::vector<Reference> references;
  // The cubin of check_kernels.h, for tasks on a GPU; empty: outputs are compared on the host. As read from a
  // pack see PackFile::checker().
  std::string checker;
  CheckSpec check;
  std::optional<PackLimits> limits;  // none: the plan's
  // What the workload's key names by digest (templates/workload/key_document.h); empty: it names nothing.
  // Results repeat it, because whoever reads them needs it to read the key. As read from a pack see
  // PackFile::document().
  std::string document;
  std::vector<PackCandidate> candidates;  // in the order in which they are measured
};

struct Pack {
  std::string about;  // for people: what made the pack
  PackPlan plan;
  std::vector<PackTask> tasks;
  const PackLimits& limits_of(const PackTask& task) const { return task.limits ? *task.limits : plan.limits; }
};

// Writes the whole file or none (OutputFile). InvalidArgument: the pack is inconsistent.
Status write_pack(const Pack& pack, const std::string& path);

// A pack on disk. Blobs are read on demand.
class PackFile {
 public:
  // Checks the whole index. InvalidArgument names the file and what is wrong with it.
  static Result<PackFile> open(const std::string& path);

  const Pack& pack() const { return pack_; }
  const std::string& id() const { return id_; }  // SHA-256 of the index; no two packs share it
  // Failed: the bytes are not those that were written.
  Result<Artifact> artifact(size_t task, size_t candidate) const;
  Result<std::string> reference(size_t task, size_t output) const;
  Result<std::string> checker(size_t task) const;  // empty: there is none
  Result<std::string> input(size_t task, size_t input) const;
  Result<std::string> document(size_t task) const;  // empty: there is none
  // Reads all blobs, one at a time. InvalidArgument: one is not as it was written.
  Status verify() const;

 private:
  struct Blob {
    int64_t offset = 0, bytes = 0;
    std::string sha256;
  };
  Result<std::string> read(size_t blob) const;

  std::string path_, id_;
  std::shared_ptr<const int> fd_;  // closed with the last copy of this object
  Pack pack_;
  std::vector<Blob> blobs_;
  std::vector<std::optional<size_t>> checkers_, documents_;  // index of the blob for [task]
  std::vector<std::vector<std::optional<size_t>>> inputs_;   // for [task][input], where it is stored
  std::vector<std::vector<size_t>> binaries_, references_;   // index of the blob for [task][candidate] and
                                                             // [task][output]

  friend class PackIndexReader;
};

}  // namespace tuner
