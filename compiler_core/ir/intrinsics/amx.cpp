// amx: tiles of x86 CPUs (Intel's AMX). A tile register is up to 16 rows of 64 bytes.
//
//   C[i, j] += sum over g, e of A[i, g * D + e] * B[g, j, e]
//
// A group is the D elements along k that fill 32 bits: 2 of 16 bits, 4 of 8. So a tile of A is R rows of 16
// groups; one of B is 16 groups of k, each of 16 columns. Fewer rows of A and C (R < 16) take less time; the
// rest of a tile is full always.
#include "compiler_core/ir/intrinsics/amx.h"

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

constexpr int64_t kColumns = 16, kGroups = 16, kGroupBytes = 4;

IntrinsicOperand operand(std::string name, Access access, DType dtype, std::vector<int64_t> shape,
                         Place place) {
  return {
      .name = std::move(name), .access = access, .dtype = dtype, .shape = std::move(shape), .place = place};
}

Buffer argument(const IntrinsicOperand& o) {
  return make_buffer(o.name, o.dtype, o.shape, MemoryScope::kGlobal,
                     o.access == Access::kRead ? BufferRole::kInput : BufferRole::kOutput);
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
  Program meaning{.name = "amx_copy", .args = {to}, .body = nest};
  if (from != nullptr) meaning.args.insert(meaning.args.begin(), from);
  return meaning;
}

Intrinsic zero(DType dtype, int64_t rows) {
  Intrinsic i;
  i.name = str("amx.zero.", dtype_name(dtype), ".", rows);
  i.operands = {operand("C", Access::kWrite, dtype, {rows, kColumns}, Place::kFragment)};
  i.meaning = copy_meaning(argument(i.operands[0]), nullptr);
  i.llvm = "llvm.x86.tilezero";
  i.features = {"amx-tile"};
  return i;
}

// Between memory and a tile register, in the order of LLVM's arguments.
Intrinsic copy(std::string name, DType dtype, const std::vector<int64_t>& shape, bool to_memory) {
  Intrinsic i;
  i.name = std::move(name);
  i.operands = {operand("tile", to_memory ? Access::kRead : Access::kWrite, dtype, shape, Place::kFragment),
                operand("memory", to_memory ? Access::kWrite : Access::kRead, dtype, shape, Place::kMemory)};
  const Buffer tile = argument(i.operands[0]), memory = argument(i.operands[1]);
  i.meaning = to_memory ? copy_meaning(memory, tile) : copy_meaning(tile, memory);
  i.llvm = to_memory ? "llvm.x86.tilestored64" : "llvm.x86.tileloadd64";
  i.features = {"amx-tile"};
  return i;
}

}  // namespace

Intrinsic amx_product(std::string_view of, DType a, DType b, DType sum, int64_t rows, std::string llvm,
                      std::string feature) {
  const int64_t group = kGroupBytes / dtype_bytes(a);
  Intrinsic i;
  i.name = str("amx.", of, ".", rows);
  i.operands = {operand("C", Access::kAccumulate, sum, {rows, kColumns}, Place::kFragment),
                operand("A", Access::kRead, a, {rows, kGroups * group}, Place::kFragment),
                operand("B", Access::kRead, b, {kGroups, kColumns, group}, Place::kFragment)};
  const Buffer c = argument(i.operands[0]), lhs = argument(i.operands[1]), rhs = argument(i.operands[2]);
  const Var row = make_var("i"), g = make_var("g"), column = make_var("j"), e = make_var("e");
  const Expr value = cast(sum, load(lhs, {row, Expr(g) * group + e})) * cast(sum, load(rhs, {g, column, e}));
  Stmt nest = make_reduce(c, {row, column}, ReduceOp::kSum, {}, value, {});
  nest = make_for(e, group, nest, AxisKind::kReduce, LoopKind::kDot);
  nest = make_for(column, kColumns, nest, AxisKind::kSpatial, LoopKind::kVectorized);
  nest = make_for(g, kGroups, nest, AxisKind::kReduce);
  i.meaning = {.name = "amx_product", .args = {lhs, rhs, c}, .body = make_for(row, rows, nest)};
  i.llvm = std::move(llvm);
  i.features = {"amx-tile", std::move(feature)};
  i.zero = str("amx.zero.", dtype_name(sum), ".", rows);
  return i;
}

Intrinsic amx_load(DType dtype, int64_t rows) {
  return copy(str("amx.load.", dtype_name(dtype), ".", rows), dtype,
              {rows, kGroups * kGroupBytes / dtype_bytes(dtype)}, /*to_memory=*/false);
}

Intrinsic amx_groups(DType dtype) {
  return copy(str("amx.groups.", dtype_name(dtype)), dtype,
              {kGroups, kColumns, kGroupBytes / dtype_bytes(dtype)}, /*to_memory=*/false);
}

std::vector<Intrinsic> amx_intrinsics() {
  std::vector<Intrinsic> all;
  const auto byte_product = [&](DType a, DType b, int64_t rows, const char* instruction) {
    all.push_back(amx_product(str(dtype_name(a), ".", dtype_name(b)), a, b, DType::kInt32, rows,
                              str("llvm.x86.", instruction), "amx-int8"));
  };
  for (int64_t rows = 1; rows <= kMostTileRows; ++rows) {
    all.push_back(amx_product("bfloat16", DType::kBFloat16, DType::kBFloat16, DType::kFloat32, rows,
                              "llvm.x86.tdpbf16ps", "amx-bf16"));
    byte_product(DType::kInt8, DType::kInt8, rows, "tdpbssd");
    byte_product(DType::kInt8, DType::kUInt8, rows, "tdpbsud");
    byte_product(DType::kUInt8, DType::kInt8, rows, "tdpbusd");
    byte_product(DType::kUInt8, DType::kUInt8, rows, "tdpbuud");
    for (const DType sum : {DType::kFloat32, DType::kInt32}) {
      all.push_back(zero(sum, rows));
      all.push_back(amx_load(sum, rows));
      all.push_back(
          copy(str("amx.store.", dtype_name(sum), ".", rows), sum, {rows, kColumns}, /*to_memory=*/true));
    }
    for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kUInt8}) all.push_back(amx_load(t, rows));
  }
  for (const DType t : {DType::kBFloat16, DType::kInt8, DType::kUInt8}) all.push_back(amx_groups(t));
  return all;
}

}  // namespace tuner
