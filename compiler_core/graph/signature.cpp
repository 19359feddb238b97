#include "compiler_core/graph/signature.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler_core/base/did_you_mean.h"

namespace tuner::graph {
namespace {

// An input is a letter: inputs of the same letter have the same type.
//   T U     any type               N M   any but bool        F G H   floats
//   R S     floats or int32        Z     int8, uint8, int32  q r s   int8 or uint8
//   J       floats, and integers of 32 or 64 bits
//   I       any integer            u     unsigned            X Y   as Z and q, and of 16 bits
//   i       int32 or int64         l     int64               w       int32
//   f       float32                B     bool
//   ?       float32, int8 or uint8, each of its own: the row says more
// A digit behind it is the number of dimensions; a point: it has one element; *: the last one any number of
// times.
struct InputsRow {
  std::string_view operators;
  int64_t since;  // the first operator set it holds for; the row with the highest one that fits counts
  std::string_view inputs;
};
// Rows of later sets allow what earlier ones did (fragments name the set only where an operator means
// something else).
constexpr InputsRow kInputs[] = {
    {"Abs Neg Sign Relu Shrink", 7, "N"},
    {"Ceil Floor Round Exp Log Sqrt Tanh Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh "
     "Reciprocal",
     7, "F"},
    {"LeakyRelu ThresholdedRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Softplus Softsign Mish Swish "
     "Gelu",
     7, "F"},
    {"IsNaN IsInf", 7, "F"},
    {"Not", 7, "B"},
    {"Identity Cast", 7, "T"},
    {"CastLike", 7, "T U"},
    {"Clip", 7, "N N. N."},
    {"Dropout", 7, "F G. B."},
    {"Add Sub Mul Div Mod Less LessOrEqual Greater GreaterOrEqual PRelu", 7, "N N"},
    {"Equal", 7, "T T"},
    {"Pow", 7, "N N"},
    {"Pow", 12, "N M"},
    {"And Or Xor", 7, "B B"},
    {"BitShift", 7, "u u"},
    {"BitwiseAnd BitwiseOr BitwiseXor", 7, "I I"},
    {"BitwiseNot", 7, "I"},
    {"Sum Min Max", 7, "N*"},
    {"Mean", 7, "F*"},
    {"Where", 7, "B T T"},
    {"Shape Size EyeLike", 7, "T"},
    {"ConstantOfShape", 7, "l1"},
    {"Range", 7, "N. N. N."},
    {"BlackmanWindow HammingWindow HannWindow", 7, "i."},
    {"MelWeightMatrix", 7, "i. i. i. F. F."},
    {"DFT", 7, "F i."},
    {"DFT", 20, "F i. l."},
    {"STFT", 7, "F i. F1 i."},
    {"CenterCropPad", 7, "T i1"},
    {"Compress", 7, "T B1"},
    {"NonZero", 7, "T"},
    {"Unique", 7, "T"},
    {"TfIdfVectorizer", 7, "i"},
    {"tuner.View Flatten Transpose DepthToSpace SpaceToDepth", 7, "T"},
    {"Reshape Split Expand Tile", 7, "T l1"},
    {"Squeeze Unsqueeze", 7, "T l"},  // exporters write one axis as a scalar, and ONNX Runtime takes it
    {"Concat", 7, "T*"},
    {"Slice", 7, "T i1 i1 i1 i1"},
    {"Pad", 7, "T l1 T. i1"},
    {"Trilu", 7, "T l."},
    {"Gather GatherElements", 7, "T i"},
    {"GatherND", 7, "T l"},
    {"OneHot", 7, "N M. T1"},
    {"ReverseSequence", 7, "T l1"},
    {"Scatter ScatterElements", 7, "T i T"},
    {"ScatterND", 7, "T l T"},
    {"ReduceSum ReduceMean ReduceProd ReduceL1 ReduceSumSquare", 7, "J l1"},
    {"ReduceL2 ReduceLogSum ReduceLogSumExp", 7, "F l1"},
    {"ReduceMax ReduceMin", 7, "T l1"},
    {"ArgMax ArgMin", 7, "N"},
    {"CumSum", 7, "N i."},
    {"TopK", 7, "N l."},
    {"Softmax LogSoftmax Hardmax MeanVarianceNormalization LRN LpNormalization", 7, "F"},
    {"BatchNormalization", 7, "F F1 F1 F1 F1"},
    {"BatchNormalization", 14, "F F1 F1 G1 G1"},
    {"BatchNormalization", 15, "F G1 G1 H1 H1"},
    {"InstanceNormalization GroupNormalization", 7, "F F1 F1"},
    {"LayerNormalization", 7, "F F F"},
    {"RMSNormalization", 7, "F F"},
    {"Attention", 7, "F F G T F G"},
    {"RotaryEmbedding", 7, "F F F l2"},
    {"Det", 7, "F"},
    {"NonMaxSuppression", 7, "f3 f3 l. f. f."},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", 7, "F i F1"},
    {"MatMul", 7, "N N"},
    {"Gemm", 7, "F F F"},
    {"MatMulInteger", 7, "q r q r"},
    {"QLinearMatMul", 7, "q f q r f r f. s."},
    {"Einsum", 7, "N*"},
    {"Conv ConvTranspose", 7, "F F F1"},
    {"ConvInteger", 7, "q r q. r"},
    {"QLinearConv", 7, "q f. q. r f r f. s. w1"},
    {"com.microsoft.MatMulNBits", 7, "f q f q w1 f1"},
    {"com.microsoft.MatMulIntegerToFloat", 7, "q r f f q r f1"},
    {"com.microsoft.QGemm", 7, "q f. q. r f r w f. s."},
    {"com.microsoft.QLinearAdd com.microsoft.QLinearMul", 7, "q f. q. q f. q. f. q."},
    {"com.microsoft.QLinearAveragePool com.microsoft.QLinearGlobalAveragePool", 7, "q f. q. f. q."},
    {"com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSigmoid", 7, "q f. q. f. q."},
    {"com.microsoft.QLinearSoftmax", 7, "q f. q. f. q."},
    {"com.microsoft.QLinearConcat", 7, "f. q. ?*"},
    {"com.microsoft.QLinearWhere", 7, "B q f. q. q f. q. f. q."},
    {"tuner.QLinearLayerNormalization", 7, "q f1 f1 q."},
    {"Col2Im", 7, "N l1 l1"},
    {"DeformConv", 7, "F F F F1 F"},
    {"MaxPool", 7, "N"},
    {"AveragePool LpPool GlobalLpPool GlobalMaxPool GlobalAveragePool", 7, "F"},
    {"MaxUnpool", 7, "F l l1"},
    {"MaxRoiPool", 7, "F F2"},
    {"RoiAlign", 7, "F F2 l1"},
    {"AffineGrid", 7, "F l1"},
    {"GridSample", 7, "T F"},
    {"QuantizeLinear", 7, "R f q"},
    {"QuantizeLinear", 19, "R R q"},
    {"QuantizeLinear", 21, "R R Y"},
    {"QuantizeLinear", 23, "R S Y"},
    {"DequantizeLinear", 7, "Z f Z"},
    {"DequantizeLinear", 19, "Z F Z"},
    {"DequantizeLinear", 21, "X F X"},
    {"DynamicQuantizeLinear", 7, "f"},
    {"LSTM GRU RNN", 7, "F3 F3 F3 F2 w1 F3 F3 F2"},
    {"tuner.Recurrence", 7, "F3 F3 F2 w1 F3 F3 F2"},
    {"Resize", 7, "T f1"},
    {"Resize", 11, "T F1 f1 l1"},
    {"Upsample", 7, "T f1"},
};

// NAME:KIND; i, f, s: an integer, a float, a string; I, F, S: lists of them; d: a type; t: a tensor. =A|B:
// its words.
struct AttributesRow {
  std::string_view operators, attributes;
};
constexpr AttributesRow kAttributes[] = {
    {"ArgMax ArgMin", "axis:i keepdims:i select_last_index:i"},
    {"AveragePool", "count_include_pad:i"},
    {"MaxPool", "storage_order:i"},
    {"LpPool", "p:i"},
    {"AveragePool MaxPool LpPool",
     "auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID ceil_mode:i dilations:I kernel_shape:I"},
    {"AveragePool MaxPool LpPool", "pads:I strides:I"},
    {"AffineGrid", "align_corners:i"},
    {"Attention", "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f"},
    {"Attention", "softmax_precision:d"},
    {"BitShift", "direction:s=LEFT|RIGHT"},
    {"BlackmanWindow HammingWindow HannWindow", "output_datatype:d periodic:i"},
    {"CenterCropPad", "axes:I"},
    {"Col2Im", "dilations:I pads:I strides:I"},
    {"Compress", "axis:i"},
    {"DFT", "axis:i inverse:i onesided:i"},
    {"DeformConv", "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I"},
    {"GlobalLpPool", "p:i"},
    {"GridSample", "align_corners:i mode:s=linear|nearest|cubic|bilinear|bicubic"},
    {"GridSample", "padding_mode:s=zeros|border|reflection"},
    {"MaxRoiPool", "pooled_shape:I spatial_scale:f"},
    {"MaxUnpool", "kernel_shape:I pads:I strides:I"},
    {"MelWeightMatrix", "output_datatype:d"},
    {"NonMaxSuppression", "center_point_box:i tuner.rows:i"},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s=none|sum|mean"},
    {"RoiAlign",
     "coordinate_transformation_mode:s=half_pixel|output_half_pixel mode:s=avg|max output_height:i"},
    {"RoiAlign", "output_width:i sampling_ratio:i spatial_scale:f"},
    {"RotaryEmbedding", "interleaved:i num_heads:i rotary_embedding_dim:i"},
    {"STFT", "onesided:i"},
    {"TfIdfVectorizer", "max_gram_length:i max_skip_count:i min_gram_length:i mode:s=TF|IDF|TFIDF"},
    {"TfIdfVectorizer", "ngram_counts:I ngram_indexes:I pool_int64s:I pool_strings:S weights:F"},
    {"Unique", "axis:i sorted:i"},
    {"BatchNormalization", "epsilon:f momentum:f spatial:i training_mode:i"},
    {"Cast", "to:d saturate:i round_mode:s"},
    {"CastLike", "saturate:i round_mode:s"},
    {"Celu Elu LeakyRelu ThresholdedRelu Swish HardSigmoid Selu", "alpha:f"},
    {"HardSigmoid", "beta:f"},
    {"Selu", "gamma:f"},
    {"Clip", "min:f max:f"},
    {"Concat Flatten Gather GatherElements OneHot Scatter ScatterElements Softmax LogSoftmax Hardmax",
     "axis:i"},
    {"ConstantOfShape", "value:t"},
    {"Conv ConvInteger QLinearConv ConvTranspose",
     "auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"ConvTranspose", "output_padding:I output_shape:I"},
    {"com.microsoft.MatMulNBits", "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i"},
    {"com.microsoft.QGemm", "alpha:f transA:i transB:i"},
    {"com.microsoft.QLinearConcat", "axis:i"},
    {"com.microsoft.QLinearAveragePool",
     "auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID ceil_mode:i channels_last:i count_include_pad:i"},
    {"com.microsoft.QLinearAveragePool", "kernel_shape:I pads:I strides:I"},
    {"com.microsoft.QLinearGlobalAveragePool", "channels_last:i"},
    {"com.microsoft.QLinearLeakyRelu", "alpha:f"},
    {"com.microsoft.QLinearSoftmax", "axis:i opset:i"},
    {"tuner.QLinearLayerNormalization", "epsilon:f"},
    {"CumSum", "exclusive:i reverse:i"},
    {"DepthToSpace", "blocksize:i mode:s=DCR|CRD"},
    {"SpaceToDepth", "blocksize:i"},
    {"QuantizeLinear DequantizeLinear", "axis:i block_size:i output_dtype:d"},
    {"QuantizeLinear", "saturate:i precision:d"},
    {"Dropout", "ratio:f seed:i"},
    {"Einsum", "equation:s"},
    {"EyeLike", "dtype:d k:i"},
    {"GatherND", "batch_dims:i"},
    {"Gelu", "approximate:s"},
    {"Gemm", "alpha:f beta:f transA:i transB:i"},
    {"GroupNormalization", "epsilon:f num_groups:i stash_type:i"},
    {"InstanceNormalization", "epsilon:f"},
    {"IsInf", "detect_negative:i detect_positive:i"},
    {"LRN", "alpha:f beta:f bias:f size:i"},
    {"LayerNormalization RMSNormalization", "axis:i epsilon:f stash_type:i"},
    {"LpNormalization", "axis:i p:i"},
    {"MeanVarianceNormalization", "axes:I"},
    {"Mod", "fmod:i"},
    {"Pad", "mode:s pads:I paddings:I value:f"},
    {"ReduceSum ReduceMax ReduceMin ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
     "ReduceLogSumExp",
     "axes:I keepdims:i noop_with_empty_axes:i"},
    {"LSTM GRU RNN tuner.Recurrence",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s=forward|reverse|bidirectional"},
    {"LSTM GRU RNN tuner.Recurrence", "hidden_size:i layout:i"},
    {"LSTM tuner.Recurrence", "input_forget:i"},
    {"GRU tuner.Recurrence", "linear_before_reset:i"},
    {"tuner.Recurrence", "cell:s=LSTM|GRU|RNN packed:i results:I"},
    {"Reshape", "allowzero:i"},
    {"tuner.View", "shape:I"},
    {"Resize", "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i"},
    {"Resize", "extrapolation_value:f keep_aspect_ratio_policy:s mode:s"},
    {"Resize", "nearest_mode:s=round_prefer_floor|round_prefer_ceil|floor|ceil"},
    {"Upsample", "mode:s scales:F"},
    {"ReverseSequence", "batch_axis:i time_axis:i"},
    {"ScatterElements ScatterND", "reduction:s"},
    {"Shape", "start:i end:i"},
    {"Shrink", "bias:f lambd:f"},
    {"Slice", "axes:I ends:I starts:I"},
    {"Split", "axis:i num_outputs:i split:I"},
    {"Squeeze Unsqueeze", "axes:I"},
    {"TopK", "axis:i k:i largest:i sorted:i"},
    {"Transpose", "perm:I"},
    {"Trilu", "upper:i"},
};

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct AttributeRule {
  AttributeKind kind;
  std::vector<std::string_view> words;  // empty: any
};
struct Rules {
  std::map<int64_t, std::vector<std::string_view>> inputs;  // by the first operator set
  std::map<std::string_view, AttributeRule> attributes;
};

AttributeKind kind_of(char letter) {
  constexpr std::string_view kLetters = "ifsIFSdt";
  const size_t at = kLetters.find(letter);
  CHECK(at != std::string_view::npos) << letter << " is no kind of attribute";
  return static_cast<AttributeKind>(at);
}

const std::map<std::string_view, Rules>& rules() {
  static const auto all = [] {
    std::map<std::string_view, Rules> made;
    for (const InputsRow& row : kInputs)
      for (const std::string_view op : parts_of(row.operators, ' '))
        CHECK(made[op].inputs.emplace(row.since, parts_of(row.inputs, ' ')).second) << op << " stands twice";
    for (const AttributesRow& row : kAttributes)
      for (const std::string_view text : parts_of(row.attributes, ' ')) {
        const size_t colon = text.find(':');
        AttributeRule rule{kind_of(text[colon + 1]), {}};
        if (colon + 3 < text.size()) rule.words = parts_of(text.substr(colon + 3), '|');
        for (const std::string_view op : parts_of(row.operators, ' '))
          CHECK(made[op].attributes.emplace(text.substr(0, colon), rule).second)
              << op << " has " << text << " twice";
      }
    return made;
  }();
  return all;
}

// Whether inputs of this letter may be of this type, and what they may be in words.
struct LetterRule {
  std::string_view letters, says;
  bool (*allows)(DType);
};
bool is_word(DType t) { return t == DType::kInt16 || t == DType::kUInt16; }
bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }
constexpr LetterRule kLetters[] = {
    {"TU", "any type", [](DType) { return true; }},
    {"NM", "numbers", [](DType t) { return t != DType::kBool; }},
    {"FGH", "a float type", [](DType t) { return is_float(t); }},
    {"RS", "a float type or int32", [](DType t) { return is_float(t) || t == DType::kInt32; }},
    {"J", "a float type, or integers of 32 or 64 bits",
     [](DType t) { return is_float(t) || (t != DType::kBool && dtype_bytes(t) >= 4); }},
    {"I", "an integer type", [](DType t) { return !is_float(t) && t != DType::kBool; }},
    {"u", "an unsigned integer type", is_unsigned},
    {"X", "an integer type of 8 or 16 bits, or int32",
     [](DType t) { return is_byte(t) || is_word(t) || t == DType::kInt32; }},
    {"Y", "an integer type of 8 or 16 bits", [](DType t) { return is_byte(t) || is_word(t); }},
    {"Z", "int8, uint8 or int32", [](DType t) { return is_byte(t) || t == DType::kInt32; }},
    {"qrs", "int8 or uint8", is_byte},
    {"i", "int32 or int64", [](DType t) { return t == DType::kInt32 || t == DType::kInt64; }},
    {"l", "int64", [](DType t) { return t == DType::kInt64; }},
    {"w", "int32", [](DType t) { return t == DType::kInt32; }},
    {"f", "float32", [](DType t) { return t == DType::kFloat32; }},
    {"B", "bool", [](DType t) { return t == DType::kBool; }},
    {"?", "float32, int8 or uint8", [](DType t) { return is_byte(t) || t == DType::kFloat32; }},
};

Status check_input(const Use& use, size_t i, std::string_view rule, std::map<char, size_t>& first) {
  const auto* letter = std::ranges::find_if(
      kLetters, [&](const LetterRule& l) { return l.letters.find(rule[0]) != std::string_view::npos; });
  CHECK(letter != std::end(kLetters)) << rule << " is no rule of an input";
  if (!letter->allows(use.dtype(i)))
    return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ", letter->says);
  if (rule[0] == '?') return Status::ok();
  const auto [same, is_first] = first.emplace(rule[0], i);
  if (!is_first && use.dtype(i) != use.dtype(same->second))
    return invalid_argument("inputs ", same->second, " and ", i, " are ", use.dtype(same->second), " and ",
                            use.dtype(i), ", expected one type");
  if (rule.size() < 2 || rule[1] == '*') return Status::ok();
  if (rule[1] == '.' && use.type(i).elements() != 1)
    return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected a single number");
  if (rule[1] != '.' && use.rank(i) != rule[1] - '0')
    return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ",
                            rule[1] == '1' ? str("one dimension") : str(rule[1], " dimensions"));
  return Status::ok();
}

Status check_inputs(const Use& use, const Rules& rules) {
  auto row = rules.inputs.upper_bound(use.operator_set());
  if (row != rules.inputs.begin()) --row;
  std::map<char, size_t> first;  // input of each letter
  for (size_t i = 0; i < use.inputs(); ++i) {
    if (!use.has(i)) continue;
    const bool repeats = row->second.back().ends_with('*');
    if (i >= row->second.size() && !repeats)
      return invalid_argument(use.inputs(), " inputs, expected at most ", row->second.size(),
                              " in operator set ", use.operator_set());
    RETURN_IF_ERROR(check_input(use, i, row->second[std::min(i, row->second.size() - 1)], first));
  }
  return Status::ok();
}

// What holds the value in a graph: the index of the variant, in the order of AttributeKind.
AttributeKind stored_as(const Attribute& value) {
  constexpr AttributeKind kKinds[] = {AttributeKind::kInteger, AttributeKind::kFloat,
                                      AttributeKind::kString,  AttributeKind::kIntegers,
                                      AttributeKind::kFloats,  AttributeKind::kStrings};
  return kKinds[value.index()];
}
AttributeKind storage_of(AttributeKind kind) {
  if (kind == AttributeKind::kType) return AttributeKind::kString;
  return kind == AttributeKind::kTensor ? AttributeKind::kFloat : kind;
}
bool is_empty_list(const Attribute& value) {  // which a text of a fragment gives no type
  const auto* list = std::get_if<std::vector<int64_t>>(&value);
  return list != nullptr && list->empty();
}
bool is_list(AttributeKind kind) {
  return kind >= AttributeKind::kIntegers && kind <= AttributeKind::kStrings;
}

Status no_attribute(std::string_view name, const Rules& rules) {
  std::vector<std::string> names;
  for (const auto& [known, unused] : rules.attributes) names.emplace_back(known);
  return invalid_argument("has no attribute ", name, did_you_mean(name, names));
}

Status check_attribute(const std::string& name, const Attribute& value, const Rules& rules) {
  constexpr std::string_view kTypeOf = "_type";
  const auto rule = rules.attributes.find(name);
  if (rule == rules.attributes.end()) {
    if (name.ends_with(kTypeOf)) {
      const auto tensor =
          rules.attributes.find(std::string_view(name).substr(0, name.size() - kTypeOf.size()));
      if (tensor != rules.attributes.end() && tensor->second.kind == AttributeKind::kTensor)
        return Status::ok();
    }
    return no_attribute(name, rules);
  }
  const auto& [kind, words] = rule->second;
  if (stored_as(value) != storage_of(kind) && !(is_list(kind) && is_empty_list(value)))
    return invalid_argument("attribute ", name, " is ", attribute_kind_name(stored_as(value)), ", expected ",
                            attribute_kind_name(kind));
  if (words.empty() || std::ranges::find(words, std::get<std::string>(value)) != words.end())
    return Status::ok();
  std::string all;
  for (const std::string_view word : words) all += str(all.empty() ? "" : ", ", word);
  return invalid_argument("attribute ", name, " is \"", std::get<std::string>(value), "\", expected one of ",
                          all);
}

}  // namespace

std::string_view attribute_kind_name(AttributeKind kind) {
  constexpr std::string_view kNames[] = {
      "an integer",       "a float",           "a string", "a list of integers",
      "a list of floats", "a list of strings", "a type",   "a tensor"};
  return kNames[static_cast<size_t>(kind)];
}

Result<AttributeKind> attribute_kind(std::string_view op, std::string_view attribute) {
  const auto row = rules().find(op);
  CHECK(row != rules().end()) << op << " has no signature";
  const auto rule = row->second.attributes.find(attribute);
  if (rule == row->second.attributes.end()) return no_attribute(attribute, row->second);
  return rule->second.kind;
}

Status check_signature(const Use& use) {
  const auto row = rules().find(use.node().op);
  CHECK(row != rules().end() && !row->second.inputs.empty()) << use.node().op << " has no signature";
  for (const auto& [name, value] : use.node().attributes)
    RETURN_IF_ERROR(check_attribute(name, value, row->second));
  return check_inputs(use, row->second);
}

}  // namespace tuner::graph
