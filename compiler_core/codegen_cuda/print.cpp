// A Program as one CUDA file.
#include <algorithm>
#include <set>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr const char* kFloorHelpers =
    R"(// Division and remainder that round down, as indices need it when the dividend may be negative.
static __device__ __forceinline__ int index_div(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
static __device__ __forceinline__ long long index_div(long long a, long long b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
static __device__ __forceinline__ int index_mod(int a, int b) { return a - index_div(a, b) * b; }
static __device__ __forceinline__ long long index_mod(long long a, long long b) { return a - index_div(a, b) * b; }
)";

constexpr const char* kExtremeHelpers =
    R"(// Maximum and minimum of IEEE 754: a NaN stays one, which fmaxf and fminf would drop.
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float ieee_max(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
static __device__ __forceinline__ float ieee_min(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#else
static __device__ __forceinline__ float ieee_max(float a, float b) { return a > b || a != a ? a : b; }
static __device__ __forceinline__ float ieee_min(float a, float b) { return a < b || a != a ? a : b; }
#endif
static __device__ __forceinline__ double ieee_max(double a, double b) { return a > b || a != a ? a : b; }
static __device__ __forceinline__ double ieee_min(double a, double b) { return a < b || a != a ? a : b; }
)";

constexpr const char* kHalfHelpers =
    R"(// bfloat16 and float16 are kept as their bits; NVRTC has no header for them.
static __device__ __forceinline__ float bfloat16_value(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
static __device__ __forceinline__ float float16_value(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
static __device__ __forceinline__ unsigned short bfloat16_bits(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
static __device__ __forceinline__ unsigned short float16_bits(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
)";

std::string described(const Buffer& b, const char* what) {
  std::string shape;
  for (const int64_t d : b->shape) shape += str(shape.empty() ? "" : ", ", d);
  return str("//   ", cuda::identifier(b->name), ": ", what, ", ", b->dtype, " [", shape, "], ", b->bytes(),
             " bytes\n");
}

std::string head(const GpuProgram& program, const Target& target) {
  std::string text =
      str("// ", program.name, " for ", target.name(), ". Arguments, row-major, aligned to 16 bytes:\n");
  for (const Buffer& b : program.args) text += described(b, std::string(buffer_role_name(b->role)).c_str());
  for (const Buffer& b : program.workspace) text += described(b, "workspace between kernels");
  const auto listed = [&](const char* what, const std::vector<GpuKernel>& kernels) {
    text += what;
    for (const GpuKernel& kernel : kernels) text += " " + kernel.name;
    text += "\n";
  };
  if (program.kernels.size() > 1)
    listed("// Kernels, launched in this order on one stream:", program.kernels);
  if (program.packing != nullptr) {
    listed("// Once before all calls, to pack constants:", program.packing->kernels);
    for (const Buffer& b : program.packing->args)
      if (b->role == BufferRole::kConstant) text += described(b, "constant, packed ahead");
  }
  return text;
}

// Functions that intrinsics call, each once, in the order of their first use.
std::string helpers_of(const GpuProgram& program) {
  std::vector<std::string_view> helpers;
  const auto note = [&](const Stmt& s) {
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    if (i == nullptr) return;
    for (const std::string_view helper :
         {std::string_view(i->cuda_shared_helper), std::string_view(i->cuda_helper)})
      if (!helper.empty() && std::ranges::find(helpers, helper) == helpers.end()) helpers.push_back(helper);
  };
  for (const GpuKernel& kernel : program.kernels) visit(kernel.body, note);
  std::string text;
  for (const std::string_view helper : helpers) text += str("\n", helper);
  return text;
}

}  // namespace

std::string print_cuda(const GpuProgram& program, const Target& target) {
  std::string kernels;
  bool uses_floor_helpers = false, uses_half_helpers = false, uses_load_if = false, uses_store_if = false;
  std::set<int64_t> async_bytes;
  std::set<size_t> fetched_ranks;
  std::set<std::pair<DType, DType>> dot_types;
  const auto print = [&](const std::vector<GpuKernel>& all) {
    for (const GpuKernel& kernel : all) {
      cuda::KernelPrinter printer(kernel);
      kernels += "\n" + printer.print();
      uses_floor_helpers |= printer.uses_floor_helpers();
      uses_half_helpers |= printer.uses_half_helpers();
      uses_load_if |= printer.uses_load_if();
      uses_store_if |= printer.uses_store_if();
      async_bytes.insert(printer.async_bytes().begin(), printer.async_bytes().end());
      fetched_ranks.insert(printer.fetched_ranks().begin(), printer.fetched_ranks().end());
      dot_types.insert(printer.dot_types().begin(), printer.dot_types().end());
    }
  };
  print(program.kernels);
  if (program.packing != nullptr) print(program.packing->kernels);
  std::string printed_helpers = uses_load_if ? str("\n", cuda::load_helper()) : "";
  if (uses_store_if) printed_helpers += str("\n", cuda::store_helper());
  for (const int64_t bytes : async_bytes) printed_helpers += str("\n", cuda::async_helper(bytes));
  if (!fetched_ranks.empty()) printed_helpers += str("\n", cuda::barrier_helpers());
  for (const size_t rank : fetched_ranks) printed_helpers += str("\n", cuda::fetch_helper(rank));
  for (const auto& [a, b] : dot_types) printed_helpers += str("\n", cuda::dot_helper(a, b));
  // Kernels and warp reductions call them.
  const bool uses_extremes = kernels.find("ieee_m") != std::string::npos;
  return head(program, target) + (uses_floor_helpers ? str("\n", kFloorHelpers) : "") +
         (uses_extremes ? str("\n", kExtremeHelpers) : "") +
         (uses_half_helpers ? str("\n", kHalfHelpers) : "") + printed_helpers + helpers_of(program) + kernels;
}

}  // namespace tuner
