// Workloads: the key text both ways, the checks, the counts.
#include "templates/workload/workload.h"
#include "templates/workload/needed_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "templates/workload/tolerance.h"
#include "tests/random_seed.h"
#include "tests/templates/random_epilogue.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

Conv2dWorkload resnet_last() {
  Conv2dWorkload w;
  w.in_channels = w.out_channels = 512;
  w.in_height = w.in_width = 7;
  w.kernel_height = w.kernel_width = 3;
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"weight"};
  return w;
}

TEST(WorkloadKey, IsCanonicalText) {
  EXPECT_EQ(Workload(resnet_last()).key(),
            "v1 conv2d n=1 ic=512 ih=7 iw=7 oc=512 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu "
            "dtype=float32 layout=NCHW const=weight");
  MatmulWorkload m;
  m.m = m.n = m.k = 1024;
  EXPECT_EQ(Workload(m).key(),
            "v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
  m.dtype = DType::kInt8;
  EXPECT_EQ(Workload(m).key(),
            "v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=int8 const=none");
  m.narrow_out = DType::kUInt8;
  EXPECT_EQ(
      Workload(m).key(),
      "v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=int8 out_dtype=uint8 const=none");
  MatmulWorkload sum{.m = 2, .n = 3, .k = 4, .accumulate = true};
  EXPECT_EQ(Workload(sum).key(),
            "v1 matmul b=1 m=2 n=3 k=4 ta=0 tb=0 bias=0 accumulate=1 act=none dtype=float32 const=none");
  EXPECT_EQ(workload_from_key(Workload(sum).key())->key(), Workload(sum).key());
  Conv2dWorkload brain = resnet_last();
  brain.dtype = DType::kBFloat16;
  brain.narrow_out = DType::kBFloat16;
  EXPECT_THAT(Workload(brain).key(), HasSubstr(" dtype=bfloat16 out_dtype=bfloat16 layout=NCHW const"));
  Pool2dWorkload pool;
  pool.channels = 64;
  pool.in_height = pool.in_width = 112;
  pool.kernel_height = pool.kernel_width = 3;
  pool.stride = {2, 2};
  pool.padding = {1, 1, 1, 1};
  EXPECT_EQ(Workload(pool).key(),
            "v1 pool2d n=1 c=64 ih=112 iw=112 kh=3 kw=3 stride=2,2 pad=1,1,1,1 pooling=max dtype=float32 "
            "layout=NCHW");
  pool.pooling = Pooling::kAverage;
  pool.count_include_pad = true;
  EXPECT_THAT(Workload(pool).key(), HasSubstr("pooling=average include_pad=1 dtype"));
  EXPECT_EQ(Workload(SoftmaxWorkload{7, 13}).key(), "v1 softmax rows=7 columns=13 dtype=float32");
  EXPECT_EQ(Workload(LayerNormWorkload{7, 13}).key(),
            "v1 layer_norm rows=7 columns=13 eps=1e-05 dtype=float32");
  EXPECT_EQ(Workload(ReduceWorkload{7, 13, RowReduction::kMean}).key(),
            "v1 reduce rows=7 columns=13 reduction=mean dtype=float32");
  EXPECT_EQ(Workload(TransposeWorkload{7, 13}).key(), "v1 transpose rows=7 columns=13 dtype=float32");
  EXPECT_EQ(Workload(ElementwiseWorkload{.rows = 7, .columns = 13, .scale = true, .residual = true}).key(),
            "v1 elementwise rows=7 columns=13 scale=1 bias=0 residual=1 act=none dtype=float32");
}

TEST(WorkloadKey, ReadsBack) {
  Conv2dWorkload c = resnet_last();
  c.stride = {3, 2};
  c.padding = {0, 1, 2, 3};
  c.dilation = {2, 1};
  c.groups = 4;
  c.constant = {"bias", "weight"};
  MatmulWorkload m;
  m.batch = 3;
  m.m = 7;
  m.n = 13;
  m.k = 29;
  m.transpose_a = m.transpose_b = m.bias = true;
  m.activation = Activation::kRelu;
  m.constant = {"b"};
  std::vector<Workload> all = {c,
                               m,
                               resnet_last(),
                               MatmulWorkload{},
                               SoftmaxWorkload{7, 13},
                               LayerNormWorkload{.rows = 7, .columns = 13, .epsilon = 0.1},
                               TransposeWorkload{7, 13},
                               ElementwiseWorkload{7, 13, true, false, true, Activation::kRelu}};
  for (const Pooling p : {Pooling::kMax, Pooling::kAverage}) {
    Pool2dWorkload pool{.batch = 2, .channels = 8, .in_height = 5, .in_width = 6, .kernel_height = 2};
    pool.pooling = p;
    pool.count_include_pad = p == Pooling::kAverage;
    pool.layout = "NCHW8c";
    all.emplace_back(pool);
  }
  for (const RowReduction r :
       {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin, RowReduction::kMean})
    all.emplace_back(ReduceWorkload{7, 13, r});
  for (const Workload& w : all) {
    const Result<Workload> back = workload_from_key(w.key());
    ASSERT_TRUE(back.is_ok()) << back.message();
    EXPECT_EQ(back->key(), w.key());
    EXPECT_EQ(back->flops(), w.flops());
    EXPECT_EQ(back->bytes(), w.bytes());
    EXPECT_EQ(back->op_name(), w.op_name());
  }
}

// Whatever differs in two workloads differs in their keys, and comes back from them.
TEST(WorkloadKey, EveryFieldIsTold) {
  std::set<std::string> keys;
  size_t count = 0;
  const auto add = [&](const Workload& w) {
    ASSERT_TRUE(validate(w).is_ok()) << validate(w).message();
    EXPECT_TRUE(keys.insert(w.key()).second) << w.key() << " is the key of two workloads";
    EXPECT_EQ(workload_from_key(w.key())->key(), w.key());
    ++count;
  };
  Conv2dWorkload conv = resnet_last();
  conv.kernel_height = conv.kernel_width = 2;
  add(conv);
  for (void (*change)(Conv2dWorkload&) : std::initializer_list<void (*)(Conv2dWorkload&)>{
           [](auto& w) { w.batch = 2; },
           [](auto& w) { w.in_channels = 256; },
           [](auto& w) { w.in_height = 8; },
           [](auto& w) { w.in_width = 8; },
           [](auto& w) { w.out_channels = 256; },
           [](auto& w) { w.kernel_height = 3; },
           [](auto& w) { w.kernel_width = 3; },
           [](auto& w) { w.stride[0] = 2; },
           [](auto& w) { w.stride[1] = 2; },
           [](auto& w) { w.padding[0] = 2; },
           [](auto& w) { w.padding[1] = 2; },
           [](auto& w) { w.padding[2] = 2; },
           [](auto& w) { w.padding[3] = 2; },
           [](auto& w) { w.dilation[0] = 2; },
           [](auto& w) { w.dilation[1] = 2; },
           [](auto& w) { w.groups = 2; },
           [](auto& w) { w.bias = false; },
           [](auto& w) { w.scale = true; },
           [](auto& w) { w.residual = true; },
           [](auto& w) { w.accumulate = true; },
           [](auto& w) { w.activation = Activation::kSilu; },
           [](auto& w) { w.activation = Activation::clip(0, 6.1252F); },
           [](auto& w) { w.activation = Activation::clip(0, 6.1251F); },
           [](auto& w) { w.activation = Activation::leaky(0.1F); },
           [](auto& w) { w.dtype = DType::kBFloat16; },
           [](auto& w) { w.dtype = DType::kFloat16; },
           [](auto& w) { w.dtype = DType::kFloat16, w.narrow_out = DType::kFloat16; },
           [](auto& w) { w.allow_tf32 = true; },
           [](auto& w) { w.layout = "NCHW8c"; },
           [](auto& w) { w.out_layout = "NCHW8c"; },
           [](auto& w) { w.constant = {}; },
           [](auto& w) {
             w.constant = {"bias", "weight"};
           }}) {
    Conv2dWorkload changed = conv;
    change(changed);
    add(changed);
  }
  for (const double epsilon : {1e-5, 1.23451e-5, 1.23452e-5, 0.1}) add(LayerNormWorkload{7, 13, epsilon});
  for (const int64_t rows : {7, 8}) add(SoftmaxWorkload{rows, 14});
  EXPECT_EQ(keys.size(), count);
}

// Keys that databases hold, as literal text: each reads as what it always said, and is written as it was.
TEST(WorkloadKey, OldKeysStayGood) {
  for (const std::string_view key :
       {"v1 conv2d n=1 ic=64 ih=56 iw=56 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
        "residual=1 "
        "act=relu dtype=float32 layout=NCHW16c const=weight",
        "v1 conv2d n=1 ic=8 ih=9 iw=9 oc=8 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=8 bias=1 "
        "act=clip:0:6 "
        "dtype=float32 layout=NCHW const=weight",
        "v1 conv2d n=1 ic=4 ih=9 iw=9 oc=8 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 bias=1 "
        "residual=last "
        "act=silu dtype=float32 layout=NCHW out_layout=NCHW8c const=weight",
        "v1 conv2d n=1 ic=16 ih=9 iw=9 oc=8 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 bias=1 "
        "residual=1 "
        "act=relu dtype=int8 out_dtype=uint8 layout=NCHW const=weight",
        "v1 conv2d n=1 ic=16 ih=9 iw=9 oc=8 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 bias=1 "
        "act=relu dtype=float16 layout=NHWC const=weight",
        "v1 matmul b=1 m=1 n=3 k=4 ta=0 tb=0 bias=0 act=none dtype=float32 allow_tf32=1 const=none",
        "v1 matmul b=1 m=1 n=3 k=4 ta=0 tb=1 bias=0 accumulate=1 act=none dtype=float32 const=none",
        "v1 matmul b=1 m=1 n=3 k=4 ta=0 tb=0 bias=0 residual=last act=leaky:0.1 dtype=float32 const=b",
        "v1 matmul b=12 m=1 n=3 k=4 ta=0 tb=0 bias=1 act=gelu_tanh dtype=bfloat16 out_dtype=bfloat16 "
        "const=b,bias",
        "v1 elementwise rows=7 columns=13 scale=1 bias=0 residual=1 act=hard_swish dtype=float32"}) {
    const Result<Workload> read = workload_from_key(key);
    ASSERT_TRUE(read.is_ok()) << read.message();
    EXPECT_EQ(read->key(), key);
  }
  const Workload last = *workload_from_key(
      "v1 matmul b=1 m=1 n=3 k=4 ta=0 tb=0 bias=1 residual=last act=silu dtype=float32 const=b");
  EXPECT_EQ(epilogue_parts(*last.get_if<MatmulWorkload>()),
            (std::vector{EpiloguePart::kBias, EpiloguePart::kActivation, EpiloguePart::kResidual}));
}

TEST(WorkloadKey, ScalesAndOrdersAreToldWhereTheyAreNotTheUsual) {
  using enum EpiloguePart;
  MatmulWorkload w{.m = 2, .n = 3, .k = 4, .bias = true, .scale = true};
  w.activation = Activation::kRelu;
  EXPECT_EQ(Workload(w).key(),
            "v1 matmul b=1 m=2 n=3 k=4 ta=0 tb=0 bias=1 scale=1 act=relu dtype=float32 const=none");
  set_order(w, {kScale, kBias, kActivation});
  EXPECT_EQ(
      Workload(w).key(),
      "v1 matmul b=1 m=2 n=3 k=4 ta=0 tb=0 bias=1 scale=1 act=relu post=scale,bias,activation dtype=float32 "
      "const=none");
  w.residual = true;
  set_order(w, {kBias, kScale, kActivation, kResidual});
  EXPECT_THAT(Workload(w).key(), HasSubstr("bias=1 scale=1 residual=last act=relu dtype"));
  set_order(w, {kScale, kBias, kActivation, kResidual});
  EXPECT_THAT(Workload(w).key(), HasSubstr("residual=1 act=relu post=scale,bias,activation,residual dtype"));
  w.residual = false;
  w.accumulate = true;
  EXPECT_THAT(Workload(w).key(),
              HasSubstr("accumulate=1 act=relu post=scale,bias,activation,residual dtype"));
  // Sums beside each other have one order.
  set_order(w, {kScale, kActivation, kResidual, kBias});
  EXPECT_THAT(Workload(w).key(), HasSubstr("post=scale,activation,bias,residual dtype"));
  set_order(w, {kBias, kScale, kResidual, kActivation});
  EXPECT_EQ(w.post, std::vector<EpiloguePart>());
}

// Any epilogue that can be had reads back from its key.
TEST(WorkloadKey, EveryEpilogueReadsBack) {
  std::set<std::string> orders;
  for (const uint32_t seed : Seeds(/*fixed=*/700, /*rounds=*/4000)) {
    std::mt19937_64 random(seed);
    constexpr DType kTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt8};
    Conv2dWorkload w = resnet_last();
    w.dtype = kTypes[random() % 3];
    if (w.dtype == DType::kInt8 && random() % 2 == 0) w.narrow_out = DType::kInt8;
    testing::draw_epilogue(w, testing::kActivations[random() % std::size(testing::kActivations)],
                           /*in_place=*/true, random);
    if (!validate(w)) continue;  // int8 takes few activations
    const std::string key = Workload(w).key();
    const Result<Workload> back = workload_from_key(key);
    ASSERT_TRUE(back.is_ok()) << back.message();
    ASSERT_EQ(back->key(), key);
    ASSERT_EQ(epilogue_parts(*back->get_if<Conv2dWorkload>()), epilogue_parts(w)) << key;
    std::string order;
    for (const EpiloguePart part : epilogue_parts(w)) order += epilogue_part_name(part).substr(0, 1);
    orders.insert(order);
  }
  // Of the 24 orders of four parts, 6 name a residual and a bias beside each other the other way round; of
  // three parts with both, 2 of 6.
  EXPECT_EQ(std::ranges::count(orders, 4U, &std::string::size), 18);
}

