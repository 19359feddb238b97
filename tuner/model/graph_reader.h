// GraphReader: the constants and nodes of a model's graphs, added to one builder. Subgraphs become nodes of
// the same graph: control flow is gone when a model is read (control_flow.h). For read_model.cpp and the
// files of control flow only.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "tuner/model/row_bounds.h"
#include "tuner/model/scope.h"
#include "tuner/model/tensor_data.h"

namespace tuner {

namespace onnx {
class AttributeProto;  // onnx.proto
class GraphProto;
class ModelProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

using Values = std::vector<graph::ValueId>;  // kNoValue: not given

class GraphReader {
 public:
  // Nodes of all loops, once unrolled. More would take minutes to compile.
  static constexpr int64_t kMostUnrolled = 10'000;

  // `data` and `builder` must outlive it.
  GraphReader(std::shared_ptr<const onnx::ModelProto> model, graph::GraphBuilder& builder, TensorData& data,
              const RowBounds& bounds);

  int64_t operator_set() const { return operator_set_; }  // 0: the model names none
  graph::GraphBuilder& builder() { return builder_; }

  // A value of the scope. `raw`: raw_data that was cut out of the message, kept alive by `owner`. Read a
  // second time, in another scope, it is the same value.
  Status read_initializer(const onnx::TensorProto& t, std::span<const std::byte> raw,
                          const std::shared_ptr<const void>& owner, Scope& scope);
  // In an order in which they can run.
  Status read_nodes(const onnx::GraphProto& graph, Scope& scope);
  // Reads a branch or body: `inputs` are what its inputs stand for. Returns its outputs, of which it has so
  // many. In a loop each reading counts toward kMostUnrolled.
  Result<Values> read_subgraph(const onnx::GraphProto& graph, const Values& inputs, int64_t outputs,
                               const Scope& outer);
  // The operands of a node. InvalidArgument: one that nothing computes.
  Result<Values> operands(const onnx::NodeProto& node, const Scope& scope) const;

  // Of a loop while its body is read for one iteration. Names of its nodes get "#3" behind them.
  class Iteration {
   public:
    Iteration(GraphReader& reader, int64_t i) : reader_(reader), before_(reader.suffix_) {
      reader.suffix_ += str("#", i);
    }
    Iteration(const Iteration&) = delete;
    Iteration& operator=(const Iteration&) = delete;
    ~Iteration() { reader_.suffix_ = before_; }

   private:
    GraphReader& reader_;
    std::string before_;
  };
  const std::string& suffix() const { return suffix_; }

  // Adds a node of our own with one result, both of this name.
  Result<graph::ValueId> add(std::string_view op, const std::string& name, graph::Attributes attributes,
                             Values inputs);

 private:
  Result<std::vector<size_t>> order_of(const onnx::GraphProto& graph, const Scope& scope);
  Status read_node(const onnx::GraphProto& graph, int n, Scope& scope);
  Status read_constant(const onnx::NodeProto& proto, Scope& scope);
  Result<graph::Value> constant_of(const onnx::AttributeProto& a);
  Status spend(const onnx::GraphProto& graph);

  std::shared_ptr<const onnx::ModelProto> model_;
  graph::GraphBuilder& builder_;
  TensorData& data_;
  const RowBounds bounds_;
  int64_t operator_set_ = 0;
  std::string suffix_;    // of names, in loops
  int64_t unrolled_ = 0;  // of kMostUnrolled
  // By the message, as bodies of loops are read many times.
  std::map<const void*, graph::ValueId> constants_;
  std::map<const onnx::GraphProto*, std::vector<size_t>> orders_;
};

}  // namespace tuner
