#include "tuner/extract/extract.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "tuner/extract/graph_view.h"
#include "tuner/extract/operators.h"

namespace tuner {
namespace {

const std::set<std::string, std::less<>> kFree = {"Reshape",  "Flatten", "Identity", "Squeeze", "Unsqueeze",
                                                  "Constant", "Dropout", "Shape",    "Size"};
const std::set<std::string, std::less<>> kMoves = {
    "Concat", "Slice",     "Gather",          "GatherElements", "GatherND",     "Pad",
    "Split",  "Resize",    "Upsample",        "Cast",           "CastLike",     "Expand",
    "Tile",   "ScatterND", "ScatterElements", "DepthToSpace",   "SpaceToDepth", "ConstantOfShape"};
const std::set<std::string, std::less<>> kPools = {"MaxPool", "AveragePool", "GlobalMaxPool",
                                                   "GlobalAveragePool"};
const std::set<std::string, std::less<>> kReductions = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"};

// What a product or an elementwise pass takes in behind its own work.
struct Epilogue {
  bool scale = false, bias = false, residual = false, relu = false;
};

class Extractor {
 public:
  explicit Extractor(const ModelGraph& graph) : view_(graph) {}

  Extraction run() {
    const auto count = static_cast<int>(view_.graph().nodes.size());
    out_.operators = count;
    // Larger patterns first, so that none of their parts is taken for something of its own.
    for (int n = 0; n < count; ++n)
      if (!view_.is_taken(n) && view_.node(n).op == "ReduceMean") find_layer_norm(n);
    for (int n = 0; n < count; ++n)
      if (!view_.is_taken(n)) visit(n);
    for (const ExtractedTask& task : out_.tasks)
      out_.flops += static_cast<double>(task.workload.flops()) * static_cast<double>(task.uses);
    return std::move(out_);
  }

 private:
  void visit(int n) {
    const GraphNode& node = view_.node(n);
    const bool ahead = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& o) {
      return o.empty() || view_.tensor(o).constant;
    });
    // What works on shapes has its answer before anything runs.
    const bool on_shapes = !node.inputs.empty() && are_integers(node.inputs) && are_integers(node.outputs);
    if (ahead || on_shapes || kFree.contains(node.op)) return free(n);
    if (node.op == "Conv") return product(n, conv_of(view_, node));
    if (node.op == "MatMul") return product(n, matmul_of(view_, node));
    if (node.op == "Gemm") return product(n, gemm_of(view_, node));
    if (kPools.contains(node.op)) return plain(n, pool_of(view_, node));
    if (node.op == "Softmax") return plain(n, softmax_of(view_, node));
    if (node.op == "LayerNormalization") return plain(n, layer_norm_of(view_, node));
    if (kReductions.contains(node.op)) return plain(n, reduce_of(view_, node));
    if (node.op == "Transpose") return transpose(n);
    if (is_elementwise(node)) return elementwise(n);
    if (node.op == "Pad" && widens(n)) return fuse(n);
    leave_out(n, kMoves.contains(node.op) ? "moves or converts data only" : "no workload computes it");
  }