TEST(WorkloadKey, WrongEpiloguesAreRefused) {
  const auto why = [](const std::string& words, const std::string& type = "float32") {
    return workload_from_key(
               str("v1 matmul b=1 m=1 n=3 k=4 ta=0 tb=0 ", words, " dtype=", type, " const=none"))
        .message();
  };
  EXPECT_THAT(why("bias=0 act=swish"),
              HasSubstr("act: expected an activation such as none, relu, silu, clip:0:6 or "
                        "leaky:0.1, found \"swish\""));
  for (const char* text :
       {"clip", "clip:6:0", "clip:0", "clip:0:6:7", "leaky", "leaky:nan", "leaky:0.10", "relu:1", "inf"})
    EXPECT_THAT(why(str("bias=0 act=", text)), HasSubstr("act: expected an activation")) << text;
  EXPECT_THAT(why("bias=0 scale=2 act=none"), HasSubstr("scale: expected 0 or 1, found \"2\""));
  EXPECT_THAT(why("bias=0 scale=0 act=none"),
              HasSubstr("scale: expected the word to be left out when it says"));
  EXPECT_THAT(why("bias=0 residual=first act=none"),
              HasSubstr("residual: expected 1 or last, found \"first\""));
  EXPECT_THAT(
      why("bias=1 act=relu post=bias,act"),
      HasSubstr("post: expected bias, scale, residual or activation, between commas, found \"bias,act\""));
  EXPECT_THAT(
      why("bias=1 act=relu post=bias,activation"),
      HasSubstr("post: expected none for what the usual order says, bias,activation; found bias,activation"));
  EXPECT_THAT(
      why("bias=1 residual=last act=none"),
      HasSubstr("post: expected none for what the usual order says, bias,residual; found bias,residual"));
  EXPECT_THAT(
      why("bias=1 residual=1 act=relu post=activation,residual,bias"),
      HasSubstr(
          "post: expected activation,bias,residual, which says the same; found activation,residual,bias"));
  EXPECT_THAT(
      why("bias=1 act=relu post=activation,bias,scale"),
      HasSubstr(
          "post: expected the parts there are, each once (bias,activation), found activation,bias,scale"));
  EXPECT_THAT(why("bias=1 act=relu post=activation,activation"), HasSubstr("each once (bias,activation)"));
  EXPECT_THAT(why("bias=1 residual=last act=relu post=activation,bias"), HasSubstr("matmul has no post"));
  EXPECT_THAT(why("bias=1 scale=1 act=relu", "int8"), HasSubstr("scale: expected none for int8"));
  EXPECT_THAT(why("bias=1 scale=1 act=relu", "int8 out_dtype=uint8"),
              HasSubstr("scale: expected none for int8, which has one where out has 8 bits"));
  EXPECT_THAT(why("bias=1 act=relu post=activation,bias", "int8 out_dtype=uint8"),
              HasSubstr("post: expected none with out_dtype uint8, found activation,bias"));
  EXPECT_THAT(why("bias=1 act=silu", "int8"),
              HasSubstr("activation: expected none or relu with out_dtype int32"));
}

