#include "tests/tuner/model/random_node.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::testing {
namespace {

using graph::Attributes;
using graph::kNoValue;
using graph::Shape;
using graph::ValueId;
using Ids = std::vector<ValueId>;

class Draw {
 public:
  Draw(std::string op, DType dtype, std::mt19937& random)
      : op_(std::move(op)), dtype_(dtype), random_(random), b_("random", interpret) {}

  RandomNode node() {
    write();
    if (!refusal_.empty()) return {std::nullopt, refusal_};
    return {b_.finish(results_), ""};
  }

 private:
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool flag() { return pick(0, 1) == 1; }
  int64_t extent() {
    constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 9, 13, 17, 19, 33, 37};
    return kExtents[pick(0, 11)];
  }
  Shape shape(int64_t rank) {
    Shape s;
    for (int64_t d = 0; d + 1 < rank; ++d) s.push_back(pick(1, 4));
    if (rank > 0) s.push_back(extent());
    return s;
  }
  Shape any_shape() { return shape(pick(1, 4)); }
  // A shape that broadcasts to `s`.
  Shape part_of(Shape s) {
    for (int64_t& d : s)
      if (pick(0, 3) == 0) d = 1;
    if (pick(0, 3) == 0) s.erase(s.begin());
    return s;
  }
  ValueId x(const Shape& s) { return x(s, dtype_); }
  ValueId x(const Shape& s, DType dtype) { return b_.input(str("x", ++names_), {dtype, s}); }
  ValueId ints(const Shape& numbers, DType dtype = DType::kInt64) {
    return b_.constant(str("c", ++names_), {dtype, {std::ssize(numbers)}},
                       graph::Constant::of(numbers, dtype));
  }
  ValueId one_int(int64_t number, DType dtype = DType::kInt64) {
    return b_.constant(str("c", ++names_), {dtype, {}}, graph::Constant::of(Shape{number}, dtype));
  }
  ValueId reals(const std::vector<double>& numbers, DType dtype) {
    return b_.constant(str("c", ++names_), {dtype, {std::ssize(numbers)}},
                       graph::Constant::of(numbers, dtype));
  }
  ValueId one_real(double number, DType dtype) {
    return b_.constant(str("c", ++names_), {dtype, {}},
                       graph::Constant::of(std::vector<double>{number}, dtype));
  }

  void add(Ids inputs, Attributes attributes = {}, int results = 1) {
    std::vector<std::string> names;
    for (int k = 0; k < results; ++k) names.push_back(str("y", k));
    const auto made = b_.add(
        {.name = "n", .op = op_, .attributes = std::move(attributes), .inputs = std::move(inputs)}, names);
    if (made)
      results_ = *made;
    else
      refusal_ = made.message();
  }
  Shape image() { return {pick(1, 2), pick(1, 5), pick(4, 9), extent() + 3}; }
  Attributes window(const Shape& image) {
    Shape kernel, strides, pads(4);
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(pick(1, std::min<int64_t>(3, image[d + 2])));
      strides.push_back(pick(1, 2));
      pads[d] = pads[d + 2] = kernel[d] > 1 ? pick(0, 1) : 0;
    }
    return {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  }
  // A constant with ones of any place, of which at least one is there.
  ValueId condition(int64_t length) {
    std::vector<double> numbers{1};
    while (std::ssize(numbers) < length) numbers.push_back(flag() ? 1 : 0);
    return reals(numbers, DType::kBool);
  }
  ValueId unpooled_places(const Shape& s) {
    Shape places;
    for (int64_t k = 0; k < graph::TensorType{dtype_, s}.elements(); ++k) places.push_back(2 * k);
    return b_.constant("places", {DType::kInt64, s}, graph::Constant::of(places, DType::kInt64));
  }
  DType byte() { return flag() ? DType::kInt8 : DType::kUInt8; }
  ValueId scale() { return one_real(0.01 * static_cast<double>(pick(1, 30)), DType::kFloat32); }

