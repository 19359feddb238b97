// wgmma: tensor cores of Hopper GPUs (sm_90a). The four warps of a warpgroup multiply together; both operands
// lie in shared memory, where the tensor cores fetch them by themselves, and only the sums are in registers.
//
// PTX ISA, "Asynchronous warpgroup level matrix instructions", wgmma.mma_async of m64nNk16. Sums: warp w of
// the group holds rows 16w to 16w + 15, lane l of it, in group g = l / 4 at place t = l % 4, of each 8
// columns four elements: row g, then row g + 8, columns 2t, 2t + 1.
//
// Operands are tiles of 128-byte swizzle. A row has 128 bytes, 64 elements: of k if k lies along the rows,
// else of m (of n). Of the eight 16-byte units of a row, unit u of row r lies at u xor (r % 8); eight rows
// are an atom of 1024 bytes, aligned to as many. All operands here are pieces of 64 x 64, atom behind atom
// and piece behind piece, so that one function says where an element is. A descriptor gives the first byte
// and two strides, all in units of 16 bytes:
//
//                       k along the rows                             m (n) along the rows
//   "stride" (1024)     from 8 rows of m (n) to the next 8           from 8 terms to the next 8
//   "leading" (8192)    not used                                     from 64 of m (n) to the next 64
//   16 terms further    32 bytes, within the row                     2048 bytes, two atoms
//
// Copies write shared memory through the generic proxy and tensor cores read through the async one: whoever
// wrote passes a fence between the two before the barrier (codegen_cuda/kernel_printer.cpp).
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/intrinsics/operand_buffer.h"