TEST(WorkloadKey, RefusesWhatItDoesNotKnow) {
  const std::string good = Workload(MatmulWorkload{}).key();
  const auto why = [](const std::string& key) { return workload_from_key(key).message(); };
  EXPECT_THAT(why("v2" + good.substr(2)), HasSubstr("expected to start with \"v1\", found \"v2\""));
  EXPECT_THAT(why("v1 gemv m=1"), HasSubstr(str("expected one of ", operator_names(), ", found \"gemv\"")));
  EXPECT_THAT(operator_names(), HasSubstr("matmul, matmul_nbits, conv2d, "));
  EXPECT_THAT(why("v1 softmax rows=1 columns=1 dtype=float32 eps=1"), HasSubstr("softmax has no eps"));
  EXPECT_THAT(why("v1 layer_norm rows=1 columns=1 eps=small dtype=float32"),
              HasSubstr("eps: expected a number, found \"small\""));
  for (const char* eps : {"nan", "inf", "-1", "0", "1e-30"})
    EXPECT_THAT(why(str("v1 layer_norm rows=1 columns=1 eps=", eps, " dtype=float32")),
                HasSubstr("epsilon: expected a number from 1e-12 to 1, found"));
  EXPECT_THAT(why("v1 reduce rows=1 columns=1 reduction=median dtype=float32"),
              HasSubstr("reduction: expected sum, max, min or mean, found \"median\""));
  EXPECT_THAT(why(good + " x=1"), HasSubstr("matmul has no x"));
  EXPECT_THAT(why(good + " m=1"), HasSubstr("m is given twice"));
  EXPECT_THAT(why("v1 matmul b=1 m=1"), HasSubstr("n is missing"));
  std::string bad = good;
  EXPECT_THAT(why(bad.replace(bad.find("ta=0"), 4, "ta=2")), HasSubstr("ta: expected 0 or 1, found \"2\""));
  bad = good;
  EXPECT_THAT(why(bad.replace(bad.find("m=1"), 3, "m=0")),
              HasSubstr("m (rows of a): expected an integer from 1"));
}

