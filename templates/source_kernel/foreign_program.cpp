#include "templates/source_kernel/foreign_program.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "_Bool";
    case DType::kInt8:
      return "int8_t";
    case DType::kUInt8:
      return "uint8_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kUInt16:
      return "uint16_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kUInt32:
      return "uint32_t";
    case DType::kInt64:
      return "int64_t";
    case DType::kUInt64:
      return "uint64_t";
    case DType::kFloat16:
      return "_Float16";
    case DType::kBFloat16:  // its bits: not every compiler has the type
      return "uint16_t";
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
  }
  return "void";
}

// A literal of exactly this value.
std::string number_text(double number, DType dtype) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", number);
  return str("(", c_type(dtype), ")", text);
}

std::string type_of(const SourceArgument& a, bool cxx) {
  return a.dtype == DType::kBool && cxx ? "bool" : std::string(c_type(a.dtype));
}

// As it lies in memory.
std::string scalar_bytes(const SourceArgument& a) {
  std::string bytes(static_cast<size_t>(dtype_bytes(a.dtype)), '\0');
  const auto narrow = static_cast<float>(a.number);
  const void* const from = a.dtype == DType::kFloat32   ? static_cast<const void*>(&narrow)
                           : a.dtype == DType::kFloat64 ? static_cast<const void*>(&a.number)
                                                        : static_cast<const void*>(&a.integer);
  std::memcpy(bytes.data(), from,
              bytes.size());  // of integers the first bytes: all our hosts are little endian
  return bytes;
}

ForeignCode::Parameter parameter(const SourceArgument& a, size_t operand) {
  const std::string type = a.dtype == DType::kBool ? "bool" : std::string(c_type(a.dtype));
  if (a.scalar) return {.type = type, .name = a.name, .bytes = scalar_bytes(a)};
  return {.type = str(a.role == SourceRole::kIn ? "const " : "", type, "*"),
          .name = a.name,
          .operand = static_cast<int>(operand)};
}

std::string argument_text(const SourceArgument& a, size_t operand, bool cxx) {
  const std::string type = type_of(a, cxx);
  if (!a.scalar) return str("(", a.role == SourceRole::kIn ? "const " : "", type, "*){", operand, "}");
  if (is_float(a.dtype)) return number_text(a.number, a.dtype);
  // The least number of 64 bits has no literal.
  return a.integer == INT64_MIN ? "INT64_MIN"
                                : str("(", type, ")", a.integer, a.dtype == DType::kInt64 ? "LL" : "");
}

BufferRole role_of(SourceRole role) {
  return role == SourceRole::kIn    ? BufferRole::kInput
         : role == SourceRole::kOut ? BufferRole::kOutput
                                    : BufferRole::kInOut;
}

// The files that compilers see: not arrays, and of kernels that come compiled none but `only`.
std::shared_ptr<const std::vector<ForeignCode::File>> files_of(const SourceKernel& kernel,
                                                               const std::string& only) {
  auto files = std::make_shared<std::vector<ForeignCode::File>>();
  for (const SourceFile& file : kernel.files) {
    const bool is_ready = kernel.is_ready_file(file.name);
    if (is_ready ? file.name == only : !file.name.ends_with(".npy")) files->push_back({file.name, file.text});
  }
  return files;
}

// `code` called with the kernel's arguments; its words get the config's definitions.
Program called(const SourceKernel& kernel, ForeignCode code, const Config& config) {
  Program program{.name = "tuner_kernel"};
  code.files = files_of(kernel, code.source);
  for (std::string& word : kernel.definitions(config)) code.words.push_back(std::move(word));
  for (const SourceArgument& a : kernel.arguments) {
    code.arguments.push_back(argument_text(a, program.args.size(), code.cxx));
    code.parameters.push_back(parameter(a, program.args.size()));
    if (!a.scalar)
      program.args.push_back(make_buffer(a.name, a.dtype, a.shape, MemoryScope::kGlobal, role_of(a.role)));
  }
  program.foreign = std::make_shared<const ForeignCode>(std::move(code));
  return program;
}

// A kernel of a GPU. The config is in the space, so its launch is one.
Program device_program(const SourceKernel& kernel, const Config& config) {
  const Result<ForeignLaunch> launch = launch_of(kernel, config);
  CHECK(launch) << "a config outside of its space: " << launch.message();
  const ReadyKernel* const ready = ready_kernel(kernel, config);
  return called(
      kernel,
      {.cxx = true,
       .compiler = ready == nullptr ? kernel.cuda_compiler()
                                    : std::string(kSourceLanguages[static_cast<size_t>(kernel.language)]),
       .words = kernel.flags_of(config),
       .source = ready == nullptr ? kernel.source : ready->file,
       .function = ready == nullptr ? kernel.function : ready->function,
       .launch = *launch},
      config);
}

}  // namespace

Config default_config(const SourceKernel& kernel) {
  std::map<std::string, int64_t> values;
  for (const SourceKnob& knob : kernel.knobs)
    values[knob.name] = knob.words.empty() ? knob.numbers[knob.first] : static_cast<int64_t>(knob.first);
  return Config(std::move(values));
}

namespace {

Program command_program(const SourceKernel& kernel, const Config& config) {
  const SourceCommand& command = *kernel.command;
  const Result<ResultScale> scale = result_scale(kernel);
  CHECK(scale) << "a kernel was not checked: " << scale.message();
  ForeignCommand made{.pattern = command.pattern,
                      .unit = command.unit,
                      .scale_ns = command.pattern.empty() ? 1 : scale->scale_ns,
                      .is_rate = !command.pattern.empty() && scale->is_rate};
  for (const std::string& word : command.build) made.build.push_back(kernel.expanded(word, config));
  for (const std::string& word : command.run) made.run.push_back(kernel.expanded(word, config));
  for (const auto& [name, value] : command.environment)
    made.environment.push_back(str(name, "=", kernel.expanded(value, config)));
  auto files = std::make_shared<std::vector<ForeignCode::File>>();
  for (const SourceFile& file : kernel.files) files->push_back({file.name, file.text});
  Program program{.name = "tuner_kernel"};
  program.foreign = std::make_shared<const ForeignCode>(
      ForeignCode{.files = std::move(files),
                  .compiler = kernel.compiler,
                  .words = kernel.definitions(config),
                  .command = std::make_shared<const ForeignCommand>(std::move(made))});
  return program;
}

}  // namespace

Program program_of(const SourceKernel& kernel, const Config& config) {
  if (kernel.command) return command_program(kernel, config);
  if (kernel.on_device()) return device_program(kernel, config);
  return called(kernel,
                {.cxx = kernel.is_cxx(kernel.source),
                 .compiler = kernel.compiler,
                 .words = kernel.flags_of(config),
                 .source = kernel.source,
                 .function = kernel.function},
                config);
}

Program reference_program(const SourceKernel& kernel) {
  const Config config = default_config(kernel);
  const SourceReference& reference = kernel.reference;
  if (reference.from != ReferenceFrom::kFunction) return program_of(kernel, config);
  // A GPU's flags are not the host's.
  return called(
      kernel,
      {.cxx = kernel.is_cxx(reference.source),
       .compiler = kernel.host_compiler(),
       .kernel_compiler = kernel.language == SourceLanguage::kCuda ? kernel.cuda_compiler() : std::string(),
       .words = kernel.expanded(kernel.on_device() ? reference.flags : kernel.flags, config),
       .source = reference.source,
       .function = reference.function},
      config);
}

}  // namespace tuner
