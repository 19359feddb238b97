// Random models of If, Loop and Scan within each other: conditions that are known and conditions on data,
// values of graphs around, names that hide others, nodes in any order. Wanted, with recurrent layers.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/tuner/model/graph_message.h"

namespace tuner::testing {

struct RandomControlFlowOptions {
  bool recurrent = false;  // also LSTM, GRU and RNN, which the oracle does not know
  // As other programs want it: each name once, nodes in order, no value of a graph around as a result, and
  // nothing nonsensical where nobody looks.
  bool strict = false;
  int64_t most_rows = 4, most_columns = 5;
};

class RandomControlFlow {
 public:
  explicit RandomControlFlow(uint32_t seed, const RandomControlFlowOptions& options = {});

  const onnx::ModelProto& model() const { return model_; }
  // The model with the version of the format, which our reader does not ask for.
  std::string bytes() const { return "\x08\x07" + model_.SerializeAsString(); }
  // Of each operator how many nodes there are, and under "If on data" how many of those.
  const std::map<std::string, int>& counts() const { return counts_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

 private:
  // A graph that is being written. All of `tensors` are float32 of one shape.
  struct Frame {
    onnx::GraphProto& graph;
    std::vector<std::string> tensors;  // that its nodes may read
    std::set<std::string> made, read;  // names of its own; names that must not become its own any more
    std::vector<int64_t> shape;        // of all tensors
  };

  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  std::string new_name(Frame& frame);
  std::string new_tensor(Frame& frame);
  std::string a_tensor(Frame& frame);
  onnx::NodeProto& node(Frame& frame, const std::string& op, const Names& inputs, const Names& outputs);
  std::string number(Frame& frame, int type, double value);
  std::string weights(Frame& frame, const std::vector<int64_t>& shape);
  void add_output(Frame& frame);

  Frame inside(Frame& frame, onnx::NodeProto& node, const std::string& attribute, bool same_shape);
  void leave(Frame& frame, const Frame& inner);
  void fill(Frame& frame, int depth);
  void add_step(Frame& frame, int depth);
  void add_simple(Frame& frame);
  void add_recurrent(Frame& frame);
  std::string condition(Frame& frame, bool* is_known, bool* value);
  void add_if(Frame& frame, int depth);
  void add_loop(Frame& frame, int depth);
  void add_scan(Frame& frame, int depth);
  void shuffle(onnx::GraphProto& graph);

  RandomControlFlowOptions options_;
  std::mt19937 random_;
  int64_t rows_, columns_;
  onnx::ModelProto model_;
  std::map<std::string, int> counts_;
  int names_ = 0;
};

}  // namespace tuner::testing