TEST(WorkloadValidate, NamesTheKeyTheFoundAndTheExpected) {
  const auto why = [](const std::function<void(Conv2dWorkload&)>& change) {
    Conv2dWorkload w = resnet_last();
    change(w);
    return validate(w).message();
  };
  EXPECT_EQ(why([](auto&) {}), "");
  EXPECT_EQ(why([](auto& w) { w.stride[0] = 0; }),
            "stride[0] (vertical): expected an integer from 1 to 2^31, found 0");
  EXPECT_EQ(why([](auto& w) { w.padding[3] = -1; }),
            "padding[3] (right): expected an integer from 0 to 2^31, found -1");
  EXPECT_EQ(why([](auto& w) { w.groups = 3; }),
            "groups: expected a divisor of the 512 input channels, found 3");
  EXPECT_EQ(why([](auto& w) { w.groups = 64, w.out_channels = 96; }),
            "groups: expected a divisor of the 96 output channels, found 64");
  EXPECT_EQ(why([](auto& w) { w.kernel_height = 10; }),
            "data[2] (height): 9 with padding, expected at least 10 for a kernel of 10 rows at dilation 1");
  EXPECT_EQ(why([](auto& w) { w.dilation[1] = 5; }),
            "data[3] (width): 9 with padding, expected at least 11 for a kernel of 3 columns at dilation 5");
  EXPECT_EQ(why([](auto& w) { w.layout = "CHWN"; }),
            "layout: expected NCHW, NHWC, NCHW4c, NCHW8c or NCHW16c, found CHWN");
  EXPECT_EQ(why([](auto& w) { w.layout = w.out_layout = "NHWC"; }), "");
  EXPECT_EQ(why([](auto& w) { w.dtype = DType::kUInt8; }),
            "dtype: expected float32, bfloat16, float16 or int8, found uint8");
  EXPECT_EQ(why([](auto& w) { w.allow_tf32 = true; }), "");
  EXPECT_EQ(why([](auto& w) {
              w.allow_tf32 = true;
              w.dtype = DType::kBFloat16;
            }),
            "allow_tf32: expected only with float32, found bfloat16");
  EXPECT_EQ(why([](auto& w) { w.constant = {"wieght"}; }),
            "constant: expected names of operands (data, weight, bias), found \"wieght\"");
  EXPECT_EQ(why([](auto& w) {
              w.constant = {"weight", "bias"};
            }),
            "constant: expected each operand once, in alphabetical order, found weight,bias");
  EXPECT_EQ(why([](auto& w) {
              w.constant = {"weight", "weight"};
            }),
            "constant: expected each operand once, in alphabetical order, found weight,weight");
  EXPECT_EQ(why([](auto& w) { w.in_height = w.in_width = 1 << 20; }),
            "data: expected fewer than 2^40 bytes, the shape asks for more");
  EXPECT_THAT(why([](auto& w) { w.in_height = INT64_MAX; }), HasSubstr("data[2] (height)"));
}

