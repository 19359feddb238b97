// Static libraries, by LLVM's archive writer.
#include "compiler_core/codegen/library.h"
#include "llvm/Object/ArchiveWriter.h"

namespace tuner {

Result<std::string> write_archive(const std::vector<ArchiveMember>& members) {
  if (members.empty()) return invalid_argument("an archive of no objects");
  std::vector<llvm::NewArchiveMember> files;
  for (const ArchiveMember& m : members) files.emplace_back(llvm::MemoryBufferRef(m.object, m.name));
  // Deterministic: no dates, no owners.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> bytes = llvm::writeArchiveToBuffer(
      files, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU, /*Deterministic=*/true,
      /*Thin=*/false);
  if (!bytes)
    return Status(StatusCode::kInternal,
                  str("writing an archive failed: ", llvm::toString(bytes.takeError())));
  return (*bytes)->getBuffer().str();
}

}  // namespace tuner
