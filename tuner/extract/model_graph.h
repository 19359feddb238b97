// ModelGraph: a network as operators and tensors of known shapes, independent of any file format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct GraphTensor {
  std::string type;                              // "float32", "int64"...; empty: not known
  std::optional<std::vector<int64_t>> shape;     // present only if every extent is known
  bool constant = false;                         // an initializer, or computed from initializers alone
  bool is_output = false;                        // of the model
  std::optional<std::vector<int64_t>> integers;  // small integer constants: axes, shapes
  std::optional<double> scalar;                  // value of a constant with one element

  int64_t elements() const;  // requires a known shape
};

struct GraphNode {
  using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
  std::string name, op;                      // op: "Conv"; outside ONNX's own domain "domain.Op"
  std::vector<std::string> inputs, outputs;  // tensors by name; "": not given
  std::map<std::string, Attribute, std::less<>> attributes;

  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  double number(std::string_view attribute, double otherwise) const;
  std::string word(std::string_view attribute, std::string_view otherwise) const;
  std::optional<std::vector<int64_t>> integers(std::string_view attribute) const;
  std::string input(size_t i) const { return i < inputs.size() ? inputs[i] : ""; }
};

struct ModelGraph {
  std::vector<GraphNode> nodes;  // each comes after those whose outputs it reads
  std::map<std::string, GraphTensor, std::less<>> tensors;
  int64_t opset = 0;

  const GraphTensor& tensor(std::string_view name) const;  // an empty one if there is none
};

// Values for extents that a model leaves open.
struct ModelExtents {
  std::optional<int64_t> batch;          // first extent of every input
  std::map<std::string, int64_t> named;  // "sequence" = 128
};

// Reads an ONNX model (protobuf) and infers its shapes. Weights are not read, so their external files may be
// missing. InvalidArgument: not a model, damaged, an extent still open (names the input and the option), or
// shapes that contradict each other. Failed: built without libonnx-dev; the message says what to install.
Result<ModelGraph> read_onnx(std::string_view bytes, const ModelExtents& extents);
bool onnx_is_built_in();

}  // namespace tuner
