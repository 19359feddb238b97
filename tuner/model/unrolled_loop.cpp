// Loop, with a count that is known: its body once an iteration.
#include <algorithm>
#include <array>

#include "tuner/model/control_flow.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/subgraph.h"

namespace tuner {
namespace {

class UnrolledLoop {
 public:
  UnrolledLoop(GraphReader& reader, const onnx::NodeProto& node, std::string name, const Scope& scope)
      : reader_(reader), node_(node), name_(std::move(name)), scope_(scope) {}

  Result<Values> read() {
    constexpr std::array<std::string_view, 1> kAttributes{"body"};
    RETURN_IF_ERROR(check_attribute_names(node_, kAttributes));
    ASSIGN_OR_RETURN(body_, subgraph_of(node_, kAttributes[0]));
    RETURN_IF_ERROR(read_operands());
    ASSIGN_OR_RETURN(bool goes_on, first_condition());
    for (int64_t i = 0; i < count_ && goes_on; ++i) {
      auto next = read_iteration(i);
      if (!next) return next.status().with_context(str("body, iteration ", i, ": "));
      goes_on = *next;
    }
    return results();
  }

 private:
  static constexpr size_t kCarried = 2;  // the first input of the node and of the body that is carried

  Status read_operands() {
    ASSIGN_OR_RETURN(operands_, reader_.operands(node_, scope_));
    operands_.resize(std::max(operands_.size(), kCarried), graph::kNoValue);
    state_.assign(operands_.begin() + kCarried, operands_.end());
    if (node_.output_size() < std::ssize(state_))
      return invalid_argument("found ", node_.output_size(), " outputs, expected at least ", state_.size(),
                              ", one for each input behind the second");
    stacks_.resize(static_cast<size_t>(node_.output_size()) - state_.size());
    if (operands_[0] == graph::kNoValue) return Status::ok();
    ASSIGN_OR_RETURN(count_, known_number(graph(), operands_[0], DType::kInt64, "input 0, the count"));
    return Status::ok();
  }
  Result<bool> first_condition() {
    if (count_ <= 0 || operands_[1] == graph::kNoValue) return true;
    ASSIGN_OR_RETURN(const int64_t condition,
                     known_number(graph(), operands_[1], DType::kBool, "input 1, the condition"));
    return condition != 0;
  }

  // Returns whether another one follows.
  Result<bool> read_iteration(int64_t i) {
    const GraphReader::Iteration iteration(reader_, i);
    Values inputs{number_of(reader_.builder(), name_ + "_i" + reader_.suffix(), DType::kInt64, i, rank_of(0)),
                  number_of(reader_.builder(), name_ + "_goes_on", DType::kBool, 1, rank_of(1))};
    inputs.insert(inputs.end(), state_.begin(), state_.end());
    ASSIGN_OR_RETURN(const Values made,
                     reader_.read_subgraph(*body_, inputs, 1 + node_.output_size(), scope_));
    for (size_t k = 0; k < state_.size(); ++k) {
      RETURN_IF_ERROR(check_carried(k, state_[k], made[1 + k]));
      state_[k] = made[1 + k];
    }
    for (size_t k = 0; k < stacks_.size(); ++k) stacks_[k].push_back(made[1 + state_.size() + k]);
    if (i + 1 >= count_) return false;
    ASSIGN_OR_RETURN(const int64_t condition,
                     known_number(graph(), made[0], DType::kBool, "output 0, whether the loop goes on,"));
    return condition != 0;
  }
  // A scalar, or of as many dimensions as the body says.
  int64_t rank_of(int input) const {
    constexpr int64_t kMostRank = 1;
    if (input >= body_->input_size()) return 0;
    const auto& type = body_->input(input).type();
    return std::min<int64_t>(type.tensor_type().shape().dim_size(), kMostRank);
  }
  // Shapes may change from iteration to iteration, types may not.
  Status check_carried(size_t k, graph::ValueId before, graph::ValueId after) const {
    if (before == graph::kNoValue || after == graph::kNoValue) return Status::ok();
    if (graph()[before].type.dtype == graph()[after].type.dtype) return Status::ok();
    return invalid_argument("output ", 1 + k, " is ", to_text(graph()[after].type), ", expected ",
                            graph()[before].type.dtype, " as input ", kCarried + k, " has");
  }

  Result<Values> results() {
    Values made = state_;
    for (size_t k = 0; k < stacks_.size(); ++k) {
      const size_t output = state_.size() + k;
      const std::string& wanted = node_.output(static_cast<int>(output));
      if (wanted.empty() || stacks_[k].empty()) {  // after no iteration it has no elements
        made.push_back(graph::kNoValue);
        continue;
      }
      ASSIGN_OR_RETURN(const graph::ValueId stack,
                       stacked(reader_, str(name_, "_", output), stacks_[k], 0, str("output ", output)));
      made.push_back(stack);
    }
    return made;
  }
  const graph::Graph& graph() const { return reader_.builder().graph(); }

  GraphReader& reader_;
  const onnx::NodeProto& node_;
  std::string name_;
  const Scope& scope_;
  const onnx::GraphProto* body_ = nullptr;
  Values operands_, state_;
  std::vector<Values> stacks_;  // of each scan output: its parts
  int64_t count_ = INT64_MAX;
};

}  // namespace

Result<Values> read_loop(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                         const Scope& scope) {
  return UnrolledLoop(reader, node, name, scope).read();
}

}  // namespace tuner
