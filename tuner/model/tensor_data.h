// The elements of an ONNX tensor: raw bytes, lists of numbers, or an external file. For read_model.cpp only.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "compiler_core/base/mapped_file.h"
#include "compiler_core/graph/graph.h"

namespace tuner {

namespace onnx {
class TensorProto;  // onnx.proto
}  // namespace onnx

// The type of this number of ONNX. InvalidArgument: one that is not served.
Result<DType> dtype_of(int number);

// ONNX's name of the type of this number ("FLOAT16"), or the number.
std::string type_name_of(int number);

// A name out of a file, which may hold anything, for a message: one line, and not a long one.
std::string plain(const std::string& text);

class TensorData {
 public:
  // `folder`: where external files lie; empty: nowhere. `may_miss`: zeros stand for those that are not there.
  explicit TensorData(std::string folder, bool may_miss = false)
      : folder_(std::move(folder)), may_miss_(may_miss) {}

  // A constant value that views the tensor's bytes where it can; `owner` keeps them alive. `raw`: its
  // raw_data, if that was cut out of the message (raw_data.h). InvalidArgument: a type that is not served, an
  // extent below 1, fewer or more elements than the shape says, an external file that is missing, short, or
  // outside of the folder.
  Result<graph::Value> read(const onnx::TensorProto& t, const std::shared_ptr<const void>& owner,
                            std::span<const std::byte> raw = {});

 private:
  Result<graph::Constant> external(const onnx::TensorProto& t, int64_t bytes);
  Result<MappedFile> map(const std::string& name);

  std::string folder_;
  bool may_miss_;
  std::map<std::string, MappedFile> files_;
};

}  // namespace tuner
