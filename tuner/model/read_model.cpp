#include "tuner/model/read_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <set>

#include "compiler_core/graph/operator.h"
#include "tuner/model/graph_reader.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/raw_data.h"
#include "tuner/model/row_bounds.h"
#include "tuner/model/subgraph.h"
#include "tuner/model/tensor_data.h"
#include "tuner/text/hint.h"

namespace tuner {
namespace {

constexpr int64_t kLeastOperatorSet = 7, kMostOperatorSet = 23;
constexpr char kAgain[] = "Export or download it again";

class ModelReader {
 public:
  // `raw`: of each initializer its raw_data, which `owner` keeps alive.
  ModelReader(std::shared_ptr<const onnx::ModelProto> model, std::vector<std::span<const std::byte>> raw,
              std::shared_ptr<const void> owner, const ModelOptions& options,
              const graph::Evaluator& evaluate)
      : model_(std::move(model)),
        raw_(std::move(raw)),
        owner_(std::move(owner)),
        proto_(model_->graph()),
        options_(options),
        builder_(plain(proto_.name()), evaluate),
        data_(options.folder, options.weights_may_miss),
        reader_(model_, builder_, data_, RowBounds(options.extents.named)) {}

  Result<graph::Graph> read() {
    RETURN_IF_ERROR(check_operator_set());
    RETURN_IF_ERROR(check_depth(proto_));
    if (proto_.sparse_initializer_size() > 0) return invalid_argument("sparse initializers are not served");
    if (static_cast<int>(raw_.size()) != proto_.initializer_size())
      return invalid_argument("the model has two graphs");
    for (int k = 0; k < proto_.initializer_size(); ++k)
      RETURN_IF_ERROR(
          reader_.read_initializer(proto_.initializer(k), raw_[static_cast<size_t>(k)], owner_, scope_));
    for (const auto& input : proto_.input()) RETURN_IF_ERROR(read_input(input));
    RETURN_IF_ERROR(check_options());
    RETURN_IF_ERROR(check_all_at_once());
    RETURN_IF_ERROR(reader_.read_nodes(proto_, scope_));
    RETURN_IF_ERROR(check_declared());
    std::vector<graph::ValueId> outputs;
    std::vector<std::string> names;
    for (const auto& output : proto_.output()) {
      const auto made = scope_.find(output.name());
      if (!made) return invalid_argument("output \"", plain(output.name()), "\" is made by no node");
      if (*made == graph::kNoValue)
        return invalid_argument("output \"", plain(output.name()), "\" has no elements");
      outputs.push_back(*made);
      names.push_back(plain(output.name()));
    }
    if (outputs.empty()) return invalid_argument("the model has no outputs");
    return builder_.finish(std::move(outputs), std::move(names));
  }

 private:
  Status check_operator_set() const {
    if (!model_->has_graph() || proto_.output_size() == 0)
      return invalid_argument("found no graph with outputs, expected an ONNX model. ", kAgain);
    if (reader_.operator_set() < kLeastOperatorSet || reader_.operator_set() > kMostOperatorSet)
      return invalid_argument("found operator set ", reader_.operator_set(), " of ONNX, expected ",
                              kLeastOperatorSet, " to ", kMostOperatorSet,
                              "; onnx.version_converter makes others fit");
    return Status::ok();
  }

  Status define(const std::string& name, graph::ValueId id) {
    if (!scope_.define(name, id)) return invalid_argument("\"", plain(name), "\" is made twice");
    return Status::ok();
  }

