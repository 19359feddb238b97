#include <elf.h>

#include <algorithm>
#include <cstring>

#include "compiler_core/artifact/artifact.h"

namespace tuner {
namespace {

// The value of type T at `at`; false beyond the end.
template <class T>
bool read_at(std::string_view binary, uint64_t at, T& to) {
  if (at > binary.size() || binary.size() - at < sizeof to) return false;
  std::memcpy(&to, binary.data() + at, sizeof to);
  return true;
}

bool read_head(std::string_view binary, Elf64_Ehdr& head) {
  return read_at(binary, 0, head) && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
         head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB;
}

}  // namespace

std::vector<std::string> needed_libraries(std::string_view binary) {
  std::vector<std::string> names;
  Elf64_Ehdr head;
  if (!read_head(binary, head)) return names;
  for (uint64_t s = 0; s < head.e_shnum; ++s) {
    Elf64_Shdr section, texts;
    if (!read_at(binary, head.e_shoff + s * sizeof section, section)) return {};
    if (section.sh_type != SHT_DYNAMIC) continue;
    if (!read_at(binary, head.e_shoff + uint64_t{section.sh_link} * sizeof texts, texts)) return {};
    Elf64_Dyn entry;
    for (uint64_t at = 0;
         at + sizeof entry <= section.sh_size && read_at(binary, section.sh_offset + at, entry);
         at += sizeof entry) {
      if (entry.d_tag == DT_NULL) break;
      const uint64_t place = texts.sh_offset + entry.d_un.d_val;
      if (entry.d_tag != DT_NEEDED || place >= binary.size()) continue;
      const std::string_view rest = binary.substr(place);
      names.emplace_back(rest.substr(0, std::min(rest.find('\0'), rest.size())));
    }
  }
  return names;
}

DynamicSymbols dynamic_symbols(std::string_view binary) {
  DynamicSymbols found;
  Elf64_Ehdr head;
  if (!read_head(binary, head)) return found;
  for (uint64_t s = 0; s < head.e_shnum; ++s) {
    Elf64_Shdr section, texts;
    if (!read_at(binary, head.e_shoff + s * sizeof section, section)) return {};
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!read_at(binary, head.e_shoff + uint64_t{section.sh_link} * sizeof texts, texts)) return {};
    Elf64_Sym symbol;
    for (uint64_t at = 0;
         at + sizeof symbol <= section.sh_size && read_at(binary, section.sh_offset + at, symbol);
         at += sizeof symbol) {
      const uint64_t place = texts.sh_offset + symbol.st_name;
      if (symbol.st_name == 0 || place >= binary.size()) continue;
      const std::string_view rest = binary.substr(place);
      (symbol.st_shndx == SHN_UNDEF ? found.imported : found.exported)
          .emplace_back(rest.substr(0, std::min(rest.find('\0'), rest.size())));
    }
  }
  return found;
}

int64_t code_bytes(std::string_view binary) {
  Elf64_Ehdr head;
  if (!read_head(binary, head)) return 0;
  uint64_t bytes = 0;
  for (uint64_t s = 0; s < head.e_shnum; ++s) {
    Elf64_Shdr section;
    if (!read_at(binary, head.e_shoff + s * sizeof section, section)) return 0;
    if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_type != SHT_NOBITS)
      bytes += std::min<uint64_t>(section.sh_size, binary.size());
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace tuner
