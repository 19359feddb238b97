// Reading a cubin: an ELF64 file for machine 190. What its compiler knew stands in sections .nv.info (all
// functions) and .nv.info.NAME (one), as a list of attributes. Every offset comes from the file and is
// checked before it is followed.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/cubin_text.h"

namespace tuner {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSectionSymbols = 2;

// Attributes of .nv.info; the numbers are those that cuobjdump prints as EIATTR_...
constexpr uint8_t kMaxThreads = 0x05, kFrameSize = 0x11, kParameter = 0x17, kRegisterCount = 0x2f,
                  kBarriers = 0x4c;
// How an attribute holds its value: in its own two bytes, or in as many bytes behind as they say.
constexpr uint8_t kFormatNone = 1, kFormatByte = 2, kFormatBytes = 4;

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  template <class T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > size() || size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::optional<std::string_view> slice(uint64_t offset, uint64_t length) const {
    if (offset > size() || size() - offset < length) return std::nullopt;
    return bytes_.substr(offset, length);
  }
  // Up to the next zero byte.
  std::optional<std::string_view> text(uint64_t offset) const {
    if (offset >= size()) return std::nullopt;
    const size_t end = bytes_.find('\0', offset);
    if (end == std::string_view::npos) return std::nullopt;
    return bytes_.substr(offset, end - offset);
  }

 private:
  std::string_view bytes_;
};

Status damaged(uint64_t offset, std::string_view what) {
  return invalid_argument("cubin: offset ", offset, ": ", what, "; the file is cut short or damaged");
}

struct Section {
  std::string_view name, bytes;  // bytes are empty for what takes no place in the file
  uint32_t type = 0, link = 0;
  uint64_t size = 0;
};

constexpr uint32_t kSectionNoBits = 8;

Result<std::vector<Section>> read_sections(const Bytes& file) {
  if (!file.text(0).has_value() || !file.text(0)->starts_with("\x7f"
                                                              "ELF\x02\x01"))
    return invalid_argument("cubin: offset 0: not a 64-bit little-endian ELF file");
  const auto machine = file.at<uint16_t>(18);
  if (!machine.has_value() || *machine != kMachineCuda)
    return invalid_argument("cubin: offset 18: an ELF file, but not for a CUDA device");
  const auto table = file.at<uint64_t>(40);
  const auto entry_size = file.at<uint16_t>(58), count = file.at<uint16_t>(60), names = file.at<uint16_t>(62);
  if (!names.has_value() || *entry_size < 64) return damaged(58, "no table of sections");
  struct Header {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
    uint32_t link, info;
    uint64_t alignment, entry_size;
  };
  std::vector<Header> headers;
  for (uint64_t i = 0; i < *count; ++i) {
    const uint64_t at = *table + i * *entry_size;
    const auto header = at < *table ? std::nullopt : file.at<Header>(at);
    if (!header.has_value()) return damaged(at, str("section ", i, " of ", *count, " is not there"));
    headers.push_back(*header);
  }
  if (*names >= headers.size()) return damaged(62, "no names of sections");
  const auto name_bytes = file.slice(headers[*names].offset, headers[*names].size);
  if (!name_bytes.has_value()) return damaged(headers[*names].offset, "the names of sections are not there");
  std::vector<Section> sections;
  for (const Header& h : headers) {
    const auto name = Bytes(*name_bytes).text(h.name);
    const auto bytes = h.type == kSectionNoBits ? std::string_view() : file.slice(h.offset, h.size);
    if (!name.has_value() || !bytes.has_value()) return damaged(h.offset, "a section is not there");
    sections.push_back({.name = *name, .bytes = *bytes, .type = h.type, .link = h.link, .size = h.size});
  }
  return sections;
}

struct Attribute {
  uint8_t kind = 0;
  uint16_t value = 0;      // formats byte and short
  std::string_view bytes;  // format bytes
};

Result<std::vector<Attribute>> read_attributes(const Section& section) {
  const Bytes bytes(section.bytes);
  std::vector<Attribute> attributes;
  for (uint64_t at = 0; at < bytes.size();) {
    const auto format = bytes.at<uint8_t>(at), kind = bytes.at<uint8_t>(at + 1);
    const auto value = bytes.at<uint16_t>(at + 2);
    if (!value.has_value() || *format < kFormatNone || *format > kFormatBytes)
      return invalid_argument("cubin: ", section.name, ": offset ", at, ": not an attribute");
    Attribute attribute{.kind = *kind, .value = *value};
    at += 4;
    if (*format == kFormatBytes) {
      const auto payload = bytes.slice(at, *value);
      if (!payload.has_value())
        return invalid_argument("cubin: ", section.name, ": offset ", at, ": an attribute is cut short");
      attribute.bytes = *payload;
      at += *value;
    } else if (*format == kFormatByte) {
      attribute.value &= 0xff;
    }
    attributes.push_back(attribute);
  }
  return attributes;
}

// The name of symbol `index`.
std::optional<std::string_view> symbol_name(const std::vector<Section>& sections, uint32_t index) {
  constexpr uint64_t kSymbolBytes = 24;
  for (const Section& s : sections) {
    if (s.type != kSectionSymbols || s.link >= sections.size()) continue;
    const auto name = Bytes(s.bytes).at<uint32_t>(index * kSymbolBytes);
    return name.has_value() ? Bytes(sections[s.link].bytes).text(*name) : std::nullopt;
  }
  return std::nullopt;
}

