#include "compiler_core/npu/kernel_file.h"

#include <cstring>

#include "compiler_core/npu/machine.h"

namespace tuner::npu {
namespace {

constexpr std::string_view kKernelMagic = "NPUKERN\n";
constexpr uint64_t kMostOperands = 64, kMostPatches = 1 << 22;
constexpr uint64_t kMostCopies = 64, kMostLoops = 16, kMostConditions = 64;

void put_part(std::string& out, uint64_t value, int bytes = 8) {
  for (int b = 0; b < bytes; ++b) out += static_cast<char>(value >> (8 * b));
}

// Reads numbers one after the other; once one is missing, all others are 0.
class PartReader {
 public:
  explicit PartReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number(int bytes = 8) {
    const std::string_view part = text(static_cast<uint64_t>(bytes));
    uint64_t value = 0;
    for (size_t b = 0; b < part.size(); ++b) value |= uint64_t{static_cast<uint8_t>(part[b])} << (8 * b);
    return value;
  }
  std::string_view text(uint64_t bytes) {
    if (bytes > bytes_.size()) {
      cut_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view part = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return part;
  }
  std::string_view rest() const { return bytes_; }
  bool cut() const { return cut_; }

 private:
  std::string_view bytes_;
  bool cut_ = false;
};

Status check_places(const KernelFile& k) {
  const auto outside = [&](uint64_t at, uint64_t bytes) {
    return at > k.dram_bytes || bytes > k.dram_bytes - at;
  };
  if (k.dram_bytes > kMostDramBytes)
    return invalid_argument("NPU kernel: ", k.dram_bytes, " bytes of DRAM, expected at most ",
                            kMostDramBytes);
  for (size_t i = 0; i < k.operands.size(); ++i)
    if (outside(k.operands[i].dram, k.operands[i].bytes))
      return invalid_argument("NPU kernel: operand ", i, " lies outside of its ", k.dram_bytes,
                              " bytes of DRAM");
  if (outside(k.constants_at, k.constants.size()))
    return invalid_argument("NPU kernel: the constants lie outside of its ", k.dram_bytes, " bytes of DRAM");
  for (const KernelPatch& p : k.patches) {
    if (p.instruction >= k.code.size() || p.operand >= k.operands.size() ||
        p.field > KernelPatch::Field::kHigh)
      return invalid_argument("NPU kernel: a patch of instruction ", p.instruction, " from operand ",
                              p.operand, ", which it does not have");
    const Op op = k.code[p.instruction].op;
    if ((op != Op::kScales && op != Op::kStoreScales) || k.operands[p.operand].bytes == 0)
      return invalid_argument("NPU kernel: a patch of instruction ", p.instruction,
                              ", expected one of scales or store_scales, from an operand of a byte or more");
  }
  return Status::ok();
}

void put_linear(std::string& out, const PackCopy::Linear& l) {
  put_part(out, static_cast<uint64_t>(l.base));
  for (const int64_t each : l.by) put_part(out, static_cast<uint64_t>(each));
}
void put_copy(std::string& out, const PackCopy& c) {
  put_part(out, c.from, 4);
  put_part(out, c.to, 4);
  put_part(out, c.element_bytes, 4);
  put_part(out, c.extents.size(), 4);
  for (const int64_t extent : c.extents) put_part(out, static_cast<uint64_t>(extent));
  put_linear(out, c.source);
  put_linear(out, c.target);
  put_part(out, c.at_least_zero.size(), 4);
  for (const PackCopy::Linear& l : c.at_least_zero) put_linear(out, l);
}

PackCopy::Linear read_linear(PartReader& in, size_t loops) {
  PackCopy::Linear l{.base = static_cast<int64_t>(in.number()), .by = {}};
  for (size_t i = 0; i < loops; ++i) l.by.push_back(static_cast<int64_t>(in.number()));
  return l;
}
Status read_copy(PartReader& in, size_t arguments, PackCopy& c) {
  c.from = static_cast<uint32_t>(in.number(4));
  c.to = static_cast<uint32_t>(in.number(4));
  c.element_bytes = static_cast<uint32_t>(in.number(4));
  const uint64_t loops = in.number(4);
  if (c.from >= arguments || c.to >= arguments || c.element_bytes == 0 || c.element_bytes > 8 ||
      loops > kMostLoops)
    return invalid_argument("NPU kernel: a copy of the packing has argument ", c.from, " or ", c.to, " of ",
                            arguments, ", ", c.element_bytes, " bytes per element or ", loops, " loops");
  int64_t elements = 1;
  for (uint64_t i = 0; i < loops; ++i) {
    c.extents.push_back(static_cast<int64_t>(in.number()));
    if (c.extents.back() < 0 || __builtin_mul_overflow(elements, c.extents.back(), &elements) ||
        elements > static_cast<int64_t>(kMostDramBytes))
      return invalid_argument("NPU kernel: a copy of the packing has more than ", kMostDramBytes,
                              " elements");
  }
  c.source = read_linear(in, c.extents.size());
  c.target = read_linear(in, c.extents.size());
  const uint64_t conditions = in.number(4);
  for (uint64_t i = 0; i < conditions && !in.cut(); ++i) {
    if (i == kMostConditions)
      return invalid_argument("NPU kernel: a copy of the packing has ", conditions,
                              " conditions, expected at most ", kMostConditions);
    c.at_least_zero.push_back(read_linear(in, c.extents.size()));
  }
  return Status::ok();
}

// Sums wrap around: the result is compared with bounds, whatever it is.
int64_t value_of(const PackCopy::Linear& l, const std::vector<int64_t>& at) {
  auto value = static_cast<uint64_t>(l.base);
  for (size_t i = 0; i < at.size(); ++i)
    value += static_cast<uint64_t>(l.by[i]) * static_cast<uint64_t>(at[i]);
  return static_cast<int64_t>(value);
}

bool run_copy(const KernelFile& k, const PackCopy& c, void* const* args) {
  const auto inside = [&](int64_t at, uint32_t argument) {
    return at >= 0 && static_cast<uint64_t>(at) <= k.pack_bytes[argument] &&
           c.element_bytes <= k.pack_bytes[argument] - static_cast<uint64_t>(at);
  };
  for (const int64_t extent : c.extents)
    if (extent == 0) return true;
  std::vector<int64_t> at(c.extents.size(), 0);
  for (;;) {
    bool there = true;
    for (const PackCopy::Linear& l : c.at_least_zero) there = there && value_of(l, at) >= 0;
    const int64_t to = value_of(c.target, at), from = value_of(c.source, at);
    if (!inside(to, c.to) || (there && !inside(from, c.from))) return false;
    char* const target = static_cast<char*>(args[c.to]) + to;
    if (there)
      std::memcpy(target, static_cast<const char*>(args[c.from]) + from, c.element_bytes);
    else
      std::memset(target, 0, c.element_bytes);
    size_t i = at.size();
    while (i > 0 && ++at[i - 1] == c.extents[i - 1]) at[--i] = 0;
    if (i == 0) return true;
  }
}

}  // namespace

bool run_packing(const KernelFile& kernel, void* const* args) {
  for (const PackCopy& c : kernel.packing)
    if (!run_copy(kernel, c, args)) return false;
  return true;
}

std::string write_kernel(const KernelFile& k) {
  std::string out(kKernelMagic);
  put_part(out, kKernelVersion, 4);
  put_part(out, k.dram_bytes);
  put_part(out, k.operands.size(), 4);
  for (const KernelOperand& o : k.operands) {
    put_part(out, o.dram);
    put_part(out, o.bytes);
    put_part(out, (o.is_input ? 1u : 0u) | (o.is_output ? 2u : 0u), 1);
  }
  put_part(out, k.patches.size(), 4);
  for (const KernelPatch& p : k.patches) {
    put_part(out, p.instruction, 4);
    put_part(out, p.operand, 4);
    put_part(out, static_cast<uint8_t>(p.field), 1);
    put_part(out, static_cast<uint32_t>(p.add), 4);
  }
  put_part(out, k.constants_at);
  put_part(out, k.constants.size());
  out += k.constants;
  put_part(out, k.pack_bytes.size(), 4);
  for (const uint64_t bytes : k.pack_bytes) put_part(out, bytes);
  put_part(out, k.packing.size(), 4);
  for (const PackCopy& c : k.packing) put_copy(out, c);
  return out + write_binary({.machine = k.machine, .code = k.code});
}

Result<KernelFile> read_kernel(std::string_view bytes) {
  if (!bytes.starts_with(kKernelMagic))
    return invalid_argument("NPU kernel: expected a file that begins with NPUKERN");
  PartReader in(bytes.substr(kKernelMagic.size()));
  if (const uint64_t version = in.number(4); version != kKernelVersion)
    return invalid_argument("NPU kernel: version ", version, ", expected ", kKernelVersion,
                            ": compile the program again");
  KernelFile k;
  k.dram_bytes = in.number();
  const uint64_t operands = in.number(4);
  for (uint64_t i = 0; i < operands && operands <= kMostOperands; ++i) {
    KernelOperand& o = k.operands.emplace_back();
    o.dram = in.number();
    o.bytes = in.number();
    const uint64_t roles = in.number(1);
    o.is_input = (roles & 1) != 0;
    o.is_output = (roles & 2) != 0;
  }
  const uint64_t patches = in.number(4);
  if (operands > kMostOperands || patches > kMostPatches)
    return invalid_argument("NPU kernel: ", operands, " operands and ", patches,
                            " patches, expected at most ", kMostOperands, " and ", kMostPatches);
  for (uint64_t i = 0; i < patches && !in.cut(); ++i) {
    KernelPatch& p = k.patches.emplace_back();
    p.instruction = static_cast<uint32_t>(in.number(4));
    p.operand = static_cast<uint32_t>(in.number(4));
    p.field = static_cast<KernelPatch::Field>(in.number(1));
    p.add = static_cast<int32_t>(in.number(4));
  }
  k.constants_at = in.number();
  k.constants = in.text(in.number());
  const uint64_t pack_args = in.number(4);
  for (uint64_t i = 0; i < pack_args && pack_args <= kMostOperands; ++i) k.pack_bytes.push_back(in.number());
  const uint64_t copies = in.number(4);
  if (pack_args > kMostOperands || copies > kMostCopies)
    return invalid_argument("NPU kernel: ", copies, " copies between ", pack_args,
                            " arguments of the packing, expected at most ", kMostCopies, " and ",
                            kMostOperands);
  for (uint64_t i = 0; i < copies && !in.cut(); ++i)
    RETURN_IF_ERROR(read_copy(in, k.pack_bytes.size(), k.packing.emplace_back()));
  if (in.cut()) return invalid_argument("NPU kernel: cut off before its program");
  ASSIGN_OR_RETURN(Binary program, read_binary(in.rest()));
  k.machine = std::move(program.machine);
  k.code = std::move(program.code);
  RETURN_IF_ERROR(parse_machine(k.machine).status());
  RETURN_IF_ERROR(check_places(k));
  return k;
}

}  // namespace tuner::npu
