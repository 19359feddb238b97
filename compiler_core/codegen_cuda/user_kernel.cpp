#include "compiler_core/codegen_cuda/user_kernel.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/codegen_cuda/compile_confined.h"
#include "compiler_core/codegen_cuda/cubin_cache.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/nvcc.h"
#include "compiler_core/codegen_cuda/sass/cubin_text.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/runtime/cuda_fit.h"

namespace tuner {
namespace {

using Form = ForeignLaunch::Form;

// What is launched, and what is known of it.
struct Image {
  std::string bytes, symbol, log;
  std::string text;  // that it was assembled from; empty: it was in the cache, or comes compiled
};

const std::string& text_of(const ForeignCode& code) {
  const auto file = std::ranges::find(*code.files, code.source, &ForeignCode::File::name);
  CHECK(file != code.files->end()) << "a kernel without its file passed its check: " << code.source;
  return file->text;
}

// Who compiles it: NVRTC, or nvcc by the name that the operator gave it.
struct CudaCompiler {
  std::optional<Compiler> nvcc;
  cuda::NvrtcVersion nvrtc;  // of NVRTC
  std::string toolchain;
};
Result<CudaCompiler> compiler_of(std::string_view name) {
  if (name == kNvrtcCompiler) {
    ASSIGN_OR_RETURN(const cuda::NvrtcVersion version, cuda::nvrtc_version());
    return CudaCompiler{std::nullopt, version, cuda_toolchain_fingerprint()};
  }
  ASSIGN_OR_RETURN(Compiler nvcc, find_compiler(name));
  std::string toolchain = toolchain_text(nvcc);
  return CudaCompiler{std::move(nvcc), {}, std::move(toolchain)};
}

// The symbol is kept before the log.
Result<Image> compiled(const ForeignCode& code, const Target& target, const std::string& cache) {
  const std::vector<std::string> options = nvrtc_words(code, target);
  ASSIGN_OR_RETURN(const CudaCompiler by, compiler_of(code.compiler));
  std::string source = str(by.nvcc ? by.toolchain + "\n" : "", code.source, "\n", code.function, "\n");
  for (const ForeignCode::File& file : *code.files)
    source += str(file.name, " ", file.text.size(), "\n", file.text);
  const std::string key = cuda::cache_key(source, options, by.nvrtc);
  std::optional<cuda::Compiled> known = cache.empty() ? std::nullopt : cuda::read_cache(cache, key);
  if (!known) {
    ASSIGN_OR_RETURN(known,
                     by.nvcc ? compile_by_nvcc(code, *by.nvcc, options) : compile_confined(code, options));
    known->log.insert(0, known->symbol + "\n");
    // A cache that cannot be written costs time, not results.
    if (!cache.empty()) (void)cuda::write_cache(cache, key, *known);
  }
  const size_t end = known->log.find('\n');
  if (end == std::string::npos) return failed("a cubin was kept without its symbol");
  return Image{std::move(known->cubin), known->log.substr(0, end), known->log.substr(end + 1),
               std::move(known->ptx)};
}

// "sm_90a" of a line ".target sm_90a, texmode_independent".
std::string target_of_ptx(std::string_view text) {
  constexpr std::string_view kTarget = ".target";
  const size_t found = text.find(kTarget);
  if (found == std::string_view::npos) return {};
  size_t begin = found + kTarget.size();
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
  size_t end = begin;
  while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') ||
                               (text[end] >= '0' && text[end] <= '9') || text[end] == '_'))
    ++end;
  return std::string(text.substr(begin, end - begin));
}

// PTX runs on its architecture and on newer ones; with the features of one architecture on that alone.
bool ptx_runs(const std::string& code, const Target& target) {
  int number = 0;
  constexpr std::string_view kWord = "sm_";
  if (!code.starts_with(kWord)) return false;
  const auto [end, error] = std::from_chars(code.data() + kWord.size(), code.data() + code.size(), number);
  const bool plain = error == std::errc() && end == code.data() + code.size();
  return plain ? number <= target.compute_capability() : code == target.arch;
}

Status check_device(const Image& image, Form form, const std::string& file, const Target& target) {
  if (form == Form::kPtx) {
    const std::string code = target_of_ptx(image.bytes);
    if (ptx_runs(code, target)) return Status::ok();
    return invalid_config(file, ": is PTX for ", code.empty() ? "no target" : code, ", which ", target.arch,
                          " does not run");
  }
  ASSIGN_OR_RETURN(const sass::CubinTexts texts, sass::cubin_texts(image.bytes));
  const std::string code = str("sm_", texts.sm);
  const std::string device = target.arch.substr(0, target.arch.find_last_of("0123456789") + 1);
  if (cubin_runs(code, device)) return Status::ok();
  return invalid_config(file, ": is a cubin for ", code, ", which ", target.arch, " does not run");
}

