#include "tuner/model/constant_file.h"

#include <memory>
#include <string_view>

#include "compiler_core/base/mapped_file.h"
#include "compiler_core/base/npy.h"
#include "tuner/model/named_file.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

Result<graph::Value> read_npy(std::string_view file) {
  graph::Value value;
  ASSIGN_OR_RETURN(value.type.dtype, npy_dtype(file));
  ASSIGN_OR_RETURN(const NpyArray array, parse_npy(file, value.type.dtype));
  value.type.shape = array.shape;
  RETURN_IF_ERROR(graph::check_size(value.type));
  if (std::ssize(array.bytes) != value.type.bytes())
    return invalid_argument("has ", array.bytes.size(), " bytes of elements, expected ", value.type.bytes(),
                            " for ", graph::to_text(value.type));
  const auto copy = std::make_shared<const std::string>(array.bytes);
  value.constant = graph::Constant(std::as_bytes(std::span(*copy)), copy);
  return value;
}

Result<graph::Value> read_constant(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, map_input(path, "a tensor: .npy, or .pb (a TensorProto of ONNX)"));
  auto value = path.ends_with(".npy") ? read_npy(file.bytes()) : read_tensor(file.bytes());
  if (!value) return value.status().with_context(path + ": ");
  return value;
}

}  // namespace

Result<std::map<std::string, graph::Value>> model_constants(std::span<const std::string> texts) {
  std::map<std::string, graph::Value> values;
  for (const std::string& text : texts) {
    const Result<NamedFile> cut = named_existing_file(text, "--constant");
    if (!cut)
      return invalid_argument("--constant: expected NAME=FILE, as mask=mask.npy, found \"", text, "\"");
    ASSIGN_OR_RETURN(graph::Value value, read_constant(cut->file));
    if (!values.emplace(cut->name, std::move(value)).second)
      return invalid_argument("--constant ", cut->name, ": found twice, expected once");
  }
  return values;
}

}  // namespace tuner
