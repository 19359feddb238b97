#include "tuner/model/raw_data.h"

#include <cstddef>
#include <cstdint>

#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

// A field of a message: its number, and its bytes, tag and length included. Of a length-delimited one also
// its content.
struct Field {
  uint64_t number = 0;
  bool has_content = false;
  std::string_view whole, content;
};

class Wire {
 public:
  explicit Wire(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  // The next field; nothing if the bytes do not hold one.
  std::optional<Field> next() {
    const char* start = rest_.data();
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{.number = *tag >> 3};
    constexpr int kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;
    const auto type = static_cast<int>(*tag & 7);
    bool whole = false;
    if (type == kVarint) whole = varint().has_value();
    if (type == kFixed64) whole = skip(8);
    if (type == kFixed32) whole = skip(4);
    if (type == kLength) {
      const auto length = varint();
      if (!length || *length > rest_.size()) return std::nullopt;
      field.has_content = true;
      field.content = rest_.substr(0, *length);
      whole = skip(*length);
    }
    if (!whole) return std::nullopt;
    field.whole = {start, static_cast<size_t>(rest_.data() - start)};
    return field;
  }

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  bool skip(uint64_t bytes) {
    if (bytes > rest_.size()) return false;
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
};

void append_message(std::string& out, uint64_t number, const std::string& content) {
  const auto varint = [&](uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  };
  constexpr uint64_t kLength = 2;
  varint(number << 3 | kLength);
  varint(content.size());
  out += content;
}

constexpr uint64_t kGraph = onnx::ModelProto::kGraphFieldNumber,
                   kInitializer = onnx::GraphProto::kInitializerFieldNumber,
                   kRawData = onnx::TensorProto::kRawDataFieldNumber;

bool strip_tensor(std::string_view tensor, std::string& out, StrippedModel& model) {
  model.raw.emplace_back();
  for (Wire wire(tensor); !wire.at_end();) {
    const auto field = wire.next();
    if (!field) return false;
    if (field->number == kRawData && field->has_content)
      model.raw.back() = std::as_bytes(std::span(field->content.data(), field->content.size()));
    else
      out += field->whole;
  }
  return true;
}

bool strip_graph(std::string_view graph, std::string& out, StrippedModel& model) {
  for (Wire wire(graph); !wire.at_end();) {
    const auto field = wire.next();
    if (!field) return false;
    if (field->number != kInitializer || !field->has_content) {
      out += field->whole;
      continue;
    }
    std::string tensor;
    if (!strip_tensor(field->content, tensor, model)) return false;
    append_message(out, kInitializer, tensor);
  }
  return true;
}

}  // namespace

std::optional<StrippedModel> strip_raw_data(std::string_view model) {
  StrippedModel stripped;
  for (Wire wire(model); !wire.at_end();) {
    const auto field = wire.next();
    if (!field) return std::nullopt;
    if (field->number != kGraph || !field->has_content) {
      stripped.bytes += field->whole;
      continue;
    }
    std::string graph;
    if (!strip_graph(field->content, graph, stripped)) return std::nullopt;
    append_message(stripped.bytes, kGraph, graph);
  }
  return stripped;
}

}  // namespace tuner