std::string sizes_text(const std::vector<int>& sizes) {
  std::string text;
  for (const int bytes : sizes) text += str(text.empty() ? "" : ", ", bytes);
  return text.empty() ? "none" : text + " bytes";
}

// A driver takes any parameters, and reads what is not there.
Status check_parameters(const ForeignCode& code, const CubinKernel& kernel) {
  std::vector<int> given;
  for (const ForeignCode::Parameter& p : code.parameters)
    given.push_back(p.operand >= 0 ? static_cast<int>(sizeof(uint64_t)) : static_cast<int>(p.bytes.size()));
  if (given == kernel.parameter_bytes) return Status::ok();
  return invalid_config("the kernel ", code.function, " has ", kernel.parameter_bytes.size(), " parameters (",
                        sizes_text(kernel.parameter_bytes), "), \"arguments\" has ", given.size(), " (",
                        sizes_text(given), ")");
}

// Bytes of a block. From sm_90 on a cubin counts what the system takes among them.
int64_t static_shared(const CubinKernel& kernel, const Target& target) {
  constexpr int kCounted = 90;
  const int64_t system = target.compute_capability() >= kCounted ? target.shared_bytes_reserved : 0;
  return std::max<int64_t>(0, kernel.static_shared_bytes - system);
}

Status check_fit(const LaunchInfo& launch, const CubinKernel& kernel, const ForeignLaunch& asked,
                 const Target& target) {
  const int64_t threads = asked.threads();
  if (kernel.max_threads > 0 && threads > kernel.max_threads)
    return invalid_config("the kernel allows ", kernel.max_threads,
                          " threads a block (__launch_bounds__), its launch has ", threads);
  const int64_t fixed = static_shared(kernel, target);
  if (fixed + asked.shared_bytes > target.shared_bytes_per_block)
    return invalid_config("a block has ", fixed, " bytes of static and ", asked.shared_bytes,
                          " bytes of dynamic shared memory, ", target.shared_bytes_per_block, " there");
  if (launch.blocks_per_sm < 1)
    return invalid_config("no block of ", threads, " threads with ", launch.registers, " registers each and ",
                          asked.shared_bytes + fixed, " bytes of shared memory fits a multiprocessor");
  return Status::ok();
}

// Fills in what the code tells of itself; PTX tells nothing before a driver has it.
Status describe(const ForeignCode& code, const Image& image, const Target& target, LaunchInfo& launch) {
  if (code.launch->form == Form::kPtx) return Status::ok();
  ASSIGN_OR_RETURN(const std::vector<CubinKernel> kernels, read_cubin(image.bytes));
  const auto kernel = std::ranges::find(kernels, image.symbol, &CubinKernel::name);
  if (kernel == kernels.end()) return invalid_config(code.source, ": has no kernel ", image.symbol);
  RETURN_IF_ERROR(check_parameters(code, *kernel));
  launch.registers = kernel->registers;
  launch.stack_bytes = kernel->stack_bytes;
  const std::vector<CompilerReport> reports = parse_compiler_log(image.log);
  const auto report = std::ranges::find(reports, image.symbol, &CompilerReport::kernel);
  if (report != reports.end())
    launch.spill_bytes = std::max(report->spill_store_bytes, report->spill_load_bytes);
  launch.blocks_per_sm = blocks_per_multiprocessor(target, code.launch->threads(), launch.registers,
                                                   launch.shared_bytes + static_shared(*kernel, target));
  return check_fit(launch, *kernel, *code.launch, target);
}

Result<LaunchInfo> launch_of(const ForeignCode& code, const Image& image, const Target& target) {
  LaunchInfo launch{.kernel = image.symbol,
                    .grid = code.launch->grid,
                    .block = code.launch->block,
                    .shared_bytes = code.launch->shared_bytes};
  if (launch.shared_bytes > target.shared_bytes_per_block)
    return invalid_config("shared_bytes is ", launch.shared_bytes, ", ", target.shared_bytes_per_block,
                          " there");
  for (size_t i = 0; i < code.parameters.size(); ++i) {
    const ForeignCode::Parameter& p = code.parameters[i];
    if (p.operand >= 0)
      launch.params.push_back(p.operand);
    else
      launch.scalars.push_back({static_cast<int>(i), p.bytes});
  }
  RETURN_IF_ERROR(describe(code, image, target, launch));
  return launch;
}

}  // namespace

