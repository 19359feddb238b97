// What an operator's definition says must agree: types of inputs, extents, kinds of attributes, indices that
// are known, windows of poolings. Each case changes one thing of a node that is right. Which inputs share a
// type, and which extents are free, is written out here from ONNX's page of the operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <regex>

#include "compiler_core/graph/fragment.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/pool_window.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/graph_writer.h"

namespace tuner::graph {
namespace {

using testing::GraphWriter;
using ::testing::HasSubstr;

struct Case {
  std::string text;   // a fragment of one node
  std::string types;  // inputs of one type: "012|34"
  std::string free;   // extents that may be others: "0.0 1.2", input and dimension
};
const std::vector<Case> kCases = {
    {"in=float32[2,3],float32[2,3] Add(0,1)", "01", ""},
    {"in=int32[2,3],int32[2,3] Mod(0,1)", "01", ""},
    {"in=float32[2,3],float32[2,3] Equal(0,1)", "01", ""},
    {"in=float32[2,3],float32[2,3] GreaterOrEqual(0,1)", "01", ""},
    {"in=bool[2,3],bool[2,3] Xor(0,1)", "01", ""},
    {"in=float32[2,3],float32[2,3] Pow@7(0,1)", "01", ""},
    {"in=float32[2,3],float32[2,3],float32[2,3] Sum(0,1,2)", "012", ""},
    {"in=float32[2,3],float32[2,3],float32[2,3] Max(0,1,2)", "012", ""},
    {"in=float32[2,3],float32[2,3],float32[2,3] Mean(0,1,2)", "012", ""},
    {"in=float32[2,3],float32[2,3] PRelu(0,1)", "01", ""},
    {"in=bool[2,3],float32[2,3],float32[2,3] Where(0,1,2)", "12", ""},
    {"in=float32[2,3],float32[],float32[] Clip(0,1,2)", "012", "0.0 0.1"},
    {"in=float32[2,3,5,5],float32[4,3,2,2],float32[4] Conv(0,1,2){strides=[1;1]}", "012",
     "0.0 0.2 0.3 1.2 1.3"},
    {"in=float32[2,4,5,5],float32[8,2,2,2] Conv(0,1){group=2}", "01", "0.0 0.2 0.3 1.2 1.3"},
    {"in=float32[2,4,5,5],float32[4,3,2,2],float32[3] ConvTranspose(0,1,2)", "012", "0.0 0.2 0.3 1.2 1.3"},
    {"in=uint8[2,3,5,5],int8[4,3,2,2],uint8[],int8[4] ConvInteger(0,1,2,3)", "02|13", "0.0 0.2 0.3 1.2 1.3"},
    {"in=uint8[2,3,5,5],float32[],uint8[],int8[4,3,2,2],float32[4],int8[4],float32[],int8[],int32[4] "
     "QLinearConv(0,1,2,3,4,5,6,7,8)",
     "02|35", "0.0 0.2 0.3 3.2 3.3"},
    {"in=float32[3,5],float32[5,7],float32[3,7] Gemm(0,1,2){alpha=0.5f,transA=0}", "012", ""},
    {"in=float32[2,3,5],float32[2,5,7] MatMul(0,1)", "01", "0.1 1.2"},
    {"in=uint8[3,5],int8[5,7],uint8[3],int8[7] MatMulInteger(0,1,2,3)", "02|13", ""},
    {"in=uint8[3,5],float32[],uint8[],int8[5,7],float32[],int8[],float32[],uint8[] "
     "QLinearMatMul(0,1,2,3,4,5,6,7)",
     "02|35", "0.0 3.1"},
    {"in=uint8[3,5],float32[3],uint8[3],int8[5,7],float32[7],int8[7],float32[],uint8[] "
     "QLinearMatMul(0,1,2,3,4,5,6,7)",
     "012345", ""},
    {"in=uint8[3,5],int8[5,7],float32[],float32[7],uint8[],int8[7],float32[7] "
     "com.microsoft.MatMulIntegerToFloat(0,1,2,3,4,5,6)",
     "023", "0.0"},
    {"in=uint8[3,5],float32[],uint8[],int8[5,7],float32[7],int8[7],int32[7],float32[],int8[] "
     "com.microsoft.QGemm(0,1,2,3,4,5,6,7,8){alpha=0.5f}",
     "024567", "0.0"},
    {"in=uint8[2,5],float32[],uint8[],uint8[2,5],float32[],uint8[],float32[],uint8[] "
     "com.microsoft.QLinearMul(0,1,2,3,4,5,6,7)",
     "01234567", ""},
    {"in=uint8[2,5],float32[],uint8[],float32[],uint8[] com.microsoft.QLinearSigmoid(0,1,2,3,4)", "01234",
     "0.0 0.1"},
    {"in=uint8[2,5],float32[],uint8[],float32[],uint8[] "
     "com.microsoft.QLinearLeakyRelu(0,1,2,3,4){alpha=0.5f}",
     "01234", "0.0 0.1"},
    {"in=uint8[2,3,5,5],float32[],uint8[],float32[],uint8[] "
     "com.microsoft.QLinearAveragePool(0,1,2,3,4){kernel_shape=[2;2]}",
     "01234", "0.0 0.1 0.2 0.3"},
    {"in=float32[],uint8[],uint8[2,5],float32[],uint8[],uint8[2,3],float32[],uint8[] "
     "com.microsoft.QLinearConcat(0,1,2,3,4,5,6,7){axis=1}",
     "01234567", "2.1 5.1"},
    {"in=bool[2,5],uint8[2,5],float32[],uint8[],uint8[2,5],float32[],uint8[],float32[],uint8[] "
     "com.microsoft.QLinearWhere(0,1,2,3,4,5,6,7,8)",
     "012345678", ""},
    {"in=float32[3,5],float32[5,7] Einsum(0,1){equation=\"ij,jk->ik\"}", "01", "0.0 1.1"},
    {"in=float32[2,3,4],float32[3],float32[3],float32[3],float32[3] "
     "BatchNormalization@9(0,1,2,3,4){epsilon=0.1f}",
     "01234", "0.0 0.2"},
    {"in=float32[2,3,4],float32[3],float32[3],float32[3],float32[3] BatchNormalization(0,1,2,3,4)", "12|34",
     "0.0 0.2"},
    {"in=float32[2,3,4],float32[3],float32[3] InstanceNormalization(0,1,2)", "012", "0.0 0.2"},
    {"in=float32[2,4,5],float32[4],float32[4] GroupNormalization(0,1,2){num_groups=2}", "012", "0.0 0.2"},
    {"in=float32[2,3,5],float32[5],float32[5] LayerNormalization(0,1,2){axis=-1}", "012", "0.0 0.1"},
    {"in=float32[2,3,5],float32[5] RMSNormalization(0,1)", "01", "0.0 0.1"},
    {"in=float32[2,3,4],float32[2,5,4] Concat(0,1){axis=1}", "01", "0.1 1.1"},
    {"in=float32[5,3],int64[2,4] Gather(0,1){axis=0}", "", "0.0 0.1 1.0 1.1"},
    {"in=float32[5,3],int64[5,2] GatherElements(0,1){axis=1}", "", "0.0 0.1 1.1"},
    {"in=float32[2,5,3],int64[2,4,1] GatherND(0,1){batch_dims=1}", "", "0.1 0.2 1.1 1.2"},
    {"in=float32[5,3],int64[2,3],float32[2,3] ScatterElements(0,1,2)", "02", "0.0 0.1"},
    {"in=float32[5,3],int64[4,1],float32[4,3] ScatterND(0,1,2)", "02", "0.0"},
    {"in=float32[5,3],int64[3] ReverseSequence(0,1){batch_axis=1}", "", "0.0"},
    {"in=int64[2,3],float32[2] OneHot(0,int64[](4),1)", "", "0.0 0.1"},
    {"in=float32[2,3],float32[3],uint8[3] QuantizeLinear@19(0,1,2)", "01", "0.0"},
    {"in=int8[2,3],float32[3],int8[3] DequantizeLinear(0,1,2)", "02", "0.0"},
    {"in=float32[2,6] Split:0/2(0,int64[2](2;4)){axis=1}", "", "0.0"},
    {"in=float32[2,6] Split@13:0/2(0){axis=1}", "", "0.0"},
    {"in=float32[2,6] Reshape(0,int64[2](4;3))", "", ""},
    {"in=float32[3,6] Expand(0,int64[2](3;6))", "", ""},
    {"in=float32[2,4],float32[] Pad(0,int64[4](1;1;1;1),1){mode=\"constant\"}", "01", "0.0 0.1"},
    {"in=float32[2,3,4,4] Resize(0,_,float32[4](1;1;2;2)){mode=\"nearest\"}", "", "0.0 0.1 0.2 0.3"},
    {"in=float32[2,8,3,3] DepthToSpace(0){blocksize=2,mode=\"DCR\"}", "", "0.0 0.2 0.3"},
    {"in=float32[2,3,5,5] MaxPool(0){kernel_shape=[2;2],ceil_mode=0}", "", "0.0 0.1 0.2 0.3"},
    {"in=float32[2,3] Transpose(0){perm=[1;0]}", "", "0.0 0.1"},
    {"in=float32[2,3] Softmax(0){axis=1}", "", "0.0 0.1"},
    {"in=float32[2,3] LeakyRelu(0){alpha=0.5f}", "", "0.0 0.1"},
    {"in=float32[2,2,3] AffineGrid(0,int64[4](2;3;4;5)){align_corners=0}", "", ""},
    {"in=float32[2,4,3,8],float32[2,2,5,8],float32[2,2,5,6] Attention(0,1,2){scale=0.5f}", "01", "0.2 2.3"},
    {"in=float32[2,4,3,8],float32[9,4],float32[9,4],int64[2,3] RotaryEmbedding(0,1,2,3){interleaved=0}",
     "012", "0.1"},
    {"in=uint32[2,3],uint32[2,3] BitShift(0,1){direction=\"LEFT\"}", "01", ""},
    {"in=int8[2,3],int8[2,3] BitwiseOr(0,1)", "01", ""},
    {"in=float32[3,5] CenterCropPad(0,int64[2](2;7))", "", "0.0 0.1"},
    {"in=float32[2,8,4] Col2Im(0,int64[2](3;3),int64[2](2;2)){strides=[1;1]}", "", "0.0"},
    {"in=float32[3,5] Compress(0,bool[3](1;0;1)){axis=0}", "", "0.0 0.1"},
    {"in=float32[2,4,5,5],float32[4,2,2,2],float32[2,16,4,4],float32[4],float32[2,8,4,4] "
     "DeformConv(0,1,2,3,4){group=2,offset_group=2}",
     "01234", ""},
    {"in=float32[2,3,3] Det(0)", "", "0.0"},
    {"in=float32[2,5,1] DFT(0,int64[](8),int64[](1)){inverse=0}", "", "0.0 0.1 0.2"},
    {"in=float32[2,9,1],float32[4] STFT(0,int64[](2),1){onesided=0}", "01", "0.0 0.1 0.2 1.0"},
    {"in=float32[2,3,4,4] GlobalLpPool(0){p=1}", "", "0.0 0.1 0.2 0.3"},
    {"in=float32[2,3,4,5],float32[2,6,7,2] GridSample(0,1){mode=\"nearest\",align_corners=0}", "",
     "0.1 0.2 0.3 1.1 1.2"},
    {"in=float32[2,3,8,8],float32[4,5] MaxRoiPool(0,1){pooled_shape=[2;2],spatial_scale=0.5f}", "01",
     "0.0 0.1 0.2 0.3 1.0"},
    {"in=float32[2,3,4,4],int64[2,3,4,4] MaxUnpool(0,1){kernel_shape=[2;2]}", "", ""},
    {"in=float32[2,3,4],int64[2,4],float32[3] NegativeLogLikelihoodLoss(0,1,2){reduction=\"sum\"}", "02", ""},
    {"in=float32[2,3,4],int64[2,4] SoftmaxCrossEntropyLoss(0,1){ignore_index=1}", "", "0.1"},
    {"in=float32[2,5,4],float32[2,3,5] NonMaxSuppression(0,1,int64[](2)){tuner.rows=3}", "01", "1.1"},
    {"in=float32[2,3,8,8],float32[4,4],int64[4] "
     "RoiAlign(0,1,2){output_height=2,spatial_scale=0.5f,sampling_ratio=1}",
     "01", "0.0 0.1 0.2 0.3"},
    {"in=int64[2,5] "
     "TfIdfVectorizer(0){max_gram_length=1,ngram_counts=[0],ngram_indexes=[0;1],pool_int64s=[3;5]}",
     "", "0.0 0.1"},
};

std::string refusal(const std::string& text) { return fragment_from_text(text).message(); }

// Types of the inputs, and the node.
struct Parts {
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
  std::string node;
};
Parts parts_of(const std::string& text) {
  Parts parts;
  const size_t end = text.find(' ');
  parts.node = text.substr(end);
  const std::string head = text.substr(3, end - 3);
  const std::regex type("([a-z0-9]+)\\[([0-9,]*)\\]"), number("[0-9]+");
  for (std::sregex_iterator at(head.begin(), head.end(), type), last; at != last; ++at) {
    parts.inputs.emplace_back((*at)[1].str(), std::vector<int64_t>());
    const std::string extents = (*at)[2].str();
    for (std::sregex_iterator e(extents.begin(), extents.end(), number); e != last; ++e)
      parts.inputs.back().second.push_back(std::stoll(e->str()));
  }
  return parts;
}
std::string text_of(const Parts& parts) {
  std::string head;
  for (const auto& [type, shape] : parts.inputs) {
    std::string extents;
    for (const int64_t extent : shape) extents += str(extents.empty() ? "" : ",", extent);
    head += str(head.empty() ? "" : ",", type, "[", extents, "]");
  }
  return "in=" + head + parts.node;
}

TEST(GraphSignature, OneInputOfAnotherTypeIsRefusedWhereTypesMustAgree) {
  size_t tried = 0;
  for (const Case& c : kCases) {
    ASSERT_EQ(refusal(c.text), "") << c.text;
    const Parts right = parts_of(c.text);
    for (size_t i = 0; i < right.inputs.size(); ++i) {
      if (c.types.find(static_cast<char>('0' + i)) == std::string::npos) continue;
      for (const char* type : {"float32", "float64", "float16", "bfloat16", "int64", "uint64", "int32",
                               "uint32", "int16", "uint16", "int8", "uint8", "bool"}) {
        if (right.inputs[i].first == type) continue;
        Parts wrong = right;
        wrong.inputs[i].first = type;
        EXPECT_NE(refusal(text_of(wrong)), "") << text_of(wrong);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 500U);
  EXPECT_THAT(refusal("in=float32[2,3,5,5],float16[4,3,2,2] Conv(0,1)"),
              HasSubstr("(Conv): inputs 0 and 1 are float32 and float16, expected one type"));
  EXPECT_THAT(refusal("in=float32[2],float32[1] Gather(0,1)"),
              HasSubstr("input 1 is float32[1], expected int32 or int64"));
}

TEST(GraphSignature, OneExtentMoreIsRefusedWhereItIsNotFree) {
  size_t refused = 0, accepted = 0;
  for (const Case& c : kCases) {
    const Parts right = parts_of(c.text);
    for (size_t i = 0; i < right.inputs.size(); ++i)
      for (size_t d = 0; d < right.inputs[i].second.size(); ++d) {
        Parts other = right;
        ++other.inputs[i].second[d];
        const bool is_free = c.free.find(str(i, ".", d)) != std::string::npos;
        EXPECT_EQ(refusal(text_of(other)).empty(), is_free)
            << text_of(other) << ": " << refusal(text_of(other));
        ++(is_free ? accepted : refused);
      }
  }
  EXPECT_GT(refused, 80U);
  EXPECT_GT(accepted, 60U);
}

TEST(GraphSignature, AttributesOfAnotherKindAreRefused) {
  const std::regex attribute("([a-zA-Z0-9_.]+)=(\\[[^\\]]*\\]|\"[^\"]*\"|[-0-9.]+f|[-0-9]+)");
  const std::pair<std::string, std::string> kinds[] = {{"an integer", "1"},
                                                       {"a float", "1.5f"},
                                                       {"a string", "\"one\""},
                                                       {"a list of integers", "[1]"},
                                                       {"a list of floats", "[1.5f]"},
                                                       {"a list of strings", "[\"one\"]"}};
  const auto kind_of = [](const std::string& value) -> std::string {
    if (value[0] == '[') return "a list of integers";
    return value[0] == '"' ? "a string" : value.back() == 'f' ? "a float" : "an integer";
  };
  size_t tried = 0;
  for (const Case& c : kCases) {
    const size_t brace = c.text.find('{');
    if (brace == std::string::npos) continue;
    const std::string all = c.text.substr(brace);
    for (std::sregex_iterator at(all.begin(), all.end(), attribute), last; at != last; ++at)
      for (const auto& [kind, value] : kinds) {
        if (kind == kind_of((*at)[2].str())) continue;
        const std::string text = c.text.substr(0, brace) + "{" + (*at)[1].str() + "=" + value + "}";
        EXPECT_THAT(refusal(text), HasSubstr(str("attribute ", (*at)[1].str(), " is ", kind, ", expected ",
                                                 kind_of((*at)[2].str()))))
            << text;
        ++tried;
      }
  }
  EXPECT_GT(tried, 80U);
  EXPECT_THAT(refusal("in=float32[2,3] Softmax(0){axes=1}"),
              HasSubstr("has no attribute axes; did you mean"));
  EXPECT_THAT(refusal("in=float32[1,4,3,3] DepthToSpace(0){blocksize=2,mode=\"RCD\"}"),
              HasSubstr("attribute mode is \"RCD\", expected one of DCR, CRD"));
}

TEST(GraphSignature, EveryOperatorHasOne) {
  GraphWriter w;
  const ValueId x = w.input({2, 3});
  const Graph graph = w.finish({x});
  for (const Operator* row : all_operators()) {
    const Node node{.name = "n",
                    .op = std::string(row->name),
                    .attributes = {{"no_such", int64_t{1}}},
                    .inputs = std::vector<ValueId>(std::max<size_t>(row->least_inputs, 1), x),
                    .outputs = {x}};
    EXPECT_THAT(infer(graph, node).message(), HasSubstr("has no attribute no_such")) << row->name;
  }
}

// The last place and the first are there; one further is not, at either end.
TEST(GraphSignature, KnownIndicesLieInTheData) {
  struct Indexed {
    std::string before, behind;
    int64_t least, most;
    std::string says;
  };
  const Indexed cases[] = {
      {"in=float32[3,7] Gather(0,int64[1](", ")){axis=1}", -7, 6,
       "dimension 1, which has 7: expected -7 to 6"},
      {"in=float32[3,7] Gather(0,int32[](", "))", -3, 2, "dimension 0, which has 3"},
      {"in=float32[3,7] GatherElements(0,int64[1,2](0;", "))", -3, 2, "dimension 0, which has 3"},
      {"in=float32[3,7] GatherND(0,int64[2,2](0;0;1;", "))", -7, 6, "dimension 1, which has 7"},
      {"in=float32[2,3,7] GatherND(0,int64[2,1](0;", ")){batch_dims=1}", -3, 2, "dimension 1, which has 3"},
      {"in=float32[3,7],float32[1,1] ScatterElements(0,int64[1,1](", "),1){axis=1}", -7, 6,
       "dimension 1, which has 7"},
      {"in=float32[3,7],float32[1,7] ScatterND(0,int64[1,1](", "),1)", -3, 2, "dimension 0, which has 3"},
      {"in=float32[5,2] ReverseSequence(0,int64[2](1;", "))", 0, 5,
       "dimension 0, which has 5: expected 0 to 5"},
  };
  for (const Indexed& c : cases) {
    for (const int64_t fits : {c.least, c.most})
      EXPECT_EQ(refusal(str(c.before, fits, c.behind)), "") << c.before << fits;
    for (const int64_t beyond : {c.least - 1, c.most + 1, INT64_MAX, INT64_MIN}) {
      if (c.before.find("int32") != std::string::npos && (beyond > INT32_MAX || beyond < INT32_MIN)) continue;
      EXPECT_THAT(refusal(str(c.before, beyond, c.behind)), HasSubstr(c.says)) << c.before << beyond;
      EXPECT_THAT(refusal(str(c.before, beyond, c.behind)), HasSubstr(str(beyond))) << c.before;
    }
  }
}

// Large constants are computed by a pass; what they turn out to be is checked there.
TEST(GraphSignature, IndicesThatAPassComputesAreCheckedThere) {
  for (const int64_t step : {0, 1}) {
    GraphWriter w;
    const ValueId x = w.input({5000, 2});
    std::vector<int64_t> places(5000);
    std::iota(places.begin(), places.end(), 0);
    const ValueId a = w.list(places), b = w.list(std::vector<int64_t>(5000, step));
    Graph graph = w.finish({w.add("Gather", {x, w.add("Add", {a, b})})});
    const Status folded = fold_constants(graph, interpret);
    if (step == 0)
      EXPECT_TRUE(folded) << folded.message();
    else
      EXPECT_THAT(folded.message(),
                  HasSubstr("index 5000 (element 4999 of input 1) lies outside of dimension 0"));
  }
}

// Against each window's elements, counted one by one.
TEST(GraphSignature, PoolWindowsHaveAnElementOfTheImage) {
  size_t refused = 0, all = 0;
  for (int64_t code = 0; code < 4 * 3 * 3 * 4 * 6 * 6; ++code) {
    int64_t rest = code;
    const auto next = [&](int64_t count) { return std::exchange(rest, rest / count) % count; };
    PoolWindow w{.extent = 1 + next(4),
                 .kernel = 1 + next(3),
                 .stride = 1 + next(3),
                 .dilation = 1 + next(4),
                 .before = next(6),
                 .behind = next(6)};
    const int64_t span = (w.kernel - 1) * w.dilation + 1, room = w.extent + w.before + w.behind - span;
    if (room < 0) continue;
    w.windows = room / w.stride + 1;
    bool right = w.before < span && w.behind < span;
    for (int64_t o = 0; o < w.windows; ++o) {
      int64_t inside = 0;
      for (int64_t k = 0; k < w.kernel; ++k) {
        const int64_t place = o * w.stride + k * w.dilation - w.before;
        inside += place >= 0 && place < w.extent ? 1 : 0;
      }
      right = right && inside > 0;
    }
    ++all;
    refused += right ? 0U : 1U;
    ASSERT_EQ(check_pool_window(w, {"top", "bottom", "rows"}).is_ok(), right)
        << w.extent << " " << w.kernel << " " << w.stride << " " << w.dilation << " " << w.before << " "
        << w.behind;
  }
  EXPECT_GT(refused, 500U);
  EXPECT_GT(all - refused, 500U);
  for (const std::string op : {"MaxPool", "AveragePool", "LpPool"}) {
    EXPECT_THAT(
        refusal("in=float32[1,2,4,6] " + op + "(0){kernel_shape=[2;3],pads=[1;2;1;3]}"),
        HasSubstr(
            "padding behind dimension 3: expected less than the 3 elements of the kernel, found 3: a window "
            "would have no element of the image"));
    EXPECT_EQ(refusal("in=float32[1,2,4,6] " + op + "(0){kernel_shape=[2;3],pads=[1;2;1;2]}"), "");
  }
}

TEST(GraphSignature, ListsThatBelongTogetherAreOfOneLength) {
  EXPECT_THAT(refusal("in=float32[4,4] Slice(0,int64[2](0;0),int64[2](1;1),int64[1](0))"),
              HasSubstr("2 starts, 1 axes"));
  EXPECT_THAT(refusal("in=float32[4,4] Slice(0,int64[2](0;0),int64[2](1;1),int64[2](0;-2))"),
              HasSubstr("axis 0 stands twice"));
  EXPECT_THAT(refusal("in=float32[4,4] Slice@9(0){starts=[0],ends=[1],axes=[]}"), HasSubstr("0 axes"));
  EXPECT_THAT(refusal("in=float32[4,4] Pad(0,int64[4](1;1;1;1),_,int64[2](1;1))"),
              HasSubstr("axis 1 stands twice"));
  EXPECT_THAT(refusal("in=float32[1,1,4,4] Resize(0,_,float32[4](1;1;2;2),int64[4](1;1;8;8))"),
              HasSubstr("has scales and sizes"));
  EXPECT_THAT(refusal("in=float32[4] Split:0/2(0){num_outputs=3}"),
              HasSubstr("num_outputs is 3 beside 2 results"));
  EXPECT_THAT(refusal("in=float32[4] Einsum(0){equation=\"i->ii\"}"),
              HasSubstr("stands twice in the result"));
  EXPECT_THAT(refusal("in=float32[1,4,5,5],float32[4,3,2,2] ConvTranspose(0,1){kernel_shape=[3;2]}"),
              HasSubstr("kernel_shape is not that of the weights"));
  EXPECT_THAT(refusal("in=int8[2,3],float32[3],int8[1] DequantizeLinear(0,1,2)"),
              HasSubstr("expected one shape"));
}

}  // namespace
}  // namespace tuner::graph
