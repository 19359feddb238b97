#include "compiler_core/npu/machine.h"

#include <charconv>
#include <iterator>
#include <sstream>
#include <vector>

#include "compiler_core/base/did_you_mean.h"

namespace tuner::npu {
namespace {

struct MachineOption {
  std::string_view key, spelling;
  int64_t Machine::*number;
  int64_t low, high;
  bool power_of_two, bytes;
};
constexpr MachineOption kMachineOptions[] = {
    {"-scratchpad", "-scratchpad=", &Machine::scratchpad_bytes, 256, int64_t{16} << 20, true, true},
    {"-banks", "-banks=", &Machine::banks, 1, 32, true, false},
    {"-bank_bytes", "-bank_bytes=", &Machine::bank_bytes, 4, 64, true, false},
    {"-accumulators", "-accumulators=", &Machine::accumulator_bytes, 64, int64_t{4} << 20, true, true},
    {"-dram_bytes", "-dram_bytes=", &Machine::dram_bytes, 1, 128, true, false},
    {"-burst", "-burst=", &Machine::burst_bytes, 1, 4096, true, false},
    {"-latency", "-latency=", &Machine::latency, 0, 100'000, false, false},
    {"-lanes", "-lanes=", &Machine::lanes, 1, 64, true, false},
    {"-queue", "-queue=", &Machine::queue, 1, 64, false, false},
};

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Reads "16", or "256KiB" and "1MiB" where sizes are allowed.
bool read_number(std::string_view text, bool sizes, int64_t& number) {
  int64_t factor = 1;
  if (sizes && text.ends_with("KiB")) factor = 1 << 10;
  if (sizes && text.ends_with("MiB")) factor = 1 << 20;
  if (factor > 1) text.remove_suffix(3);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > (int64_t{1} << 40)) return false;
  number *= factor;
  return true;
}

std::string size_text(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return str(bytes >> 20, "MiB");
  return bytes % (1 << 10) == 0 ? str(bytes >> 10, "KiB") : str(bytes);
}

Status read_array(std::string_view value, Machine& m) {
  const size_t x = value.find('x');
  if (x == std::string_view::npos || !read_number(value.substr(0, x), false, m.array_rows) ||
      !read_number(value.substr(x + 1), false, m.array_columns))
    return invalid_argument("npu: -array: expected ROWSxCOLUMNS, such as 16x16, found \"", value, "\"");
  return Status::ok();
}

Status unknown_option(std::string_view key) {
  std::vector<std::string> known = {"-array"};
  for (const MachineOption& option : kMachineOptions) known.emplace_back(option.key);
  return invalid_argument("npu: unknown option \"", key, "\"", did_you_mean(key, known));
}

}  // namespace

Status set_option(std::string_view key, std::string_view value, Machine& m) {
  if (key == "-array") return read_array(value, m);
  for (const MachineOption& option : kMachineOptions) {
    if (option.key != key) continue;
    if (read_number(value, option.bytes, m.*option.number)) return Status::ok();
    return invalid_argument("npu: ", key, ": expected ", option.bytes ? "a size, such as 256KiB" : "a number",
                            ", found \"", value, "\"");
  }
  return unknown_option(key);
}

std::vector<std::string_view> machine_options() {
  std::vector<std::string_view> options = {"-array="};
  for (const MachineOption& option : kMachineOptions) options.push_back(option.spelling);
  return options;
}

std::span<const MachineNumber> machine_numbers() {
  static constexpr MachineNumber kNumbers[] = {{"array_rows", &Machine::array_rows},
                                               {"array_columns", &Machine::array_columns},
                                               {"scratchpad_bytes", &Machine::scratchpad_bytes},
                                               {"banks", &Machine::banks},
                                               {"bank_bytes", &Machine::bank_bytes},
                                               {"accumulator_bytes", &Machine::accumulator_bytes},
                                               {"dram_bytes", &Machine::dram_bytes},
                                               {"burst_bytes", &Machine::burst_bytes},
                                               {"latency", &Machine::latency},
                                               {"lanes", &Machine::lanes},
                                               {"queue", &Machine::queue}};
  return kNumbers;
}

std::string Machine::name() const {
  const Machine defaults;
  std::string text = "npu";
  if (array_rows != defaults.array_rows || array_columns != defaults.array_columns)
    text += str(" -array=", array_rows, "x", array_columns);
  for (const MachineOption& option : kMachineOptions) {
    const int64_t number = this->*option.number;
    if (number == defaults.*option.number) continue;
    text += str(" ", option.key, "=", option.bytes ? size_text(number) : str(number));
  }
  return text;
}

Status check(const Machine& m) {
  for (const int64_t side : {m.array_rows, m.array_columns})
    if (side < 2 || side > 64 || !power_of_two(side))
      return invalid_argument("npu: -array: expected sides that are powers of two from 2 to 64, found ",
                              m.array_rows, "x", m.array_columns);
  for (const MachineOption& o : kMachineOptions) {
    const int64_t number = m.*o.number;
    if (number < o.low || number > o.high || (o.power_of_two && !power_of_two(number)))
      return invalid_argument("npu: ", o.key, ": expected a ", o.power_of_two ? "power of two" : "number",
                              " from ", o.low, " to ", o.high, ", found ", number);
  }
  if (m.words() < m.banks || m.words() > (1 << 20))
    return invalid_argument(
        "npu: -scratchpad: expected at least one word in each bank, and at most 2^20 words");
  if (m.accumulator_rows() < m.array_rows || m.accumulator_rows() > (1 << 16))
    return invalid_argument(
        "npu: -accumulators: expected at least a tile of the array, and at most 2^16 rows");
  if (m.burst_bytes < m.dram_bytes)
    return invalid_argument("npu: -burst: expected at least -dram_bytes, ", m.dram_bytes, ", found ",
                            m.burst_bytes);
  return Status::ok();
}

Result<Machine> parse_machine(std::string_view name) {
  std::istringstream in{std::string(name)};
  const std::vector<std::string> parts{std::istream_iterator<std::string>(in), {}};
  if (parts.empty() || parts[0] != "npu")
    return invalid_argument("npu: expected a name that begins with \"npu\", found \"", name, "\"");
  Machine m;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    const std::string_view key = std::string_view(parts[i]).substr(0, equals);
    const std::string_view value =
        equals == std::string::npos ? "" : std::string_view(parts[i]).substr(equals + 1);
    RETURN_IF_ERROR(set_option(key, value, m));
  }
  RETURN_IF_ERROR(check(m));
  return m;
}

}  // namespace tuner::npu