using Kernels = std::map<std::string, CubinKernel, std::less<>>;

// .nv.info: pairs (symbol, number).
Status read_common(const std::vector<Section>& sections, const Section& section, Kernels& kernels) {
  ASSIGN_OR_RETURN(const std::vector<Attribute> attributes, read_attributes(section));
  for (const Attribute& a : attributes) {
    if (a.kind != kRegisterCount && a.kind != kFrameSize) continue;
    const auto symbol = Bytes(a.bytes).at<uint32_t>(0), number = Bytes(a.bytes).at<uint32_t>(4);
    if (!symbol.has_value() || !number.has_value())
      return invalid_argument("cubin: .nv.info: an attribute of ", a.bytes.size(), " bytes, expected 8");
    const auto name = symbol_name(sections, *symbol);
    if (!name.has_value())
      return invalid_argument("cubin: .nv.info: names symbol ", *symbol, ", which is not there");
    const auto kernel = kernels.find(*name);
    if (kernel == kernels.end()) continue;  // a function that is no kernel
    if (*number > 1u << 30)
      return invalid_argument("cubin: .nv.info: ", *name, ": found ", *number, " registers or bytes");
    (a.kind == kRegisterCount ? kernel->second.registers : kernel->second.stack_bytes) =
        static_cast<int>(*number);
  }
  return Status::ok();
}

// A parameter: an index, its place (16 bits), its offset (16 bits), and its size in the upper bits of a word.
Status read_parameter(const Section& section, const Attribute& a, CubinKernel& kernel) {
  constexpr uint16_t kMostParameters = 4096;
  constexpr int kSizeFrom = 18;
  const auto place = Bytes(a.bytes).at<uint16_t>(4);
  const auto word = Bytes(a.bytes).at<uint32_t>(8);
  if (!word.has_value() || *place >= kMostParameters)
    return invalid_argument("cubin: ", section.name, ": a parameter is not one");
  if (*place >= kernel.parameter_bytes.size()) kernel.parameter_bytes.resize(*place + 1);
  kernel.parameter_bytes[*place] = static_cast<int>(*word >> kSizeFrom);
  return Status::ok();
}

// .nv.info.NAME
Status read_own(const Section& section, CubinKernel& kernel) {
  ASSIGN_OR_RETURN(const std::vector<Attribute> attributes, read_attributes(section));
  for (const Attribute& a : attributes) {
    if (a.kind == kBarriers) kernel.barriers = a.value;
    if (a.kind == kParameter) RETURN_IF_ERROR(read_parameter(section, a, kernel));
    if (a.kind != kMaxThreads) continue;
    const auto x = Bytes(a.bytes).at<uint32_t>(0), y = Bytes(a.bytes).at<uint32_t>(4),
               z = Bytes(a.bytes).at<uint32_t>(8);
    if (!z.has_value() || std::max({*x, *y, *z}) > 1024 || uint64_t{*x} * *y * *z > 1024)
      return invalid_argument("cubin: ", section.name, ": the bound of threads is not one");
    kernel.max_threads = static_cast<int>(*x * *y * *z);
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<CubinKernel>> read_cubin(std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::vector<Section> sections, read_sections(Bytes(bytes)));
  constexpr std::string_view kInfo = ".nv.info", kOwnInfo = ".nv.info.", kShared = ".nv.shared.";
  Kernels kernels;
  for (const Section& s : sections) {
    if (!s.name.starts_with(kOwnInfo)) continue;
    CubinKernel kernel{.name = std::string(s.name.substr(kOwnInfo.size()))};
    RETURN_IF_ERROR(read_own(s, kernel));
    kernels.emplace(kernel.name, kernel);
  }
  for (const Section& s : sections) {
    if (s.name == kInfo) RETURN_IF_ERROR(read_common(sections, s, kernels));
    if (!s.name.starts_with(kShared)) continue;
    const auto kernel = kernels.find(s.name.substr(kShared.size()));
    if (kernel != kernels.end() && s.size <= 1u << 30)
      kernel->second.static_shared_bytes = static_cast<int>(s.size);
  }
  std::vector<CubinKernel> result;
  for (auto& [name, kernel] : kernels) result.push_back(std::move(kernel));
  return result;
}

Result<sass::CubinTexts> sass::cubin_texts(std::string_view cubin) {
  const Bytes file(cubin);
  ASSIGN_OR_RETURN(const std::vector<Section> sections, read_sections(file));
  // Where the flags hold the architecture depends on the version of this format: 8 came with CUDA 13.
  constexpr uint64_t kFormatAt = 8, kFlagsAt = 48;
  constexpr uint8_t kFormatOfCuda13 = 8;
  const auto format = file.at<uint8_t>(kFormatAt);
  const auto flags = file.at<uint32_t>(kFlagsAt);
  if (!format.has_value() || !flags.has_value()) return damaged(kFlagsAt, "no flags");
  CubinTexts result{.sm = static_cast<int>((*format >= kFormatOfCuda13 ? *flags >> 8 : *flags) & 0xff)};
  constexpr std::string_view kText = ".text.";
  for (const Section& s : sections)
    if (s.name.starts_with(kText))
      result.texts.push_back({.name = std::string(s.name.substr(kText.size())), .bytes = s.bytes});
  std::ranges::sort(result.texts, {}, &CubinText::name);
  return result;
}

}  // namespace tuner
