// Tile intrinsics on vectors: a fragment is a local variable for each of its tiles, which LLVM keeps in
// registers.
//
//   for k
//     ldr q0, A  ldr q1, B                a tile whose rows lie side by side; else a load for each row
//     usmmla v4.4s, v0.16b, v1.16b
//   st1 { v4.d }[0], C  st1 { v4.d }[1], C + row
#include <functional>
#include <numeric>

#include "compiler_core/codegen/emitter.h"

namespace tuner::codegen {
namespace {

constexpr int64_t kVectorBytes = 16;

int64_t row_bytes_of(const IntrinsicOperand& o) { return kVectorBytes / o.shape[0]; }

// Bytes from row to row of a tile in memory.
int64_t distance_of(const IntrinsicOperand& o, const ExprNode& element) {
  const std::vector<int64_t>& shape = element.buffer->shape;
  const auto inside = shape.end() - static_cast<std::ptrdiff_t>(o.shape.size()) + 1;
  return std::accumulate(inside, shape.end(), dtype_bytes(o.dtype), std::multiplies<>());
}

}  // namespace

llvm::Type* Emitter::vector_tile_type(DType dtype) {
  return llvm::FixedVectorType::get(type_of(dtype), static_cast<unsigned>(kVectorBytes / dtype_bytes(dtype)));
}

llvm::Value* Emitter::vector_tile(const IntrinsicOperand& operand, const ExprNode& element) {
  const auto fragment = scope_.region.fragments.find(element.buffer.get());
  if (fragment == scope_.region.fragments.end()) {
    refuse("fragment ", element.buffer->name, " is allocated outside the parallel loop that uses it");
    return llvm::PoisonValue::get(b_.getPtrTy());
  }
  return b_.CreateConstInBoundsGEP1_64(vector_tile_type(operand.dtype), fragment->second,
                                       static_cast<uint64_t>(tile_number(operand, element)));
}

llvm::Value* Emitter::load_rows(const IntrinsicOperand& operand, const ExprNode& element) {
  const int64_t bytes = row_bytes_of(operand), distance = distance_of(operand, element);
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(operand.dtype)));
  llvm::Value* p = addresses_.pointer(element.buffer, addresses_.analyze(element.buffer, element.operands));
  llvm::Type* type = vector_tile_type(operand.dtype);
  if (operand.shape[0] == 1 || distance == bytes) return b_.CreateAlignedLoad(type, p, align);
  llvm::Type* row = b_.getIntNTy(static_cast<unsigned>(8 * bytes));
  llvm::Value* rows =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(row, static_cast<unsigned>(operand.shape[0])));
  for (int64_t i = 0; i < operand.shape[0]; ++i) {
    llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), p, int_of(i * distance));
    rows = b_.CreateInsertElement(rows, b_.CreateAlignedLoad(row, at, align), static_cast<uint64_t>(i));
  }
  return b_.CreateBitCast(rows, type);
}

void Emitter::store_rows(llvm::Value* vector, const IntrinsicOperand& operand, const ExprNode& element) {
  const int64_t bytes = row_bytes_of(operand), distance = distance_of(operand, element);
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(operand.dtype)));
  llvm::Value* p = addresses_.pointer(element.buffer, addresses_.analyze(element.buffer, element.operands));
  if (operand.shape[0] == 1 || distance == bytes) {
    b_.CreateAlignedStore(vector, p, align);
    return;
  }
  llvm::Type* row = b_.getIntNTy(static_cast<unsigned>(8 * bytes));
  llvm::Value* rows =
      b_.CreateBitCast(vector, llvm::FixedVectorType::get(row, static_cast<unsigned>(operand.shape[0])));
  for (int64_t i = 0; i < operand.shape[0]; ++i)
    b_.CreateAlignedStore(b_.CreateExtractElement(rows, static_cast<uint64_t>(i)),
                          b_.CreateGEP(b_.getInt8Ty(), p, int_of(i * distance)), align);
}

void Emitter::emit_vector_intrinsic(const StmtNode& s, const Intrinsic& intrinsic) {
  const auto operand = [&](size_t o) -> const IntrinsicOperand& { return intrinsic.operands[o]; };
  const auto element = [&](size_t o) -> const ExprNode& { return *s.operands[o]; };
  const auto value = [&](size_t o) {
    return b_.CreateLoad(vector_tile_type(operand(o).dtype), vector_tile(operand(o), element(o)));
  };
  llvm::Value* result = nullptr;
  if (!intrinsic.llvm.empty()) {
    std::vector<llvm::Value*> operands;
    for (size_t o = 0; o < s.operands.size(); ++o) operands.push_back(value(o));
    const llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(intrinsic.llvm);
    CHECK(id != llvm::Intrinsic::not_intrinsic) << intrinsic.name << ": LLVM has no " << intrinsic.llvm;
    // Overloaded by its result, and by what it multiplies; elements of bfloat16 are bits here.
    llvm::Type* multiplied = operands[1]->getType();
    if (operand(1).dtype == DType::kBFloat16) {
      multiplied = llvm::FixedVectorType::get(b_.getBFloatTy(), 8);
      for (const size_t o : {1, 2}) operands[o] = b_.CreateBitCast(operands[o], multiplied);
    }
    result = llvm::Intrinsic::isOverloaded(id)
                 ? b_.CreateIntrinsic(id, {operands[0]->getType(), multiplied}, operands)
                 : b_.CreateIntrinsic(id, {}, operands);
  } else if (operand(0).access == IntrinsicOperand::Access::kRead) {
    return store_rows(value(0), operand(1), element(1));
  } else if (s.operands.size() == 1) {
    result = llvm::Constant::getNullValue(vector_tile_type(operand(0).dtype));
  } else {
    result = load_rows(operand(1), element(1));
  }
  b_.CreateStore(result, vector_tile(operand(0), element(0)));
}

}  // namespace tuner::codegen
