// The operator table: what each operator means. A family of operators is a file in operators/, with one row
// an operator: how many inputs it takes, which types it gives, and its math as tensor expressions.
//
// Names and meanings are ONNX's, operator sets 7 to 23. Where an operator changed its form (axes became an
// input), its functions read both. What a row cannot serve it refuses in types(), in a few words.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/te/te.h"

namespace tuner::graph {

// One use of an operator, as its row sees it: attributes, types, and the values of inputs that are constant.
class Use {
 public:
  Use(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  // For operators that mean something else in older sets: fragment.cpp has the list of them.
  int64_t operator_set() const { return node_.operator_set; }
  size_t inputs() const { return node_.inputs.size(); }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  bool gives(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }
  const TensorType& type(size_t i) const;  // requires has(i)
  const std::vector<int64_t>& shape(size_t i) const { return type(i).shape; }
  DType dtype(size_t i) const { return type(i).dtype; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }

  // True of a tensor without elements, too: there is nothing that could change.
  bool is_constant(size_t i) const;
  // The elements of input i. InvalidArgument if it is not constant: a shape would depend on data.
  Result<std::vector<int64_t>> integers(size_t i) const;
  Result<std::vector<double>> numbers(size_t i) const;

  bool has_attribute(std::string_view name) const { return node_.attributes.contains(name); }
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  double number(std::string_view attribute, double otherwise) const;
  std::string word(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute, const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> numbers(std::string_view attribute) const;
  std::vector<std::string> words(std::string_view attribute) const;
  // Integers given as an attribute, in newer operator sets as input i; nothing if neither is there.
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view attribute, size_t i) const;
  // The same, as axes of a tensor of this rank: negative ones counted from the end, sorted, each once.
  Result<std::optional<std::vector<int64_t>>> axes(std::string_view attribute, size_t i, int64_t rank) const;
  // One axis attribute, brought into 0..rank - 1; `most` for operators whose axis may stand behind the last.
  Result<int64_t> axis(std::string_view attribute, int64_t otherwise, int64_t rank, int64_t most) const;
  Result<int64_t> axis(int64_t otherwise, int64_t rank) const {
    return axis("axis", otherwise, rank, rank - 1);
  }

 private:
  const Graph& graph_;
  const Node& node_;
};

using Shape = std::vector<int64_t>;
using Element = std::function<Expr(const te::Indices&)>;
using Term = std::function<Expr(const te::Indices&, const te::Indices&)>;

// Where an operator writes its math: stages of its own, then its results.
class MathWriter {
 public:
  // `in`: one buffer an input, null where it is not given; `names` and `types`: of the results, "" where it
  // is not asked for. Results get the role `results`.
  MathWriter(te::Builder& builder, std::vector<Buffer> in, std::vector<std::string> names,
             std::vector<TensorType> types, BufferRole results);

  const Buffer& in(size_t i) const { return in_[i]; }
  const TensorType& type(size_t result = 0) const { return types_[result]; }
  bool wants(size_t result) const { return result < names_.size() && !names_[result].empty(); }

  // A stage of its own: out[i...] = f(i), or the sum (max, min) of f(i, r) over r. `name` is one for the
  // operator.
  Buffer stage(std::string_view name, const Shape& shape, const Element& f);
  Buffer stage(std::string_view name, const Shape& shape, DType dtype, const Element& f);
  Buffer reduced(std::string_view name, const Shape& shape, const Shape& over, ReduceOp op, const Term& f);
  // A result: the same, of its own shape and type. f's value is cast to the type.
  void result(size_t i, const Element& f);
  void result(const Element& f) { result(0, f); }
  void reduced_result(const Shape& over, ReduceOp op, const Term& f);
  // Stages that run once a step, and tensors that they fill: te::Builder's.
  void steps(std::string_view name, int64_t count, const std::function<void(const Expr&)>& stages) {
    builder_.steps(std::string(name), count, stages);
  }
  Buffer declare(std::string_view name, const Shape& shape, DType dtype) {
    return builder_.declare(own_name(name), shape, dtype);
  }
  void fill(const Buffer& buffer, const te::Indices& at, const Element& f) {
    builder_.fill(buffer, at, [&](const te::Indices& i) { return f(i); });
  }
  // Numbers known ahead, such as weights of an interpolation: a constant beside the inputs, or an input where
  // the caller gives all operands alike. Places among them must be brought into range where they are read.
  Buffer table(std::string_view name, DType dtype, const Shape& shape, std::span<const double> numbers);

  void make_tables_inputs() { tables_are_inputs_ = true; }
  struct Table {
    Buffer buffer;
    Constant constant;
  };
  const std::vector<Table>& tables() const { return tables_; }
  // Results that are there, in order. Null where it is not asked for.
  const std::vector<Buffer>& results() const { return results_; }

 private:
  std::string own_name(std::string_view name) const;

  te::Builder& builder_;
  std::vector<Buffer> in_;
  std::vector<std::string> names_;
  std::vector<TensorType> types_;
  BufferRole role_;
  bool tables_are_inputs_ = false;
  std::vector<Table> tables_;
  std::vector<Buffer> results_;
};

// What kind of work it is, for passes and for who decides which operators run as one.
enum class OperatorKind : uint8_t {
  kElementwise,  // each element of the result from the elements at its place, with broadcasts
  kMovement,     // elements as they are, at other places
  kReduction,    // sums and the like along axes, and what is built of them
  kProduct,      // sums of products: convolutions, matrix products
  kShape,        // of types alone: its math reads no input
};
std::string_view operator_kind_name(OperatorKind kind);

// Of inputs or outputs; then none of them may be missing.
inline constexpr size_t kAnyNumber = 1'000'000;

struct Operator {
  std::string_view name;
  OperatorKind kind;
  size_t least_inputs, most_inputs, most_outputs;
  // The type of each result; as many as most_outputs, or as the node has. InvalidArgument: types or
  // attributes that do not fit, or a form that is not served, in a few words.
  Result<std::vector<TensorType>> (*types)(const Use&);
  // Writes every result that is asked for. Called only where types() was OK.
  void (*math)(const Use&, MathWriter&);
};

// The row of this name, or null.
const Operator* find_operator(std::string_view name);
// All rows, by name.
std::vector<const Operator*> all_operators();

// Types of the node's results, its inputs having types already. InvalidArgument with operator and reason: no
// such operator (names what is there of similar name), too few inputs, a refusal of its row, extents of 0
// where its row does not serve them (empty.h).
Result<std::vector<TensorType>> infer(const Graph& graph, const Node& node);

// What a person can do about a value that has to be known ahead: the options that make constants of the
// inputs it is computed from, as for a shell. Empty: it is computed from none.
std::string constant_options(const Graph& graph, ValueId id);
// InvalidArgument: `what` ("input 1") should be a constant; says what the value is, and these options.
Status not_constant(const Graph& graph, std::string_view what, ValueId id);

// The math of one node alone.
struct NodeProgram {
  Program program;
  std::vector<ValueId> reads;             // the first arguments, in order
  std::vector<MathWriter::Table> tables;  // the next ones
  std::vector<ValueId> writes;            // the last ones
};
// Requires a node that infer() accepts.
NodeProgram program_of(const Graph& graph, const Node& node);

}  // namespace tuner::graph
