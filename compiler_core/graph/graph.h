// Graph: a network as operators and tensors of known types, independent of any file format and of tuning.
//
// Values are numbered; nodes name their inputs and outputs by number and stand in an order in which they can
// run. Every value has a type with a known shape: what depends on data has no place here. A graph is a plain
// value: passes take one and give another. GraphBuilder (builder.h) makes graphs that check() accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner::graph {

struct TensorType {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // row-major; empty for a scalar; every extent >= 0

  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_text(const TensorType& type);  // "float32[1, 3, 224, 224]"
// InvalidArgument: a negative extent, or more than 2^40 bytes, also of the extents that are not 0. Of what it
// accepts every product of extents fits an integer.
Status check_size(const TensorType& type);

// The elements of a constant tensor: row-major, little-endian, a bool is one byte. Immutable and cheap to
// copy; it views memory that it keeps alive.
class Constant {
 public:
  Constant() = default;
  Constant(std::span<const std::byte> bytes, std::shared_ptr<const void> keeps_alive)
      : bytes_(bytes), keeps_alive_(std::move(keeps_alive)) {}
  // Elements of type `dtype` with these numbers, each rounded to the type: integers toward zero, and to the
  // nearest of its range.
  static Constant of(std::span<const double> numbers, DType dtype);
  static Constant of(std::span<const int64_t> numbers, DType dtype);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<double> numbers(DType dtype) const;
  // Requires an integer type or bool. A uint64 above the greatest int64 becomes that one.
  std::vector<int64_t> integers(DType dtype) const;

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> keeps_alive_;
};

using ValueId = size_t;
inline constexpr ValueId kNoValue = SIZE_MAX;  // an optional input or output that is not there

struct Value {
  std::string name;  // of the model, for people; need not be unique
  TensorType type;
  std::optional<Constant> constant;  // type.bytes() bytes, for a value that is the same in every run
  // In a graph that passes rewrote: the value of the graph before them that has these elements, for who set
  // it there (number_values()). Values that passes make have none.
  ValueId origin = kNoValue;
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct Node {
  std::string name;           // of the model, for people
  std::string op;             // "Conv"; outside ONNX's own domain "domain.Op"
  int64_t operator_set = 23;  // that of the model; some operators changed their form
  Attributes attributes;
  std::vector<ValueId> inputs, outputs;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // each stands behind those whose outputs it reads
  std::vector<ValueId> inputs, outputs;
  // Of the model, one an output: passes may let two outputs be one value.
  std::vector<std::string> output_names;

  const Value& operator[](ValueId id) const { return values[id]; }
};

// OK if every node reads constants, inputs and outputs of earlier nodes, every value is made once, constants
// have as many bytes as their type says, no node reads or makes a value without elements (empty.h), and the
// operator table gives each output the type it has.
Status check(const Graph& graph);

// Lets each value be its own origin, so that values of a rewritten copy can be told.
void number_values(Graph& graph);

// One line a value or node, for `tuner show --as graph` and tests.
std::string to_text(const Graph& graph);

}  // namespace tuner::graph