  bool is(std::initializer_list<const char*> names) const {
    return std::ranges::find(names, op_) != names.end();
  }

  void write() {
    if (elements() || shapes() || movements() || places() || sums() || products() || images() || bytes() ||
        signals() || heads() || regions() || selections())
      return;
    add({x(any_shape())});  // one operand, element by element or along the last axis
  }

  bool elements() {
    if (is({"Add", "Sub", "Mul", "Div", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "PRelu", "Equal",
            "And", "Or", "Xor", "Pow", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})) {
      const Shape s = any_shape();
      add({x(s), op_ == "Pow" ? one_real(static_cast<double>(pick(1, 3)), dtype_) : x(part_of(s))});
    } else if (op_ == "BitShift") {
      const Shape s = any_shape();
      add({x(s), one_int(pick(0, 9), dtype_)}, {{"direction", std::string(flag() ? "LEFT" : "RIGHT")}});
    } else if (op_ == "Mod") {
      const Shape s = any_shape();
      add({x(s), x(part_of(s))}, {{"fmod", int64_t{is_float(dtype_) ? 1 : 0}}});
    } else if (is({"Sum", "Min", "Max", "Mean"})) {
      const Shape s = any_shape();
      Ids inputs{x(s)};
      for (int64_t k = pick(0, 2); k > 0; --k) inputs.push_back(x(part_of(s)));
      add(inputs);
    } else if (op_ == "Where") {
      const Shape s = any_shape();
      add({x(part_of(s), DType::kBool), x(s), x(part_of(s))});
    } else if (op_ == "Clip") {
      add({x(any_shape()), one_real(0, dtype_), one_real(2, dtype_)});
    } else if (op_ == "Cast") {
      constexpr DType kTo[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                               DType::kUInt8,   DType::kInt16,   DType::kUInt16,   DType::kInt32,
                               DType::kUInt32,  DType::kInt64,   DType::kUInt64,   DType::kBool};
      add({x(any_shape())}, {{"to", std::string(dtype_name(kTo[pick(0, 11)]))}});
    } else if (op_ == "CastLike") {
      add({x(any_shape()), x({3}, DType::kFloat32)});
    } else {
      return false;
    }
    return true;
  }

  bool shapes() {
    if (is({"Shape", "Size"})) {
      add({x(any_shape())});
    } else if (op_ == "EyeLike") {
      add({x(shape(2))});
    } else if (op_ == "ConstantOfShape") {
      if (dtype_ == DType::kInt64)
        add({ints(any_shape())});
      else
        refusal_ = "input 0 is no int64, expected one";
    } else if (op_ == "Range") {
      add({one_real(1, dtype_), one_real(static_cast<double>(2 * extent()), dtype_), one_real(2, dtype_)});
    } else {
      return false;
    }
    return true;
  }

