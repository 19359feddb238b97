#include "tuner/compile/shared_object.h"

#include <elf.h>

#include <cstring>
#include <set>

namespace tuner {
namespace {

constexpr size_t kMostSections = 1 << 16;

// Structs at any place of the file.
class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  // False: it would end behind the file.
  template <class T>
  bool get(uint64_t at, T& to) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) return false;
    std::memcpy(&to, bytes_.data() + at, sizeof(T));
    return true;
  }
  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return {};
    return bytes_.substr(at, size);
  }

 private:
  std::string_view bytes_;
};

bool is_function(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned seen = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
         (binding == STB_GLOBAL || binding == STB_WEAK) && (seen == STV_DEFAULT || seen == STV_PROTECTED);
}

// Of the dynamic symbol table `symbols`, whose names are in `names`.
void add_functions(const Image& image, const Elf64_Shdr& symbols, std::string_view names, SharedObject& out) {
  std::set<std::string> known;
  Elf64_Sym symbol;
  for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
    if (!image.get(symbols.sh_offset + at, symbol)) return;
    if (!is_function(symbol) || symbol.st_name >= names.size()) continue;
    const std::string_view rest = names.substr(symbol.st_name);
    const std::string name(rest.substr(0, rest.find('\0')));
    if (!name.empty() && known.insert(name).second) out.functions.push_back(name);
  }
}

}  // namespace

Result<SharedObject> read_shared_object(std::string_view bytes, const std::string& path) {
  const Image image(bytes);
  Elf64_Ehdr head;
  if (!image.get(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return invalid_argument(path, ": is no shared library");
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_DYN)
    return invalid_argument(path, ": is no shared library of 64 bits, little-endian");
  SharedObject out{.machine = head.e_machine, .functions = {}};
  const uint64_t count = std::min<uint64_t>(head.e_shnum, kMostSections);
  for (uint64_t s = 0; s < count; ++s) {
    Elf64_Shdr section, names;
    if (!image.get(head.e_shoff + s * sizeof section, section))
      return invalid_argument(path, ": is a damaged shared library: its sections lie behind its end");
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= count) continue;
    if (!image.get(head.e_shoff + section.sh_link * sizeof names, names)) continue;
    add_functions(image, section, image.part(names.sh_offset, names.sh_size), out);
  }
  return out;
}

std::string machine_name(uint16_t machine) {
  if (machine == EM_X86_64) return "x86-64";
  if (machine == EM_AARCH64) return "aarch64";
  return str("ELF machine ", machine);
}

}  // namespace tuner
