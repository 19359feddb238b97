// Checks on the device: what large outputs come to, and whether inputs are as they were, without a copy to
// the host. Kernels: check_kernels.h.
//
// Also keeps the inputs of tasks on the device, so that candidates in turn do not upload them anew: each
// candidate works on copies, and the originals are what its inputs are compared with in the end. Nothing
// keeps a kernel from writing to them, so their hash is compared before each use.
//
// A call waits for the device. One context, one thread; everything here must go before the context does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "compiler_core/runtime/cuda_objects.h"
#include "measure_server/runner/reference_file.h"

namespace tuner {

class DeviceChecks {
 public:
  // Loads the kernels. `memory_bytes`: of the device; a quarter of it may hold inputs.
  static cuda::CallStatus load(std::string_view cubin, int64_t memory_bytes, DeviceChecks& out);

  // True if there are kernels for outputs of this type.
  static bool knows(DType dtype);
  // Adds up an output that is kept as `reference`, a reference of checksums.
  cuda::CallStatus sums(cuda::DevicePtr output, DType dtype, const ReferenceView& reference,
                        const cuda::DeviceStream& stream, OutputSums& found);
  cuda::CallStatus equal(cuda::DevicePtr a, cuda::DevicePtr b, int64_t bytes,
                         const cuda::DeviceStream& stream, bool& same);

  // The original of this name; `address` 0: it is not there, or somebody wrote to it. Valid until the next
  // keep().
  cuda::CallStatus original(const std::string& name, const cuda::DeviceStream& stream,
                            cuda::DevicePtr& address);
  // Uploads an original; those used longest ago make room. Does nothing if it does not fit.
  cuda::CallStatus keep(const std::string& name, std::string_view bytes, const cuda::DeviceStream& stream);
  void forget_originals() { originals_.clear(); }

 private:
  struct Original {
    cuda::DeviceMemory memory;
    uint64_t hash = 0, used = 0;
  };
  cuda::CallStatus launch(const std::string& kernel, int64_t blocks_x, int64_t blocks_y, void** params,
                          const cuda::DeviceStream& stream);
  cuda::CallStatus scratch(int64_t bytes);
  // Launches a kernel over bytes that adds to one word, and returns the word.
  cuda::CallStatus reduce(const std::string& kernel, void** params, int64_t bytes,
                          const cuda::DeviceStream& stream, uint64_t& word);
  cuda::CallStatus hash(const cuda::DeviceMemory& memory, const cuda::DeviceStream& stream, uint64_t& found);

  cuda::DeviceModule module_;
  std::map<std::string, cuda::Function> functions_;
  cuda::DeviceMemory scratch_;
  std::map<std::string, Original> originals_;
  int64_t capacity_bytes_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace tuner
