// ForeignCode: C, C++ or CUDA text of a user's, or a whole program of his, where a Program otherwise has
// loops.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tuner {

// A program that is built and run in place of a function. What it takes is what it prints, or its wall clock
// (PrintedResult in artifact/command_bundle.h).
struct ForeignCommand {
  std::vector<std::string> build, run;   // words of one config; `build` may be empty
  std::vector<std::string> environment;  // NAME=VALUE, of both
  std::string pattern, unit;
  double scale_ns = 1;
  bool is_rate = false;
};

// What no device of sm_70 to sm_120 exceeds in a launch: blocks of a grid and threads of a block by axis;
// threads of a block; bytes of shared memory of a block.
inline constexpr std::array<int64_t, 3> kMostGrid{2'147'483'647, 65'535, 65'535}, kMostBlock{1024, 1024, 64};
inline constexpr int64_t kMostBlockThreads = 1024, kMostBlockShared = 232'448;

inline constexpr char kNvrtcCompiler[] = "nvrtc";

// A kernel of a GPU and its launch. Then `source` is the kernel: in CUDA C++, or compiled already.
struct ForeignLaunch {
  enum class Form : uint8_t { kCuda, kPtx, kCubin };
  Form form = Form::kCuda;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};  // within the limits above
  int64_t shared_bytes = 0;                              // dynamic shared memory of each block

  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

struct ForeignCode {
  struct File {
    std::string name, text;  // name: relative, without ".."; text: or bytes, of a cubin
  };
  std::shared_ptr<const std::vector<File>> files;
  bool cxx = false;
  // A name of the operator's list (compilers.h): "cc"; of a command names of commands.h; of a kernel of a GPU
  // in CUDA C++ kNvrtcCompiler or a name of the list: "nvcc".
  std::string compiler;
  // Of the function that says what is right for a kernel of a GPU: what compiles that kernel.
  std::string kernel_compiler;
  std::vector<std::string> words;  // of its command line: flags, -DNAME=value. Checked by whoever made them
  std::string source;              // the file that has the function
  // The function's arguments as C expressions, in its order; {0} is the pointer to the Program's first
  // argument, and so on: "(const float*){0}", "(int32_t)20".
  std::string function;
  std::vector<std::string> arguments;
  // Its parameters as its user may declare them in C: {"const float*", "in"}.
  struct Parameter {
    std::string type, name;
    int operand = -1;   // of a pointer: which of the Program's arguments
    std::string bytes;  // of a scalar: its value, as it lies in memory
  };
  std::vector<Parameter> parameters;
  std::optional<ForeignLaunch> launch;  // of a kernel of a GPU; nothing: a function of the host's
  // If not null, there is no function: source, arguments and parameters are empty, the Program has no
  // arguments, and `words` are what the config would define.
  std::shared_ptr<const ForeignCommand> command;
};

}  // namespace tuner
