// Lowered kernels -> filter -> text -> NVRTC -> filter -> artifact.
#include "compiler_core/codegen_cuda/compile.h"

#include <algorithm>
#include <cstdlib>

#include "compiler_core/backend.h"
#include "compiler_core/codegen_cuda/async_copy.h"
#include "compiler_core/codegen_cuda/cubin_cache.h"
#include "compiler_core/codegen_cuda/dot_words.h"
#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// Grows when the text for the same kernels changes in meaning.
constexpr int kCodegenVersion = 9;

// How long a kernel whose waits trap waits for copies: far longer than any take, far shorter than a watchdog.
constexpr int64_t kTrapNs = 100'000'000;

bool waits_trap() {
  const char* const wish = std::getenv("TUNER_TRAP_WAITS");
  return wish != nullptr && *wish != '\0' && std::string_view(wish) != "0";
}

std::vector<std::string> compiler_options(const Target& target) {
  // Multiplications and additions may be fused; nothing else of "fast math".
  std::vector<std::string> options = {str("--gpu-architecture=", target.arch), "--std=c++17", "--fmad=true",
                                      "--ptxas-options=-v"};
  if (waits_trap()) options.push_back(str("--define-macro=TUNER_TRAP_NS=", kTrapNs));
  return options;
}

Result<cuda::Compiled> compile_cached(const std::string& source, const std::string& name,
                                      const Target& target, const std::string& directory) {
  const std::vector<std::string> options = compiler_options(target);
  if (directory.empty()) return cuda::compile_source(source, name, options);
  ASSIGN_OR_RETURN(const cuda::NvrtcVersion version, cuda::nvrtc_version());
  const std::string key = cuda::cache_key(source, options, version);
  if (std::optional<cuda::Compiled> known = cuda::read_cache(directory, key)) return *std::move(known);
  ASSIGN_OR_RETURN(cuda::Compiled compiled, cuda::compile_source(source, name, options));
  // A cache that cannot be written costs time, not results.
  (void)cuda::write_cache(directory, key, compiled);
  return compiled;
}

// Stage B: what the compiler did to this kernel.
Status check_report(const LaunchInfo& launch, const CudaOptions& options) {
  if (launch.spill_bytes > options.max_spill_bytes)
    return invalid_config("stage B: ", launch.kernel, ": spills ", launch.spill_bytes,
                          " bytes a thread, at most ", options.max_spill_bytes, " accepted (",
                          launch.registers, " registers, ", launch.stack_bytes, " bytes of stack)");
  if (launch.blocks_per_sm < 1)
    return invalid_config("stage B: ", launch.kernel, ": ", launch.registers, " registers and ",
                          launch.shared_bytes, " bytes of shared memory do not fit a multiprocessor");
  return Status::ok();
}

// Pointers, then maps, as the kernel's text has them.
Status add_parameters(const GpuKernel& kernel, const GpuProgram& program, LaunchInfo& launch) {
  std::vector<Buffer> all = program.args;
  all.insert(all.end(), program.workspace.begin(), program.workspace.end());
  Status status;
  const auto place = [&](const Buffer& b) {
    const auto found = std::find(all.begin(), all.end(), b);
    if (found == all.end())
      status = Status(StatusCode::kInternal,
                      str(kernel.name, ": parameter ", b->name, " is neither an argument nor workspace"));
    return static_cast<int>(found - all.begin());
  };
  for (const Buffer& b : kernel.params) launch.params.push_back(place(b));
  for (const KernelTensorMap& m : kernel.tensor_maps) launch.tensor_maps.push_back({place(m.buffer), m.map});
  return status;
}

