#include <elf.h>

#include <algorithm>
#include <cstring>

#include "compiler_core/artifact/artifact.h"

namespace tuner {

int64_t code_bytes(std::string_view binary) {
  const auto read = [&](uint64_t at, auto& to) {
    if (at > binary.size() || binary.size() - at < sizeof to) return false;
    std::memcpy(&to, binary.data() + at, sizeof to);
    return true;
  };
  Elf64_Ehdr head;
  if (!read(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
    return 0;
  uint64_t bytes = 0;
  for (uint64_t s = 0; s < head.e_shnum; ++s) {
    Elf64_Shdr section;
    if (!read(head.e_shoff + s * sizeof section, section)) return 0;
    if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_type != SHT_NOBITS)
      bytes += std::min<uint64_t>(section.sh_size, binary.size());
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace tuner
