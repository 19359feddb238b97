// mma: tensor cores of NVIDIA GPUs by mma.sync and ldmatrix (sm_80 and later). A warp holds a tile in
// registers of its lanes.
//
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction", m16n8k16 of 16-bit types, m16n8k32
// of 8-bit ones. Lane l is in group g = l / 4 at place t = l % 4. A register of 32 bits holds E = 2 (4)
// elements that are neighbours along k (A, B), of C one of two:
//
//   A  4 registers  rows g, g + 8, g, g + 8; k from E t, in registers 2 and 3 from E t + 4 E
//   B  2 registers  column g; k from E t, in register 1 from E t + 4 E
//   C  4 elements   row g and then row g + 8; columns from 2t
//
// Of float32 a statement is two of m16n8k8 of .tf32, one behind the other: E = 1, A has 8 registers and B 4.
//
// ldmatrix: four matrices of 8 rows of 16 bytes. Lane l brings the address of row l % 8 of matrix l / 8, and
// gets of matrix r, in register r, row g, elements E t and on; with .trans, of 16-bit types only, row 2t and
// 2t + 1, element g. To it a row of 4 float32 is one of 8 elements of 16 bits, which cannot be transposed.
#include <algorithm>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/intrinsics/operand_buffer.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

constexpr int64_t kWarp = 32, kRows = 16, kColumns = 8;

// Terms of a product: 32 bytes; of float32 64.
int64_t depth(DType t) { return std::max<int64_t>(32 / dtype_bytes(t), 16); }

Expr group(const Expr& lane) { return floor_div(lane, 4); }

template <int64_t E>
struct Layouts {
  // Along k: of the lane's first register of a tile, and where in it.
  static Expr term(const Expr& lane, const Expr& reg) { return floor_mod(lane, 4) * E + floor_mod(reg, E); }
  static Expr number(const Expr& reg) { return floor_div(reg, E); }  // of the register

  static std::vector<Expr> mk(const Expr& lane, const Expr& reg) {
    return {group(lane) + floor_mod(number(reg), 2) * 8, term(lane, reg) + floor_div(reg, 2 * E) * (4 * E)};
  }
  static std::vector<Expr> nk(const Expr& lane, const Expr& reg) {
    return {group(lane), term(lane, reg) + number(reg) * (4 * E)};
  }
  // Two tiles of B, one after the other.
  static std::vector<Expr> two_nk(const Expr& lane, const Expr& reg) {
    return {group(lane) + floor_div(reg, 2 * E) * 8, term(lane, reg) + floor_mod(number(reg), 2) * (4 * E)};
  }
  // Rows of ldmatrix: matrices one below the other, then those beside them.
  static std::vector<Expr> rows_down(const Expr& lane, const Expr& reg) {
    return {floor_mod(lane, 16), floor_div(lane, 16) * (4 * E) + reg};
  }
  // The same, those beside them first.
  static std::vector<Expr> rows_across(const Expr& lane, const Expr& reg) {
    return {floor_mod(lane, 8) + floor_div(lane, 16) * 8, floor_mod(floor_div(lane, 8), 2) * (4 * E) + reg};
  }
  // Operands that lie across k.
  static std::vector<Expr> km(const Expr& lane, const Expr& reg) { return turned(mk(lane, reg)); }
  static std::vector<Expr> kn(const Expr& lane, const Expr& reg) { return turned(nk(lane, reg)); }
  static std::vector<Expr> two_kn(const Expr& lane, const Expr& reg) { return turned(two_nk(lane, reg)); }

 private:
  static std::vector<Expr> turned(const std::vector<Expr>& at) { return {at[1], at[0]}; }
};

std::vector<Expr> c_layout(const Expr& lane, const Expr& reg) {
  return {group(lane) + floor_div(reg, 2) * 8, floor_mod(lane, 4) * 2 + floor_mod(reg, 2)};
}

Intrinsic of_warp(std::string name) {
  Intrinsic i;
  i.name = std::move(name);
  i.threads = kWarp;
  i.features = {"cuda"};  // no CPU has it
  return i;
}

