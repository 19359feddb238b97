// ONNX models as tasks: what a network's operators become, and how often.
#include "tuner/model/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/passes.h"
#include "tests/tuner/model/onnx_models.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_text.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using testing::Dims;
using ::testing::ElementsAre;
using testing::ModelBuilder;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Extraction = std::vector<ExtractedTask>;

// Weights are not there.
Extraction extract(const std::string& bytes, const ModelExtents& extents = {}) {
  Result<graph::Graph> graph =
      read_model(bytes, nullptr,
                 {.extents = extents, .constants = {}, .folder = "no_such_folder", .weights_may_miss = true},
                 model_evaluator());
  CHECK(graph.is_ok()) << graph.message();
  CHECK(optimize(*graph, model_evaluator()).is_ok());
  const Result<ModelSteps> steps = partition(*std::move(graph));
  CHECK(steps.is_ok()) << steps.message();
  Extraction out = extract_tasks(*steps);
  for (const ExtractedTask& t : out) {
    EXPECT_EQ(t.uses, std::ssize(t.nodes));
    EXPECT_TRUE(validate(t.workload).is_ok()) << t.workload.key();
  }
  return out;
}

std::vector<std::pair<std::string, int64_t> > keys(const Extraction& e) {
  std::vector<std::pair<std::string, int64_t> > out;
  for (const ExtractedTask& t : e) out.emplace_back(t.workload.key(), t.uses);
  return out;
}

TEST(Extract, ResNet50HasItsConvolutionsWithTheirUses) {
  const Extraction e = extract(testing::resnet50().SerializeAsString(), {.batch = 1, .named = {}});
  int64_t convolutions = 0, with_residual = 0;
  double flops = 0;
  for (const ExtractedTask& t : e)
    if (const auto* w = t.workload.get_if<Conv2dWorkload>()) {
      convolutions += t.uses;
      if (w->residual) with_residual += t.uses;
      flops += static_cast<double>(t.uses * t.workload.flops());
      EXPECT_TRUE(w->bias) << "every batch normalization is one";
    }
  EXPECT_EQ(convolutions, 53);
  EXPECT_EQ(with_residual, 16) << "a bottleneck has one sum";
  EXPECT_NEAR(flops / 1e9, 8.2, 0.1) << "4.1 billion multiplications and as many additions";
  // One of each kind, written out.
  const auto all = keys(e);
  EXPECT_THAT(
      all, ::testing::Contains(Pair("v1 conv2d n=1 ic=3 ih=224 iw=224 oc=64 kh=7 kw=7 stride=2,2 pad=3,3,3,3 "
                                    "dil=1,1 groups=1 bias=1 act=relu dtype=float32 layout=NCHW const=weight",
                                    1)));
  EXPECT_THAT(all, ::testing::Contains(
                       Pair("v1 conv2d n=1 ic=256 ih=14 iw=14 oc=256 kh=3 kw=3 stride=1,1 pad=1,1,1,1 "
                            "dil=1,1 groups=1 bias=1 act=relu dtype=float32 layout=NCHW const=weight",
                            5)));
  EXPECT_THAT(all, ::testing::Contains(Pair(
                       "v1 conv2d n=1 ic=256 ih=14 iw=14 oc=1024 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 "
                       "groups=1 bias=1 residual=1 act=relu dtype=float32 layout=NCHW const=weight",
                       5)));
  EXPECT_THAT(all,
              ::testing::Contains(Pair("v1 reduce rows=2048 columns=49 reduction=mean dtype=float32", 1)));
  EXPECT_THAT(
      all, ::testing::Contains(
               Pair("v1 matmul b=1 m=1 n=1000 k=2048 ta=0 tb=1 bias=1 act=none dtype=float32 const=b", 1)));
  EXPECT_THAT(all, ::testing::Contains(Pair("v1 softmax rows=1 columns=1000 dtype=float32", 1)));
}