  bool are_integers(const std::vector<std::string>& names) const {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      const std::string& type = view_.tensor(name).type;
      return name.empty() || type == "int64" || type == "int32";
    });
  }

  void add(int n, Workload workload) {
    const std::string key = workload.key();
    auto at = std::find_if(out_.tasks.begin(), out_.tasks.end(),
                           [&](const ExtractedTask& t) { return t.workload.key() == key; });
    if (at == out_.tasks.end()) at = out_.tasks.insert(at, {.workload = std::move(workload), .nodes = {}});
    ++at->uses;
    at->nodes.push_back(view_.node(n).name);
    view_.take(n);
  }
  void fuse(int n) {
    ++out_.fused[view_.node(n).op];
    view_.take(n);
  }
  void free(int n) {
    ++out_.free[view_.node(n).op];
    view_.take(n);
  }
  void leave_out(int n, const std::string& reason) {
    LeftOut& left = out_.left_out[{view_.node(n).op, reason}];
    if (left.count++ == 0) left.first = view_.node(n).name;
    view_.take(n);
  }
  void plain(int n, Served served) {
    if (!served.is_served()) return leave_out(n, served.reason);
    add(n, std::move(served.workload));
  }
  void transpose(int n) {
    // One that only turns the right operand of a product round is the product's to read.
    const int reader = view_.only_reader(view_.node(n).outputs[0]);
    if (reader >= 0 && !view_.is_taken(reader) && view_.node(reader).op == "MatMul" &&
        view_.node(reader).input(1) == view_.node(n).outputs[0] &&
        view_.node(reader).input(0) != view_.node(n).outputs[0] && swaps_last_two(view_, view_.node(n)) &&
        matmul_of(view_, view_.node(reader)).is_served()) {
      turned_.insert(reader);
      return fuse(n);
    }
    Served served = transpose_of(view_, view_.node(n));
    if (served.reason == kNothingMoves) return free(n);
    plain(n, std::move(served));
  }

  // --- what follows a product ---

  static bool is_relu(const GraphView& view, const GraphNode& n) {
    if (n.op == "Relu") return true;
    if (n.op != "Clip") return false;
    // A limit that is not given is none.
    const auto limit = [&](size_t i, const char* attribute, double none) {
      if (!n.input(i).empty()) return view.tensor(n.input(i)).scalar.value_or(1);
      return n.number(attribute, none);
    };
    constexpr double kNone = 3.4e38;
    return limit(1, "min", -kNone) == 0 && limit(2, "max", kNone) >= kNone;
  }

  // Behind the products that come later than `n`, what stands between one and `tensor`.
  bool comes_from_later_product(std::string_view tensor, int n) const {
    int at = view_.producer(tensor);
    while (at > n && view_.node(at).op == "BatchNormalization") at = view_.producer(view_.node(at).input(0));
    return at > n &&
           (view_.node(at).op == "Conv" || view_.node(at).op == "MatMul" || view_.node(at).op == "Gemm");
  }

  // Takes in what reads `tensor` alone, as long as it fits; `axis`: of the channels, from the back. Scales
  // are taken where the weights are constant, as they go into them. Returns the operators, in order.
  std::vector<int> epilogue_of(int n, int axis, bool constant_weights, Epilogue& e) const {
    std::vector<int> taken;
    std::string tensor = view_.node(n).outputs[0];
    while (view_.is_float32(tensor) && !e.relu) {
      const int r = view_.only_reader(tensor);
      if (r < 0 || view_.is_taken(r)) break;
      const GraphNode& reader = view_.node(r);
      const std::vector<int64_t>& shape = *view_.tensor(tensor).shape;
      const auto rank = static_cast<int>(shape.size());
      if (rank + axis < 0) break;
      const int64_t channels = shape[static_cast<size_t>(int64_t{rank} + axis)];
      const std::string other = reader.inputs.size() == 2 ? view_.other_input(r, tensor) : "";
      const bool is_vector = view_.is_vector_along(other, channels, axis);
      const bool early = !e.residual;  // a scale of a residual is not ours to fold
      const bool folded_norm =
          reader.op == "BatchNormalization" && early && constant_weights && rank + axis == 1 &&
          reader.input(0) == tensor && view_.is_vector_along(reader.input(1), channels, -1) &&
          view_.is_vector_along(reader.input(4), channels, -1) && reader.integer("training_mode", 0) == 0;
      if (folded_norm || (reader.op == "Add" && is_vector && early)) {
        e.bias = true;
      } else if (reader.op == "Mul" && early && constant_weights && is_vector) {
        // into weights and bias
      } else if (reader.op == "Add" && !e.residual && !other.empty() && other != tensor &&
                 !view_.tensor(other).constant && view_.is_float32(other) &&
                 view_.same_shape(other, tensor) && !comes_from_later_product(other, n)) {
        e.residual = true;
      } else if (is_relu(view_, reader) && view_.same_shape(reader.outputs[0], tensor)) {
        e.relu = true;
      } else {
        break;
      }
      taken.push_back(r);
      tensor = reader.outputs[0];
    }
    return taken;
  }

  void product(int n, Served served) {
    if (!served.is_served()) return leave_out(n, served.reason);
    const GraphNode& node = view_.node(n);
    if (const auto wider = widened_.find(n); wider != widened_.end()) served.workload = wider->second;
    if (turned_.contains(n)) {
      MatmulWorkload w = *served.workload.get_if<MatmulWorkload>();
      w.transpose_b = true;
      served.workload = w;
    }
    const bool constant = served.workload.is_constant(node.op == "Conv" ? "weight" : "b");
    const int rank =
        static_cast<int>(view_.tensor(node.outputs[0]).shape.value_or(std::vector<int64_t>(4)).size());
    Epilogue e;
    const std::vector<int> behind = epilogue_of(n, node.op == "Conv" ? 1 - rank : -1, constant, e);
    if (const auto* conv = served.workload.get_if<Conv2dWorkload>()) {
      Conv2dWorkload w = *conv;
      w.bias = w.bias || e.bias;
      w.residual = e.residual;
      if (e.relu) w.activation = Activation::kRelu;
      served.workload = w;
    } else {
      MatmulWorkload w = *served.workload.get_if<MatmulWorkload>();
      // An epilogue adds only one residual.
      if (w.residual && e.residual) return add(n, w);
      w.bias = w.bias || e.bias;
      w.residual = w.residual || e.residual;
      if (e.relu) w.activation = Activation::kRelu;
      served.workload = w;
    }
    if (const Status valid = validate(served.workload); !valid) return leave_out(n, valid.message());
    add(n, std::move(served.workload));
    for (const int each : behind) fuse(each);
  }

  // A Pad before a convolution is the convolution's own padding: notes the wider convolution and says so.
  bool widens(int pad) {
    const std::string image = view_.node(pad).outputs[0];
    const int n = view_.only_reader(image);
    const auto zeros = zero_padding_of(view_, view_.node(pad));
    const GraphTensor& inner = view_.tensor(view_.node(pad).input(0));
    if (n < 0 || !zeros || !inner.shape || inner.shape->size() != 4) return false;
    const GraphNode& conv = view_.node(n);
    if (conv.op != "Conv" || conv.input(0) != image) return false;
    const Served served = conv_of(view_, conv);
    if (!served.is_served()) return false;
    Conv2dWorkload w = *served.workload.get_if<Conv2dWorkload>();
    w.in_height = (*inner.shape)[2];
    w.in_width = (*inner.shape)[3];
    for (size_t i = 0; i < 4; ++i) w.padding[i] += (*zeros)[i];
    if (!validate(w)) return false;
    widened_[n] = w;
    return true;
  }

  // --- passes over elements ---

  bool is_elementwise(const GraphNode& n) const {
    return n.op == "Add" || n.op == "Mul" || n.op == "BatchNormalization" || is_relu(view_, n);
  }

  // out = act(x * scale + bias + residual), in this order, each part at most once.
  void elementwise(int first) {
    Epilogue e;
    std::vector<int> taken;
    std::string why, tensor = view_.node(first).input(0);
    // Which operand is the array and which is added: a constant one is never the array.
    if (view_.tensor(tensor).constant) tensor = view_.node(first).input(1);
    if (!view_.is_float32(tensor)) {
      const GraphTensor& t = view_.tensor(tensor);
      return leave_out(
          first, !t.shape ? "its shape is not known" : str("element type ", t.type, ", float32 is served"));
    }
    const std::vector<int64_t> shape = *view_.tensor(tensor).shape;
    const int64_t columns = shape.empty() ? 1 : shape.back();
    bool by_column = false;
    int n = first;
    while (true) {
      const GraphNode& node = view_.node(n);
      const std::string other = node.inputs.size() == 2 ? view_.other_input(n, tensor) : "";
      const bool is_vector = !shape.empty() && view_.is_vector_along(other, columns, -1);
      const bool normalizes = node.op == "BatchNormalization" && shape.size() == 2 &&
                              node.input(0) == tensor && view_.is_vector_along(node.input(1), columns, -1);
      if (node.op == "Mul" && is_vector && !e.scale && !e.bias && !e.residual) {
        e.scale = by_column = true;
      } else if (normalizes && !e.scale && !e.bias && !e.residual) {
        e.scale = e.bias = by_column = true;
      } else if (node.op == "Add" && is_vector && !e.bias && !e.residual) {
        e.bias = by_column = true;
      } else if (node.op == "Add" && !e.residual && !other.empty() && other != tensor &&
                 view_.is_float32(other) && !view_.tensor(other).constant &&
                 view_.same_shape(other, tensor)) {
        e.residual = true;
      } else if (is_relu(view_, node)) {
        e.relu = true;
      } else {
        why = node.op == "Mul" ? "a product of two arrays" : "operands that are broadcast";
        break;
      }
      taken.push_back(n);
      tensor = node.outputs[0];
      n = view_.only_reader(tensor);
      if (e.relu || n < 0 || view_.is_taken(n) || !is_elementwise(view_.node(n)) || !view_.is_float32(tensor))
        break;
    }
    if (taken.empty()) return leave_out(first, why);
    const int64_t elements = product_of(shape, 0, shape.size());
    const ElementwiseWorkload w{.rows = by_column ? elements / columns : 1,
                                .columns = by_column ? columns : elements,
                                .scale = e.scale,
                                .bias = e.bias,
                                .residual = e.residual,
                                .activation = e.relu ? Activation::kRelu : Activation::kNone};
    if (const Status valid = validate(w); !valid || elements < 1)
      return leave_out(first, valid ? "an extent is 0" : valid.message());
    add(taken.front(), w);
    for (size_t i = 1; i < taken.size(); ++i) fuse(taken[i]);
  }

  // --- layer normalization written out, as exporters did before operator set 17 ---
  //   mean = ReduceMean(x); d = x - mean; v = ReduceMean(d * d); out = d / Sqrt(v + epsilon) * gamma + beta

  int reader_of_kind(std::string_view tensor, std::string_view op) const {
    for (const int r : view_.readers(tensor))
      if (view_.node(r).op == op && !view_.is_taken(r)) return r;
    return -1;
  }
  // The one reader, if it is of this kind.
  int next(int n, std::string_view op) const {
    const int r = n < 0 ? -1 : view_.only_reader(view_.node(n).outputs[0]);
    return r >= 0 && view_.node(r).op == op && !view_.is_taken(r) ? r : -1;
  }

  void find_layer_norm(int mean) {
    const std::string x = view_.node(mean).input(0);
    const Served rows = reduce_of(view_, view_.node(mean));
    if (!rows.is_served()) return;
    const int sub = next(mean, "Sub");
    if (sub < 0 || view_.node(sub).input(0) != x) return;
    const std::string d = view_.node(sub).outputs[0];
    int square = reader_of_kind(d, "Pow");
    if (square >= 0 && (view_.node(square).input(0) != d ||
                        view_.tensor(view_.node(square).input(1)).scalar.value_or(0) != 2))
      return;
    if (square < 0) square = reader_of_kind(d, "Mul");
    if (square < 0 ||
        (view_.node(square).op == "Mul" && view_.node(square).input(0) != view_.node(square).input(1)))
      return;
    const int variance = next(square, "ReduceMean"), add_epsilon = next(variance, "Add"),
              root = next(add_epsilon, "Sqrt"), divide = next(root, "Div"), scale = next(divide, "Mul"),
              shift = next(scale, "Add");
    if (shift < 0 || view_.node(divide).input(0) != d) return;
    const std::optional<double> epsilon =
        view_.tensor(view_.other_input(add_epsilon, view_.node(variance).outputs[0])).scalar;
    const auto& w = *rows.workload.get_if<ReduceWorkload>();
    // Readers of d besides square and divide would need it written.
    if (!epsilon || view_.readers(d).size() != (view_.node(square).op == "Mul" ? 3u : 2u)) return;
    if (!view_.is_vector_along(view_.other_input(scale, view_.node(divide).outputs[0]), w.columns, -1) ||
        !view_.is_vector_along(view_.other_input(shift, view_.node(scale).outputs[0]), w.columns, -1))
      return;
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", *epsilon);
    const LayerNormWorkload norm{.rows = w.rows, .columns = w.columns, .epsilon = std::strtod(text, nullptr)};
    if (!validate(norm)) return;
    add(mean, norm);
    for (const int each : {sub, square, variance, add_epsilon, root, divide, scale, shift}) fuse(each);
  }

  GraphView view_;
  std::map<int, Conv2dWorkload> widened_;  // convolutions with the Pad before them taken in
  std::set<int> turned_;                   // products whose right operand is stored transposed
  Extraction out_;
};

}  // namespace

Extraction extract_tasks(const ModelGraph& graph) { return Extractor(graph).run(); }

}  // namespace tuner
