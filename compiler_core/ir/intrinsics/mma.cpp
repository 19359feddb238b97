// mma: tensor cores of NVIDIA GPUs by mma.sync and ldmatrix (sm_80 and later). A warp holds a tile in registers of its lanes.
//
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction", m16n8k16 of 16-bit types. Lane l is in group g = l / 4 at place
// t = l % 4. Registers of 32 bits hold two elements that are neighbours along k (A, B) or along n (C):
//
//   A  8 elements  rows g, g, g + 8, g + 8 of registers 0 to 3; k from 2t, in registers 2 and 3 from 2t + 8
//   B  4 elements  column g; k from 2t, in register 1 from 2t + 8
//   C  4 elements  row g and then row g + 8; columns from 2t
//
// ldmatrix: four matrices of 8 rows of 16 bytes. Lane l brings the address of row l % 8 of matrix l / 8, and gets of matrix r, in
// register r, row g, elements 2t and 2t + 1; with .trans row 2t and 2t + 1, element g.
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

constexpr int64_t kWarp = 32, kRows = 16, kColumns = 8, kDepth = 16;

Expr group(const Expr& lane) { return floor_div(lane, 4); }
Expr place(const Expr& lane) { return floor_mod(lane, 4) * 2; }
// Of element `reg` within its register of two.
Expr half(const Expr& reg) { return floor_mod(reg, 2); }
Expr pair(const Expr& reg) { return floor_div(reg, 2); }

std::vector<Expr> a_layout(const Expr& lane, const Expr& reg) {
  return {group(lane) + floor_mod(pair(reg), 2) * 8, place(lane) + half(reg) + floor_div(reg, 4) * 8};
}
// A that lies along its rows, [k, m].
std::vector<Expr> km_layout(const Expr& lane, const Expr& reg) {
  const std::vector<Expr> at = a_layout(lane, reg);
  return {at[1], at[0]};
}
std::vector<Expr> kn_layout(const Expr& lane, const Expr& reg) {
  return {place(lane) + half(reg) + pair(reg) * 8, group(lane)};
}
std::vector<Expr> nk_layout(const Expr& lane, const Expr& reg) {
  return {group(lane), place(lane) + half(reg) + pair(reg) * 8};
}
std::vector<Expr> c_layout(const Expr& lane, const Expr& reg) {
  return {group(lane) + pair(reg) * 8, place(lane) + half(reg)};
}
// Two tiles of B, one after the other.
std::vector<Expr> two_kn_layout(const Expr& lane, const Expr& reg) {
  return {place(lane) + half(reg) + floor_mod(pair(reg), 2) * 8, group(lane) + floor_div(reg, 4) * 8};
}
std::vector<Expr> two_nk_layout(const Expr& lane, const Expr& reg) {
  return {group(lane) + floor_div(reg, 4) * 8, place(lane) + half(reg) + floor_mod(pair(reg), 2) * 8};
}
// Rows of ldmatrix: matrices one below the other, then those beside them.
std::vector<Expr> rows_down(const Expr& lane, const Expr& reg) {
  return {floor_mod(lane, 16), floor_div(lane, 16) * 8 + reg};
}
// The same, those beside them first.
std::vector<Expr> rows_across(const Expr& lane, const Expr& reg) {
  return {floor_mod(lane, 8) + floor_div(lane, 16) * 8, floor_mod(floor_div(lane, 8), 2) * 8 + reg};
}

Buffer argument(const IntrinsicOperand& o) {
  return make_buffer(o.name, o.dtype, o.shape, MemoryScope::kGlobal,
                     o.access == Access::kRead ? BufferRole::kInput : BufferRole::kOutput);
}

Intrinsic of_warp(std::string name) {
  Intrinsic i;
  i.name = std::move(name);
  i.threads = kWarp;
  i.features = {"cuda"};  // no CPU has it
  return i;
}

// to[i, j] = from[i, j], or 0.
Program copy_meaning(const Buffer& to, const Buffer& from) {
  const Var i = make_var("i"), j = make_var("j");
  const Expr value = from == nullptr ? float_imm(0, to->dtype) : load(from, {i, j});
  Program meaning{.name = "tile_copy", .args = {to}};
  if (from != nullptr) meaning.args.insert(meaning.args.begin(), from);
  meaning.body = make_for(i, to->shape[0], make_for(j, to->shape[1], make_store(to, {i, j}, value)));
  return meaning;
}

IntrinsicOperand sums(Access access) {
  return {.name = "C",
          .access = access,
          .dtype = DType::kFloat32,
          .shape = {kRows, kColumns},
          .place = Place::kFragment,
          .registers = 4,
          .layout = c_layout};
}