// One launch: what the lowering decided, and what cubin and log tell of its kernel.
Result<LaunchInfo> launch_of(const GpuKernel& kernel, const GpuProgram& program, const Target& target,
                             const std::vector<CubinKernel>& cubin,
                             const std::vector<CompilerReport>& reports) {
  const auto in_cubin =
      std::find_if(cubin.begin(), cubin.end(), [&](const auto& k) { return k.name == kernel.name; });
  const auto in_log =
      std::find_if(reports.begin(), reports.end(), [&](const auto& r) { return r.kernel == kernel.name; });
  if (in_cubin == cubin.end() || in_log == reports.end())
    return Status(StatusCode::kInternal,
                  str(kernel.name, ": not in the compiler's ", in_cubin == cubin.end() ? "cubin" : "log"));
  if (in_log->serialized)
    return invalid_config("stage B: ", kernel.name,
                          ": the compiler makes every product of a warpgroup wait for the one before: ",
                          in_log->losses.front());
  LaunchInfo launch{.kernel = kernel.name, .grid = kernel.grid, .block = kernel.block};
  launch.shared_bytes = kernel.shared_bytes;
  RETURN_IF_ERROR(add_parameters(kernel, program, launch));
  launch.registers = in_cubin->registers;
  launch.stack_bytes = in_cubin->stack_bytes;
  launch.spill_bytes = std::max(in_log->spill_store_bytes, in_log->spill_load_bytes);
  const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  launch.blocks_per_sm = blocks_per_multiprocessor(target, threads, launch.registers, launch.shared_bytes);
  return launch;
}

Status check_type(DType dtype, const std::string& what) {
  if (!cuda::c_type(dtype).empty()) return Status::ok();
  return invalid_config(what, ": ", dtype, " is not supported on GPUs yet; use float32");
}

Status check_statement(const StmtNode& s) {
  if (s.kind == StmtKind::kBarrier && s.scope != MemoryScope::kShared && s.scope != MemoryScope::kRegister)
    return invalid_config("a barrier of a cluster is not supported on GPUs yet");
  const Intrinsic* intrinsic = s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
  if (s.kind == StmtKind::kIntrinsic && (intrinsic == nullptr || intrinsic->cuda.empty()))
    return invalid_config("intrinsic ", s.name, " is not one of GPUs");
  Status status = s.buffer == nullptr ? Status::ok() : check_type(s.buffer->dtype, s.buffer->name);
  const auto is_half_arithmetic = [](const Expr& e) {
    return is_float(e->dtype) && dtype_bytes(e->dtype) == 2 &&
           (e->kind == ExprKind::kBinary || e->kind == ExprKind::kUnary);
  };
  own_exprs(s, [&](const Expr& e) {
    visit(e, [&](const Expr& part) {
      if (status.is_ok() && is_half_arithmetic(part))
        status = invalid_config(to_text(part), ": arithmetic in ", part->dtype,
                                " is not supported on GPUs; cast to float32 first");
      if (status.is_ok())
        status = check_type(part->dtype, part->kind == ExprKind::kLoad ? part->buffer->name : "a value");
    });
  });
  return status;
}

// Instructions of one architecture alone.
Status check_own_instructions(const GpuProgram& program, const Target& target) {
  Status status;
  for (const GpuKernel& kernel : program.kernels)
    visit(kernel.body, [&](const Stmt& s) {
      const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
      if (status.is_ok() && i != nullptr && !i->gpu_arch.empty() && i->gpu_arch != target.arch)
        status = invalid_config("kernel ", kernel.name, ": ", s->name, " needs ", i->gpu_arch, ", found ",
                                target.arch);
    });
  return status;
}

// cp.async, mma.sync of 16 x 8 x 16 and ldmatrix came with sm_80, TMA with sm_90.
Status check_architecture(const GpuProgram& program, const Target& target) {
  constexpr int kFirst = 80, kFirstOfTma = 90;
  RETURN_IF_ERROR(check_own_instructions(program, target));
  for (const GpuKernel& kernel : program.kernels)
    if (cuda::fetches_by_itself(kernel.body) && target.compute_capability() < kFirstOfTma)
      return invalid_config("kernel ", kernel.name, ": copies by TMA need sm_", kFirstOfTma,
                            " or later, found ", target.arch);
  if (target.compute_capability() >= kFirst) return Status::ok();
  for (const GpuKernel& kernel : program.kernels) {
    std::string found;
    visit(kernel.body, [&](const Stmt& s) {
      const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
      const bool of_tiles = i != nullptr && std::ranges::any_of(i->operands, [](const IntrinsicOperand& o) {
                              return o.place == IntrinsicOperand::Place::kFragment;
                            });
      if (s->kind == StmtKind::kAsync) found = "asynchronous copies";
      if (of_tiles) found = s->name;
    });
    if (!found.empty())
      return invalid_config("kernel ", kernel.name, ": ", found, " need sm_", kFirst, " or later, found ",
                            target.arch);
  }
  return Status::ok();
}

}  // namespace

