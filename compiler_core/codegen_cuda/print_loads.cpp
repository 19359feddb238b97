// Loads from global memory and stores to shared memory under a condition, without a branch.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/describe.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

// Reads nothing but registers.
bool reads_registers(const Expr& e) {
  bool only = true;
  visit(e, [&](const Expr& part) {
    only = only && (part->kind != ExprKind::kLoad || part->buffer->scope == MemoryScope::kRegister);
  });
  return only;
}

// A place that can be computed where nothing is moved.
bool is_place_everywhere(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges) {
  const Expr offset = storage_offset(*buffer, indices);
  const auto bounds = const_bounds(offset, ranges);
  return bounds.has_value() && bounds->first > INT32_MIN && bounds->second < INT32_MAX &&
         !reads_memory(offset);
}

}  // namespace

// What the kernel itself stores is no constant memory.
bool KernelPrinter::is_load_if(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& condition,
                               const RangeMap& ranges) const {
  return buffer->scope == MemoryScope::kGlobal && buffer->dtype != DType::kBool &&
         !stored_.contains(buffer.get()) && is_place_everywhere(buffer, indices, ranges) &&
         !reads_memory(condition);
}

std::string KernelPrinter::load_if(const Expr& condition, const std::string& address,
                                   const std::string& otherwise, const RangeMap& ranges) {
  uses_load_if_ = true;
  return str("load_if(", without_branch(condition, ranges), ", ", address, ", ", otherwise, ")");
}

std::string KernelPrinter::without_branch(const Expr& condition, const RangeMap& ranges) {
  const std::vector<Expr> parts = conjuncts(condition);
  std::string holds;
  for (const Expr& part : parts) {
    const std::string one = expr_text_.value(part, ranges);
    holds += parts.size() == 1 ? one : str(holds.empty() ? "(" : " & (", one, ")");
  }
  return holds;
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

bool KernelPrinter::stores_registers(const Stmt& s, const RangeMap& ranges) const {
  switch (s->kind) {
    case StmtKind::kFor: {
      if (s->loop == LoopKind::kDot || (s->loop != LoopKind::kVectorized && !prints_unrolled(*s)))
        return false;
      RangeMap inside = ranges;
      inside.bind(s->var, s->extent);
      return stores_registers(s->body, inside);
    }
    case StmtKind::kSeq:
      return std::ranges::all_of(s->stmts,
                                 [&](const Stmt& child) { return stores_registers(child, ranges); });
    case StmtKind::kIf:
      return s->else_body == nullptr && !reads_memory(s->condition) && stores_registers(s->body, ranges);
    case StmtKind::kStore:
      return s->buffer->scope == MemoryScope::kShared && s->buffer->dtype != DType::kBool &&
             s->reduce == ReduceOp::kNone && reads_registers(s->value) &&
             is_place_everywhere(s->buffer, s->indices, ranges);
    default:
      return false;
  }
}

bool KernelPrinter::is_store_if(const Stmt& guard, const RangeMap& ranges) const {
  return !copies_ && kernel_.shared_nowhere >= 0 &&
         (!guard_.empty() || asks_for_thread(guard->condition, kernel_)) && stores_registers(guard, ranges);
}

std::string KernelPrinter::begin_stores(const Expr& condition, const std::string& why,
                                        const RangeMap& ranges) {
  const std::string holds = without_branch(places_.named(condition, ranges), ranges);
  const std::string name = names_.declare("inside");
  text_.line(str("const bool ", name, " = ", guard_.empty() ? "" : str(guard_, " & "), holds, ";  // ",
                 with_c_names(why)));
  return std::exchange(guard_, name);
}

std::string KernelPrinter::stored(const std::string& to, const std::string& value) {
  if (guard_.empty()) return str(to, " = ", value, ";");
  uses_store_if_ = true;
  const bool is_vector = to.starts_with("*(");
  return str("store_if(", guard_, ", ", is_vector ? to.substr(1) : str("&", to), ", ", value, ", ", nowhere_,
             ");");
}

const char* load_helper() {
  return R"(// An instruction that takes `value`, and none in the end. Without it the end of the load's own condition would be that
// of an `if` around, and the compiler would make a branch of the load.
template <class T>
static __device__ __forceinline__ T behind_load(T value) {
  union {
    T value;
    unsigned word;
  } kept = {value};
  asm volatile("mov.b32 %0, %0;" : "+r"(kept.word));
  return kept.value;
}

// A load of what nobody writes, if `inside` holds. The compiler may not see through to what `inside` and `from` come
// from: it would put a branch around many loads and what it takes to find their places, and they would wait there.
template <class T>
static __device__ __forceinline__ T load_if(bool inside, const T* from, decltype(T()) otherwise) {
  int holds = inside;
  asm volatile("" : "+r"(holds), "+l"(from));
  return behind_load(holds ? __ldg(from) : otherwise);
}
)";
}

const char* store_helper() {
  return R"(// A store to shared memory, or to `nowhere` if `inside` does not hold. A condition would become a branch.
template <class T>
static __device__ __forceinline__ void store_if(bool inside, T* to, decltype(T()) value, void* nowhere) {
  *(inside ? to : (T*)nowhere) = value;
}
)";
}

}  // namespace tuner::cuda