TEST(WorkloadValidate, RefusesCountsThatOverflow) {
  MatmulWorkload w;
  w.batch = 1;
  w.m = w.n = 1 << 18;
  w.k = 1 << 18;
  EXPECT_TRUE(validate(w).is_ok());
  EXPECT_EQ(Workload(w).flops(), int64_t{1} << 55);
  w.m = w.n = int64_t{1} << 31;
  w.k = 1;
  EXPECT_THAT(validate(w).message(), HasSubstr("out: expected fewer than 2^40 bytes"));
  w.bias = false;
  w.m = w.n = w.k = 1;
  w.constant = {"bias"};
  EXPECT_THAT(validate(w).message(), HasSubstr("constant: expected names of operands (a, b)"));
}

TEST(WorkloadValidate, ProductsAreOfFourTypes) {
  MatmulWorkload w;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8}) {
    w.dtype = dtype;
    EXPECT_TRUE(validate(w).is_ok()) << dtype;
  }
  w.k = 1 << 16;
  EXPECT_TRUE(validate(w).is_ok());
  w.k += 1;
  EXPECT_EQ(
      validate(w).message(),
      "k (columns of a): expected at most 65536 for int8, found 65537; sums of more products overflow int32");
  w.dtype = DType::kFloat64;
  EXPECT_EQ(validate(w).message(), "dtype: expected float32, bfloat16, float16 or int8, found float64");
}

TEST(WorkloadValidate, OutHasATypeThatTheSumsBecome) {
  MatmulWorkload w;
  w.narrow_out = DType::kBFloat16;
  EXPECT_EQ(validate(w).message(), "out_dtype: expected one of float32 for float32, found bfloat16");
  w.dtype = DType::kBFloat16;
  EXPECT_TRUE(validate(w).is_ok());
  w.dtype = DType::kInt8;
  EXPECT_EQ(validate(w).message(), "out_dtype: expected one of int32, uint8, int8 for int8, found bfloat16");
  w.narrow_out = DType::kInt8;
  EXPECT_TRUE(validate(w).is_ok());
  w.residual = true;
  EXPECT_TRUE(validate(w).is_ok());
  w.accumulate = true;
  EXPECT_EQ(validate(w).message(), "accumulate: expected one of residual and accumulate, found both");
  w.residual = false;
  EXPECT_EQ(validate(w).message(),
            "accumulate: expected none with out_dtype int8, where a residual lies apart (residual)");
}

TEST(WorkloadValidate, Int8SumsOfAConvolutionFitInt32) {
  Conv2dWorkload w = resnet_last();
  w.dtype = DType::kInt8;
  EXPECT_TRUE(validate(w).is_ok());
  w.in_channels = 8192;
  EXPECT_EQ(
      validate(w).message(),
      "terms of a sum: expected at most 65536 for int8, found 73728; sums of more products overflow int32");
}

