// A workload as JSON: every operator there and back, and what is refused.
#include "templates/workload/workload_json.h"
#include "tests/random_seed.h"

#include <gtest/gtest.h>

#include <random>

namespace tuner {
namespace {

const std::string kTexts[] = {
    R"({"op":"matmul","batch":3,"a":[13,7],"b":[29,13],"transpose_a":true,"transpose_b":true,"bias":true,"residual":true,"activation":"relu","constant":["b","bias"]})",
    R"({"op":"matmul","a":[1,16],"b":[16,8],"dtype":"int8"})",
    R"({"op":"matmul","a":[2,16],"b":[16,8],"accumulate":true,"activation":"relu"})",
    R"({"op":"conv2d","data":[1,3,9,9],"weight":[8,3,3,3],"accumulate":true,"dtype":"bfloat16"})",
    R"({"op":"matmul","a":[1,16],"b":[16,8],"dtype":"float16"})",
    R"({"op":"conv2d","data":[2,8,9,7],"weight":[16,4,3,1],"stride":[2,1],"padding":[1,2,3,4],"dilation":[1,2],"groups":2,"bias":true,"activation":"relu","layout":"NCHW4c","out_layout":"NCHW","constant":["weight"]})",
    R"({"op":"matmul","a":[1,16],"b":[16,8],"bias":true,"dtype":"int8","out_dtype":"uint8"})",
    R"({"op":"matmul","a":[1,16],"b":[16,8],"allow_tf32":true})",
    R"({"op":"conv2d","data":[1,3,9,9],"weight":[8,3,3,3],"dtype":"float16","out_dtype":"float16","layout":"NHWC"})",
    R"({"op":"conv2d","data":[1,3,9,9],"weight":[8,3,3,3],"dtype":"bfloat16","out_dtype":"bfloat16"})",
    R"({"op":"conv2d","data":[1,3,224,224],"weight":[64,3,7,7],"stride":[2,2],"padding":[3,3]})",
    R"({"op":"pool2d","data":[1,64,112,112],"kernel":[3,3],"stride":[2,2],"padding":[1,1],"pooling":"average","count_include_pad":true,"layout":"NCHW16c"})",
    R"({"op":"matmul","a":[2,16],"b":[16,8],"bias":true,"scale":true,"activation":{"leaky":0.1}})",
    R"({"op":"matmul","a":[2,16],"b":[16,8],"scale":true,"accumulate":true,"activation":"gelu_tanh","post":["activation","scale","residual"]})",
    R"({"op":"conv2d","data":[1,3,9,9],"weight":[8,3,3,3],"bias":true,"residual":"last","activation":"silu"})",
    R"({"op":"conv2d","data":[1,3,9,9],"weight":[8,3,3,3],"bias":true,"scale":true,"residual":true,"activation":{"clip":[0,6]},"post":["scale","bias","activation","residual"]})",
    R"({"op":"elementwise","rows":2,"columns":99,"activation":"hard_swish"})",
    R"({"op":"softmax","rows":4096,"columns":1000})",
    R"({"op":"layer_norm","rows":12,"columns":768,"epsilon":1e-06})",
    R"({"op":"rms_norm","rows":12,"columns":768,"epsilon":1e-06})",
    R"({"op":"matmul_nbits","a":[1,100],"b":[7,100],"b_dtype":"int4","group":32})",
    R"({"op":"matmul_nbits","a":[2,64],"b":[7,64],"b_dtype":"int4","group":128,"zero_points":true,"bias":true,"activation":"silu","constant":["b","bias","scales","zero_points"]})",
    R"({"op":"attention","heads":6,"kv_heads":3,"queries":9,"keys":11,"size":16,"v_size":24,"scale":0.25,"causal":true,"hidden":-10000.0,"mask":"1x1x9","k_layout":"BSHD:5:2"})",
    R"({"op":"reduce","rows":5,"columns":77,"reduction":"mean"})",
    R"({"op":"transpose","rows":31,"columns":17})",
    R"({"op":"elementwise","rows":2,"columns":99,"scale":true,"bias":true,"residual":true,"activation":"relu"})",
};

TEST(WorkloadJson, WhatIsWrittenIsWhatWasRead) {
  for (const std::string& text : kTexts) {
    const Result<Workload> read = workload_from_json(text);
    ASSERT_TRUE(read.is_ok()) << text << ": " << read.message();
    EXPECT_EQ(workload_json(*read).dump(), text);
    const Result<Workload> again = workload_from_json(workload_json(*read).dump());
    ASSERT_TRUE(again.is_ok()) << again.message();
    EXPECT_EQ(again->key(), read->key());
  }
}

TEST(WorkloadJson, GlobalPoolingIsWrittenWithItsKernel) {
  const Result<Workload> read = workload_from_json(R"({"op":"pool2d","data":[1,8,7,5],"pooling":"max"})");
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(workload_json(*read).dump(),
            R"({"op":"pool2d","data":[1,8,7,5],"kernel":[7,5],"pooling":"max"})");
}

// What a text leaves out, and numbers that stand for two.
TEST(WorkloadJson, WhatIsLeftOutIsAsUsual) {
  const auto key = [](const char* text) {
    const Result<Workload> read = workload_from_json(text);
    return read ? read->key() : read.message();
  };
  EXPECT_EQ(key(R"({"op":"matmul","a":[2,16],"b":[16,8]})"),
            "v1 matmul b=1 m=2 n=8 k=16 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
  EXPECT_EQ(
      key(R"({"op":"conv2d","data":[1,3,9,8],"weight":[4,3,2,1],"padding":[1,2],"stride":[3,1]})"),
      "v1 conv2d n=1 ic=3 ih=9 iw=8 oc=4 kh=2 kw=1 stride=3,1 pad=1,2,1,2 dil=1,1 groups=1 bias=0 act=none "
      "dtype=float32 layout=NCHW const=none");
  EXPECT_EQ(
      key(R"({"op":"conv2d","data":[1,8,9,8],"weight":[4,8,2,1],"layout":"NHWC","dtype":"int8"})"),
      "v1 conv2d n=1 ic=8 ih=9 iw=8 oc=4 kh=2 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 bias=0 act=none "
      "dtype=int8 layout=NHWC const=none");
  EXPECT_EQ(key(R"({"op":"pool2d","data":[1,8,7,5],"kernel":[3,2],"padding":[1,0],"pooling":"average"})"),
            "v1 pool2d n=1 c=8 ih=7 iw=5 kh=3 kw=2 stride=1,1 pad=1,0,1,0 pooling=average dtype=float32 "
            "layout=NCHW");
  EXPECT_EQ(key(R"({"op":"layer_norm","rows":12,"columns":768})"),
            "v1 layer_norm rows=12 columns=768 eps=1e-05 dtype=float32");
}

TEST(WorkloadJson, TheFirstThingWrongIsNamed) {
  EXPECT_EQ(workload_from_json(R"({"op":"softmax","rows":0,"columns":4})").message(),
            "rows: expected an integer from 1 to 2147483648, found 0.");
  EXPECT_EQ(workload_from_json(R"({"op":"softmax","rows":4,"columns":4,"trials":9})").message(),
            "\"trials\": unknown key. Known here: columns, dtype, op, rows.");
  EXPECT_EQ(workload_from_json(R"({"op":"softmax","rows":4,)").message().substr(0, 28),
            "line 1, column 26: not JSON:");
  EXPECT_EQ(workload_from_json(R"({"op":"matmul","a":[2,2],"b":[2,2],"residual":true,"accumulate":true})")
                .message(),
            "accumulate: expected one of residual and accumulate, found both: with accumulate the residual "
            "lies on out.");
  const auto product = [](const std::string& more) {
    return workload_from_json(R"({"op":"matmul","a":[2,2],"b":[2,2],)" + more + "}").message();
  };
  EXPECT_EQ(product(R"("residual":"first")"), R"(residual: expected true, false or "last", found "first".)");
  EXPECT_EQ(product(R"("residual":"last","bias":true)"),
            R"(residual: expected "last" only with an activation, which it follows.)");
  EXPECT_EQ(product(R"("residual":"last","activation":"relu","post":["activation","residual"])"),
            R"(post: expected none with "residual": "last", which says the order.)");
  EXPECT_EQ(
      product(R"("bias":true,"post":["bias","act"])"),
      R"(post: expected a list of "bias", "scale", "residual" and "activation" in their order, found ["bias","act"].)");
  EXPECT_EQ(product(R"("bias":true,"activation":"relu","post":["bias","activation"])"),
            "post: expected none for what the usual order says, bias,activation; found bias,activation");
  EXPECT_EQ(product(R"("scale":1)"), "scale: expected true or false, found 1.");
  const std::string activations =
      R"(activation: expected "relu", "sigmoid", "silu", "hard_swish", "tanh", "gelu", "gelu_tanh", {"clip": [low, high]}, {"leaky": alpha} or null, found )";
  for (const char* wrong : {R"("swish")", R"("clip")", R"({"clip":[6,0]})", R"({"clip":6})",
                            R"({"leaky":"0.1"})", R"({"leaky":1e99})", R"({"clip":[0,6],"leaky":1})", "7"})
    EXPECT_EQ(product(str("\"activation\":", wrong)).substr(0, activations.size()), activations) << wrong;
  EXPECT_EQ(workload_from_json("[]").message(), "expected an object { ... }, found [].");
  EXPECT_EQ(workload_from_json("").status().code(), StatusCode::kInvalidArgument);
}

// Whatever comes, it answers with a valid workload that is written and read back, or with one line.
TEST(WorkloadJsonFuzz, DamagedTexts) {
  const RandomSeed seed(6);
  std::mt19937_64 random(seed);
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kTexts[random() % std::size(kTexts)];
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % (text.size() + 1);
      const size_t digit = text.find_first_of("0123456789", at);
      switch (random() % 6) {
        case 0:
          text.insert(at, 1, static_cast<char>(random()));
          break;
        case 1:
          text.erase(at, 1 + random() % 4);
          break;
        case 2:
          text.insert(at, 1, static_cast<char>('0' + random() % 10));
          break;
        case 3:
          text.resize(at);
          break;
        default:
          if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random() % 10);
      }
    }
    const Result<Workload> read = workload_from_json(text);
    if (!read) {
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << text;
      EXPECT_EQ(read.message().find('\n'), std::string::npos) << text;
      continue;
    }
    ++valid;
    const Result<Workload> again = workload_from_json(workload_json(*read).dump());
    ASSERT_TRUE(again.is_ok()) << text << ": " << again.message();
    EXPECT_EQ(again->key(), read->key()) << text;
  }
  EXPECT_GT(valid, 500) << "too few texts survive to say anything";
}

}  // namespace
}  // namespace tuner
