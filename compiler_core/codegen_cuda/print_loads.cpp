// Loads from global memory under a condition, without a branch.
#include <cstdint>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) { found |= part->kind == ExprKind::kLoad; });
  return found;
}

}  // namespace

// The place is computed whatever the condition: then it must not overflow. What the kernel itself stores is no
// constant memory.
bool KernelPrinter::is_load_if(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& condition,
                               const RangeMap& ranges) const {
  if (buffer->scope != MemoryScope::kGlobal || buffer->dtype == DType::kBool ||
      stored_.contains(buffer.get()))
    return false;
  const Expr offset = storage_offset(*buffer, indices);
  const auto bounds = const_bounds(offset, ranges);
  return bounds.has_value() && bounds->first > INT32_MIN && bounds->second < INT32_MAX &&
         !reads_memory(offset) && !reads_memory(condition);
}

// What stands behind && would be computed only if it counts, that is behind a branch.
std::string KernelPrinter::load_if(const Expr& condition, const std::string& address,
                                   const std::string& otherwise, const RangeMap& ranges) {
  uses_load_if_ = true;
  const std::vector<Expr> parts = conjuncts(condition);
  std::string holds;
  for (const Expr& part : parts) {
    const std::string one = expr_text_.value(part, ranges);
    holds += parts.size() == 1 ? one : str(holds.empty() ? "(" : " & (", one, ")");
  }
  return str("load_if(", holds, ", ", address, ", ", otherwise, ")");
}

std::optional<std::string> KernelPrinter::guarded_load(const Expr& value, const RangeMap& ranges) {
  if (value->kind != ExprKind::kSelect || value->operands[1]->kind != ExprKind::kLoad) return std::nullopt;
  const Expr &condition = value->operands[0], &load = value->operands[1], &otherwise = value->operands[2];
  const bool is_constant = otherwise->kind == ExprKind::kFloatImm || otherwise->kind == ExprKind::kIntImm;
  if (!is_constant || !is_load_if(load->buffer, load->operands, condition, ranges)) return std::nullopt;
  RangeMap inside = ranges;
  inside.assume(condition);
  return load_if(condition, "&" + expr_text_.element(load->buffer, load->operands, inside),
                 expr_text_.value(otherwise, ranges), ranges);
}

const char* load_helper() {
  return R"(// A load of what nobody writes, if `inside` holds. The compiler may not see through to what `inside` and `from` come
// from: it would put a branch around many loads and what it takes to find their places, and they would wait there.
template <class T>
static __device__ __forceinline__ T load_if(bool inside, const T* from, decltype(T()) otherwise) {
  int holds = inside;
  asm volatile("" : "+r"(holds), "+l"(from));
  return holds ? __ldg(from) : otherwise;
}
)";
}

}  // namespace tuner::cuda
