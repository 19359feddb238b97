// Scan: its body once an element of a sequence. In operator set 8 all operands are batches of sequences,
// which may end early; since set 9 axes and directions are attributes.
#include <array>

#include "compiler_core/graph/operator.h"
#include "tuner/model/control_flow.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/subgraph.h"

namespace tuner {
namespace {

// How the elements of a sequence stand in a tensor.
struct Sequence {
  int64_t axis = 0;
  bool is_backward = false;
};

class UnrolledScan {
 public:
  UnrolledScan(GraphReader& reader, const onnx::NodeProto& node, std::string name, const Scope& scope)
      : reader_(reader), node_(node), name_(std::move(name)), scope_(scope) {}

  Result<Values> read() {
    RETURN_IF_ERROR(read_form());
    RETURN_IF_ERROR(read_operands());
    RETURN_IF_ERROR(read_sequences());
    return has_batches() ? read_batches() : read_sequence(states_, sequences_, length_of_sequences_);
  }

 private:
  bool has_batches() const { return reader_.operator_set() < kFirstWithAxes; }

  Status read_form() {
    constexpr std::array<std::string_view, 3> kWithBatches{"body", "directions", "num_scan_inputs"};
    constexpr std::array<std::string_view, 6> kWithAxes{"body",
                                                        "num_scan_inputs",
                                                        "scan_input_axes",
                                                        "scan_input_directions",
                                                        "scan_output_axes",
                                                        "scan_output_directions"};
    RETURN_IF_ERROR(has_batches() ? check_attribute_names(node_, kWithBatches)
                                  : check_attribute_names(node_, kWithAxes));
    ASSIGN_OR_RETURN(body_, subgraph_of(node_, "body"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> count, integers_of(node_, "num_scan_inputs", {0}));
    const int64_t most = node_.input_size() - (has_batches() ? 1 : 0);
    if (count[0] < 1 || count[0] > most)
      return invalid_argument("attribute num_scan_inputs is ", count[0], ", expected 1 to ", most);
    const int64_t states = most - count[0], outputs = node_.output_size() - states;
    if (outputs < 0)
      return invalid_argument("found ", node_.output_size(), " outputs, expected at least ", states,
                              ", one for each state");
    input_forms_.resize(static_cast<size_t>(count[0]));
    output_forms_.resize(static_cast<size_t>(outputs));
    RETURN_IF_ERROR(read_forms(has_batches() ? "" : "scan_input_axes",
                               has_batches() ? "directions" : "scan_input_directions", input_forms_));
    return has_batches() ? Status::ok()
                         : read_forms("scan_output_axes", "scan_output_directions", output_forms_);
  }
  // Axes are not yet counted from the front: they may be negative.
  Status read_forms(std::string_view axes, std::string_view directions, std::vector<Sequence>& forms) const {
    const std::vector<int64_t> zeros(forms.size(), 0);
    ASSIGN_OR_RETURN(const std::vector<int64_t> axis, integers_of(node_, axes, zeros));
    ASSIGN_OR_RETURN(const std::vector<int64_t> direction, integers_of(node_, directions, zeros));
    for (size_t k = 0; k < forms.size(); ++k) {
      if (direction[k] != 0 && direction[k] != 1)
        return invalid_argument("attribute ", directions, " has ", direction[k], ", expected 0 or 1");
      forms[k] = {axis[k], direction[k] == 1};
    }
    return Status::ok();
  }
  static Status from_front(int64_t rank, const std::string& of, int64_t* axis) {
    if (*axis < -rank || *axis >= rank)
      return invalid_argument(of, " has ", rank, " dimensions, and its axis is ", *axis);
    if (*axis < 0) *axis += rank;
    return Status::ok();
  }

  Status read_operands() {
    ASSIGN_OR_RETURN(Values all, reader_.operands(node_, scope_));
    if (has_batches()) {
      lengths_ = all[0];
      all.erase(all.begin());
    }
    const size_t first = has_batches() ? 1 : 0, states = all.size() - input_forms_.size();
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k] == graph::kNoValue) return invalid_argument("input ", first + k, " has no elements");
    states_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(states));
    sequences_.assign(all.begin() + static_cast<std::ptrdiff_t>(states), all.end());
    return Status::ok();
  }
  // How long they are: all the same.
  Status read_sequences() {
    const int64_t before = has_batches() ? 1 : 0;
    for (size_t k = 0; k < sequences_.size(); ++k) {
      const graph::TensorType& type = reader_.builder()[sequences_[k]].type;
      const std::string what = str("scan input ", k, ", ", to_text(type), ",");
      int64_t axis = input_forms_[k].axis + before;
      RETURN_IF_ERROR(from_front(std::ssize(type.shape), what, &axis));
      if (!has_batches()) input_forms_[k].axis = axis;
      const int64_t extent = type.shape[static_cast<size_t>(axis)];
      if (k == 0) length_of_sequences_ = extent;
      if (extent != length_of_sequences_)
        return invalid_argument(what, " has ", extent, " elements along axis ", axis, ", expected ",
                                length_of_sequences_, " as scan input 0 has");
    }
    return Status::ok();
  }