// to[i, j] = from[i, j], or 0.
Program matrix_copy_meaning(const Buffer& to, const Buffer& from) {
  const Var i = make_var("i"), j = make_var("j");
  const Expr nothing = is_float(to->dtype) ? float_imm(0, to->dtype) : int_imm(0, to->dtype);
  const Expr value = from == nullptr ? nothing : load(from, {i, j});
  Program meaning{.name = "tile_copy", .args = {to}};
  if (from != nullptr) meaning.args.insert(meaning.args.begin(), from);
  meaning.body = make_for(i, to->shape[0], make_for(j, to->shape[1], make_store(to, {i, j}, value)));
  return meaning;
}

using LaneLayout = std::vector<Expr> (*)(const Expr&, const Expr&);

// "", or ".int32": float32 is not said.
std::string of_sums(DType sums) { return sums == DType::kFloat32 ? "" : str(".", dtype_name(sums)); }

IntrinsicOperand sums(DType t, Access access) {
  return {.name = "C",
          .access = access,
          .dtype = t,
          .shape = {kRows, kColumns},
          .place = Place::kFragment,
          .registers = 4,
          .layout = c_layout};
}

// Types of a product: of A, of B, of the sums.
struct Types {
  DType a, b, sums;
  int terms = 0;  // of float32: products of tf32 numbers for one
  std::string name() const {
    if (terms > 0) return terms == 1 ? "tf32" : str("tf32x", terms);
    return a == b ? std::string(dtype_name(a)) : str(dtype_name(a), ".", dtype_name(b));
  }
};

std::string_view ptx_type(DType t) {
  switch (t) {
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat16:
      return "f16";
    case DType::kUInt8:
      return "u8";
    case DType::kInt8:
      return "s8";
    case DType::kInt32:
      return "s32";
    default:
      return "f32";
  }
}

// The function that does it, for the CUDA text.
std::string product_helper(const std::string& name, const Types& t) {
  const bool is_float_sum = is_float(t.sums);
  const char* const type = is_float_sum ? "float" : "int";
  const char* const in_out = is_float_sum ? "+f" : "+r";
  const int64_t k = depth(t.a);
  return str("// c[16, 8] += a[16, ", k, "] * b[", k, ", 8], each spread over the lanes of the warp.\n",
             "static __device__ __forceinline__ void ", name, "(", type,
             "* c, const void* a, const void* b) {\n"
             "  const unsigned* const ra = (const unsigned*)a;\n"
             "  const unsigned* const rb = (const unsigned*)b;\n"
             "  asm(\"mma.sync.aligned.m16n8k",
             k, ".row.col.", ptx_type(t.sums), ".", ptx_type(t.a), ".", ptx_type(t.b), ".", ptx_type(t.sums),
             " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
             "      : \"",
             in_out, "\"(c[0]), \"", in_out, "\"(c[1]), \"", in_out, "\"(c[2]), \"", in_out,
             "\"(c[3])\n"
             "      : \"r\"(ra[0]), \"r\"(ra[1]), \"r\"(ra[2]), \"r\"(ra[3]), \"r\"(rb[0]), \"r\"(rb[1]));\n"
             "}\n");
}

// Six products, four sums, and its part of what splits numbers, in a warp's tile of 64 x 32.
constexpr int64_t kInstructionsOfThree = 6 + 4 + 6;

