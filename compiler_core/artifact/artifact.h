// Artifact: an ELF shared object, a cubin or PTX, with the manifest that says how to call it. What was
// measured is exactly what is shipped.
//
// Stored as two files, DIGEST.so (or DIGEST.KIND, as in DIGEST.cubin) and DIGEST.json, where DIGEST is the
// SHA-256 of the binary in hex. The manifest is JSON; unknown keys are ignored, so older runners read newer
// manifests of the same ABI. Needs neither LLVM nor gRPC.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/buffer_role.h"
#include "compiler_core/base/dtype.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/tensor_map.h"

namespace tuner {

// One argument of an entry, in call order.
struct ArgInfo {
  std::string name;
  BufferRole role = BufferRole::kInput;  // never kIntermediate
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::string layout;  // for people: "NCHW", "[N/32][K][32]"...
  int64_t bytes = 0;

  bool is_result() const { return tuner::is_result(role); }
};

// A parameter of a launch that is no pointer: a tensor map of 128 bytes, passed by value, which the driver
// encodes of this and of the address of an operand.
struct LaunchTensorMap {
  int operand = 0;  // as in LaunchInfo::params: an argument, or behind them a workspace
  TensorMap map;
};

// A parameter that is a number, of a user's kernel.
struct LaunchScalar {
  int place = 0;      // among the parameters, counted from 0
  std::string bytes;  // 1 to 8, as it lies in memory
};

// One kernel launch of a cubin, and what its compiler reported.
struct LaunchInfo {
  std::string kernel;  // symbol
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic shared memory
  // Its parameters are device pointers: i < args.size() is argument i, else workspace i - args.size().
  std::vector<int> params;
  std::vector<LaunchScalar> scalars;         // parameters between those, by place
  std::vector<LaunchTensorMap> tensor_maps;  // parameters behind those
  int registers = 0;                         // per thread
  int spill_bytes = 0, stack_bytes = 0;      // per thread, in local memory
  int blocks_per_sm = 0;                     // blocks that fit a multiprocessor at once; 0: not known

  // All parameters in their order, but for tensor maps: f(place in `params`, null) or f(-1, a scalar).
  template <class F>
  void for_each_parameter(const F& f) const {
    size_t scalar = 0, pointer = 0;
    for (size_t place = 0; place < params.size() + scalars.size(); ++place) {
      const bool is_scalar = scalar < scalars.size() && scalars[scalar].place == static_cast<int>(place);
      is_scalar ? f(-1, &scalars[scalar++])
                : f(static_cast<int>(pointer++), static_cast<const LaunchScalar*>(nullptr));
    }
  }
};

// What a binary is; other back ends have words of their own (a-z, 0-9 and _).
namespace binary_kind {
inline constexpr std::string_view kSharedObject = "shared_object", kCubin = "cubin", kPtx = "ptx";
// True of what a CUDA driver loads and launches.
inline bool is_launched(std::string_view kind) { return kind == kCubin || kind == kPtx; }
}  // namespace binary_kind

struct Manifest {
  // 2: has pack_launches, 3: has tensor maps, 4: has scalars, which older programs would leave out.
  int abi_version = 1;
  std::string kind{binary_kind::kSharedObject};  // which is also meant when JSON has no "kind"
  std::string entry;                             // symbol of the kernel
  std::vector<ArgInfo> args;
  std::string pack_entry;          // empty if nothing is packed
  std::vector<ArgInfo> pack_args;  // constants first, then packed
  int64_t workspace_bytes = 0;     // shared by all threads of a call
  int64_t workspace_bytes_per_thread = 0;
  int threads = 1;
  std::string target;     // canonical name
  std::string toolchain;  // "llvm 22.1.8 codegen 1"
  std::string digest;     // artifact_digest()
  // Of code that a user's compiler made: the system's libraries it needs, by soname (may_be_needed()); and
  // whether it starts threads of its own, up to `threads` at a time, in place of taking the host's.
  std::vector<std::string> libraries;
  bool own_threads = false;
  // Before each call that is timed its inouts are what they were before the first, since what they hold may
  // decide how long it takes. Else calls add to what others left.
  bool restores_inout = false;
  // Cubins only: what to launch, in order, on one stream; and the bytes of uninitialised device memory that
  // the caller must provide.
  std::vector<LaunchInfo> launches;
  std::vector<int64_t> workspaces;
  // Once before all calls: their parameters are places in pack_args. Empty: nothing is packed.
  std::vector<LaunchInfo> pack_launches;

  std::string to_json() const;  // one line
};
// Reads Manifest::to_json(). InvalidArgument names the key; another abi_version is refused.
Result<Manifest> parse_manifest(std::string_view json);

struct Artifact {
  Manifest manifest;
  std::string binary;  // ELF bytes of either kind
};

// ".so" of a shared object, else a dot and the kind: ".cubin".
std::string binary_ending(std::string_view kind);

// Writes DIGEST.so (or .cubin) and DIGEST.json into `directory` (temp, fsync, rename) and returns the
// digest. Saving it twice changes nothing. With kCached, load_artifact() detects a file torn by a power
// loss.
Result<std::string> save_artifact(const Artifact& artifact, const std::string& directory,
                                  Durability durability = Durability::kSynced);
// Reads an artifact and verifies its digest.
Result<Artifact> load_artifact(const std::string& directory, const std::string& digest);
// Where its binary and its manifest are, whether or not they are there. A damaged manifest is taken for
// that of a shared object.
std::vector<std::string> artifact_files(const std::string& directory, const std::string& digest);
void remove_artifact(const std::string& directory, const std::string& digest);
// The sonames of the shared libraries that it needs; none of a file that is no ELF file of 64 bits, or is
// damaged.
std::vector<std::string> needed_libraries(std::string_view binary);
// True of the libraries that kernels may need: those of C, C++, their math and OpenMP. Each is on any host
// that has compilers.
bool may_be_needed(std::string_view soname);
// The names that its dynamic symbols have: those that it takes from elsewhere, and those that it offers.
// None of a file that is no ELF file of 64 bits, or is damaged.
struct DynamicSymbols {
  std::vector<std::string> imported, exported;
};
DynamicSymbols dynamic_symbols(std::string_view binary);
// Bytes of instructions in a binary: its sections that may be executed. 0: it is no ELF file of 64 bits, or
// is damaged.
int64_t code_bytes(std::string_view binary);

// An artifact as one run of bytes, for the wire: its manifest as one line, a newline, the binary.
std::string artifact_blob(const Artifact& artifact);
// InvalidArgument: it is none, or its manifest names another digest than its bytes have.
Result<Artifact> parse_artifact_blob(std::string_view blob);

// What names an artifact: the SHA-256 of a shared object; of any other binary with its manifest, because
// the same cubin launched otherwise is another kernel.
std::string artifact_digest(const Artifact& artifact);

// Returns the SHA-256 of the bytes as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tuner