  // One sequence of each scan input. Returns the last states, then the outputs.
  Result<Values> read_sequence(Values states, const Values& sequences, int64_t length) {
    std::vector<Values> stacks(output_forms_.size());
    for (int64_t i = 0; i < length; ++i) {
      auto made = read_iteration(states, sequences, i, length);
      if (!made) return made.status().with_context(str("body, iteration ", i, ": "));
      for (size_t k = 0; k < states.size(); ++k) states[k] = (*made)[k];
      for (size_t k = 0; k < stacks.size(); ++k) {
        auto& stack = stacks[k];
        stack.insert(output_forms_[k].is_backward ? stack.begin() : stack.end(), (*made)[states.size() + k]);
      }
    }
    Values results = states;
    for (size_t k = 0; k < stacks.size(); ++k) {
      const std::string what = str("scan output ", k);
      int64_t axis = output_forms_[k].axis;
      if (length == 0 && node_.output(static_cast<int>(results.size())).empty()) {
        results.push_back(graph::kNoValue);
        continue;
      }
      if (length == 0)
        return invalid_argument(what,
                                " of a sequence without elements is not served: no run of the body says "
                                "which type it has");
      if (stacks[k][0] == graph::kNoValue) return invalid_argument(what, " has no elements");
      RETURN_IF_ERROR(from_front(std::ssize(reader_.builder()[stacks[k][0]].type.shape) + 1, what, &axis));
      ASSIGN_OR_RETURN(const graph::ValueId stack,
                       stacked(reader_, str(name_, "_", states.size() + k), stacks[k], axis, what));
      results.push_back(stack);
    }
    return results;
  }
  Result<Values> read_iteration(const Values& states, const Values& sequences, int64_t i, int64_t length) {
    const GraphReader::Iteration iteration(reader_, i);
    Values inputs = states;
    for (size_t k = 0; k < sequences.size(); ++k) {
      const auto& [axis, is_backward] = input_forms_[k];
      ASSIGN_OR_RETURN(const graph::ValueId part,
                       part_of(reader_, str(name_, "_in", k, reader_.suffix()), sequences[k], axis,
                               is_backward ? length - 1 - i : i));
      inputs.push_back(part);
    }
    ASSIGN_OR_RETURN(Values made, reader_.read_subgraph(*body_, inputs, node_.output_size(), scope_));
    for (size_t k = 0; k < states.size(); ++k) {
      const auto text = [&](graph::ValueId id) {
        return id == graph::kNoValue ? "empty" : to_text(reader_.builder()[id].type);
      };
      if (text(states[k]) != text(made[k]))
        return invalid_argument("output ", k, " is ", text(made[k]), ", expected ", text(states[k]),
                                " as its state has before it");
    }
    return made;
  }

