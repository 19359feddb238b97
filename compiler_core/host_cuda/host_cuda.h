// Runs a CUDA kernel without a GPU: the C++ compiler of this host compiles its source, and the threads of a
// block become fibers.
//
//   run_host_cuda(kernel, {bytes of each given buffer})  ->  the buffers it wrote, and what is wrong with it
//
// The compiler reports each access to memory, so that these are found:
//   - two threads touch the same bytes between two barriers, and one of them writes another value;
//   - an access outside of a buffer or of an array in shared memory, or one that is not aligned;
//   - a barrier that threads of a block reach at different places, or never; a shuffle of a lane that is not
//     in the mask.
// A run sees what these inputs do: no finding is no proof. What is found was there.
//
// Thread safe. The source is a stranger's: it is compiled and run as foreign/confined_program.h says.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/buffer_role.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {

struct HostCudaArgument {
  std::string name;
  std::string type;  // as the kernel declares it: "const float*", "int32_t"
  // Of a buffer: what it has. Of a scalar: 0, and `value` is a C expression.
  int64_t elements = 0, element_bytes = 0;
  BufferRole role = BufferRole::kInput;
  std::string value;

  bool is_buffer() const { return element_bytes > 0; }
  int64_t bytes() const { return elements * element_bytes; }
};

struct HostCudaKernel {
  std::vector<ForeignCode::File> files;
  std::string source;              // the file that has the kernel
  std::string function;            // with its namespaces and template arguments, as a call names it
  std::vector<std::string> words;  // of the compiler's command line: -DNAME=value. Checked by the caller
  std::string compiler = "c++";    // a name of the operator's list (foreign/compilers.h)
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic shared memory of each block
  std::vector<HostCudaArgument> arguments;
};

struct HostCudaFinding {
  enum class Kind : uint8_t {
    kRace,
    kBounds,
    kAligned,
    kDivergent,
    kStuck,
    kWarp,
    kShared,
    kUnit,
    kInput,
    kNote
  };
  Kind kind;
  std::string text;  // one line; names threads, blocks, and lines of the source

  // A note says what was not looked at, or what old devices do not have; the kernel may be right.
  bool is_fault() const { return kind != Kind::kNote; }
};

struct HostCudaRun {
  // The bytes of each result (output, inout), in the order of the arguments. Empty if the run ended at a
  // fault. What the kernel left unwritten is 0xFF in each byte.
  std::vector<std::string> outputs;
  std::vector<HostCudaFinding> findings;  // at most 16

  // The first fault's text; empty if there is none.
  std::string fault() const;
};

// `given`: the bytes of the arguments of role input, constant and inout, in their order. InvalidConfig: the
// launch is more than a device has, the source does not compile, or the kernel crashes or does not end.
// Unavailable, NotFound: this host has no such compiler, or cannot confine it.
Result<HostCudaRun> run_host_cuda(const HostCudaKernel& kernel, const std::vector<std::string>& given,
                                  std::chrono::milliseconds deadline = std::chrono::milliseconds{60'000});

}  // namespace tuner
