#include "compiler_core/ir/intrinsics/tiles.h"

#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsics/operand_buffer.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

IntrinsicOperand operand(std::string name, Access access, DType dtype, std::vector<int64_t> shape,
                         Place place) {
  return {
      .name = std::move(name), .access = access, .dtype = dtype, .shape = std::move(shape), .place = place};
}

// to[...] = value at these indices; the loop over the last dimension of more than one element is vectorized.
Program copy_meaning(const Buffer& to, const Buffer& from) {
  std::vector<Expr> at;
  std::vector<Var> vars;
  for (size_t d = 0; d < to->shape.size(); ++d) {
    vars.push_back(make_var(str("i", d)));
    at.emplace_back(vars.back());
  }
  const Expr zero = is_float(to->dtype) ? float_imm(0, to->dtype) : int_imm(0, to->dtype);
  Stmt nest = make_store(to, at, from == nullptr ? zero : load(from, at));
  for (size_t d = vars.size(); d-- > 0;)
    nest = make_for(vars[d], to->shape[d], nest, AxisKind::kSpatial,
                    d + 1 == vars.size() ? LoopKind::kVectorized : LoopKind::kSerial);
  Program meaning{.name = "tile_copy", .args = {to}, .body = nest};
  if (from != nullptr) meaning.args.insert(meaning.args.begin(), from);
  return meaning;
}

// Between memory and a tile, in the order of LLVM's arguments.
Intrinsic copy(const TileFamily& family, std::string name, DType dtype, const std::vector<int64_t>& shape,
               bool to_memory) {
  Intrinsic i;
  i.name = std::move(name);
  i.operands = {operand("tile", to_memory ? Access::kRead : Access::kWrite, dtype, shape, Place::kFragment),
                operand("memory", to_memory ? Access::kWrite : Access::kRead, dtype, shape, Place::kMemory)};
  const Buffer tile = operand_buffer(i.operands[0]), memory = operand_buffer(i.operands[1]);
  i.meaning = to_memory ? copy_meaning(memory, tile) : copy_meaning(tile, memory);
  i.fragments = family.fragments;
  i.llvm = to_memory ? family.store : family.load;
  i.features = family.features;
  return i;
}

}  // namespace

Intrinsic tile_product(const TileFamily& family, std::string_view of, DType a, DType b, DType sum,
                       int64_t rows, std::string llvm, std::string feature) {
  const int64_t group = family.group_bytes / dtype_bytes(a);
  Intrinsic i;
  i.name = str(family.name, ".", of, ".", rows);
  i.operands = {operand("C", Access::kAccumulate, sum, {rows, family.columns}, Place::kFragment),
                operand("A", Access::kRead, a, {rows, family.groups * group}, Place::kFragment),
                operand("B", Access::kRead, b, {family.groups, family.columns, group}, Place::kFragment)};
  const Buffer c = operand_buffer(i.operands[0]), lhs = operand_buffer(i.operands[1]),
               rhs = operand_buffer(i.operands[2]);
  const Var row = make_var("i"), g = make_var("g"), column = make_var("j"), e = make_var("e");
  const Expr value = cast(sum, load(lhs, {row, Expr(g) * group + e})) * cast(sum, load(rhs, {g, column, e}));
  Stmt nest = make_reduce(c, {row, column}, ReduceOp::kSum, {}, value, {});
  nest = make_for(e, group, nest, AxisKind::kReduce, LoopKind::kDot);
  nest = make_for(column, family.columns, nest, AxisKind::kSpatial, LoopKind::kVectorized);
  nest = make_for(g, family.groups, nest, AxisKind::kReduce);
  i.meaning = {.name = "tile_product", .args = {lhs, rhs, c}, .body = make_for(row, rows, nest)};
  i.fragments = family.fragments;
  i.llvm = std::move(llvm);
  i.features = family.features;
  i.features.push_back(std::move(feature));
  i.zero = str(family.name, ".zero.", dtype_name(sum), ".", rows);
  return i;
}

Intrinsic tile_zero(const TileFamily& family, DType dtype, int64_t rows) {
  Intrinsic i;
  i.name = str(family.name, ".zero.", dtype_name(dtype), ".", rows);
  i.operands = {operand("C", Access::kWrite, dtype, {rows, family.columns}, Place::kFragment)};
  i.meaning = copy_meaning(operand_buffer(i.operands[0]), nullptr);
  i.fragments = family.fragments;
  i.llvm = family.zero;
  i.features = family.features;
  return i;
}

Intrinsic tile_load(const TileFamily& family, DType dtype, int64_t rows) {
  return copy(family, str(family.name, ".load.", dtype_name(dtype), ".", rows), dtype,
              {rows, family.groups * family.group_bytes / dtype_bytes(dtype)}, /*to_memory=*/false);
}

Intrinsic tile_groups(const TileFamily& family, DType dtype) {
  return copy(family, str(family.name, ".groups.", dtype_name(dtype)), dtype,
              {family.groups, family.columns, family.group_bytes / dtype_bytes(dtype)}, /*to_memory=*/false);
}

Intrinsic tile_load_sums(const TileFamily& family, DType dtype, int64_t rows) {
  return copy(family, str(family.name, ".load.", dtype_name(dtype), ".", rows), dtype, {rows, family.columns},
              /*to_memory=*/false);
}

Intrinsic tile_store_sums(const TileFamily& family, DType dtype, int64_t rows) {
  return copy(family, str(family.name, ".store.", dtype_name(dtype), ".", rows), dtype,
              {rows, family.columns},
              /*to_memory=*/true);
}

}  // namespace tuner