  // Operator set 8: along the first axis a batch, along the second the sequence.
  Result<Values> read_batches() {
    Values all = states_;
    all.insert(all.end(), sequences_.begin(), sequences_.end());
    const int64_t batches =
        reader_.builder()[all[0]].type.shape.empty() ? 0 : reader_.builder()[all[0]].type.shape[0];
    for (const graph::ValueId id : all)
      if (const auto& type = reader_.builder()[id].type; type.shape.empty() || type.shape[0] != batches)
        return invalid_argument("found ", to_text(type),
                                " among its inputs, expected the same batch first in all");
    if (batches == 0) return invalid_argument("a batch without sequences is not served");
    ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, lengths_of_batches(batches));
    std::vector<Values> stacks(static_cast<size_t>(node_.output_size()));
    for (int64_t b = 0; b < batches; ++b) {
      const GraphReader::Iteration iteration(reader_, b);
      auto made = read_batch(b, lengths[static_cast<size_t>(b)]);
      if (!made) return made.status().with_context(str("batch ", b, ", "));
      for (size_t k = 0; k < stacks.size(); ++k) stacks[k].push_back((*made)[k]);
    }
    Values results;
    for (size_t k = 0; k < stacks.size(); ++k) {
      ASSIGN_OR_RETURN(const graph::ValueId stack,
                       stacked(reader_, str(name_, "_", k), stacks[k], 0, str("output ", k)));
      results.push_back(stack);
    }
    return results;
  }
  Result<std::vector<int64_t>> lengths_of_batches(int64_t batches) const {
    if (lengths_ == graph::kNoValue)
      return std::vector<int64_t>(static_cast<size_t>(batches), length_of_sequences_);
    const graph::Value& value = reader_.builder()[lengths_];
    const graph::TensorType wanted{DType::kInt64, {batches}};
    if (value.type != wanted)
      return invalid_argument("input 0, the lengths, is ", to_text(value.type), ", expected ",
                              to_text(wanted));
    if (!value.constant) return not_constant(reader_.builder().graph(), "input 0, the lengths", lengths_);
    std::vector<int64_t> lengths = value.constant->integers(DType::kInt64);
    for (const int64_t length : lengths)
      if (length < 1 || length > length_of_sequences_)
        return invalid_argument("input 0, the lengths, has ", length, ", expected 1 to ",
                                length_of_sequences_);
    return lengths;
  }
  Result<Values> read_batch(int64_t b, int64_t length) {
    Values states, sequences;
    for (size_t k = 0; k < states_.size(); ++k) {
      ASSIGN_OR_RETURN(const graph::ValueId part,
                       part_of(reader_, str(name_, "_state", k, reader_.suffix()), states_[k], 0, b));
      states.push_back(part);
    }
    for (size_t k = 0; k < sequences_.size(); ++k) {
      ASSIGN_OR_RETURN(const graph::ValueId part,
                       part_of(reader_, str(name_, "_in", k, reader_.suffix()), sequences_[k], 0, b));
      sequences.push_back(part);
    }
    ASSIGN_OR_RETURN(Values made, read_sequence(states, sequences, length));
    for (size_t k = states.size(); k < made.size() && length < length_of_sequences_; ++k) {
      ASSIGN_OR_RETURN(made[k], with_zeros_behind(made[k], length_of_sequences_ - length));
    }
    return made;
  }
  Result<graph::ValueId> with_zeros_behind(graph::ValueId value, int64_t missing) {
    graph::TensorType type = reader_.builder()[value].type;
    type.shape[0] = missing;
    const std::vector<double> zeros(static_cast<size_t>(type.elements()), 0);
    const graph::ValueId rest =
        reader_.builder().constant(name_ + "_zeros", type, graph::Constant::of(zeros, type.dtype));
    return reader_.add("Concat", name_ + "_padded" + reader_.suffix(), {{"axis", int64_t{0}}}, {value, rest});
  }

  static constexpr int64_t kFirstWithAxes = 9;  // operator set

  GraphReader& reader_;
  const onnx::NodeProto& node_;
  std::string name_;
  const Scope& scope_;
  const onnx::GraphProto* body_ = nullptr;
  std::vector<Sequence> input_forms_, output_forms_;
  graph::ValueId lengths_ = graph::kNoValue;
  Values states_, sequences_;
  int64_t length_of_sequences_ = 0;
};

}  // namespace

Result<Values> read_scan(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                         const Scope& scope) {
  return UnrolledScan(reader, node, name, scope).read();
}

}  // namespace tuner
