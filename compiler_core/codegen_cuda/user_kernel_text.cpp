#include "compiler_core/codegen_cuda/user_kernel_text.h"

#include <algorithm>
#include <array>

#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {

std::string user_kernel_text(const Program& program) {
  const ForeignCode& code = *program.foreign;
  const ForeignLaunch& launch = *code.launch;
  const auto triple = [](const std::array<int64_t, 3>& a) { return str(a[0], ", ", a[1], ", ", a[2]); };
  const std::string how = str("// ", code.function, "<<<dim3(", triple(launch.grid), "), dim3(",
                              triple(launch.block), "), ", launch.shared_bytes, ">>>\n");
  const auto file = std::ranges::find(*code.files, code.source, &ForeignCode::File::name);
  const std::string text = file == code.files->end() ? std::string() : file->text;
  switch (launch.form) {
    case ForeignLaunch::Form::kPtx:
      return how + text;
    case ForeignLaunch::Form::kCubin:
      return str(how, "// ", code.source, ": a cubin of ", text.size(), " bytes; see it with --as sass\n");
    case ForeignLaunch::Form::kCuda:
      break;
  }
  return str(how, foreign_definitions(program), text);
}

}  // namespace tuner