  bool movements() {
    const Shape s = any_shape();
    const auto rank = std::ssize(s);
    if (op_ == "CenterCropPad") {
      Shape wanted;
      for (int64_t d = 0; d < rank; ++d) wanted.push_back(pick(1, 6));
      add({x(s), ints(wanted)});
    } else if (op_ == "Concat") {
      const int64_t axis = pick(0, rank - 1);
      Shape other = s;
      other[static_cast<size_t>(axis)] = pick(1, 5);
      add({x(s), x(other), x(s)}, {{"axis", axis}});
    } else if (op_ == "Split") {
      Shape whole = s;
      whole.back() = 3 + extent();
      add({x(whole), ints({3, whole.back() - 3})}, {{"axis", int64_t{-1}}}, 2);
    } else if (op_ == "Slice") {
      const int64_t last = s.back(), from = pick(0, last - 1);
      if (flag())
        add({x(s), ints({from}), ints({last}), ints({-1}), ints({pick(1, 2)})});
      else
        add({x(s), ints({from}), ints({-last - 1}), ints({rank - 1}), ints({-pick(1, 2)})});
    } else if (op_ == "Pad") {
      Shape pads;
      for (int64_t k = 0; k < 2 * rank; ++k) pads.push_back(pick(0, 2));
      add({x(s), ints(pads)}, {{"mode", std::string(flag() ? "constant" : "edge")}});
    } else if (op_ == "Reshape") {
      add({x(s), ints({-1, s.back()})});
    } else if (op_ == "tuner.View") {
      add({x(s)}, {{"shape", Shape{1, graph::TensorType{dtype_, s}.elements()}}});
    } else if (op_ == "Squeeze") {
      add({x({1, s.back(), 3}), ints({0})});
    } else if (op_ == "Unsqueeze") {
      add({x(s), ints({0})});
    } else if (op_ == "Expand") {
      Shape wide = s;
      wide.insert(wide.begin(), 3);
      add({x(part_of(s)), ints(wide)});
    } else if (op_ == "Tile") {
      Shape times;
      for (int64_t d = 0; d < rank; ++d) times.push_back(pick(1, 3));
      add({x(s), ints(times)});
    } else if (op_ == "Transpose") {
      Shape order;
      for (int64_t d = 0; d < rank; ++d) order.push_back(d);
      std::ranges::shuffle(order, random_);
      add({x(s)}, {{"perm", order}});
    } else if (op_ == "Trilu") {
      add({x(shape(pick(2, 3))), one_int(pick(-1, 1))}, {{"upper", int64_t{flag() ? 1 : 0}}});
    } else if (op_ == "DepthToSpace") {
      add({x({pick(1, 2), 4 * pick(1, 3), pick(1, 4), extent()})}, {{"blocksize", int64_t{2}}});
    } else if (op_ == "SpaceToDepth") {
      add({x({pick(1, 2), pick(1, 3), 2 * pick(1, 3), 2 * extent()})}, {{"blocksize", int64_t{2}}});
    } else {
      return false;
    }
    return true;
  }

