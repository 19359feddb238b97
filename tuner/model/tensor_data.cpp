#include "tuner/model/tensor_data.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 40;

// The lists of numbers a tensor may have in place of bytes. Halves are bits in 32-bit integers.
Result<graph::Constant> listed(const onnx::TensorProto& t, DType dtype, int64_t elements) {
  const auto of_size = [&](const auto& items) -> Result<graph::Constant> {
    if (items.size() != elements)
      return invalid_argument("has ", items.size(), " elements, its shape ", elements);
    return graph::Constant::of(std::vector<double>(items.begin(), items.end()), dtype);
  };
  switch (dtype) {
    case DType::kFloat32:
      return of_size(t.float_data());
    case DType::kFloat64:
      return of_size(t.double_data());
    case DType::kInt64:
      if (t.int64_data_size() != elements)
        return invalid_argument("has ", t.int64_data_size(), " elements, its shape ", elements);
      return graph::Constant::of(std::vector<int64_t>(t.int64_data().begin(), t.int64_data().end()), dtype);
    case DType::kUInt32:
      return of_size(t.uint64_data());
    case DType::kUInt64: {
      if (t.uint64_data_size() != elements)
        return invalid_argument("has ", t.uint64_data_size(), " elements, its shape ", elements);
      auto kept = std::make_shared<std::vector<uint64_t>>(t.uint64_data().begin(), t.uint64_data().end());
      return graph::Constant(std::as_bytes(std::span(*kept)), kept);
    }
    case DType::kFloat16:
    case DType::kBFloat16: {
      if (t.int32_data_size() != elements)
        return invalid_argument("has ", t.int32_data_size(), " elements, its shape ", elements);
      auto bits = std::make_shared<std::vector<uint16_t>>(t.int32_data().begin(), t.int32_data().end());
      return graph::Constant(std::as_bytes(std::span(*bits)), bits);
    }
    default:
      return of_size(t.int32_data());
  }
}

}  // namespace

Result<DType> dtype_of(int number) {
  switch (number) {
    case onnx::TensorProto::FLOAT:
      return DType::kFloat32;
    case onnx::TensorProto::DOUBLE:
      return DType::kFloat64;
    case onnx::TensorProto::FLOAT16:
      return DType::kFloat16;
    case onnx::TensorProto::BFLOAT16:
      return DType::kBFloat16;
    case onnx::TensorProto::INT64:
      return DType::kInt64;
    case onnx::TensorProto::UINT64:
      return DType::kUInt64;
    case onnx::TensorProto::INT32:
      return DType::kInt32;
    case onnx::TensorProto::UINT32:
      return DType::kUInt32;
    case onnx::TensorProto::INT16:
      return DType::kInt16;
    case onnx::TensorProto::UINT16:
      return DType::kUInt16;
    case onnx::TensorProto::INT8:
      return DType::kInt8;
    case onnx::TensorProto::UINT8:
      return DType::kUInt8;
    case onnx::TensorProto::BOOL:
      return DType::kBool;
    default:
      break;
  }
  return invalid_argument("elements of type ", type_name_of(number), " are not served");
}

std::string type_name_of(int number) {
  return onnx::TensorProto::DataType_IsValid(number)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(number))
             : str(number);
}

namespace {

// Pages that nobody touches are not there.
Result<graph::Constant> zeros(int64_t bytes) {
  const std::shared_ptr<void> memory(std::calloc(1, static_cast<size_t>(bytes)), std::free);
  if (memory == nullptr) return failed("no memory for ", bytes, " bytes of weights");
  return graph::Constant({static_cast<const std::byte*>(memory.get()), static_cast<size_t>(bytes)}, memory);
}

}  // namespace

Result<graph::Value> TensorData::read(const onnx::TensorProto& t, const std::shared_ptr<const void>& owner,
                                      std::span<const std::byte> raw) {
  graph::TensorType type;
  ASSIGN_OR_RETURN(type.dtype, dtype_of(t.data_type()));
  int64_t bytes = dtype_bytes(type.dtype);
  for (const int64_t extent : t.dims()) {
    if (extent < 0 || extent > kMostBytes / bytes)
      return invalid_argument("an extent of ", extent, ": expected 0 or more, and at most 2^40 bytes");
    bytes *= std::max<int64_t>(extent, 1);
    type.shape.push_back(extent);
  }
  bytes = type.bytes();  // none where an extent is 0
  graph::Value value{t.name(), type, std::nullopt};
  if (t.data_location() == onnx::TensorProto::EXTERNAL) {
    ASSIGN_OR_RETURN(value.constant, external(t, bytes));
  } else if (t.has_raw_data() || raw.data() != nullptr) {
    if (raw.data() == nullptr) raw = std::as_bytes(std::span(t.raw_data()));
    if (static_cast<int64_t>(raw.size()) != bytes)
      return invalid_argument("has ", raw.size(), " bytes, its shape ", bytes);
    value.constant = graph::Constant(raw, owner);
  } else {
    ASSIGN_OR_RETURN(value.constant, listed(t, type.dtype, type.elements()));
  }
  return value;
}

std::string plain(const std::string& text) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (const char c : text.substr(0, kLongest)) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out;
}

Result<graph::Constant> TensorData::external(const onnx::TensorProto& t, int64_t bytes) {
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const auto& entry : t.external_data()) {
    if (entry.key() == "location") location = entry.value();
    int64_t* number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
    if (number == nullptr) continue;
    const std::string& text = entry.value();
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *number);
    if (error != std::errc() || stop != end || *number < 0)
      return invalid_argument("external ", entry.key(), ": found \"", plain(text),
                              "\", expected a number of bytes, 0 to 2^63 - 1");
  }
  if (length != bytes) return invalid_argument("has ", length, " bytes outside, its shape ", bytes);
  if (bytes == 0) return graph::Constant();
  std::error_code error;
  if (may_miss_ && !std::filesystem::exists(std::filesystem::path(folder_) / location, error))
    return zeros(bytes);
  ASSIGN_OR_RETURN(const MappedFile file, map(location));
  const auto all = std::as_bytes(std::span(file.bytes()));
  if (offset > std::ssize(all) - bytes)
    return invalid_argument("needs bytes ", offset, " to ", offset + std::min(bytes, INT64_MAX - offset),
                            " of ", plain(location), ", which has ", all.size());
  return graph::Constant(all.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes)), file.owner());
}

Result<MappedFile> TensorData::map(const std::string& name) {
  if (const auto known = files_.find(name); known != files_.end()) return known->second;
  if (folder_.empty()) return invalid_argument("its data lie in an external file, and no folder was given");
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error),
                 file = fs::canonical(fs::path(folder_) / name, error);
  if (error)
    return invalid_argument("external file ", plain((fs::path(folder_) / name).string()),
                            " cannot be found; expected it beside the model");
  if (std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first != folder.end())
    return invalid_argument("external file ", plain(name), " lies outside of the model's folder");
  ASSIGN_OR_RETURN(const MappedFile mapped, map_input(file.string(), "external data of a model"));
  files_.emplace(name, mapped);
  return mapped;
}

}  // namespace tuner