// `a_along_k`: A is [m, k], not [k, m]; `b_along_k`: B is [n, k], not [k, n].
Intrinsic product(DType t, bool a_along_k, bool b_along_k) {
  Intrinsic i = of_warp(str("mma.", dtype_name(t), a_along_k ? ".mk" : ".km", b_along_k ? ".nk" : ".kn"));
  i.operands = {
      sums(Access::kAccumulate),
      {.name = "A",
       .dtype = t,
       .shape = a_along_k ? std::vector<int64_t>{kRows, kDepth} : std::vector<int64_t>{kDepth, kRows},
       .place = Place::kFragment,
       .registers = 8,
       .layout = a_along_k ? a_layout : km_layout},
      {.name = "B",
       .dtype = t,
       .shape = b_along_k ? std::vector<int64_t>{kColumns, kDepth} : std::vector<int64_t>{kDepth, kColumns},
       .place = Place::kFragment,
       .registers = 4,
       .layout = b_along_k ? nk_layout : kn_layout}};
  const Buffer c = argument(i.operands[0]), a = argument(i.operands[1]), b = argument(i.operands[2]);
  const Var row = make_var("i"), column = make_var("j"), k = make_var("k");
  const auto at = [](bool along_k, const Var& line, const Var& term) {
    return along_k ? std::vector<Expr>{Expr(line), Expr(term)} : std::vector<Expr>{Expr(term), Expr(line)};
  };
  const Expr value = cast(DType::kFloat32, load(a, at(a_along_k, row, k))) *
                     cast(DType::kFloat32, load(b, at(b_along_k, column, k)));
  Stmt nest = make_reduce(c, {row, column}, ReduceOp::kSum, {}, value, {});
  nest = make_for(k, kDepth, nest, AxisKind::kReduce);
  i.meaning = {.name = "tile_product",
               .args = {a, b, c},
               .body = make_for(row, kRows, make_for(column, kColumns, nest))};
  const char* const type = t == DType::kBFloat16 ? "bf16" : "f16";
  const std::string name = str("mma_", dtype_name(t));
  i.cuda = name + "($0, $1, $2);";
  i.cuda_helper =
      str("// c[16, 8] += a[16, 16] * b[16, 8], each spread over the lanes of the warp.\n",
          "static __device__ __forceinline__ void ", name,
          "(float* c, const unsigned short* a, const unsigned short* b) {\n"
          "  const unsigned* const ra = (const unsigned*)a;\n"
          "  const unsigned* const rb = (const unsigned*)b;\n"
          "  asm(\"mma.sync.aligned.m16n8k16.row.col.f32.",
          type, ".", type,
          ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
          "      : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
          "      : \"r\"(ra[0]), \"r\"(ra[1]), \"r\"(ra[2]), \"r\"(ra[3]), \"r\"(rb[0]), \"r\"(rb[1]));\n"
          "}\n");
  i.zero = "mma.zero";
  return i;
}

Intrinsic zero() {
  Intrinsic i = of_warp("mma.zero");
  i.operands = {sums(Access::kWrite)};
  i.meaning = copy_meaning(argument(i.operands[0]), nullptr);
  i.cuda = "$0[0] = $0[1] = $0[2] = $0[3] = 0.0f;";
  return i;
}

using Layout = std::vector<Expr> (*)(const Expr&, const Expr&);

Intrinsic load_matrices(DType t, const char* of, Layout layout, Layout rows, bool transposed) {
  Intrinsic i = of_warp(str("ldmatrix.", dtype_name(t), ".", of));
  i.operands = {{.name = "tile",
                 .access = Access::kWrite,
                 .dtype = t,
                 .shape = {16, 16},
                 .place = Place::kFragment,
                 .registers = 8,
                 .layout = layout},
                {.name = "memory",
                 .dtype = t,
                 .shape = {16, 16},
                 .place = Place::kShared,
                 .registers = 8,
                 .run = 8,
                 .layout = rows}};
  i.meaning = copy_meaning(argument(i.operands[0]), argument(i.operands[1]));
  const std::string name = transposed ? "load_matrices_transposed" : "load_matrices";
  i.cuda = name + "($0, $1);";
  i.cuda_helper =
      str("// Four matrices of 8 x 8 out of shared memory; lane l brings the address of row l % 8 of matrix "
          "l / 8.\n",
          "static __device__ __forceinline__ void ", name,
          "(unsigned short* tile, const unsigned short* row) {\n"
          "  unsigned* const r = (unsigned*)tile;\n"
          "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4",
          transposed ? ".trans" : "",
          ".shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
          "               : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])\n"
          "               : \"r\"((unsigned)__cvta_generic_to_shared(row)) : \"memory\");\n"
          "}\n");
  return i;
}

Intrinsic store_sums() {
  Intrinsic i = of_warp("mma.store");
  i.operands = {sums(Access::kRead),
                {.name = "memory",
                 .access = Access::kWrite,
                 .dtype = DType::kFloat32,
                 .shape = {kRows, kColumns},
                 .place = Place::kShared,
                 .registers = 4,
                 .run = 2,
                 .layout = c_layout}};
  i.meaning = copy_meaning(argument(i.operands[1]), argument(i.operands[0]));
  i.cuda = "store_sums($0, $1, $1:2);";
  i.cuda_helper =
      "// Two neighbours in each of two rows.\n"
      "static __device__ __forceinline__ void store_sums(const float* c, float* upper, float* lower) {\n"
      "  *(float2*)upper = make_float2(c[0], c[1]);\n"
      "  *(float2*)lower = make_float2(c[2], c[3]);\n"
      "}\n";
  return i;
}

}  // namespace

std::vector<Intrinsic> mma_intrinsics() {
  std::vector<Intrinsic> all = {zero(), store_sums()};
  for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
    for (const bool a_along_k : {true, false})
      for (const bool b_along_k : {true, false}) all.push_back(product(t, a_along_k, b_along_k));
    all.push_back(load_matrices(t, "mk", a_layout, rows_down, /*transposed=*/false));
    all.push_back(load_matrices(t, "km", km_layout, rows_across, /*transposed=*/true));
    all.push_back(load_matrices(t, "kn", two_kn_layout, rows_down, /*transposed=*/true));
    all.push_back(load_matrices(t, "nk", two_nk_layout, rows_across, /*transposed=*/false));
  }
  return all;
}

}  // namespace tuner