// Every image of the network in another layout, where a template serves it so.
TEST(Extract, ImagesMayLieWithChannelsLast) {
  const auto laid_out = [](std::string_view layout, const char* target) -> Result<Extraction> {
    Result<graph::Graph> graph = read_model(testing::resnet50().SerializeAsString(), nullptr,
                                            {.extents = {.batch = 1, .named = {}},
                                             .constants = {},
                                             .folder = "no_such_folder",
                                             .weights_may_miss = true},
                                            model_evaluator());
    CHECK(graph.is_ok()) << graph.message();
    CHECK(optimize(*graph, model_evaluator()).is_ok());
    Result<ModelSteps> steps = partition(*std::move(graph));
    CHECK(steps.is_ok()) << steps.message();
    RETURN_IF_ERROR(lay_out_images(*steps, layout, *parse_target(target)));
    return extract_tasks(*steps);
  };
  for (const char* target : {"cuda -arch=sm_90a", "llvm -mcpu=znver4"}) {
    const Result<Extraction> e = laid_out("NHWC", target);
    ASSERT_TRUE(e.is_ok()) << e.message();
    int64_t convolutions = 0, pools = 0;
    for (const ExtractedTask& t : *e) {
      if (const auto* w = t.workload.get_if<Conv2dWorkload>()) {
        convolutions += t.uses;
        EXPECT_EQ(w->layout + w->out_layout, "NHWCNHWC");
      }
      if (const auto* w = t.workload.get_if<Pool2dWorkload>()) {
        pools += t.uses;
        EXPECT_EQ(w->layout, "NHWC");
      }
    }
    EXPECT_EQ(convolutions, 53) << target;
    EXPECT_EQ(pools, 1) << target;
  }
  EXPECT_THAT(
      laid_out("NCHW16c", "cuda -arch=sm_90a").status().message(),
      ::testing::MatchesRegex("step [^:]*: layout: NCHW16c needs a multiple of 16 input channels, found 3"));
  EXPECT_THAT(laid_out("CHWN", "cuda -arch=sm_90a").status().message(),
              ::testing::HasSubstr("layout: expected NCHW, NHWC, NCHW4c, NCHW8c or NCHW16c, found CHWN"));
}

TEST(Extract, AJobFileOfItReadsBackAsTheSameTasks) {
  const Extraction e = extract(testing::resnet50().SerializeAsString(), {.batch = 8, .named = {}});
  std::vector<JobTextEntry> entries;
  for (const ExtractedTask& t : e) entries.push_back({.workload = t.workload, .uses = t.uses, .trials = 64});
  const auto read = parse_job_text(job_text(entries), "tasks.json");
  ASSERT_TRUE(read.is_ok()) << read.message();
  ASSERT_EQ(read->size(), e.size());
  for (size_t i = 0; i < read->size(); ++i) {
    EXPECT_EQ((*read)[i].workload.key(), e[i].workload.key());
    EXPECT_EQ((*read)[i].uses, e[i].uses);
    EXPECT_EQ((*read)[i].trials, 64);
  }
}