namespace cuda {

Status check_printable(const GpuProgram& program) {
  if (program.packing != nullptr) RETURN_IF_ERROR(check_printable(*program.packing));
  for (const GpuKernel& kernel : program.kernels) {
    Status status;
    visit(kernel.body, [&](const Stmt& s) {
      if (status.is_ok()) status = check_statement(*s);
    });
    if (status.is_ok()) status = check_async_copies(kernel);
    if (status.is_ok()) status = check_dots(kernel);
    RETURN_IF_ERROR(status.with_context(str("kernel ", kernel.name, ": ")));
  }
  return Status::ok();
}

Result<Artifact> compile_kernels(const GpuProgram& program, const Target& target,
                                 const CudaOptions& options) {
  RETURN_IF_ERROR(check_printable(program));
  RETURN_IF_ERROR(check_architecture(program, target));
  if (options.static_filter)
    for (const GpuKernel& kernel : program.kernels) RETURN_IF_ERROR(check_resources(kernel, target));
  RETURN_IF_ERROR(nvrtc_available());
  const std::string source = print_cuda(program, target);
  ASSIGN_OR_RETURN(const Compiled compiled,
                   compile_cached(source, program.name + ".cu", target, options.cache_directory));
  ASSIGN_OR_RETURN(const std::vector<CubinKernel> cubin, read_cubin(compiled.cubin));
  const std::vector<CompilerReport> reports = parse_compiler_log(compiled.log);

  Artifact artifact{.binary = compiled.cubin};
  Manifest& m = artifact.manifest;
  m.kind = binary_kind::kCubin;
  m.entry = program.name;
  m.args = argument_infos(program.args);
  m.target = target.name();
  m.toolchain = cuda_toolchain_fingerprint();
  for (const Buffer& b : program.workspace) m.workspaces.push_back(b->bytes());
  const auto add_launches = [&](const GpuProgram& p, std::vector<LaunchInfo>& launches) -> Status {
    for (const GpuKernel& kernel : p.kernels) {
      ASSIGN_OR_RETURN(LaunchInfo launch, launch_of(kernel, p, target, cubin, reports));
      RETURN_IF_ERROR(check_report(launch, options));
      launches.push_back(std::move(launch));
    }
    return Status::ok();
  };
  RETURN_IF_ERROR(add_launches(program, m.launches));
  if (program.packing != nullptr) {
    m.abi_version = 2;
    m.pack_entry = program.packing->name;
    m.pack_args = argument_infos(program.packing->args);
    RETURN_IF_ERROR(add_launches(*program.packing, m.pack_launches));
  }
  for (const std::vector<LaunchInfo>* launches : {&m.launches, &m.pack_launches})
    for (const LaunchInfo& launch : *launches)
      if (!launch.tensor_maps.empty()) m.abi_version = 3;
  m.digest = artifact_digest(artifact);  // of the launches too
  return artifact;
}

}  // namespace cuda

Status nvrtc_available() {
  const Result<cuda::NvrtcVersion> version = cuda::nvrtc_version();
  return version ? Status::ok() : version.status();
}

std::string cuda_toolchain_fingerprint() {
  const Result<cuda::NvrtcVersion> version = cuda::nvrtc_version();
  if (!version) return "no nvrtc";
  return str("nvrtc ", version->major, ".", version->minor, " cuda codegen ", kCodegenVersion,
             waits_trap() ? " trapping waits" : "");
}

}  // namespace tuner
