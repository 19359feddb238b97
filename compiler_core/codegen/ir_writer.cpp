#include "compiler_core/codegen/ir_writer.h"

namespace tuner::codegen {

llvm::Type* IrPart::type_of(DType t) {
  switch (t) {
    case DType::kBool:
      return b_.getInt1Ty();
    case DType::kInt8:
    case DType::kUInt8:
      return b_.getInt8Ty();
    case DType::kInt16:
    case DType::kUInt16:
      return b_.getInt16Ty();
    case DType::kInt32:
    case DType::kUInt32:
      return b_.getInt32Ty();
    case DType::kInt64:
    case DType::kUInt64:
      return b_.getInt64Ty();
    case DType::kFloat16:  // their bits: targets without the type would round each copy by a library call
    case DType::kBFloat16:
      return b_.getInt16Ty();
    case DType::kFloat32:
      return b_.getFloatTy();
    case DType::kFloat64:
      return b_.getDoubleTy();
  }
  return nullptr;
}

llvm::Type* IrPart::memory_type(DType t) { return t == DType::kBool ? b_.getInt8Ty() : type_of(t); }

}  // namespace tuner::codegen
