// SourceKernel: a kernel that its user wrote in C, C++ or CUDA, or brings compiled, or a whole program of
// his, with knobs, as a job file describes it (docs/own_kernels.md).
//
// A value that has been checked: expressions parse and name what exists, shapes fit, names are names of C,
// flags are allowed, the default is valid. It is immutable and shared; any thread may read it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "templates/source_kernel/source_command.h"
#include "templates/source_kernel/source_launch.h"
#include "templates/space/config_space.h"
#include "templates/space/formula.h"

namespace tuner {

enum class SourceLanguage : uint8_t { kC, kCxx, kCommand, kCuda, kPtx, kCubin };
inline constexpr std::string_view kSourceLanguages[] = {"c", "c++", "command", "cuda", "ptx", "cubin"};

// A file of the job's folder, or of a folder below it.
struct SourceFile {
  std::string name;  // relative, "/" between folders, no ".."
  std::string text;  // or bytes: of a .npy file
};

// What a buffer holds before a call. Where it is an output, that is the poison of every run, and this is not
// asked.
enum class ContentsKind : uint8_t { kRandom, kZeros, kIota, kFile };
struct Contents {
  ContentsKind kind = ContentsKind::kRandom;
  // Of kRandom: evenly from [low, high); of integers, both included. Without a range: [-1, 1), all of int8
  // and uint8, -1000 to 1000.
  bool has_range = false;
  double low = 0, high = 0;
  std::string file;  // of kFile: a .npy of the argument's type and shape
};

enum class SourceRole : uint8_t { kIn, kOut, kInOut };
inline constexpr std::string_view kSourceRoles[] = {"in", "out", "inout"};  // in job files, in that order

// An argument of the function, in its order.
struct SourceArgument {
  std::string name;
  DType dtype = DType::kFloat32;
  bool scalar = false;
  // Of a buffer: row-major.
  SourceRole role = SourceRole::kIn;
  std::vector<int64_t> shape;
  Contents contents;
  double absolute = 0, relative = 0;  // of an output: |out - reference| <= absolute + relative * |reference|
  // Of a scalar: `integer`, or `number` if dtype is a type of floats.
  int64_t integer = 0;
  double number = 0;

  int64_t elements() const;
};

// A knob: numbers, ascending, or words.
struct SourceKnob {
  std::string name;
  std::vector<int64_t> numbers;
  std::vector<std::string> words;
  size_t first = 0;  // place of the value to try first

  size_t size() const { return words.empty() ? numbers.size() : words.size(); }
  // As it reaches the source.
  std::string text(size_t place) const {
    return words.empty() ? std::to_string(numbers[place]) : words[place];
  }
};

// Declares knobs and the constraints between them, in which sizes may stand. What formulas over them may name
// comes back. InvalidArgument: an expression that the space cannot have.
Result<std::map<std::string, Formula::InSpace>> declare_knobs(const std::vector<SourceKnob>& knobs,
                                                              const std::vector<Formula>& constraints,
                                                              const std::map<std::string, int64_t>& sizes,
                                                              ConfigSpace& space);

// What the right answer is.
enum class ReferenceFrom : uint8_t { kFunction, kArrays, kDefaultConfig };
struct SourceReference {
  ReferenceFrom from = ReferenceFrom::kDefaultConfig;
  std::string source, function;    // kFunction: a file of `files`, and its function with the same arguments
  std::vector<std::string> flags;  // of it, where the kernel is one of a GPU; else it has the kernel's
  std::map<std::string, std::string> arrays;  // kArrays: a .npy file for each output
};

struct SourceKernel {
  SourceLanguage language = SourceLanguage::kC;
  std::string source, function;  // the file, and the function in it; of ready kernels no file
  std::vector<SourceFile>
      files;  // the source and what it includes from the user's folders; the reference's; arrays. By name
  std::map<std::string, int64_t> sizes;
  std::vector<SourceArgument> arguments;
  std::vector<SourceKnob> knobs;  // by name
  std::vector<Formula> constraints;
  // Names of the operator's list that a worker needs: "cc"; of a command commands_needed(). Of a kernel of a
  // GPU an nvcc, unless NVRTC compiles it, and what compiles the reference function, unless there is none:
  // "nvcc,cc", "nvcc", "cc" or nothing.
  std::string compiler;
  std::vector<std::string> flags;  // {NAME} stands for a knob or size
  int64_t flops = 0, bytes = 0;    // of a call; 0: not said
  SourceReference reference;
  // Of kCommand: then there are no arguments and no flags, `source` is empty, `function` is command_name(),
  // and nothing is checked.
  std::optional<SourceCommand> command;
  // Of a kernel of a GPU: of kCuda its launch; of kPtx and kCubin the kernels of all configs, which are the
  // space.
  std::optional<SourceLaunch> launch;
  std::vector<ReadyKernel> ready;

  // Whether a name of the operator's list is one of a compiler of CUDA C++: "nvcc", "nvcc-12.4".
  static bool is_nvcc(std::string_view name) { return name.starts_with("nvcc"); }
  bool on_device() const {
    return language == SourceLanguage::kCuda || language == SourceLanguage::kPtx ||
           language == SourceLanguage::kCubin;
  }
  // Of a kernel of a GPU in CUDA C++: kNvrtcCompiler, or the nvcc among `compiler`.
  std::string cuda_compiler() const;
  // What compiles functions of the host's; empty: there are none.
  std::string host_compiler() const;
  // Whether the file is one of `ready`: bytes that no compiler reads.
  bool is_ready_file(std::string_view name) const;
  // Whether a function of this file, or of this kernel if it is one of the host's, is compiled as C++.
  bool is_cxx(std::string_view file_name) const;
  const SourceFile* file(std::string_view name) const;
  // Declares knobs and constraints; those of launches for devices with so much shared memory for a block.
  // InvalidArgument: an expression that the space cannot have.
  Status declare(ConfigSpace& space, int64_t most_shared_bytes = kMostBlockShared) const;
  // One config's words of a compiler's command line, by name: "-DTILE=8", ... Sizes are not among them: a
  // macro `n` would replace a parameter `n`. A flag may define one: "-DN={n}".
  std::vector<std::string> definitions(const Config& config) const;
  // The text with the config's values put in for {NAME}. And so the flags.
  std::string expanded(const std::string& text, const Config& config) const;
  std::vector<std::string> flags_of(const Config& config) const { return expanded(flags, config); }
  std::vector<std::string> expanded(const std::vector<std::string>& texts, const Config& config) const;
};

}  // namespace tuner