std::vector<std::string> nvrtc_words(const ForeignCode& code, const Target& target) {
  std::vector<std::string> words = {str("--gpu-architecture=", target.arch), "--ptxas-options=-v"};
  const bool says_standard = std::ranges::any_of(
      code.words, [](const std::string& w) { return w.starts_with("--std=") || w.starts_with("-std="); });
  if (!says_standard) words.emplace_back("--std=c++17");
  words.insert(words.end(), code.words.begin(), code.words.end());
  return words;
}

namespace {

Result<Image> image_of(const ForeignCode& code, const Target& target, const std::string& cache) {
  CHECK(code.launch.has_value()) << code.function << " is no kernel of a GPU";
  if (code.launch->form == Form::kCuda) return compiled(code, target, cache);
  Image image{.bytes = text_of(code), .symbol = code.function, .log = "", .text = ""};
  RETURN_IF_ERROR(check_device(image, code.launch->form, code.source, target));
  return image;
}

Result<Artifact> artifact_of(const Program& program, const Target& target, Image image) {
  const ForeignCode& code = *program.foreign;
  Artifact artifact;
  Manifest& m = artifact.manifest;
  ASSIGN_OR_RETURN(LaunchInfo launch, launch_of(code, image, target));
  m.abi_version = launch.scalars.empty() ? 1 : 4;
  m.kind = code.launch->form == Form::kPtx ? binary_kind::kPtx : binary_kind::kCubin;
  m.entry = program.name;
  m.args = argument_infos(program.args);
  m.target = target.name();
  ASSIGN_OR_RETURN(m.toolchain, user_kernel_toolchain(code));
  m.launches.push_back(std::move(launch));
  artifact.binary = std::move(image.bytes);
  m.digest = artifact_digest(artifact);
  return artifact;
}

}  // namespace

Result<std::string> user_kernel_toolchain(const ForeignCode& code) {
  const std::string& name = code.launch ? code.compiler : code.kernel_compiler;
  const bool comes_compiled = code.launch && code.launch->form != Form::kCuda;
  if (comes_compiled || name.empty()) return cuda_toolchain_fingerprint();
  ASSIGN_OR_RETURN(CudaCompiler by, compiler_of(name));
  return std::move(by.toolchain);
}

Result<Artifact> compile_user_kernel(const Program& program, const Target& target, const std::string& cache) {
  ASSIGN_OR_RETURN(Image image, image_of(*program.foreign, target, cache));
  return artifact_of(program, target, std::move(image));
}

Result<ListedCode> list_user_kernel(const Program& program, const Target& target) {
  const ForeignCode& code = *program.foreign;
  if (code.launch && code.launch->form == Form::kCubin)
    return invalid_config(code.source, ": is a cubin, of which there is no text to read");
  ASSIGN_OR_RETURN(Image image, image_of(code, target, /*cache=*/{}));
  ListedCode listed{.text = code.launch->form == Form::kPtx ? image.bytes : std::move(image.text)};
  ASSIGN_OR_RETURN(listed.artifact, artifact_of(program, target, std::move(image)));
  return listed;
}

Result<std::string> user_kernel_resources(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const Artifact artifact, compile_user_kernel(program, target));
  const LaunchInfo& l = artifact.manifest.launches.front();
  const auto triple = [](const std::array<int64_t, 3>& a) { return str(a[0], " x ", a[1], " x ", a[2]); };
  std::string text = str(l.kernel, "\n  grid         ", triple(l.grid), "\n  block        ", triple(l.block),
                         " = ", l.block[0] * l.block[1] * l.block[2], " threads\n  shared       ",
                         l.shared_bytes, " bytes of dynamic shared memory\n");
  if (artifact.manifest.kind == binary_kind::kPtx) return text + "  compiled     by the device's driver\n";
  return str(text, "  compiled     ", l.registers, " registers, ", l.spill_bytes, " bytes spilled, ",
             l.stack_bytes, " bytes of stack\n               ", l.blocks_per_sm,
             l.blocks_per_sm == 1 ? " block" : " blocks", " a multiprocessor\n");
}

Result<std::string> user_kernel_sass(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const Artifact artifact, compile_user_kernel(program, target));
  if (artifact.manifest.kind == binary_kind::kPtx)
    return invalid_argument("PTX has no machine code before a device's driver compiles it; show it as cuda");
  const std::string& name = artifact.manifest.launches.front().kernel;
  ASSIGN_OR_RETURN(const std::vector<sass::KernelCode> codes, sass::read_kernel_code(artifact.binary));
  const auto code = std::ranges::find(codes, name, &sass::KernelCode::name);
  if (code == codes.end()) return failed(name, ": its machine code is not in the cubin");
  return str(name, "\n", sass::to_text(*code));
}

}  // namespace tuner