// The same of float32. Three terms are summed up from zero, the small ones first, and added by an instruction
// that rounds: tensor cores cut off what does not fit, always towards zero.
std::string tf32_helper(const std::string& name, int terms) {
  std::string text =
      str("// c[16, 8] += a[16, 8] * b[8, 8] of the first 19 bits of each number.\n",
          "static __device__ __forceinline__ void ", name,
          "_step(float* c, const float* a, const float* b) {\n"
          "  const unsigned* const ra = (const unsigned*)a;\n"
          "  const unsigned* const rb = (const unsigned*)b;\n"
          "  asm(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
          " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
          "      : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
          "      : \"r\"(ra[0]), \"r\"(ra[1]), \"r\"(ra[2]), \"r\"(ra[3]), \"r\"(rb[0]), \"r\"(rb[1]));\n"
          "}\n\n");
  const auto both_steps = [&](const char* sums, const char* a, const char* b) {
    text += str("  ", name, "_step(", sums, ", ", a, ", ", b, ");\n  ", name, "_step(", sums, ", ", a,
                " + 4, ", b, " + 2);\n");
  };
  text +=
      str("// c[16, 8] += a[16, 16] * b[16, 8], each spread over the lanes of the warp.\n",
          "static __device__ __forceinline__ void ", name, "(float* c, const float* a, const float* b) {\n");
  if (terms == 1) {
    both_steps("c", "a", "b");
    return text + "}\n";
  }
  text +=
      "  float high_a[8], rest_a[8], high_b[4], rest_b[4], sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};\n"
      "  for (int i = 0; i < 8; ++i) {\n"
      "    high_a[i] = __int_as_float(__float_as_int(a[i]) & -8192);\n"
      "    rest_a[i] = a[i] - high_a[i];\n"
      "  }\n"
      "  for (int i = 0; i < 4; ++i) {\n"
      "    high_b[i] = __int_as_float(__float_as_int(b[i]) & -8192);\n"
      "    rest_b[i] = b[i] - high_b[i];\n"
      "  }\n";
  both_steps("sums", "rest_a", "high_b");
  both_steps("sums", "high_a", "rest_b");
  both_steps("sums", "high_a", "high_b");
  return text + "  for (int i = 0; i < 4; ++i) c[i] += sums[i];\n}\n";
}

// `a_along_k`: A is [m, k], not [k, m]; `b_along_k`: B is [n, k], not [k, n].
template <int64_t E>
Intrinsic product(const Types& t, bool a_along_k, bool b_along_k) {
  Intrinsic i = of_warp(str("mma.", t.name(), a_along_k ? ".mk" : ".km", b_along_k ? ".nk" : ".kn"));
  const int64_t terms = depth(t.a);
  const auto shape = [&](int64_t lines, bool along_k) {
    return along_k ? std::vector<int64_t>{lines, terms} : std::vector<int64_t>{terms, lines};
  };
  i.operands = {sums(t.sums, Access::kAccumulate),
                {.name = "A",
                 .dtype = t.a,
                 .shape = shape(kRows, a_along_k),
                 .place = Place::kFragment,
                 .registers = kRows * terms / kWarp,
                 .layout = a_along_k ? Layouts<E>::mk : Layouts<E>::km},
                {.name = "B",
                 .dtype = t.b,
                 .shape = shape(kColumns, b_along_k),
                 .place = Place::kFragment,
                 .registers = kColumns * terms / kWarp,
                 .layout = b_along_k ? Layouts<E>::nk : Layouts<E>::kn}};
  const Buffer c = operand_buffer(i.operands[0]), a = operand_buffer(i.operands[1]),
               b = operand_buffer(i.operands[2]);
  const Var row = make_var("i"), column = make_var("j"), k = make_var("k");
  const auto at = [](bool along_k, const Var& line, const Var& term) {
    return along_k ? std::vector<Expr>{Expr(line), Expr(term)} : std::vector<Expr>{Expr(term), Expr(line)};
  };
  const Expr left = cast(t.sums, load(a, at(a_along_k, row, k)));
  const Expr right = cast(t.sums, load(b, at(b_along_k, column, k)));
  const Expr value = t.terms > 0 ? tf32_product(left, right, t.terms) : left * right;
  Stmt nest = make_reduce(c, {row, column}, ReduceOp::kSum, {}, value, {});
  nest = make_for(k, terms, nest, AxisKind::kReduce);
  i.meaning = {.name = "tile_product",
               .args = {a, b, c},
               .body = make_for(row, kRows, make_for(column, kColumns, nest))};
  std::string name = "mma_" + t.name();
  std::ranges::replace(name, '.', '_');
  i.cuda = name + "($0, $1, $2);";
  i.cuda_helper = t.terms > 0 ? tf32_helper(name, t.terms) : product_helper(name, t);
  if (t.terms > 0) i.products = t.terms, i.instructions = t.terms == 1 ? 2 : kInstructionsOfThree;
  i.zero = "mma.zero" + of_sums(t.sums);
  return i;
}

Intrinsic zero(DType t) {
  Intrinsic i = of_warp("mma.zero" + of_sums(t));
  i.operands = {sums(t, Access::kWrite)};
  i.meaning = matrix_copy_meaning(operand_buffer(i.operands[0]), nullptr);
  i.cuda = str("$0[0] = $0[1] = $0[2] = $0[3] = ", is_float(t) ? "0.0f;" : "0;");
  return i;
}