// One layer of an encoder as PyTorch exports it: fused weights, batched products, masks, GELU written out.
TEST(Extract, AnEncoderLayerWithItsLayerNormalizationsWrittenOut) {
  ModelBuilder b(13);
  const int64_t s = 128, h = 768;
  const std::string x = b.input("x", {1, s, h}), mask = b.input("mask", {1, 1, 1, s});
  const auto linear = [&](const std::string& from, int64_t in, int64_t out) {
    return b.add("Add", {b.weight({out}), b.add("MatMul", {from, b.weight({in, out})})});
  };
  const auto heads = [&](const std::string& from, const Dims& perm) {
    return b.add("Transpose", {b.add("Reshape", {from, b.integers({1, s, 12, 64})})},
                 {.ints = {{"perm", perm}}});
  };
  const auto layer_norm = [&](const std::string& from) {
    const std::string d = b.add("Sub", {from, b.add("ReduceMean", {from}, {.ints = {{"axes", {-1}}}})});
    const std::string v = b.add("ReduceMean", {b.add("Pow", {d, b.scalar(2)})}, {.ints = {{"axes", {-1}}}});
    const std::string root = b.add("Sqrt", {b.add("Add", {v, b.scalar(1e-12F)})});
    return b.add("Add", {b.add("Mul", {b.add("Div", {d, root}), b.weight({h})}), b.weight({h})});
  };
  const std::string q = heads(linear(x, h, h), {0, 2, 1, 3}), k = heads(linear(x, h, h), {0, 2, 3, 1}),
                    v = heads(linear(x, h, h), {0, 2, 1, 3});
  const std::string scores = b.add("Add", {b.add("Div", {b.add("MatMul", {q, k}), b.scalar(8)}), mask});
  const std::string mixed = b.add("MatMul", {b.add("Softmax", {scores}, {.integer = {{"axis", -1}}}), v});
  const std::string joined = b.add(
      "Reshape", {b.add("Transpose", {mixed}, {.ints = {{"perm", {0, 2, 1, 3}}}}), b.integers({1, s, h})});
  const std::string attended = layer_norm(b.add("Add", {linear(joined, h, h), x}));
  const std::string wide = linear(attended, h, 4 * h);
  const std::string gelu =
      b.add("Mul",
            {b.add("Mul",
                   {wide, b.add("Add", {b.add("Erf", {b.add("Div", {wide, b.scalar(1.4F)})}), b.scalar(1)})}),
             b.scalar(0.5F)});
  b.output(layer_norm(b.add("Add", {linear(gelu, 4 * h, h), attended})));
  const Extraction e = extract(b.bytes());
  const std::string product = "ta=0 tb=0 bias=1 ";
  EXPECT_THAT(
      keys(e),
      UnorderedElementsAre(
          Pair("v1 layer_norm rows=128 columns=768 eps=1e-12 dtype=float32", 2),
          Pair("v1 matmul b=1 m=128 n=768 k=768 " + product + "act=none dtype=float32 const=b", 3),
          Pair("v1 matmul b=1 m=128 n=768 k=768 " + product + "residual=1 act=none dtype=float32 const=b", 1),
          Pair("v1 matmul b=1 m=128 n=3072 k=768 " + product + "act=none dtype=float32 const=b", 1),
          Pair("v1 matmul b=1 m=128 n=768 k=3072 " + product + "residual=1 act=none dtype=float32 const=b",
               1),
          // Heads are read where they lie; divided by 8; a mask of the keys.
          Pair("v1 attention b=1 h=12 g=12 i=128 s=128 d=64 e=64 scale=0.125 mask=1x1x1 q_layout=BSHD "
               "k_layout=BSHD v_layout=BSHD out_layout=BSHD dtype=float32",
               1),
          // Nearly a GELU: the root of 2 is another number here.
          Pair("v1 program in=float32[1,128,3072] Div(0,float32[](1.4)) Erf(1) Add(2,float32[](1)) Mul(0,3) "
               "Mul(4,float32[](0.5))",
               1)));
}

TEST(Extract, ConvolutionsOfEveryKind) {
  ModelBuilder b;
  std::string x = b.input("x", {1, 32, 28, 28});
  x = b.add("Relu", {b.conv(x, 32, 32, 3, 2, /*groups=*/32, /*bias=*/true)});
  x = b.add("Clip", {b.conv(x, 32, 64, 1), b.scalar(0), b.scalar(6)});
  const std::string padded = b.add("Pad", {x, b.integers({0, 0, 0, 0, 0, 0, 1, 1})});
  x = b.add("Conv", {padded, b.weight({64, 64, 3, 3})},
            {.ints = {{"strides", {2, 2}}, {"dilations", {1, 1}}}});
  b.output(b.add("Conv", {x, b.weight({8, 64, 3, 2})}, {.word = {{"auto_pad", "SAME_UPPER"}}}));
  const Extraction e = extract(b.bytes());
  EXPECT_THAT(
      keys(e),
      ElementsAre(
          Pair("v1 conv2d n=1 ic=32 ih=28 iw=28 oc=32 kh=3 kw=3 stride=2,2 pad=1,1,1,1 dil=1,1 groups=32 "
               "bias=1 act=relu dtype=float32 layout=NCHW const=weight",
               1),
          Pair("v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 "
               "bias=0 act=clip:0:6 dtype=float32 layout=NCHW const=weight",
               1),
          Pair("v1 conv2d n=1 ic=64 ih=14 iw=14 oc=64 kh=3 kw=3 stride=2,2 pad=0,0,1,1 dil=1,1 groups=1 "
               "bias=0 act=none dtype=float32 layout=NCHW const=weight",
               1),
          Pair("v1 conv2d n=1 ic=64 ih=7 iw=7 oc=8 kh=3 kw=2 stride=1,1 pad=1,0,1,1 dil=1,1 groups=1 "
               "bias=0 act=none dtype=float32 layout=NCHW const=weight",
               1)));
}