namespace tuner {
namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

constexpr int64_t kGroup = 128, kProductRows = 64, kPiece = 64;
constexpr int64_t kDepth = 16;  // terms of one instruction
constexpr int64_t kRowBytes = 128, kUnitBytes = 16, kAtomRows = 8, kAtomBytes = kAtomRows * kRowBytes;
constexpr int64_t kPieceBytes = kPiece * kRowBytes;

std::vector<Expr> sums_layout(const Expr& lane, const Expr& reg) {
  const Expr warp = floor_div(lane, 32), row = floor_div(floor_mod(lane, 32), 4);
  return {warp * 16 + row + floor_mod(floor_div(reg, 2), 2) * 8,
          floor_div(reg, 4) * 8 + floor_mod(lane, 4) * 2 + floor_mod(reg, 2)};
}

// Of operands in memory: which elements a lane stands for where lanes must be told apart. The unit fetches
// all of them.
std::vector<Expr> share_of_piece(const Expr& lane, const Expr& reg) {
  return {reg * 2 + floor_div(lane, kPiece), floor_mod(lane, kPiece)};
}
std::vector<Expr> share_of_pieces(const Expr& lane, const Expr& reg) {
  constexpr int64_t kOfPiece = kPiece * kPiece / kGroup;
  std::vector<Expr> in_piece = share_of_piece(lane, floor_mod(reg, kOfPiece));
  in_piece.insert(in_piece.begin(), floor_div(reg, kOfPiece));
  return in_piece;
}

// [pieces,] row, element of the row.
int64_t swizzled_place(std::span<const int64_t> at) {
  constexpr int64_t kUnit = kUnitBytes / 2;  // elements
  const int64_t row = at[at.size() - 2], column = at.back(), piece = at.size() > 2 ? at[0] : 0;
  return piece * kPieceBytes + row * kRowBytes + ((column / kUnit) ^ (row % kAtomRows)) * kUnitBytes +
         column % kUnit * 2;
}

Intrinsic of_warpgroup(std::string name) {
  Intrinsic i;
  i.name = std::move(name);
  i.threads = kGroup;
  i.features = {"cuda"};  // no CPU has it
  i.gpu_arch = "sm_90a";
  return i;
}

IntrinsicOperand sums(int64_t columns, Access access) {
  return {.name = "C",
          .access = access,
          .shape = {kProductRows, columns},
          .place = Place::kFragment,
          .registers = kProductRows * columns / kGroup,
          .layout = sums_layout};
}

IntrinsicOperand in_memory(const char* name, DType t, std::vector<int64_t> shape) {
  IntrinsicOperand o{.name = name, .dtype = t, .shape = std::move(shape), .place = Place::kShared};
  o.registers = kPiece * kPiece / kGroup * (o.shape.size() > 2 ? o.shape[0] : 1);
  o.layout = o.shape.size() > 2 ? share_of_pieces : share_of_piece;
  o.unit_place = swizzled_place;
  o.unit_alignment = kAtomBytes;
  o.unit_address = "swizzled_tile";
  o.unit_step = kUnitBytes;
  return o;
}

struct Form {
  DType type;
  int64_t columns;
  bool a_along_k, b_along_k;
  std::string name() const {
    return str(dtype_name(type), ".", columns, a_along_k ? ".mk" : ".km", b_along_k ? ".nk" : ".kn");
  }
};

// The function that issues the instructions of 64 terms. An operand's descriptor counts in units of 16 bytes.
std::string product_helper(const std::string& name, const Form& f) {
  const int64_t registers = kProductRows * f.columns / kGroup;
  const char* const type = f.type == DType::kBFloat16 ? "bf16" : "f16";
  const auto next = [](bool along_k) { return (along_k ? kDepth * 2 : kDepth * kRowBytes) / kUnitBytes; };
  std::string sums, outputs;
  for (int64_t r = 0; r < registers; ++r) {
    sums += str(r == 0 ? "" : ", ", "%", r);
    outputs += str(r == 0 ? "" : ", ", r % 8 == 0 && r > 0 ? "\n        " : "", "\"+f\"(c[", r, "])");
  }
  std::string text =
      str("// c[64, ", f.columns, "] += a * b over 64 terms, c spread over the lanes of a warpgroup; a is [",
          f.a_along_k ? "m, k" : "k, m", "], pieces of b are [", f.b_along_k ? "n, k" : "k, n",
          "],\n// both given by swizzled_tile(). Under way until it is waited for.\n"
          "static __device__ __forceinline__ void ",
          name, "(float* c, unsigned long long a, unsigned long long b) {\n");
  for (int64_t k = 0; k < kPiece / kDepth; ++k)
    text +=
        str("  asm volatile(\n      \"wgmma.mma_async.sync.aligned.m64n", f.columns, "k16.f32.", type, ".",
            type, " {", sums, "}, %", registers, ", %", registers + 1, ", 1, 1, 1, ", f.a_along_k ? 0 : 1,
            ", ", f.b_along_k ? 0 : 1, ";\"\n      : ", outputs, "\n      : \"l\"(a + ",
            k * next(f.a_along_k), "), \"l\"(b + ", k * next(f.b_along_k), "));\n");
  return text + "}\n";
}

std::string shared_helper() {
  return str("// Where tensor cores find a tile in shared memory: 128-byte swizzle, ", kAtomBytes,
             " bytes from 8 rows to the next 8, ", kPieceBytes,
             " from a piece of 64 to\n// the next; all in units of 16 bytes.\n"
             "static __device__ __forceinline__ unsigned long long swizzled_tile(const void* tile) {\n"
             "  const unsigned at = (unsigned)__cvta_generic_to_shared(tile);\n"
             "  return (unsigned long long)(at >> 4 & 0x3fff) | ",
             kPieceBytes / kUnitBytes, "ull << 16 | ", kAtomBytes / kUnitBytes,
             "ull << 32 | 1ull << 62;\n"
             "}\n"
             "// Registers of sums are the tensor cores' from here on.\n"
             "static __device__ __forceinline__ void begin_products() { asm "
             "volatile(\"wgmma.fence.sync.aligned;\" ::: "
             "\"memory\"); }\n"
             "static __device__ __forceinline__ void commit_products() { asm "
             "volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n"
             "// Waits until all groups of products are done, and until all but the latest are.\n"
             "static __device__ __forceinline__ void await_products() { asm "
             "volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\"); }\n"
             "static __device__ __forceinline__ void await_earlier_products() { asm "
             "volatile(\"wgmma.wait_group.sync.aligned 1;\" ::: \"memory\"); }\n"
             "static __device__ __forceinline__ void finish_products() {\n  commit_products();\n  "
             "await_products();\n}\n");
}

Intrinsic product(const Form& f) {
  Intrinsic i = of_warpgroup("wgmma." + f.name());
  const int64_t pieces = f.columns / kPiece;
  i.operands = {sums(f.columns, Access::kAccumulate), in_memory("A", f.type, {kPiece, kPiece}),
                in_memory("B", f.type, {pieces, kPiece, kPiece})};
  const Buffer c = operand_buffer(i.operands[0]), a = operand_buffer(i.operands[1]),
               b = operand_buffer(i.operands[2]);
  const Var row = make_var("i"), piece = make_var("p"), column = make_var("j"), k = make_var("k");
  const Expr left = load(a, f.a_along_k ? std::vector<Expr>{row, k} : std::vector<Expr>{k, row});
  const Expr right =
      load(b, f.b_along_k ? std::vector<Expr>{piece, column, k} : std::vector<Expr>{piece, k, column});
  Stmt nest = make_reduce(c, {Expr(row), Expr(piece) * kPiece + Expr(column)}, ReduceOp::kSum, {},
                          cast(DType::kFloat32, left) * cast(DType::kFloat32, right), {});
  nest = make_for(column, kPiece, make_for(k, kPiece, nest, AxisKind::kReduce));
  i.meaning = {.name = "tile_product",
               .args = {a, b, c},
               .body = make_for(row, kProductRows, make_for(piece, pieces, nest))};
  const std::string name = str("multiply_", dtype_name(f.type), "_", f.columns, f.a_along_k ? "_mk" : "_km",
                               f.b_along_k ? "_nk" : "_kn");
  i.cuda = name + "($0, $1, $2);";
  i.cuda_helper = product_helper(name, f);
  i.cuda_shared_helper = shared_helper();
  i.cuda_begin = "begin_products();";
  i.cuda_end = "finish_products();";
  i.instructions = kPiece / kDepth;
  i.zero = str("wgmma.zero.", f.columns);
  i.started = "wgmma.start." + f.name();
  return i;
}

// The same, going on behind the statement.
Intrinsic start(const Form& f, const Intrinsic& whole) {
  Intrinsic i = whole;
  i.name = whole.started;
  i.started.clear();
  i.cuda_end = "commit_products();";
  i.way = Intrinsic::Way::kStarts;
  i.landed = "wgmma.landed." + f.name();
  i.landed_before = "wgmma.landed_before." + f.name();
  return i;
}

Intrinsic land(const Intrinsic& whole, const std::string& name, const char* cuda, Intrinsic::Way way) {
  Intrinsic i = of_warpgroup(name);
  i.operands = whole.operands;
  const Buffer c = operand_buffer(i.operands[0]), a = operand_buffer(i.operands[1]),
               b = operand_buffer(i.operands[2]);
  const Var row = make_var("i"), column = make_var("j");
  const Stmt nothing = make_reduce(c, {row, column}, ReduceOp::kSum, {}, float_imm(0, DType::kFloat32), {});
  i.meaning = {.name = "tile_landed",
               .args = {a, b, c},
               .body = make_for(row, kProductRows, make_for(column, c->shape[1], nothing))};
  i.cuda = cuda;
  i.cuda_shared_helper = whole.cuda_shared_helper;
  i.way = way;
  return i;
}

Intrinsic zero(int64_t columns) {
  Intrinsic i = of_warpgroup(str("wgmma.zero.", columns));
  i.operands = {sums(columns, Access::kWrite)};
  const Buffer c = operand_buffer(i.operands[0]);
  const Var row = make_var("i"), piece = make_var("p"), column = make_var("j");
  Stmt nest = make_store(c, {Expr(row), Expr(piece) * kPiece + Expr(column)}, float_imm(0, DType::kFloat32));
  nest = make_for(piece, columns / kPiece, make_for(column, kPiece, nest));
  i.meaning = {.name = "tile_zero", .args = {c}, .body = make_for(row, kProductRows, nest)};
  i.cuda = str("set_zero_", columns, "($0);");
  i.cuda_helper = str("static __device__ __forceinline__ void set_zero_", columns,
                      "(float* c) {\n#pragma unroll\n  for (int r = 0; r < ", kProductRows * columns / kGroup,
                      "; ++r) c[r] = 0.0f;\n}\n");
  return i;
}

Intrinsic store_sums() {
  constexpr int64_t kColumns = 8;
  Intrinsic i = of_warpgroup("wgmma.store");
  i.operands = {sums(kColumns, Access::kRead),
                {.name = "memory",
                 .access = Access::kWrite,
                 .shape = {kProductRows, kColumns},
                 .place = Place::kShared,
                 .registers = 4,
                 .run = 2,
                 .layout = sums_layout}};
  const Buffer to = operand_buffer(i.operands[1]), from = operand_buffer(i.operands[0]);
  const Var row = make_var("i"), column = make_var("j");
  const Stmt move = make_store(to, {row, column}, load(from, {row, column}));
  i.meaning = {.name = "tile_copy",
               .args = {from, to},
               .body = make_for(row, kProductRows, make_for(column, kColumns, move))};
  i.cuda = "store_pairs($0, $1, $1:2);";
  i.cuda_helper =
      "// Two neighbours in each of two rows.\n"
      "static __device__ __forceinline__ void store_pairs(const float* c, float* upper, float* lower) {\n"
      "  *(float2*)upper = make_float2(c[0], c[1]);\n  *(float2*)lower = make_float2(c[2], c[3]);\n}\n";
  return i;
}

}  // namespace

std::vector<Intrinsic> wgmma_intrinsics() {
  std::vector<Intrinsic> all = {store_sums()};
  for (const int64_t columns : {64, 128, 192, 256}) {
    all.push_back(zero(columns));
    for (const DType t : {DType::kBFloat16, DType::kFloat16})
      for (const bool a_along_k : {true, false})
        for (const bool b_along_k : {true, false}) {
          const Form form{t, columns, a_along_k, b_along_k};
          const Intrinsic whole = product(form), started = start(form, whole);
          for (const Intrinsic& i :
               {whole, started, land(whole, started.landed, "await_products();", Intrinsic::Way::kLands),
                land(whole, started.landed_before, "await_earlier_products();",
                     Intrinsic::Way::kLandsBefore)})
            all.push_back(i);
        }
  }
  return all;
}

}  // namespace tuner