  Status read_input(const onnx::ValueInfoProto& input) {
    if (scope_.has_own(input.name())) return Status::ok();  // an initializer; old models list them, too
    const std::string name = plain(input.name());
    const auto given = options_.constants.find(input.name());
    if (given != options_.constants.end()) {
      used_.insert(given->first);
      graph::TensorType type = given->second.type;
      // NumPy has no bfloat16: its files hold the bits as uint16.
      if (type.dtype == DType::kUInt16 &&
          input.type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16)
        type.dtype = DType::kBFloat16;
      RETURN_IF_ERROR(check_given(name, input.type().tensor_type(), type));
      return define(input.name(), builder_.constant(name, type, *given->second.constant));
    }
    if (!input.type().has_tensor_type())
      return invalid_argument("input \"", name,
                              "\" is no tensor; sequences, maps and optionals are not served");
    const auto& tensor = input.type().tensor_type();
    if (!tensor.has_shape())
      return invalid_argument("input \"", name, "\" has no shape; export the model with one");
    graph::TensorType type;
    const auto dtype = dtype_of(tensor.elem_type());
    if (!dtype) return dtype.status().with_context(str("input \"", name, "\": "));
    type.dtype = *dtype;
    for (int d = 0; d < tensor.shape().dim_size(); ++d) {
      ASSIGN_OR_RETURN(const int64_t extent, extent_of(name, d, tensor.shape().dim(d)));
      type.shape.push_back(extent);
    }
    RETURN_IF_ERROR(graph::check_size(type).with_context(str("input \"", name, "\": ")));
    return define(input.name(), builder_.input(name, std::move(type)));
  }

  // The value of --constant is what the model says of this input.
  Status check_given(const std::string& input, const onnx::TypeProto::Tensor& declared,
                     const graph::TensorType& given) {
    bool fits = true;
    std::string expected(dtype_name(given.dtype)), shape;
    if (declared.elem_type() != onnx::TensorProto::UNDEFINED) {
      const auto dtype = dtype_of(declared.elem_type());
      if (!dtype) return dtype.status().with_context(str("input \"", input, "\": "));
      expected = dtype_name(*dtype);
      fits = *dtype == given.dtype;
    }
    if (declared.has_shape()) fits = fits && declared.shape().dim_size() == std::ssize(given.shape);
    for (int d = 0; d < declared.shape().dim_size(); ++d) {
      const auto& dim = declared.shape().dim(d);
      const auto named = options_.extents.named.find(dim.dim_param());
      const bool is_named = dim.has_dim_param() && named != options_.extents.named.end();
      int64_t extent = is_named ? named->second : dim.has_dim_value() ? dim.dim_value() : -1;
      const int64_t found = d < std::ssize(given.shape) ? given.shape[static_cast<size_t>(d)] : -1;
      if (d == 0 && options_.extents.batch == found && extent != found) {
        other_batch_ = other_batch_ || extent >= 0;
        extent = found;
      }
      fits = fits && (extent < 0 || extent == found);  // one that is open may be any
      shape += str(d > 0 ? ", " : "", extent >= 0           ? str(extent)
                                      : dim.has_dim_param() ? plain(dim.dim_param())
                                                            : "?");
    }
    if (fits) return Status::ok();
    return invalid_argument("--constant ", input, ": found ", graph::to_text(given), ", expected ", expected,
                            declared.has_shape() ? str("[", shape, "]") : "",
                            "; numpy's astype() and reshape() make it fit");
  }

  Result<int64_t> extent_of(const std::string& input, int d, const onnx::TensorShapeProto::Dimension& dim) {
    constexpr int64_t kMostExtent = int64_t{1} << 31;
    const std::string symbol = dim.has_dim_param() ? dim.dim_param() : "";
    const auto named = options_.extents.named.find(symbol);
    std::optional<int64_t> extent;
    if (dim.has_dim_value()) extent = dim.dim_value();
    const auto replace = [&](int64_t by) {
      other_batch_ = other_batch_ || (extent && *extent != by);
      extent = by;
    };
    const auto placed = options_.extents.named.find(str(input, ":", d));
    if (placed != options_.extents.named.end()) {
      used_.insert(placed->first);
      replace(placed->second);
    } else if (!symbol.empty() && named != options_.extents.named.end()) {
      used_.insert(symbol);
      extent = named->second;
    } else if (d == 0 && options_.extents.batch) {
      batch_used_ = true;
      replace(*options_.extents.batch);
    }
    if (extent && (*extent > kMostExtent || *extent < 0))
      return invalid_argument("input \"", input, "\": extent ", d, " is ", *extent, ", expected 0 to ",
                              kMostExtent);
    if (extent) return *extent;
    // All that are open are told at once: check_all_at_once().
    const std::string by_place = str(input, ":", d), by_name = symbol.empty() ? by_place : symbol;
    open_.push_back(
        {str("input \"", input, "\": extent ", d, symbol.empty() ? "" : str(" (", plain(symbol), ")")),
         str("--dim ", shell_quoted(str(plain(by_name), "=N"))), d == 0});
    return 1;
  }

