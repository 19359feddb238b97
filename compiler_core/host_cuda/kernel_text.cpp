#include "compiler_core/host_cuda/kernel_text.h"

#include <regex>

namespace tuner {

std::string for_host_compiler(const std::string& text) {
  // `static` is in the macro __shared__ already.
  static const std::regex kStatic(R"(\bstatic\s+__shared__\b)"), kAfter(R"(\b__shared__\s+static\b)"),
      kDynamic(R"(\bextern\s+((?:volatile\s+|const\s+)*)__shared__\b([^;\[]*?)(\w+)\s*\[\s*\]\s*;)");
  std::string made = std::regex_replace(text, kStatic, "__shared__");
  made = std::regex_replace(made, kAfter, "__shared__");
  return std::regex_replace(made, kDynamic, "$1$2(&$3)[] = host_cuda::DynamicShared();");
}

std::string operand_file_name(size_t argument) { return str("tuner_operand_", argument); }

std::string host_program_text(const HostCudaKernel& kernel) {
  std::string call, before, after;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const HostCudaArgument& a = kernel.arguments[i];
    call += i == 0 ? "" : ", ";
    if (!a.is_buffer()) {
      call += str("(", a.type, ")(", a.value, ")");
      continue;
    }
    call += str("(", a.type, ")tuner_args[", i, "]");
    before +=
        str("  tuner_args[", i, "] = host_cuda::buffer(\"", a.name, "\", ", a.bytes(), ", ", a.element_bytes,
            ", ", is_given(a.role) ? str("\"", operand_file_name(i), "\"") : std::string("nullptr"), ");\n");
    if (is_result(a.role))
      after += str("  host_cuda::keep(tuner_args[", i, "], \"", operand_file_name(i), "\");\n");
  }
  const auto triple = [](const std::array<int64_t, 3>& a) {
    return str("{", a[0], ", ", a[1], ", ", a[2], "}");
  };
  return str("#include \"tuner_host_cuda/device.h\"\n#include \"", kernel.source,
             "\"\nstatic void* tuner_args[", kernel.arguments.size() + 1, "];\nstatic void tuner_body() { ",
             kernel.function, "(", call, "); }\nint main() {\n", before,
             "  const unsigned tuner_grid[3] = ", triple(kernel.grid),
             ", tuner_block[3] = ", triple(kernel.block), ";\n  host_cuda::launch(tuner_grid, tuner_block, ",
             kernel.shared_bytes, ", tuner_body);\n", after, "  host_cuda::finish();\n}\n");
}

}  // namespace tuner