std::string matrices_helper(bool transposes) {
  return str(
      "// Four matrices of 8 rows of 16 bytes out of shared memory; lane l brings the address of row l % 8 "
      "of "
      "matrix l / 8.\n",
      "static __device__ __forceinline__ void ", transposes ? "load_matrices_transposed" : "load_matrices",
      "(void* tile, const void* row) {\n"
      "  unsigned* const r = (unsigned*)tile;\n"
      "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4",
      transposes ? ".trans" : "",
      ".shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
      "               : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])\n"
      "               : \"r\"((unsigned)__cvta_generic_to_shared(row)) : \"memory\");\n"
      "}\n");
}

// Two tiles of 8 lines side by side (A: its 16 rows) by one ldmatrix.
template <int64_t E>
Intrinsic load_matrices(DType t, const char* of, LaneLayout layout, LaneLayout rows, bool across_k) {
  Intrinsic i = of_warp(str("ldmatrix.", dtype_name(t), ".", of));
  const std::vector<int64_t> shape =
      across_k ? std::vector<int64_t>{depth(t), 16} : std::vector<int64_t>{16, depth(t)};
  i.operands = {{.name = "tile",
                 .access = Access::kWrite,
                 .dtype = t,
                 .shape = shape,
                 .place = Place::kFragment,
                 .registers = 4 * E,
                 .layout = layout},
                {.name = "memory",
                 .dtype = t,
                 .shape = shape,
                 .place = Place::kShared,
                 .registers = 4 * E,
                 .run = 4 * E,
                 .layout = rows}};
  i.meaning = matrix_copy_meaning(operand_buffer(i.operands[0]), operand_buffer(i.operands[1]));
  i.cuda = across_k ? "load_matrices_transposed($0, $1);" : "load_matrices($0, $1);";
  i.cuda_helper = matrices_helper(across_k);
  return i;
}

// A tile of float32, `registers` of a lane, from shared memory.
Intrinsic load_float32(std::string name, std::vector<int64_t> shape, int64_t run, LaneLayout layout,
                       LaneLayout memory) {
  Intrinsic i = of_warp(std::move(name));
  const int64_t registers = shape[0] * shape[1] / kWarp;
  i.operands = {{.name = "tile",
                 .access = Access::kWrite,
                 .shape = shape,
                 .place = Place::kFragment,
                 .registers = registers,
                 .layout = layout},
                {.name = "memory",
                 .shape = shape,
                 .place = Place::kShared,
                 .registers = registers,
                 .run = run,
                 .layout = memory}};
  i.meaning = matrix_copy_meaning(operand_buffer(i.operands[0]), operand_buffer(i.operands[1]));
  return i;
}

// A[16, 16] by two ldmatrix, one behind the other along k; B[8, 16] by one.
std::vector<Intrinsic> load_float32_matrices() {
  const LaneLayout rows_of_a = [](const Expr& lane, const Expr& reg) {
    return std::vector<Expr>{floor_mod(lane, 16),
                             floor_div(lane, 16) * 4 + floor_mod(reg, 4) + floor_div(reg, 4) * 8};
  };
  const LaneLayout rows_of_b = [](const Expr& lane, const Expr& reg) {
    return std::vector<Expr>{floor_mod(lane, 8), floor_div(lane, 8) * 4 + reg};
  };
  Intrinsic a = load_float32("ldmatrix.float32.mk", {kRows, 16}, 4, Layouts<1>::mk, rows_of_a);
  Intrinsic b = load_float32("ldmatrix.float32.nk", {kColumns, 16}, 4, Layouts<1>::nk, rows_of_b);
  a.cuda = "load_matrices($0, $1);\nload_matrices($0 + 4, $1:4);";
  b.cuda = "load_matrices($0, $1);";
  a.cuda_helper = b.cuda_helper = matrices_helper(/*transposes=*/false);
  return {a, b};
}

