// npu: the array of an accelerator (compiler_core/npu), R rows and C columns, each a power of two from 2 to
// 64; T is int8 or uint8:
//
//   npu.rows.T.RxC         C[j] += sum over k of A[k] * B[k, j]     weights B stay, a row of A passes
//   npu.terms.T.RxC        C[i, j] += A[i] * B[j]                   sums stay, one term of each passes
//   npu.channels.T.C       C[j] += A[j] * B[j]                      the vector unit, channel by channel
//   npu.zero.C, .RxC       C = 0
//
// A and B lie in the scratchpad (kShared), sums in the accumulators (kFragment). What becomes of loops around
// them is the back end's: rows that pass the same weights are one instruction.
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/intrinsics/operand_buffer.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

IntrinsicOperand sums(Access access, std::vector<int64_t> shape) {
  return {.name = "C",
          .access = access,
          .dtype = DType::kInt32,
          .shape = std::move(shape),
          .place = Place::kFragment};
}
IntrinsicOperand bytes(const char* name, DType dtype, std::vector<int64_t> shape) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .place = Place::kShared};
}

std::string sides(int64_t rows, int64_t columns) { return str(rows, "x", columns); }

Intrinsic product(std::string name, std::vector<IntrinsicOperand> operands, const std::vector<Var>& spatial,
                  const std::vector<Var>& reduce, const std::vector<std::vector<Expr>>& at) {
  Intrinsic i;
  i.name = std::move(name);
  i.operands = std::move(operands);
  const Buffer c = operand_buffer(i.operands[0]), a = operand_buffer(i.operands[1]),
               b = operand_buffer(i.operands[2]);
  const Expr value = cast(DType::kInt32, load(a, at[1])) * cast(DType::kInt32, load(b, at[2]));
  Stmt nest = make_reduce(c, at[0], ReduceOp::kSum, {}, value, {});
  for (const Var& var : reduce) nest = make_for(var, i.operands[1].shape[0], nest, AxisKind::kReduce);
  for (size_t d = spatial.size(); d-- > 0;) nest = make_for(spatial[d], c->shape[d], nest);
  i.meaning = {.name = "array_product", .args = {a, b, c}, .body = nest};
  return i;
}

Intrinsic zero(std::string name, const std::vector<int64_t>& shape) {
  Intrinsic i;
  i.name = std::move(name);
  i.operands = {sums(Access::kWrite, shape)};
  const Buffer c = operand_buffer(i.operands[0]);
  std::vector<Var> vars;
  std::vector<Expr> at;
  for (size_t d = 0; d < shape.size(); ++d) {
    vars.push_back(make_var(str("i", d)));
    at.emplace_back(vars.back());
  }
  Stmt nest = make_store(c, at, int_imm(0, DType::kInt32));
  for (size_t d = shape.size(); d-- > 0;) nest = make_for(vars[d], shape[d], nest);
  i.meaning = {.name = "array_zero", .args = {c}, .body = nest};
  return i;
}

}  // namespace

std::vector<Intrinsic> npu_intrinsics();
std::vector<Intrinsic> npu_intrinsics() {
  constexpr int64_t kLeastSide = 2, kMostSide = 64;
  std::vector<Intrinsic> all;
  for (int64_t columns = kLeastSide; columns <= kMostSide; columns *= 2) {
    all.push_back(zero(str("npu.zero.", columns), {columns}));
    for (const DType a : {DType::kInt8, DType::kUInt8}) {
      const Var j = make_var("j");
      all.push_back(product(str("npu.channels.", dtype_name(a), ".", columns),
                            {sums(Access::kAccumulate, {columns}), bytes("A", a, {columns}),
                             bytes("B", DType::kInt8, {columns})},
                            {j}, {}, {{j}, {j}, {j}}));
      all.back().zero = str("npu.zero.", columns);
    }
    for (int64_t rows = kLeastSide; rows <= kMostSide; rows *= 2) {
      all.push_back(zero(str("npu.zero.", sides(rows, columns)), {rows, columns}));
      for (const DType a : {DType::kInt8, DType::kUInt8}) {
        const Var i = make_var("i"), j = make_var("j"), k = make_var("k");
        all.push_back(product(str("npu.rows.", dtype_name(a), ".", sides(rows, columns)),
                              {sums(Access::kAccumulate, {columns}), bytes("A", a, {rows}),
                               bytes("B", DType::kInt8, {rows, columns})},
                              {j}, {k}, {{j}, {k}, {k, j}}));
        all.back().zero = str("npu.zero.", columns);
        all.push_back(product(str("npu.terms.", dtype_name(a), ".", sides(rows, columns)),
                              {sums(Access::kAccumulate, {rows, columns}), bytes("A", a, {rows}),
                               bytes("B", DType::kInt8, {columns})},
                              {i, j}, {}, {{i, j}, {i}, {j}}));
        all.back().zero = str("npu.zero.", sides(rows, columns));
      }
    }
  }
  return all;
}

}  // namespace tuner