TEST(Workload, TypesOfAProductFollowFromTwo) {
  const auto types = [](auto w, DType dtype, std::optional<DType> out) {
    w.dtype = dtype;
    w.narrow_out = out;
    w.bias = true;
    w.residual = true;
    std::string found;
    for (const Buffer& b : Workload(w).compute().args) found += str(b->name, " ", b->dtype, ", ");
    return found;
  };
  const MatmulWorkload m;
  EXPECT_EQ(types(m, DType::kBFloat16, {}),
            "a bfloat16, b bfloat16, bias float32, residual float32, out float32, ");
  EXPECT_EQ(types(m, DType::kBFloat16, DType::kBFloat16),
            "a bfloat16, b bfloat16, bias float32, residual bfloat16, out bfloat16, ");
  EXPECT_EQ(types(m, DType::kFloat16, DType::kFloat16),
            "a float16, b float16, bias float32, residual float16, out float16, ");
  EXPECT_EQ(types(m, DType::kInt8, {}), "a uint8, b int8, bias int32, residual int32, out int32, ");
  EXPECT_EQ(
      types(m, DType::kInt8, DType::kUInt8),
      "a uint8, b int8, bias int32, residual uint8, scale float32, zero_point uint8, residual_scale float32, "
      "residual_zero_point uint8, out uint8, ");
  const Conv2dWorkload c;
  EXPECT_EQ(types(c, DType::kFloat32, {}),
            "data float32, weight float32, bias float32, residual float32, out float32, ");
  EXPECT_EQ(types(c, DType::kBFloat16, DType::kBFloat16),
            "data bfloat16, weight bfloat16, bias float32, residual bfloat16, out bfloat16, ");
  EXPECT_EQ(types(c, DType::kInt8, DType::kInt8),
            "data uint8, weight int8, bias int32, residual int8, scale float32, zero_point int8, "
            "residual_scale float32, residual_zero_point int8, out int8, ");
}

// Against a count of the taps inside, one by one.
TEST(NeededFlops, LeaveOutThePadding) {
  MatmulWorkload m;
  m.m = 3, m.n = 5, m.k = 7;
  EXPECT_EQ(needed_flops(m), Workload(m).flops());
  for (int form = 0; form < 64; ++form) {
    Conv2dWorkload w;
    w.batch = 2, w.in_channels = 6, w.out_channels = 4, w.groups = 2;
    w.in_height = 5 + form % 3, w.in_width = 9;
    w.kernel_height = 1 + form % 4, w.kernel_width = 3;
    w.stride = {1 + form / 4 % 2, 1 + form / 8 % 3};
    w.dilation = {1, 1 + form / 16 % 2};
    w.padding = {form % 3, form / 32 * 5, 1, 4};
    ASSERT_TRUE(validate(w).is_ok());
    int64_t products = 0;
    for (int64_t oh = 0; oh < w.out_height(); ++oh)
      for (int64_t ow = 0; ow < w.out_width(); ++ow)
        for (int64_t kh = 0; kh < w.kernel_height; ++kh)
          for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
            const int64_t row = oh * w.stride[0] + kh * w.dilation[0] - w.padding[0],
                          column = ow * w.stride[1] + kw * w.dilation[1] - w.padding[1];
            products += row >= 0 && row < w.in_height && column >= 0 && column < w.in_width;
          }
    EXPECT_EQ(needed_flops(w), 2 * products * w.batch * w.out_channels * (w.in_channels / w.groups))
        << Workload(w).key();
  }
}

TEST(Workload, CountsMultiplyAndAddAsTwo) {
  EXPECT_EQ(Workload(resnet_last()).flops(), int64_t{2} * 512 * 512 * 9 * 49);
  Conv2dWorkload grouped = resnet_last();
  grouped.groups = 512;
  EXPECT_EQ(Workload(grouped).flops(), int64_t{2} * 512 * 9 * 49);
  Conv2dWorkload strided = resnet_last();
  strided.stride = {2, 3};
  strided.dilation = {2, 1};
  EXPECT_EQ(strided.out_height(), 3);
  EXPECT_EQ(strided.out_width(), 3);
}

TEST(WorkloadValidate, EveryWindowOfAPoolingHasAnElement) {
  const auto why = [](void (*damage)(Pool2dWorkload&)) {
    Pool2dWorkload w{.channels = 8, .in_height = 6, .in_width = 6, .kernel_height = 3, .kernel_width = 2};
    damage(w);
    return validate(w).message();
  };
  EXPECT_EQ(why([](auto& w) { w.padding = {2, 1, 2, 1}; }), "");
  EXPECT_EQ(
      why([](auto& w) { w.padding[2] = 3; }),
      "padding[2] (bottom): expected less than the 3 rows of the kernel, found 3: a window would have no "
      "element of the image");
  EXPECT_EQ(
      why([](auto& w) { w.padding[1] = 2; }),
      "padding[1] (left): expected less than the 2 columns of the kernel, found 2: a window would have no "
      "element of the image");
  EXPECT_EQ(why([](auto& w) { w.kernel_height = 7; }),
            "data[2] (height): 6 with padding, expected at least 7, the rows of the kernel");
  EXPECT_EQ(why([](auto& w) { w.count_include_pad = true; }),
            "count_include_pad: expected only with pooling average, found it with max");
  EXPECT_EQ(why([](auto& w) { w.layout = "NCHW16c"; }),
            "layout: NCHW16c needs a multiple of 16 channels, found 8");
  EXPECT_EQ(why([](auto& w) { w.stride[0] = 0; }),
            "stride[0] (vertical): expected an integer from 1 to 2^31, found 0");
}