  // What a person has to change before anything else can be found out.
  Status check_all_at_once() const {
    std::string problems;
    if (open_.size() == 1)
      problems =
          str(open_[0].what, " is open. Give it: ", open_[0].is_first ? "--batch N, or " : "", open_[0].way);
    if (open_.size() > 1) {
      std::string ways;
      std::set<std::string> told;
      for (const OpenExtent& each : open_) {
        problems += str(problems.empty() ? "" : ", ", each.what);
        if (told.insert(each.way).second) ways += str(" ", each.way);
      }
      problems += str(" are open. Give them:", ways);
    }
    const std::string operators = unserved_operators();
    if (!operators.empty()) problems += str(problems.empty() ? "" : "; ", operators);
    return problems.empty() ? Status::ok() : invalid_argument(problems);
  }
  // Nothing if there is at most one, which its node tells better.
  std::string unserved_operators() const {
    std::map<std::string, std::pair<std::string, int>> nodes;  // by operator: the first node, and how many
    for (int n = 0; n < proto_.node_size(); ++n) {
      const std::string op = op_of(proto_.node(n));
      if (op == "Constant" || is_control_flow(op) || graph::find_operator(op) != nullptr) continue;
      auto& [first, count] = nodes[op];
      if (count++ == 0) first = name_of(proto_, n);
    }
    if (nodes.size() + (open_.empty() ? 0 : 1) < 2) return "";
    std::string list;
    for (const auto& [op, places] : nodes)
      list += str(list.empty() ? "" : ", ", op, " (node ", places.first,
                  places.second > 1 ? str(" and ", places.second - 1, " more") : "", ")");
    return list.empty() ? "" : "operators that are not served: " + list;
  }

  Status check_options() const {
    for (const auto& [name, value] : options_.extents.named)
      if (!used_.contains(name) && !RowBounds::is_of(proto_, name))
        return invalid_argument("--dim ", name, ": no input of the model has an extent of that name");
    for (const auto& [name, value] : options_.constants)
      if (!used_.contains(name))
        return invalid_argument("--constant ", name, ": the model has no input of that name");
    if (options_.extents.batch && !batch_used_)
      return invalid_argument("--batch: no input of the model has an extent to set");
    return Status::ok();
  }