TEST(Extract, AResidualIsTakenOnceAndASharedResultIsNot) {
  ModelBuilder b;
  const std::string x = b.input("x", {1, 16, 8, 8});
  const std::string first = b.conv(x, 16, 16, 3), second = b.conv(x, 16, 16, 1);
  const std::string sum = b.add("Add", {first, second});
  const std::string shared = b.conv(sum, 16, 16, 1);
  b.output(b.add("Add", {b.add("Relu", {shared}), shared}));
  const Extraction e = extract(b.bytes());
  ASSERT_EQ(e.size(), 4u) << ::testing::PrintToString(keys(e));
  EXPECT_FALSE(e[0].workload.get_if<Conv2dWorkload>()->residual) << "the later one takes the sum";
  EXPECT_TRUE(e[1].workload.get_if<Conv2dWorkload>()->residual);
  EXPECT_FALSE(e[2].workload.get_if<Conv2dWorkload>()->residual) << "two operators read it";
  EXPECT_EQ(e[2].uses, 1);
  EXPECT_EQ(e[3].workload.key(), "v1 program in=float32[1,16,8,8] Relu(0) Add(1,0)");
}

TEST(Extract, TransposesOfTheRightOperandAreTheProductsToRead) {
  ModelBuilder b;
  const std::string a = b.input("a", {4, 32, 64}), c = b.input("c", {4, 48, 64});
  const std::string turned = b.add("Transpose", {c}, {.ints = {{"perm", {0, 2, 1}}}});
  b.output(b.add("MatMul", {a, turned}));
  b.output(b.add("Transpose", {b.input("d", {1, 96, 1, 50})}, {.ints = {{"perm", {0, 3, 2, 1}}}}));
  b.output(b.add("Transpose", {b.input("e", {5, 96, 50})}, {.ints = {{"perm", {0, 2, 1}}}}));
  b.output(b.add("Transpose", {b.input("f", {1, 96, 50})}, {.ints = {{"perm", {1, 0, 2}}}}));
  const Extraction e = extract(b.bytes());
  EXPECT_THAT(
      keys(e),
      ElementsAre(Pair("v1 matmul b=4 m=32 n=48 k=64 ta=0 tb=1 bias=0 act=none dtype=float32 const=none", 1),
                  Pair("v1 transpose rows=96 columns=50 dtype=float32", 1),
                  Pair("v1 program in=float32[5,96,50] Transpose(0){perm=[0;2;1]}", 1),
                  // Nothing moves, but a result has memory of its own.
                  Pair("v1 program in=float32[96,1,50] Identity(0)", 1)));
}

// Alpha and beta are in the weights and the bias, or in the epilogue: no step of their own.
TEST(Extract, FactorsOfGemmAreNoStep) {
  ModelBuilder b;
  const std::string x = b.input("x", {8, 64}), y = b.input("y", {64, 32}), z = b.input("z", {8, 32});
  b.output(b.add("Relu", {b.add("Gemm", {x, b.weight({64, 16}), b.weight({16})},
                                {.number = {{"alpha", 0.5F}, {"beta", 2.0F}}})}));
  b.output(b.add("Gemm", {x, y}, {.number = {{"alpha", 0.5F}}}));
  b.output(
      b.add("Relu", {b.add("Gemm", {x, y, b.weight({32})}, {.number = {{"alpha", 0.25F}, {"beta", 2.0F}}})}));
  b.output(b.add("Gemm", {x, y, z}, {.number = {{"alpha", 3.0F}}}));
  const std::string product = "v1 matmul b=1 m=8 n=32 k=64 ta=0 tb=0 bias=";
  EXPECT_THAT(
      keys(extract(b.bytes())),
      ElementsAre(Pair("v1 matmul b=1 m=8 n=16 k=64 ta=0 tb=0 bias=1 act=relu dtype=float32 const=b", 1),
                  Pair(product + "0 scale=1 act=none dtype=float32 const=none", 1),
                  Pair(product + "1 scale=1 act=relu post=scale,bias,activation dtype=float32 const=none", 1),
                  Pair(product + "0 scale=1 residual=1 act=none dtype=float32 const=none", 1)));
}

