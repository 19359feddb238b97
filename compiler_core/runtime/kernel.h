// Kernel: an artifact brought to life in this process. Loads the exact bytes of the artifact (through a
// memfd, so nothing is left on disk), finds the entries, and unloads when it goes. Loading runs no code of
// the artifact but its constructors, and a kernel of ours has none; a hostile one may crash here, so
// candidates are loaded in a child process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {

class Kernel {
 public:
  using Entry = KernelEntry;

  // Failed when there is no loader for its kind, the loader refuses it, or an entry of the manifest is
  // missing.
  static Result<Kernel> load(const Artifact& artifact);
  // The same from a file.
  static Result<Kernel> load_file(const std::string& path, const Manifest& manifest);

  Entry entry() const { return loaded_.entry; }
  Entry pack_entry() const { return loaded_.pack_entry; }  // null when nothing is packed
  const Manifest& manifest() const { return manifest_; }
  // Bytes `tuner_runtime.workspace` must have for `threads` threads.
  int64_t workspace_bytes(int threads) const {
    return manifest_.workspace_bytes + threads * manifest_.workspace_bytes_per_thread;
  }
  // Calls an entry; Failed with the kernel's own number when it refuses the runtime.
  Status call(void* const* args, const tuner_runtime& rt) const { return checked(entry(), args, rt); }
  Status pack(void* const* args, const tuner_runtime& rt) const { return checked(pack_entry(), args, rt); }

 private:
  Status checked(Entry entry, void* const* args, const tuner_runtime& rt) const;

  LoadedKernel loaded_;
  Manifest manifest_;
};

// `bytes` of memory on a 64-byte border, zeroed; 2 MiB or more on large pages where the system gives them.
// Owned; moves.
class AlignedBuffer {
 public:
  enum class Content : uint8_t {
    kZeros,
    kAny
  };  // kAny: not touched, so that the threads that fill it get the pages

  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t bytes, Content content = Content::kZeros);
  void* data() const { return data_.get(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
  int64_t bytes_ = 0;
};

}  // namespace tuner