TEST(WorkloadValidate, OperatorsOnRowsNameWhatIsWrong) {
  EXPECT_EQ(validate(SoftmaxWorkload{0, 1}).message(), "rows: expected an integer from 1 to 2^31, found 0");
  EXPECT_EQ(validate(TransposeWorkload{1, -3}).message(),
            "columns: expected an integer from 1 to 2^31, found -3");
  EXPECT_EQ(validate(ElementwiseWorkload{.dtype = DType::kInt8}).message(),
            "dtype: expected float32, found int8");
  EXPECT_EQ(validate(ReduceWorkload{1 << 20, 1 << 18}).message(),
            "x: expected fewer than 2^40 bytes, the shape asks for more");
  EXPECT_EQ(validate(LayerNormWorkload{.epsilon = 2}).message(),
            "epsilon: expected a number from 1e-12 to 1, found 2");
}

TEST(Workload, CountsOperationsOnRowsAsWritten) {
  const Pool2dWorkload pool{
      .channels = 5, .in_height = 8, .in_width = 9, .kernel_height = 2, .kernel_width = 3};
  EXPECT_EQ(Workload(pool).flops(), 5 * 7 * 7 * 2 * 3);
  EXPECT_EQ(Workload(SoftmaxWorkload{7, 13}).flops(), 5 * 7 * 13);
  EXPECT_EQ(Workload(LayerNormWorkload{7, 13}).flops(), 8 * 7 * 13);
  EXPECT_EQ(Workload(ReduceWorkload{7, 13}).flops(), 7 * 13);
  EXPECT_EQ(Workload(TransposeWorkload{7, 13}).flops(), 0);
  EXPECT_EQ(Workload(ElementwiseWorkload{7, 13}).flops(), 0);
  EXPECT_EQ(Workload(ElementwiseWorkload{7, 13, true, true, true, Activation::kRelu}).flops(), 4 * 7 * 13);
}

TEST(Workload, CountsEachArgumentOnceAsTraffic) {
  const auto floats = [](const Workload& w) { return w.bytes() / 4; };
  MatmulWorkload m;
  m.batch = 2;
  m.m = 3;
  m.n = 5;
  m.k = 7;
  m.bias = true;
  EXPECT_EQ(floats(m), 2 * (3 * 7 + 7 * 5 + 3 * 5) + 5);
  m.accumulate = true;  // out is read and written
  EXPECT_EQ(floats(m), 2 * (3 * 7 + 7 * 5 + 2 * 3 * 5) + 5);
  m.accumulate = false;
  m.dtype = DType::kBFloat16;
  EXPECT_EQ(Workload(m).bytes(), 2 * (2 * (3 * 7 + 7 * 5) + 4 * 3 * 5) + 4 * 5);
  m.dtype = DType::kInt8;
  EXPECT_EQ(Workload(m).bytes(), 2 * (3 * 7 + 7 * 5 + 4 * 3 * 5) + 4 * 5);
  EXPECT_EQ(floats(resnet_last()), 512 * 49 + 512 * 512 * 9 + 512 + 512 * 49);  // padding is not moved
  EXPECT_EQ(floats(SoftmaxWorkload{7, 13}), 2 * 7 * 13);
  EXPECT_EQ(floats(LayerNormWorkload{7, 13}), 2 * 7 * 13 + 2 * 13);
  EXPECT_EQ(floats(ReduceWorkload{7, 13}), 7 * 13 + 7);
  EXPECT_EQ(floats(TransposeWorkload{7, 13}), 2 * 7 * 13);
  EXPECT_EQ(floats(ElementwiseWorkload{7, 13}), 2 * 7 * 13);
  EXPECT_EQ(floats(ElementwiseWorkload{7, 13, true, true, true}), 3 * 7 * 13 + 2 * 13);
}

TEST(Workload, OperatorsOnRowsAreMemoryBound) {
  EXPECT_FALSE(Workload(resnet_last()).memory_bound());
  EXPECT_FALSE(Workload(MatmulWorkload{}).memory_bound());
  for (const Workload& w :
       {Workload(SoftmaxWorkload{}), Workload(LayerNormWorkload{}), Workload(ReduceWorkload{}),
        Workload(TransposeWorkload{}), Workload(ElementwiseWorkload{})})
    EXPECT_TRUE(w.memory_bound()) << w.key();
}

