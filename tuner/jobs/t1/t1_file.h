// T1Document: a tuning problem as the autotuning community writes it (the schema is TuningSchema.json of
// github.com/odgaard/TuningSchema; KTT, BAT and Kernel Tuner read such files).
//
// What is here has been read and checked as far as the file alone allows it: expressions parse and name
// parameters, lists of values have values. Nothing is mapped to our words yet: t1_job.h does that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/t1/value_list.h"

namespace tuner::t1 {

struct Parameter {
  std::string name;
  std::vector<Value> values;   // each once, in the order of the file
  std::optional<Value> first;  // "Default", which some tools write; it need not be one of the values
};

enum class Memory : uint8_t { kScalar, kVector, kLocal, kSymbol };
enum class Access : uint8_t { kReadOnly, kWriteOnly, kReadWrite };
enum class Fill : uint8_t { kConstant, kRandom, kGenerator, kFile };  // kFile: a script or a binary file

struct Argument {
  std::string name;
  std::string type;  // in the words of the schema: "float4"
  Memory memory = Memory::kVector;
  std::optional<Access> access;     // empty: the file does not say it
  std::optional<int64_t> elements;  // "Size", computed; empty: there is none, or it depends on a parameter
  std::string elements_why;         // why `elements` is empty
  int64_t type_bytes = 0;           // "TypeSize"; 0: there is none
  Fill fill = Fill::kConstant;
  std::optional<double> fill_value;
  std::string source;  // of a generator or file
};

// One to three expressions over parameters: X, Y, Z, without those at the end that are 1.
using Extents = std::vector<std::string>;

struct Kernel {
  std::string language, function, file;  // as written: "CUDA", "gemm_fast", "gemm.cu"
  Extents global, local;
  bool global_counts_threads = false;  // else blocks
  std::vector<int64_t> problem;        // "ProblemSize" of Kernel Tuner; empty: there is none
  std::vector<std::vector<std::string>>
      grid_div;                      // "GridDivX", ...: what the problem is divided by, per dimension
  std::string shared_bytes;          // an expression; empty: none
  std::vector<std::string> options;  // of the compiler
  std::vector<Argument> arguments;
  std::vector<std::string> references;  // names of outputs that the file gives a reference for
};

struct T1Document {
  std::vector<Parameter> parameters;
  std::vector<std::string> conditions;  // in the syntax of templates/space/formula.h
  Kernel kernel;
  std::optional<int64_t> trials;  // "Budget"
  std::optional<double> seconds;
};

inline constexpr size_t kMostT1Bytes = size_t{1} << 20;

// InvalidArgument in one line that begins with the place: "ConfigurationSpace.Conditions[2].Expression:
// column 5: ...". A job file and files of results are told from others, with what takes them.
Result<T1Document> read_t1(std::string_view text);

}  // namespace tuner::t1
