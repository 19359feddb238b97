// cuda_compiler NAME KERNEL OPTION...: NVRTC in a process of its own, for compile_confined(). The process has
// been confined before it starts; what it reads and writes is in its folder.
#include <cstdio>
#include <string>
#include <vector>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen_cuda/compile_confined.h"

namespace tuner {
namespace {

constexpr size_t kMostSource = size_t{64} << 20;

int say(int code, const std::string& what) {
  std::printf("%s\n", what.c_str());
  return code;
}

int compile_here(const std::string& name, const std::string& kernel,
                 const std::vector<std::string>& options) {
  const Result<std::string> source = read_whole(name, kMostSource);
  if (!source) return say(kUnableCode, source.message());
  const Result<cuda::Attempt> made = cuda::try_to_compile(*source, name, options, kernel);
  if (!made) return say(kUnableCode, made.message());
  if (made->end == cuda::Attempt::End::kUnable) return say(kUnableCode, made->error);
  const cuda::Compiled& compiled = made->compiled;
  // Of a kernel that is not there the log says nothing.
  if (made->end == cuda::Attempt::End::kRefused)
    return say(kRefusedCode, compiled.log.find("error") != std::string::npos ? compiled.log : made->error);
  for (const auto& [file, bytes] : {std::pair(kCubinFile, &compiled.cubin),
                                    {kLogFile, &compiled.log},
                                    {kSymbolFile, &compiled.symbol},
                                    {kPtxFile, &compiled.ptx}})
    if (const Status written = replace_file(file, *bytes); !written)
      return say(kUnableCode, written.message());
  return kCompiledCode;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  if (argc < 3)
    return tuner::say(tuner::kUnableCode, "cuda_compiler: expected NAME KERNEL OPTION...; tuner starts it");
  return tuner::compile_here(argv[1], argv[2], {argv + 3, argv + argc});
}
