#include "compiler_core/npu/text.h"

#include <charconv>
#include <iterator>
#include <sstream>
#include <vector>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fields.h"

namespace tuner::npu {
namespace {

std::string float_text(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  CHECK(error == std::errc()) << "a float has at most 16 characters";
  return {text, end};
}

std::string queues_text(uint8_t mask) {
  std::string text;
  for (int q = 0; q < kQueues; ++q)
    if ((mask >> q & 1) != 0) text += str(text.empty() ? "" : ",", name_of(static_cast<Queue>(q)));
  return text;
}

bool read_queues(std::string_view text, uint8_t& mask) {
  while (true) {
    const size_t comma = text.find(',');
    bool found = false;
    for (int q = 0; q < kQueues; ++q)
      if (text.substr(0, comma) == name_of(static_cast<Queue>(q))) {
        mask |= static_cast<uint8_t>(1u << q);
        found = true;
      }
    if (!found) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

template <class T>
bool read_value(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status read_field(std::string_view key, std::string_view value, const OpRow& row, Instruction& i) {
  if (key == "waits" || key == "gives") {
    if (read_queues(value, key == "waits" ? i.waits : i.gives)) return Status::ok();
    return invalid_argument(key, ": expected queues such as load,store, found \"", value, "\"");
  }
  std::vector<std::string> known = {"waits", "gives"};
  for (const Field& field : row.fields) {
    if (field.name == key) {
      const bool read = field.real != nullptr   ? read_value(value, i.*field.real)
                        : field.int8 != nullptr ? read_value(value, i.*field.int8)
                                                : read_value(value, i.*field.number);
      if (read) return Status::ok();
      return invalid_argument(key, ": expected a number, found \"", value, "\"");
    }
    known.emplace_back(field.name);
  }
  return invalid_argument(row.name, " has no field \"", key, "\"", did_you_mean(key, known));
}

Result<Op> read_op(const std::string& word) {
  std::vector<std::string> known;
  for (int op = 1; op < kOps; ++op) {
    known.emplace_back(row_of(static_cast<Op>(op)).name);
    if (word == known.back()) return static_cast<Op>(op);
  }
  return invalid_argument("unknown operation \"", word, "\"", did_you_mean(word, known));
}

Result<Instruction> parse_line(const std::vector<std::string>& words) {
  Instruction i;
  ASSIGN_OR_RETURN(i.op, read_op(words[0]));
  const OpRow& row = row_of(i.op);
  for (size_t w = 1; w < words.size(); ++w) {
    const std::string& word = words[w];
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      RETURN_IF_ERROR(read_field(word.substr(0, equals), word.substr(equals + 1), row, i));
    } else if (word == "accumulate") {
      i.accumulate = true;
    } else if (word == "swap") {
      i.swap = true;
    } else if (word == "fill") {
      i.fill = true;
    } else if (word == "unsigned") {
      i.is_unsigned = true;
    } else {
      return invalid_argument(row.name, ": expected KEY=NUMBER or a flag, found \"", word, "\"");
    }
  }
  RETURN_IF_ERROR(check(i));
  return i;
}

}  // namespace

std::string text_of(const Instruction& i) {
  const OpRow& row = row_of(i.op);
  std::string text(row.name);
  for (const Field& field : row.fields) {
    if (field.raw(i) == 0) continue;
    text += str(" ", field.name, "=");
    text += field.real != nullptr   ? float_text(i.*field.real)
            : field.int8 != nullptr ? str(i.*field.int8)
                                    : str(i.*field.number);
  }
  if (i.accumulate) text += " accumulate";
  if (i.swap) text += " swap";
  if (i.fill) text += " fill";
  if (i.is_unsigned) text += " unsigned";
  if (i.waits != 0) text += " waits=" + queues_text(i.waits);
  if (i.gives != 0) text += " gives=" + queues_text(i.gives);
  return text;
}

std::string text_of(const Code& code) {
  std::string text;
  for (const Instruction& i : code) text += text_of(i) + "\n";
  return text;
}

Result<Code> parse_code(std::string_view text) {
  Code code;
  std::istringstream in{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream parts(line.substr(0, line.find('#')));
    const std::vector<std::string> words{std::istream_iterator<std::string>(parts), {}};
    if (words.empty()) continue;
    Result<Instruction> i = parse_line(words);
    if (!i.is_ok()) return i.status().with_context(str("line ", number, ": "));
    code.push_back(*i);
  }
  return code;
}

}  // namespace tuner::npu