TEST(Extract, PoolsReductionsAndSoftmaxAlongTheLastAxes) {
  ModelBuilder b(18);
  const std::string x = b.input("x", {2, 16, 13, 13});
  b.output(b.add("MaxPool", {x},
                 {.ints = {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}, .integer = {{"ceil_mode", 1}}}));
  b.output(b.add(
      "AveragePool", {x},
      {.ints = {{"kernel_shape", {2, 2}}, {"pads", {1, 1, 0, 0}}}, .integer = {{"count_include_pad", 1}}}));
  b.output(b.add("MaxPool", {x}, {.ints = {{"kernel_shape", {3, 3}}, {"dilations", {2, 2}}}}));
  b.output(b.add("ReduceMean", {x, b.integers({2, 3})}, {.integer = {{"keepdims", 0}}}));
  b.output(b.add("ReduceMax", {x, b.integers({1})}));
  b.output(b.add("Softmax", {x}, {.integer = {{"axis", 1}}}));
  b.output(
      b.add("LayerNormalization", {x, b.weight({13}), b.weight({13})}, {.number = {{"epsilon", 1e-6F}}}));
  const Extraction e = extract(b.bytes());
  EXPECT_THAT(
      keys(e),
      ElementsAre(
          Pair("v1 pool2d n=2 c=16 ih=13 iw=13 kh=3 kw=3 stride=2,2 pad=0,0,0,0 pooling=max dtype=float32 "
               "layout=NCHW",
               1),
          Pair("v1 pool2d n=2 c=16 ih=13 iw=13 kh=2 kw=2 stride=1,1 pad=1,1,0,0 pooling=average "
               "include_pad=1 dtype=float32 layout=NCHW",
               1),
          Pair("v1 program in=float32[2,16,13,13] MaxPool(0){dilations=[2;2],kernel_shape=[3;3]}", 1),
          Pair("v1 reduce rows=32 columns=169 reduction=mean dtype=float32", 1),
          Pair("v1 program in=float32[2,16,13,13] ReduceMax(0,int64[1](1))", 1),
          Pair("v1 program in=float32[2,16,13,13] Softmax(0){axis=1}", 1),
          Pair("v1 layer_norm rows=416 columns=13 eps=1e-06 dtype=float32", 1)));
}

// x.view(x.size(0), -1) as exporters write it: the new shape is computed from the old one.
TEST(Extract, ShapesThatAreComputedFromShapesAreFollowed) {
  ModelBuilder b(13);
  const std::string x = b.input("x", {-1, 16, 4, 4});
  const std::string zero = b.model().mutable_graph()->add_initializer()->mutable_name()->assign("zero");
  auto& index = *b.model().mutable_graph()->mutable_initializer(0);
  index.set_data_type(onnx::TensorProto::INT64);
  index.add_int64_data(0);
  const std::string batch = b.add("Gather", {b.add("Shape", {x}), zero}, {.integer = {{"axis", 0}}});
  const std::string shape = b.add("Concat", {b.add("Unsqueeze", {batch, b.integers({0})}), b.integers({-1})},
                                  {.integer = {{"axis", 0}}});
  b.output(b.add("Gemm", {b.add("Reshape", {x, shape}), b.weight({256, 10})}));
  const Extraction e = extract(b.bytes(), {.batch = 3, .named = {}});
  EXPECT_THAT(
      keys(e),
      ElementsAre(Pair("v1 matmul b=1 m=3 n=10 k=256 ta=0 tb=0 bias=0 act=none dtype=float32 const=b", 1)));
}

}  // namespace
}  // namespace tuner