  // What the model says of its values is what its operators compute.
  Status check_declared() const {
    for (const auto& input : proto_.input()) RETURN_IF_ERROR(check_declared("input", input));
    for (const auto& value : proto_.value_info()) RETURN_IF_ERROR(check_declared("value", value));
    for (const auto& output : proto_.output()) RETURN_IF_ERROR(check_declared("output", output));
    return Status::ok();
  }
  Status check_declared(const char* what, const onnx::ValueInfoProto& declared) const {
    const auto value = scope_.find(declared.name());
    if (!value || *value == graph::kNoValue) return Status::ok();
    if (!declared.type().has_tensor_type()) return Status::ok();
    const graph::TensorType& type = builder_[*value].type;
    if (const int number = declared.type().tensor_type().elem_type();
        number != onnx::TensorProto::UNDEFINED) {
      const auto dtype = dtype_of(number);
      if (!dtype || *dtype != type.dtype)
        return invalid_argument(what, " \"", plain(declared.name()), "\": found elements of type ",
                                type_name_of(number), " in the model, expected ", type.dtype,
                                ", which follows from its inputs. Export the model "
                                "anew, or put a Cast there");
    }
    // With another batch than it was exported with, extents that stand in it as numbers say nothing.
    if (other_batch_ || !declared.type().tensor_type().has_shape()) return Status::ok();
    const auto& dims = declared.type().tensor_type().shape().dim();
    bool same = dims.size() == std::ssize(type.shape);
    for (int d = 0; same && d < dims.size(); ++d)  // names, and no numbers, are for any extent
      same = dims[d].dim_value() <= 0 || dims[d].dim_value() == type.shape[static_cast<size_t>(d)];
    if (same) return Status::ok();
    std::string shape;
    for (const auto& dim : dims)
      shape += str(shape.empty() ? "" : ", ", dim.dim_value() > 0   ? str(dim.dim_value())
                                              : dim.has_dim_param() ? plain(dim.dim_param())
                                                                    : "?");
    return invalid_argument(
        what, " \"", plain(declared.name()), "\": found shape [", shape, "] in the model, expected that of ",
        to_text(type), ", which follows from its inputs. Export the model anew, or infer its shapes again");
  }

  std::shared_ptr<const onnx::ModelProto> model_;
  std::vector<std::span<const std::byte>> raw_;
  std::shared_ptr<const void> owner_;
  const onnx::GraphProto& proto_;
  const ModelOptions& options_;
  graph::GraphBuilder builder_;
  TensorData data_;
  GraphReader reader_;
  Scope scope_;
  std::set<std::string> used_;
  struct OpenExtent {
    std::string what, way;
    bool is_first = false;  // of its input
  };
  std::vector<OpenExtent> open_;
  bool batch_used_ = false;
  bool other_batch_ = false;  // an option replaced an extent that the model fixes
};

template <class Message>
bool parse(std::string_view bytes, Message& message) {
  const google::protobuf::LogSilencer quiet;  // damaged bytes are reported in one line of ours
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  return message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
}

Status check_size(std::string_view bytes) {
  constexpr size_t kMostBytes = size_t{1} << 31;
  if (bytes.size() < kMostBytes) return Status::ok();
  return invalid_argument("the file has ", bytes.size(),
                          " bytes, a protobuf message at most 2^31 - 1; keep the weights in external files "
                          "(onnx.save_model(..., save_as_external_data=True))");
}

// How a file of text begins, which tells a person what it is: a server's page, a pointer of Git LFS, JSON.
std::string beginning(std::string_view bytes) {
  constexpr size_t kLeast = 4, kMost = 24;
  const std::string_view first = bytes.substr(0, std::min(bytes.find_first_of("\r\n"), kMost));
  const bool is_text = std::ranges::all_of(first, [](char c) { return c >= ' ' && c <= '~'; });
  return is_text && first.size() >= kLeast ? str(", beginning with \"", first, "\"") : "";
}

}  // namespace

Result<graph::Graph> read_model(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                const ModelOptions& options, const graph::Evaluator& evaluate) {
  RETURN_IF_ERROR(check_size(bytes));
  auto model = std::make_shared<onnx::ModelProto>();
  auto stripped = strip_raw_data(bytes);
  if (!stripped || !parse(stripped->bytes, *model))
    return invalid_argument("this is no ONNX model, or a damaged one: ", bytes.size(),
                            " bytes that do not read as onnx.ModelProto", beginning(bytes), ". ", kAgain);
  return ModelReader(std::move(model), std::move(stripped->raw), owner, options, evaluate).read();
}

Result<graph::Value> read_tensor(std::string_view bytes) {
  RETURN_IF_ERROR(check_size(bytes));
  auto tensor = std::make_shared<onnx::TensorProto>();
  if (!parse(bytes, *tensor)) return invalid_argument("this is no tensor of ONNX, or a damaged one");
  return TensorData("").read(*tensor, tensor);
}

}  // namespace tuner