  bool places() {
    const Shape s = any_shape();
    const DType index = flag() ? DType::kInt32 : DType::kInt64;
    if (op_ == "Gather") {
      add({x(s), x(shape(pick(1, 2)), index)}, {{"axis", pick(0, std::ssize(s) - 1)}});
    } else if (op_ == "GatherElements") {
      add({x(s), x(s, index)}, {{"axis", std::ssize(s) - 1}});
    } else if (op_ == "GatherND") {
      add({x({3, 4, s.back()}), x({5, 2}, DType::kInt64)});
    } else if (is({"Scatter", "ScatterElements"})) {
      const int64_t n = std::max<int64_t>(1, s.back() / 2);
      Shape places;
      for (int64_t k = 0; k < n; ++k) places.push_back(k);
      std::ranges::shuffle(places, random_);
      add({x({s.back()}), ints(places), x({n})}, {{"axis", int64_t{0}}});
    } else if (op_ == "ScatterND") {
      const ValueId where =
          b_.constant("where", {DType::kInt64, {2, 1}}, graph::Constant::of(Shape{2, 0}, DType::kInt64));
      add({x({4, s.back()}), where, x({2, s.back()})});
    } else if (op_ == "OneHot") {
      add({x(s), one_int(5), x({2}, DType::kFloat32)});
    } else if (op_ == "ReverseSequence") {
      add({x({5, 3, s.back()}), x({3}, DType::kInt64)},
          {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}});
    } else {
      return false;
    }
    return true;
  }

  bool sums() {
    const Shape s = any_shape();
    const auto rank = std::ssize(s);
    if (op_.starts_with("Reduce")) {
      Shape axes;
      for (int64_t d = 0; d < rank; ++d)
        if (flag()) axes.push_back(d);
      if (axes.empty()) axes.push_back(rank - 1);
      add({x(s), ints(axes)}, {{"keepdims", int64_t{flag() ? 1 : 0}}});
    } else if (is({"ArgMax", "ArgMin"})) {
      add({x(s)}, {{"axis", pick(0, rank - 1)}, {"keepdims", int64_t{flag() ? 1 : 0}}});
    } else if (op_ == "CumSum") {
      add({x(s), one_int(pick(0, rank - 1))},
          {{"exclusive", int64_t{flag() ? 1 : 0}}, {"reverse", int64_t{flag() ? 1 : 0}}});
    } else if (op_ == "TopK") {
      add({x(s), ints({pick(1, s.back())})}, {{"largest", int64_t{flag() ? 1 : 0}}}, 2);
    } else if (op_ == "BatchNormalization") {
      const Shape i = image();
      const std::vector<double> some(static_cast<size_t>(i[1]), 0.5);
      add({x(i), x({i[1]}), x({i[1]}), reals(some, dtype_), reals(some, dtype_)});
    } else if (op_ == "InstanceNormalization") {
      const Shape i = image();
      add({x(i), x({i[1]}), x({i[1]})});
    } else if (op_ == "GroupNormalization") {
      const Shape i{pick(1, 2), 4, pick(2, 5), extent() + 1};
      add({x(i), x({4}), x({4})}, {{"num_groups", int64_t{2}}});
    } else if (op_ == "LayerNormalization") {
      add({x({pick(1, 4), s.back() + 1}), x({s.back() + 1}), x({s.back() + 1})});
    } else if (op_ == "RMSNormalization") {
      add({x({pick(1, 4), s.back() + 1}), x({s.back() + 1})});
    } else if (is({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})) {
      const int64_t classes = pick(2, 6), n = pick(1, 3), d = extent();
      Attributes attributes{{"ignore_index", int64_t{1}}};
      attributes["reduction"] = std::string(flag() ? "none" : flag() ? "sum" : "mean");
      Shape known{0};  // of the last weighs something, also where all others are ignored
      while (std::ssize(known) < n * d) known.push_back(pick(0, classes - 1));
      const ValueId c =
          b_.constant("classes", {DType::kInt64, {n, d}}, graph::Constant::of(known, DType::kInt64));
      add({x({n, classes, d}), c}, attributes);
    } else if (op_ == "Det") {
      const int64_t n = pick(1, 4);
      add({x({extent(), n, n})});
    } else if (op_ == "TfIdfVectorizer") {
      if (dtype_ != DType::kInt32 && dtype_ != DType::kInt64) {
        refusal_ = "input 0 is no integer, expected one";
        return true;
      }
      add({x({pick(1, 3), extent()})}, {{"max_gram_length", int64_t{2}},
                                        {"max_skip_count", pick(0, 2)},
                                        {"ngram_counts", Shape{0, 2}},
                                        {"ngram_indexes", Shape{0, 2, 1, 3}},
                                        {"pool_int64s", Shape{3, 5, 1, 2, 0, 1}}});
    } else if (op_ == "LRN") {
      add({x(image())}, {{"size", int64_t{3}}});
    } else if (op_ == "MeanVarianceNormalization") {
      add({x(image())});
    } else {
      return false;
    }
    return true;
  }

  bool products() {
    const int64_t m = pick(1, 5), n = extent(), k = extent();
    if (op_ == "MatMul") {
      if (flag())
        add({x({m, k}), x({k, n})});
      else
        add({x({2, m, k}), x({flag() ? 2 : 1, k, n})});
    } else if (op_ == "Gemm") {
      const bool swaps = flag();
      add({x({m, k}), x(swaps ? Shape{n, k} : Shape{k, n}), x({n})}, {{"transB", int64_t{swaps ? 1 : 0}}});
    } else if (op_ == "Einsum") {
      add({x({m, k}), x({k, n})}, {{"equation", std::string("ij,jk->ik")}});
    } else if (op_ == "MatMulInteger") {
      add({x({m, k}), x({k, n}, byte()), one_int(3, dtype_)});
    } else if (op_ == "QLinearMatMul") {
      const DType other = byte(), result = byte();
      add({x({m, k}), scale(), one_int(1, dtype_), x({k, n}, other), scale(), one_int(2, other), scale(),
           one_int(3, result)});
    } else if (op_ == "com.microsoft.MatMulIntegerToFloat") {
      const DType other = byte();
      add({x({m, k}), x({k, n}, other), scale(), scale(), one_int(1, dtype_), one_int(2, other),
           x({n}, DType::kFloat32)});
    } else if (op_ == "com.microsoft.QGemm") {
      const DType other = byte();
      const bool swaps = flag();
      Ids inputs{
          x({m, k}), scale(),           one_int(1, dtype_),   x(swaps ? Shape{n, k} : Shape{k, n}, other),
          scale(),   one_int(2, other), x({n}, DType::kInt32)};
      if (flag()) inputs.insert(inputs.end(), {scale(), one_int(3, byte())});
      add(inputs, {{"transB", int64_t{swaps ? 1 : 0}}});
    } else {
      return recurrences();
    }
    return true;
  }

  bool recurrences() {
    const int64_t steps = pick(1, 4), batch = pick(1, 3), hidden = pick(1, 9), inputs = pick(1, 5),
                  directions = pick(1, 2);
    const std::string direction = directions == 2 ? "bidirectional" : flag() ? "reverse" : "forward";
    const int64_t rows = (op_ == "LSTM" ? 4 : op_ == "GRU" ? 3 : 1) * hidden;
    if (is({"LSTM", "GRU", "RNN"})) {
      const Ids given{x({steps, batch, inputs}), x({directions, rows, inputs}), x({directions, rows, hidden}),
                      x({directions, 2 * rows}), x({batch}, DType::kInt32)};
      add(given, {{"direction", direction}}, op_ == "LSTM" ? 3 : 2);
    } else if (op_ == "tuner.Recurrence") {
      add({x({steps, batch, directions * rows}), x({directions, hidden, rows})},
          {{"direction", direction}, {"cell", std::string("RNN")}, {"results", Shape{0, 1}}});
    } else {
      return false;
    }
    return true;
  }

  bool images() {
    const Shape i = image();
    const int64_t out = pick(1, 5);
    if (op_ == "Col2Im") {
      add({x({i[0], 4 * i[1], 3 * 4}), ints({4, 5}), ints({2, 2})});
    } else if (op_ == "DeformConv") {
      add({x(i), x({out, i[1], 2, 2}), x({i[0], 8, i[2] - 1, i[3] - 1}), x({out}),
           x({i[0], 4, i[2] - 1, i[3] - 1})});
    } else if (op_ == "MaxUnpool") {
      const Shape pooled{pick(1, 2), pick(1, 3), pick(1, 3), extent()};
      add({x(pooled), unpooled_places(pooled)}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}});
    } else if (op_ == "Conv") {
      Attributes w = window(i);
      const Shape kernel = std::get<Shape>(w["kernel_shape"]);
      add({x(i), x({out, i[1], kernel[0], kernel[1]}), x({out})}, w);
    } else if (op_ == "ConvTranspose") {
      add({x(i), x({i[1], out, 2, 2}), x({out})}, {{"strides", Shape{2, 2}}});
    } else if (op_ == "ConvInteger") {
      add({x(i), x({out, i[1], 2, 2}, byte()), one_int(2, dtype_)});
    } else if (op_ == "QLinearConv") {
      const DType other = byte(), result = byte();
      add({x(i), scale(), one_int(1, dtype_), x({out, i[1], 2, 2}, other), scale(), one_int(0, other),
           scale(), one_int(3, result), x({out}, DType::kInt32)});
    } else if (is({"MaxPool", "AveragePool", "LpPool"})) {
      add({x(i)}, window(i));
    } else if (op_.starts_with("Global")) {
      add({x(i)});
    } else if (op_ == "Resize") {
      add({x(i), kNoValue, reals({1, 1, 2, 1.5}, DType::kFloat32)},
          {{"mode", std::string(flag() || !is_float(dtype_) ? "nearest" : "linear")}});
    } else if (op_ == "Upsample") {
      add({x(i), reals({1, 1, 2, 3}, DType::kFloat32)});
    } else {
      return false;
    }
    return true;
  }

  bool bytes() {
    const Shape s = any_shape();
    if (op_ == "QuantizeLinear") {
      add({x(s), one_real(0.02, is_float(dtype_) ? dtype_ : DType::kFloat32), one_int(3, byte())});
    } else if (op_ == "DequantizeLinear") {
      add({x(s), one_real(0.02, DType::kFloat32), one_int(dtype_ == DType::kInt32 ? 0 : 3, dtype_)});
    } else if (op_ == "com.microsoft.MatMulNBits") {
      const int64_t n = extent(), k = pick(1, 100), group = flag() ? 16 : 32,
                    groups = (k + group - 1) / group;
      Ids inputs{x({pick(1, 3), k}), x({n, groups, group / 2}, DType::kUInt8),
                 x({n, groups}, DType::kFloat32)};
      if (flag()) inputs.push_back(x({n * ((groups + 1) / 2)}, DType::kUInt8));
      add(inputs, {{"K", k}, {"N", n}, {"block_size", group}, {"bits", int64_t{4}}});
    } else if (op_ == "com.microsoft.QLinearAdd" || op_ == "com.microsoft.QLinearMul") {
      add({x(s), scale(), one_int(1, dtype_), x(s), scale(), one_int(2, dtype_), scale(),
           one_int(3, dtype_)});
    } else if (is({"com.microsoft.QLinearSoftmax", "com.microsoft.QLinearSigmoid",
                   "com.microsoft.QLinearLeakyRelu"})) {
      add({x(s), scale(), one_int(1, dtype_), scale(), one_int(3, dtype_)});
    } else if (op_ == "com.microsoft.QLinearWhere") {
      add({x(part_of(s), DType::kBool), x(s), scale(), one_int(1, dtype_), x(part_of(s)), scale(),
           one_int(2, dtype_), scale(), one_int(3, dtype_)});
    } else if (op_ == "com.microsoft.QLinearConcat") {
      Shape other = s;
      other.back() = extent();
      add({scale(), one_int(3, dtype_), x(s), scale(), one_int(1, dtype_), x(other), scale(),
           one_int(2, dtype_)},
          {{"axis", int64_t{-1}}});
    } else if (op_ == "com.microsoft.QLinearAveragePool") {
      const Shape i = image();
      add({x(i), scale(), one_int(1, dtype_), scale(), one_int(3, dtype_)}, window(i));
    } else if (op_ == "tuner.QLinearLayerNormalization") {
      add({x(s), x({s.back()}, DType::kFloat32), x({s.back()}, DType::kFloat32), one_int(3, dtype_)});
    } else if (op_ == "com.microsoft.QLinearGlobalAveragePool") {
      add({x(image()), scale(), one_int(1, dtype_), scale(), one_int(3, dtype_)});
    } else if (op_ == "DynamicQuantizeLinear") {
      add({x(s)}, {}, 3);
    } else {
      return false;
    }
    return true;
  }

  bool signals() {
    if (is({"BlackmanWindow", "HammingWindow", "HannWindow"})) {
      if (dtype_ == DType::kInt32 || dtype_ == DType::kInt64)
        add({one_int(extent(), dtype_)});
      else
        refusal_ = "input 0 is no integer, expected one";
    } else if (op_ == "MelWeightMatrix") {
      if (dtype_ == DType::kInt32 || dtype_ == DType::kInt64)
        add({one_int(8, dtype_), one_int(16, dtype_), one_int(8192, dtype_), one_real(0, DType::kFloat32),
             one_real(4096, DType::kFloat32)});
      else
        refusal_ = "input 0 is no integer, expected one";
    } else if (op_ == "DFT") {
      const int64_t n = extent();
      add({x({pick(1, 3), n, flag() ? 1 : 2}), one_int(n + pick(0, 2)), one_int(1)},
          {{"inverse", int64_t{flag() ? 1 : 0}}});
    } else if (op_ == "STFT") {
      const int64_t n = 4 + pick(0, 9);
      add({x({pick(1, 2), n + extent(), 1}), one_int(pick(1, 4)), x({n})});
    } else {
      return false;
    }
    return true;
  }

  bool heads() {
    const int64_t b = pick(1, 2), heads = pick(1, 2), n = pick(1, 5), size = 2 * pick(1, 4);
    if (op_ == "Attention") {
      const int64_t past = pick(1, 3), keys = extent();
      add({x({b, 2 * heads, n, size}), x({b, heads, keys, size}), x({b, heads, keys, size + 1}),
           x({n, past + keys}), x({b, heads, past, size}), x({b, heads, past, size + 1})});
    } else if (op_ == "RotaryEmbedding") {
      add({x({b, n, heads * size}), x({9, size / 2}), x({9, size / 2}), x({b, n}, DType::kInt64)},
          {{"num_heads", heads}, {"interleaved", int64_t{flag() ? 1 : 0}}});
    } else {
      return false;
    }
    return true;
  }

  bool regions() {
    const Shape i = image();
    const DType real = is_float(dtype_) ? dtype_ : DType::kFloat32;
    if (op_ == "GridSample") {
      const char* const padding = flag() ? "zeros" : flag() ? "border" : "reflection";
      add({x(i), x({i[0], 3, extent(), 2}, real)},
          {{"mode", std::string(!is_float(dtype_) || flag() ? "nearest"
                                : flag()                    ? "linear"
                                                            : "cubic")},
           {"padding_mode", std::string(padding)}});
    } else if (op_ == "AffineGrid") {
      add({x({2, 2, 3}), ints({2, 3, pick(1, 4), extent()})}, {{"align_corners", int64_t{flag() ? 1 : 0}}});
    } else if (op_ == "RoiAlign") {
      add({x(i), x({3, 4}), x({3}, DType::kInt64)}, {{"output_height", pick(1, 3)},
                                                     {"output_width", pick(1, 3)},
                                                     {"sampling_ratio", pick(1, 2)},
                                                     {"mode", std::string(flag() ? "avg" : "max")},
                                                     {"spatial_scale", 2.0}});
    } else if (op_ == "NonMaxSuppression") {
      const int64_t n = pick(1, 2), classes = pick(1, 3), boxes = extent(), most = pick(1, 4);
      add({x({n, boxes, 4}), x({n, classes, boxes}), one_int(most), one_real(0.2, DType::kFloat32)},
          {{"tuner.rows", pick(1, n * classes * std::min(most, boxes))}});
    } else if (op_ == "MaxRoiPool") {
      add({x(i), x({3, 5})}, {{"pooled_shape", Shape{2, 3}}, {"spatial_scale", 3.0}});
    } else {
      return false;
    }
    return true;
  }

  bool selections() {
    const Shape s = any_shape();
    if (op_ == "Compress") {
      add({x(s), condition(s.back())}, {{"axis", int64_t{-1}}});
    } else if (is({"NonZero", "Unique"})) {
      add({one_real(1, dtype_)});
    } else {
      return false;
    }
    return true;
  }

  std::string op_;
  DType dtype_;
  std::mt19937& random_;
  graph::GraphBuilder b_;
  int names_ = 0;
  Ids results_;
  std::string refusal_;
};

}  // namespace

RandomNode random_node(const std::string& op, DType dtype, std::mt19937& random) {
  return Draw(op, dtype, random).node();
}

}  // namespace tuner::testing
