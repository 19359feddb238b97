// dp4a: proofs that a kDot loop is one, and its text.
#include "compiler_core/codegen_cuda/dot_words.h"

#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/codegen_cuda/vector_access.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kTerms = 4;  // of one instruction

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

// int32 of a byte that is loaded.
bool is_wide_byte(const Expr& e) {
  return e->kind == ExprKind::kCast && e->dtype == DType::kInt32 && e->operands[0]->kind == ExprKind::kLoad &&
         is_byte(e->operands[0]->dtype);
}

Status check_below(const Stmt& s, RangeMap ranges) {
  if (s == nullptr) return Status::ok();
  if (s->kind == StmtKind::kFor && s->loop == LoopKind::kDot) return dot_words(*s, ranges).status();
  if (s->kind == StmtKind::kFor) ranges.bind(s->var, s->extent);
  RangeMap otherwise = ranges;
  if (s->kind == StmtKind::kIf) {
    ranges.assume(s->condition);
    otherwise.assume(simplify(unary(UnaryOp::kNot, s->condition), otherwise));
  }
  RETURN_IF_ERROR(check_below(s->body, ranges));
  RETURN_IF_ERROR(check_below(s->else_body, otherwise));
  for (const Stmt& child : s->stmts) RETURN_IF_ERROR(check_below(child, ranges));
  return Status::ok();
}

// "u32" for bytes without a sign.
const char* ptx_type(DType t) { return t == DType::kUInt8 ? "u32" : "s32"; }

std::string helper_name(DType a, DType b) { return str("dot_", dtype_name(a), "_", dtype_name(b)); }

}  // namespace

Result<DotWords> dot_words(const StmtNode& loop, const RangeMap& ranges) {
  const auto refused = [&](const auto&... why) {
    return invalid_config("the dot product along ", loop.var->name, " ", why...);
  };
  if (loop.body->kind != StmtKind::kStore)
    return refused("is under a guard or not a sum alone: decompose the reduction, and pad its operands");
  const StmtNode& store = *loop.body;
  const Expr sum = load(store.buffer, store.indices);
  const bool adds = is_binary(store.value, BinaryOp::kAdd) && equal(store.value->operands[0], sum) &&
                    is_binary(store.value->operands[1], BinaryOp::kMul);
  const Expr product = adds ? store.value->operands[1] : Expr();
  if (!adds || !is_wide_byte(product->operands[0]) || !is_wide_byte(product->operands[1]) ||
      loop.extent != kTerms)
    return refused("stores ", to_text(store.value), ", ", loop.extent, " times; expected ", kTerms,
                   " products of bytes, cast to int32, added to ", store.buffer->name);
  RangeMap inside = ranges;
  inside.bind(loop.var, loop.extent);
  for (const Expr& index : store.indices)
    if (uses_var(index, loop.var))
      return refused("adds to another element of ", store.buffer->name, " each time");
  DotWords words{.acc = sum};
  for (const bool second : {false, true}) {
    const Expr& bytes = product->operands[second ? 1 : 0]->operands[0];
    if (lane_access(bytes->buffer, bytes->operands, loop.var, kTerms, inside) != LaneAccess::kVector)
      return refused("reads ", to_text(bytes), ", four of which are not shown to be an aligned word");
    std::vector<Expr> first;
    for (const Expr& index : bytes->operands)
      first.push_back(simplify(substitute(index, {{loop.var, Expr(0)}}), inside));
    (second ? words.b : words.a) = load(bytes->buffer, std::move(first));
  }
  return words;
}

Status check_dots(const GpuKernel& kernel) { return check_below(kernel.body, kernel_ranges(kernel)); }

void KernelPrinter::dot(const StmtNode& s, const RangeMap& ranges) {
  const Result<DotWords> words = dot_words(s, ranges);
  CHECK(words.is_ok()) << words.message();
  const auto place = [&](const Expr& e) { return places_.element(e->buffer, e->operands, ranges); };
  dot_types_.insert({words->a->dtype, words->b->dtype});
  const std::string sum = place(words->acc);
  text_.line(str(sum, " = ", helper_name(words->a->dtype, words->b->dtype), "(", sum, ", *(const unsigned*)&",
                 place(words->a), ", *(const unsigned*)&", place(words->b), ");"));
}

std::string dot_helper(DType a, DType b) {
  return str("// sum + a[0] * b[0] + ... + a[3] * b[3], of the bytes of two words.\n",
             "static __device__ __forceinline__ int ", helper_name(a, b),
             "(int sum, unsigned a, unsigned b) {\n  asm(\"dp4a.", ptx_type(a), ".", ptx_type(b),
             " %0, %1, %2, %0;\" : \"+r\"(sum) : \"r\"(a), \"r\"(b));\n  return sum;\n}\n");
}

}  // namespace tuner::cuda