// The same across k, element by element.
std::vector<Intrinsic> load_float32_across() {
  std::vector<Intrinsic> both = {
      load_float32("mma.load.float32.km", {16, kRows}, 1, Layouts<1>::km, Layouts<1>::km),
      load_float32("mma.load.float32.kn", {16, kColumns}, 1, Layouts<1>::kn, Layouts<1>::kn)};
  for (Intrinsic& i : both) {
    const int64_t count = i.operands[0].registers;
    const std::string name = str("load_", count);
    std::string parameters, body;
    i.cuda = str(name, "($0, $1");
    for (int64_t r = 0; r < count; ++r) {
      if (r > 0) i.cuda += str(", $1:", r);
      parameters += str(", const float* e", r);
      body += str(r % 4 == 0 ? "  " : " ", "tile[", r, "] = *e", r, r % 4 == 3 ? ";\n" : ";");
    }
    i.cuda += ");";
    i.cuda_helper = str("static __device__ __forceinline__ void ", name, "(float* tile", parameters, ") {\n",
                        body, "}\n");
  }
  return both;
}

Intrinsic store_sums(DType t) {
  Intrinsic i = of_warp("mma.store" + of_sums(t));
  i.operands = {sums(t, Access::kRead),
                {.name = "memory",
                 .access = Access::kWrite,
                 .dtype = t,
                 .shape = {kRows, kColumns},
                 .place = Place::kShared,
                 .registers = 4,
                 .run = 2,
                 .layout = c_layout}};
  i.meaning = matrix_copy_meaning(operand_buffer(i.operands[1]), operand_buffer(i.operands[0]));
  const std::string type = is_float(t) ? "float" : "int";
  i.cuda = "store_sums($0, $1, $1:2);";
  i.cuda_helper = str("// Two neighbours in each of two rows.\n",
                      "static __device__ __forceinline__ void store_sums(const ", type, "* c, ", type,
                      "* upper, ", type, "* lower) {\n  *(", type, "2*)upper = make_", type,
                      "2(c[0], c[1]);\n  *(", type, "2*)lower = make_", type, "2(c[2], c[3]);\n}\n");
  return i;
}

}  // namespace

Expr tf32_product(const Expr& a, const Expr& b, int terms) {
  const auto high = [](const Expr& x) { return unary(UnaryOp::kTf32, x); };
  const auto rest = [&](const Expr& x) { return high(x - high(x)); };
  const Expr product = high(a) * high(b);
  return terms == 1 ? product : rest(a) * high(b) + high(a) * rest(b) + product;
}

std::vector<Intrinsic> mma_intrinsics() {
  std::vector<Intrinsic> all;
  for (const DType t : {DType::kFloat32, DType::kInt32}) {
    all.push_back(zero(t));
    all.push_back(store_sums(t));
  }
  for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
    using L = Layouts<2>;
    for (const bool a_along_k : {true, false})
      for (const bool b_along_k : {true, false})
        all.push_back(product<2>({t, t, DType::kFloat32}, a_along_k, b_along_k));
    all.push_back(load_matrices<2>(t, "mk", L::mk, L::rows_down, /*across_k=*/false));
    all.push_back(load_matrices<2>(t, "km", L::km, L::rows_across, /*across_k=*/true));
    all.push_back(load_matrices<2>(t, "nk", L::two_nk, L::rows_across, /*across_k=*/false));
    all.push_back(load_matrices<2>(t, "kn", L::two_kn, L::rows_down, /*across_k=*/true));
  }
  for (const int terms : {1, 3})
    for (const bool a_along_k : {true, false})
      for (const bool b_along_k : {true, false}) {
        const Types types{DType::kFloat32, DType::kFloat32, DType::kFloat32, terms};
        all.push_back(product<1>(types, a_along_k, b_along_k));
      }
  std::ranges::move(load_float32_matrices(), std::back_inserter(all));
  std::ranges::move(load_float32_across(), std::back_inserter(all));
  // Bytes are not transposed on their way.
  for (const DType a : {DType::kUInt8, DType::kInt8}) {
    using L = Layouts<4>;
    for (const DType b : {DType::kUInt8, DType::kInt8})
      all.push_back(product<4>({a, b, DType::kInt32}, /*a_along_k=*/true, /*b_along_k=*/true));
    all.push_back(load_matrices<4>(a, "mk", L::mk, L::rows_down, /*across_k=*/false));
    all.push_back(load_matrices<4>(a, "nk", L::two_nk, L::rows_across, /*across_k=*/false));
  }
  return all;
}

}  // namespace tuner
