// Artifact: what was measured is exactly what is shipped: an ELF shared object and the manifest that says how
// to call it.
//
// Stored as two files, DIGEST.so and DIGEST.json, where DIGEST is the SHA-256 of the shared object in hex.
// The manifest is JSON; unknown keys are ignored, so older runners read newer manifests of the same ABI.
// Needs neither LLVM nor gRPC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

// One argument of an entry, in call order.
struct ArgInfo {
  std::string name;
  std::string role;  // input | constant | packed | output
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::string layout;  // "NCHW", "[N/32][K][32]"...: for people
  int64_t bytes = 0;
};

struct Manifest {
  int abi_version = 1;
  std::string entry;  // symbol of the kernel
  std::vector<ArgInfo> args;
  std::string pack_entry;          // empty when nothing is packed
  std::vector<ArgInfo> pack_args;  // constants first, then packed
  int64_t workspace_bytes = 0;     // shared by all threads of a call
  int64_t workspace_bytes_per_thread = 0;
  int threads = 1;
  std::string target;     // canonical name
  std::string toolchain;  // "llvm 22.1.8 codegen 1"
  std::string digest;     // SHA-256 of the shared object, hex

  std::string to_json() const;  // one line
};
Result<Manifest> parse_manifest(std::string_view json);

struct Artifact {
  Manifest manifest;
  std::string shared_object;  // ELF bytes
};

// Writes DIGEST.so and DIGEST.json into `directory` (temp, fsync, rename) and returns the digest. Twice is
// once.
Result<std::string> save_artifact(const Artifact& artifact, const std::string& directory);
// Reads and verifies the digest.
Result<Artifact> load_artifact(const std::string& directory, const std::string& digest);

std::string sha256_hex(std::string_view bytes);

}  // namespace tuner
