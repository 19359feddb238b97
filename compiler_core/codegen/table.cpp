// Objects that hold data: bytes, and words that the linker fills with addresses.
#include "compiler_core/codegen/library.h"
#include "compiler_core/codegen/machine.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"

namespace tuner {
namespace {

constexpr size_t kAddressBytes = 8;

// The table as a packed struct: pieces of bytes, and pointers between them.
class TableModule {
 public:
  TableModule(const ConstantTable& table, llvm::Module& module) : table_(table), module_(module) {}

  void emit() {
    llvm::LLVMContext& context = module_.getContext();
    llvm::Type* const pointer = llvm::PointerType::getUnqual(context);
    std::vector<llvm::Type*> types;
    size_t done = 0;
    for (const ConstantTable::Address& address : table_.addresses) {
      CHECK(address.at >= done && address.at + kAddressBytes <= table_.bytes.size() &&
            address.at % kAddressBytes == 0)
          << table_.symbol << ": an address at byte " << address.at << " of " << table_.bytes.size();
      if (address.at > done) types.push_back(bytes_type(address.at - done));
      types.push_back(pointer);
      done = address.at + kAddressBytes;
    }
    if (done < table_.bytes.size()) types.push_back(bytes_type(table_.bytes.size() - done));
    auto* const type = llvm::StructType::get(context, types, /*isPacked=*/true);
    auto* const global = new llvm::GlobalVariable(module_, type, /*isConstant=*/true,
                                                  llvm::GlobalValue::ExternalLinkage, nullptr, table_.symbol);
    global->setAlignment(llvm::Align(64));
    global->setInitializer(llvm::ConstantStruct::get(type, values(*type, *global)));
  }

 private:
  llvm::Type* bytes_type(size_t count) const {
    return llvm::ArrayType::get(llvm::Type::getInt8Ty(module_.getContext()), count);
  }

  std::vector<llvm::Constant*> values(const llvm::StructType& type, llvm::GlobalVariable& global) {
    std::vector<llvm::Constant*> out;
    size_t done = 0, next = 0;
    for (llvm::Type* const each : type.elements()) {
      if (each->isPointerTy()) {
        out.push_back(address(table_.addresses[next++], global));
        done += kAddressBytes;
        continue;
      }
      const size_t count = each->getArrayNumElements();
      out.push_back(llvm::ConstantDataArray::getString(
          module_.getContext(), llvm::StringRef(table_.bytes).substr(done, count), /*AddNull=*/false));
      done += count;
    }
    return out;
  }

  llvm::Constant* address(const ConstantTable::Address& to, llvm::GlobalVariable& global) {
    llvm::LLVMContext& context = module_.getContext();
    if (to.symbol.empty())
      return llvm::ConstantExpr::getGetElementPtr(
          llvm::Type::getInt8Ty(context), &global,
          llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), to.offset));
    return llvm::cast<llvm::Constant>(
        module_
            .getOrInsertFunction(to.symbol,
                                 llvm::FunctionType::get(llvm::Type::getInt32Ty(context), /*isVarArg=*/false))
            .getCallee());
  }

  const ConstantTable& table_;
  llvm::Module& module_;
};

}  // namespace

Result<std::string> compile_table(const ConstantTable& table, const Target& target) {
  ASSIGN_OR_RETURN(codegen::Machine* const machine, codegen::Machine::of(target));
  llvm::LLVMContext context;
  llvm::Module module(table.symbol, context);
  machine->prepare(module);
  TableModule(table, module).emit();
  return machine->emit(module, llvm::CodeGenFileType::ObjectFile, /*machine_scheduler=*/false);
}

}  // namespace tuner
