#include "compiler_core/codegen/math_library.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/codegen/library.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/Object/ObjectFile.h"

namespace tuner {
namespace codegen {
namespace {

// emit_math.cpp calls the first two lines; LLVM the third, where a CPU has no instruction. All exist with an
// f at the end, too.
constexpr std::string_view kFunctions[] = {"sin",       "cos",       "tan",   "asin",  "acos", "atan", "sinh",
                                           "cosh",      "asinh",     "acosh", "atanh", "pow",  "exp",  "log",
                                           "tanh",      "erf",       "ceil",  "floor", "fma",  "fmod", "rint",
                                           "nearbyint", "roundeven", "round", "trunc", "sqrt"};

bool is_math(std::string_view name) {
  const auto known = [](std::string_view word) {
    return std::ranges::find(kFunctions, word) != std::end(kFunctions);
  };
  return known(name) || (name.ends_with('f') && known(name.substr(0, name.size() - 1)));
}

Status no_object(llvm::Error error) {
  return Status(StatusCode::kInternal, str("an object cannot be read: ", llvm::toString(std::move(error))));
}

}  // namespace

Result<std::vector<std::string>> math_calls(const std::vector<std::string>& objects) {
  std::set<std::string> calls;
  for (const std::string& bytes : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
    if (!object) return no_object(object.takeError());
    for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
      llvm::Expected<uint32_t> flags = symbol.getFlags();
      if (!flags) return no_object(flags.takeError());
      llvm::Expected<llvm::StringRef> name = symbol.getName();
      if (!name) return no_object(name.takeError());
      if ((*flags & llvm::object::SymbolRef::SF_Undefined) != 0 && is_math(*name)) calls.insert(name->str());
    }
  }
  return std::vector<std::string>(calls.begin(), calls.end());
}

Status write_stub(const std::string& path, std::string_view soname, const std::vector<std::string>& functions,
                  const Target& target) {
  llvm::ifs::IFSStub stub;
  stub.SoName = std::string(soname);
  stub.Target.Arch = target.is_x86() ? llvm::ELF::EM_X86_64 : llvm::ELF::EM_AARCH64;
  stub.Target.BitWidth = llvm::ifs::IFSBitWidthType::IFS64;
  stub.Target.Endianness = llvm::ifs::IFSEndiannessType::Little;
  stub.Target.ObjectFormat = "ELF";
  for (const std::string& function : functions) {
    llvm::ifs::IFSSymbol symbol(function);
    symbol.Type = llvm::ifs::IFSSymbolType::Func;
    stub.Symbols.push_back(std::move(symbol));
  }
  if (llvm::Error error = llvm::ifs::writeBinaryStub(path, stub))
    return Status(StatusCode::kInternal,
                  str("the stand-in of ", soname, " cannot be written: ", llvm::toString(std::move(error))));
  return Status::ok();
}

}  // namespace codegen

Result<bool> calls_math_library(const std::vector<std::string>& objects) {
  ASSIGN_OR_RETURN(const std::vector<std::string> calls, codegen::math_calls(objects));
  return !calls.empty();
}

Result<std::string> library_stub(const std::vector<std::string>& symbols, const Target& target,
                                 std::string_view soname) {
  ASSIGN_OR_RETURN(const auto scratch, ScratchFolder::make("tuner-stub", {"/dev/shm", "/tmp"}));
  RETURN_IF_ERROR(codegen::write_stub(scratch->file("stub.so"), soname, symbols, target));
  return read_whole(scratch->file("stub.so"));
}

}  // namespace tuner