TEST(Workload, KnowsItsConstants) {
  EXPECT_TRUE(Workload(resnet_last()).is_constant("weight"));
  EXPECT_FALSE(Workload(resnet_last()).is_constant("data"));
  EXPECT_FALSE(Workload(LayerNormWorkload{}).is_constant("gamma"));
}

TEST(Workload, MathHasArgumentsInFileOrder) {
  const auto arguments = [](const Workload& w) {
    std::string names;
    for (const Buffer& b : w.compute().args)
      names += b->name + ":" + std::string(buffer_role_name(b->role)) + " ";
    return names;
  };
  EXPECT_EQ(arguments(resnet_last()), "data:input weight:constant bias:input out:output ");
  Conv2dWorkload in_place = resnet_last();
  in_place.accumulate = true;
  EXPECT_EQ(arguments(in_place), "data:input weight:constant bias:input out:inout ");
  EXPECT_EQ(arguments(LayerNormWorkload{7, 13}), "x:input gamma:input beta:input out:output ");
  EXPECT_EQ(arguments(ElementwiseWorkload{7, 13, true, true, true}),
            "x:input scale:input bias:input residual:input out:output ");
}

// Eight standard deviations of the errors, worked out by hand from the text of tolerance.cpp: of n products
// of numbers from [-1, 1) 8 * 2^-24 * n / (3 sqrt 2).
TEST(Tolerance, IsEightDeviationsByHand) {
  const auto near = [](const Workload& w, double absolute, double relative) {
    const Tolerance t = tolerance_of(w);
    EXPECT_NEAR(t.absolute, absolute, 1e-4 * absolute) << w.key();
    EXPECT_NEAR(t.relative, relative, 1e-4 * relative) << w.key();
  };
  for (const auto& [terms, absolute] : {std::pair<int64_t, double>{1, 1e-6},
                                        {100, 1.12392e-5},
                                        {10'000, 1.12392e-3},
                                        {1'000'000, 1.12392e-1}})
    near(MatmulWorkload{.m = 9, .n = 9, .k = terms}, absolute, 1e-5);
  near(Conv2dWorkload{.in_channels = 100, .out_channels = 4, .kernel_height = 1, .groups = 4}, 2.80980e-6,
       1e-5);
  MatmulWorkload w{.k = 100, .dtype = DType::kBFloat16};
  near(w, 1.12392e-5, 1e-5);
  w.narrow_out = DType::kBFloat16;  // eight bits: half a last place is 2^-8
  near(w, 1.12392e-5 * (1 + 1.0 / 256), 1e-5 + 1.0 / 256);
  w.dtype = DType::kFloat16, w.narrow_out = DType::kFloat16;  // eleven bits, and steps of 2^-24
  near(w, 1.12392e-5 * (1 + 1.0 / 2048) + 2.98023e-8, 1e-5 + 1.0 / 2048);
  MatmulWorkload tf32{.k = 100, .allow_tf32 = true};  // 8 * 0.70 * 2^-10 * sqrt(100) / 3
  near(tf32, 1.82292e-2 + 1.12392e-5, 1e-5);
  MatmulWorkload steep{.k = 100, .activation = Activation::kHardSwish};
  near(steep, 1.5 * 1.12392e-5, 1e-5);
  near(ReduceWorkload{3, 1000, RowReduction::kSum}, 1.94669e-4, 1e-5);
  near(ReduceWorkload{3, 10'000, RowReduction::kMean}, 2.38419e-7, 1e-5);
  near(SoftmaxWorkload{3, 10'000}, 1e-10, 2.75307e-5);
  near(LayerNormWorkload{3, 10'000}, 5.50615e-5, 1e-5);
}

// Numbers of an activation, of a pair and of a pooling, as a program may give them.
TEST(WorkloadKey, RefusesNumbersThatMeanNothing) {
  const auto with = [](const Activation& a) {
    return validate(Workload(MatmulWorkload{.m = 1, .n = 1, .k = 1, .activation = a})).message();
  };
  const std::string why = "activation: expected finite numbers, for clip the lower one first, found ";
  EXPECT_EQ(with({ActivationKind::kClip, 0, 6}), "");
  EXPECT_EQ(with({ActivationKind::kClip, 6, 6}), "");
  EXPECT_EQ(with({ActivationKind::kClip, 6, 0}), why + "clip:6:0");
  EXPECT_EQ(with({ActivationKind::kClip, 0, -1}), why + "clip:0:-1");
  EXPECT_THAT(with({ActivationKind::kClip, 0, INFINITY}), HasSubstr(why));
  EXPECT_THAT(with({ActivationKind::kLeaky, NAN}), HasSubstr(why));
  EXPECT_THAT(with({ActivationKind::kLeaky, 0.5, 1}), HasSubstr(why)) << "a second number";
  EXPECT_THAT(with({ActivationKind::kRelu, 1}), HasSubstr(why)) << "a number that it does not have";
}

}  // namespace
}  // namespace tuner
