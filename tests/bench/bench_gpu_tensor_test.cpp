// bench_gpu on tasks for tensor cores: cuBLASLt and cuDNN as peers of products of 16 bits, of bytes and of
// TF32, images with channels last, and the peaks they are held against.
#include "tests/bench/bench_gpu_fixture.h"

namespace tuner {
namespace {

constexpr Types kBrain{.dtype = DType::kBFloat16}, kNarrowBrain{.dtype = DType::kBFloat16, .narrow = true},
    kHalf{.dtype = DType::kFloat16}, kNarrowHalf{.dtype = DType::kFloat16, .narrow = true},
    kBytes{.dtype = DType::kInt8}, kTf32{.tf32 = true};

class BenchGpuTensor : public BenchGpu {
 protected:
  PackTask product(const Product& p, const std::string& more = "") {
    return BenchGpu::product(p, p.kernel() + more);
  }
};

// --- products ---

TEST_F(BenchGpuTensor, AProductIsTimedInTurnWithTheBestOfCublasLtsAlgorithmsThatAreRight) {
  write({product({.types = kBrain}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUBLASLT_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuBLASLt 13.1.0\n"));
  // The first is slower, the second is not to be called, the fourth refuses, the fifth is faster and wrong.
  EXPECT_THAT(ended.text,
              HasSubstr("cuBLASLt       3.00 us  [3.00, 3.00]  id 66, tile 128x256, stages 64xauto, cluster "
                        "auto, tensor cores (heuristic #3)\n"));
  EXPECT_THAT(ended.text, HasSubstr("cuBLASLt/ours  0.750  [0.750, 0.750]"));
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuBLASLt/ours: 0.750 over 1 task\n"));
  const json t = result()["tasks"][0];
  EXPECT_EQ(t["peer"]["ns"].size(), 6u);
  EXPECT_LT(t["peer"]["max_error"].get<double>(), 1);
  EXPECT_EQ(result()["cublaslt"], "13.1.0");
  EXPECT_EQ(t["peer"]["library"], "cuBLASLt");
  EXPECT_EQ(t["peer"]["algorithm"], (json{{"id", 66},
                                          {"tile", "128x256"},
                                          {"stages", "64xauto"},
                                          {"cluster", "auto"},
                                          {"split_k", 1},
                                          {"reduction", "none"},
                                          {"swizzle", 0},
                                          {"custom", 0},
                                          {"inner", 0},
                                          {"workspace_bytes", 8192},
                                          {"tensor_cores", true},
                                          {"found_by", "heuristic #3"}}));
  const json search = t["peer"]["searches"][0];
  EXPECT_EQ(search["offered"]["heuristic"], 5);
  EXPECT_EQ(search["offered"]["heuristic_of_ids"], 2);
  EXPECT_EQ(search["offered"]["enumerated"], 13);
  EXPECT_EQ(search["tried"], 19);
  EXPECT_EQ(search["refused"], 1);
  EXPECT_EQ(search["wrong"], 1);
  EXPECT_EQ(search["all_tried"], true);
}

// The heuristic does not know it: only who asks for every tile, stages and cluster finds it.
TEST_F(BenchGpuTensor, TheFastestAlgorithmMayBeOneThatNoHeuristicOffers) {
  write({product({.types = kBrain}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUBLASLT_NS=3000 TUNER_FAKE_CUBLASLT_BEST_NS=2000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text,
              HasSubstr("cuBLASLt       2.00 us  [2.00, 2.00]  id 66, tile 256x128, stages 64xauto, cluster "
                        "2x1, tensor cores (enumerated)\n"));
  EXPECT_THAT(ended.text, HasSubstr("cuBLASLt/ours  0.500"));
}

// Each is described to cuBLASLt in another way; the reference says whether it was the right one.
TEST_F(BenchGpuTensor, CublasLtGetsEveryTypeInWhateverWayOperandsAreStored) {
  std::vector<PackTask> tasks;
  for (const Types& types : {kBrain, kNarrowBrain, kHalf, kNarrowHalf})
    for (const int64_t batch : {1, 3})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          tasks.push_back(product({.batch = batch, .transpose_a = ta, .transpose_b = tb, .types = types}));
  write(std::move(tasks));
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuBLASLt/ours: 1.600 over 32 tasks"));
}

// The library multiplies int8 by int8, where they are stored [M, K] and [N, K].
TEST_F(BenchGpuTensor, OfBytesCublasLtGetsOperandsOfItsOwn) {
  std::vector<PackTask> tasks;
  for (const int64_t batch : {1, 3})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        tasks.push_back(product(
            {.batch = batch, .n = 8, .k = 12, .transpose_a = ta, .transpose_b = tb, .types = kBytes}));
  tasks.push_back(product({.n = 8, .k = 12, .bias = true, .relu = true, .types = kBytes}));
  write(std::move(tasks));
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 9 tasks"));
  EXPECT_THAT(ended.text,
              HasSubstr("(heuristic #3); operands of its own: a less 128 as int8 [M, K], b as [N, K]\n"));
  EXPECT_THAT(ended.text,
              HasSubstr("(heuristic #3); the product alone, without bias and activation; operands of its "
                        "own: a less 128 as int8 [M, K], b as [N, K]\n"));
  EXPECT_EQ(result()["tasks"][0]["peer"]["max_error"], 0) << "integers are exact";
}

TEST_F(BenchGpuTensor, OwnOperandsTakeTurnsWithOthers) {
  write({product({.n = 8, .k = 12, .types = kBytes})});
  const Ended ended = run("--caches rotate");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_GT(result()["tasks"][0]["operand_sets"], 1);
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuBLASLt/ours: 1.600 over 1 task\n"));
}

// A bias of out's type is what the library adds; rounding it is no fault of the peer's.
TEST_F(BenchGpuTensor, BiasAndActivationAreDoneByCublasLtInEveryType) {
  write({product({.bias = true, .relu = true, .types = kBrain}),
         product({.m = 40, .n = 40, .k = 60, .bias = true, .relu = true, .types = kNarrowBrain}),
         product({.m = 40, .n = 40, .k = 60, .bias = true, .types = kNarrowHalf}),
         product({.m = 40, .n = 40, .k = 60, .relu = true, .types = kNarrowHalf})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 4 tasks"));
  EXPECT_THAT(ended.text, HasSubstr("(heuristic #3); bias and relu in its epilogue\n"));
  EXPECT_THAT(ended.text, HasSubstr("(heuristic #3); relu in its epilogue\n"));
  EXPECT_THAT(ended.text, Not(HasSubstr("the product alone")));
}

// Of a large answer sums are compared: of a column's thousand elements each errs by what its bias was rounded
// by.
TEST_F(BenchGpuTensor, ABiasThatWasRoundedIsNoErrorOfSums) {
  tasks_.keep_references_as(ReferenceKind::kChecksums);
  for (const bool relu : {false, true}) {
    write({product({.m = 1000, .n = 1000, .k = 2, .bias = true, .relu = relu, .types = kNarrowBrain})});
    const Ended ended = run("--check");
    EXPECT_EQ(ended.exit_code, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("  cuBLASLt right  id 21, "));
    EXPECT_THAT(ended.text,
                HasSubstr(relu ? "; bias and relu in its epilogue\n" : "; bias in its epilogue\n"));
  }
}

// A product that is rounded to 16 bits before bias and relu are put on is off by that rounding, and right.
TEST_F(BenchGpuTensor, BiasAndActivationThatCublasLtHasNotAreSaidAndPutOnForTheCheck) {
  write({product({.bias = true, .relu = true, .types = kBrain}),
         product({.m = 40, .n = 40, .k = 60, .bias = true, .relu = true, .types = kNarrowBrain}),
         product({.m = 40, .n = 40, .k = 60, .bias = true, .types = kNarrowHalf})});
  const Ended ended = run("", "TUNER_FAKE_CUBLASLT_NO_EPILOGUE=1");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 3 tasks"));
  EXPECT_THAT(ended.text, HasSubstr("(heuristic #3); the product alone, without bias and activation\n"));
}

TEST_F(BenchGpuTensor, OfFloat32TheFasterOfTwoLibrariesIsThePeer) {
  write({product({})});
  const Ended ours = run("", "TUNER_FAKE_CUBLAS_NS=3000 TUNER_FAKE_CUBLASLT_NS=4000");
  EXPECT_EQ(ours.exit_code, 0) << ours.text;
  EXPECT_THAT(ours.text, HasSubstr("cuBLAS         3.00 us  [3.00, 3.00]  cublasSgemm\n"));
  const Ended theirs = run("", "TUNER_FAKE_CUBLAS_NS=3000 TUNER_FAKE_CUBLASLT_NS=2000");
  EXPECT_EQ(theirs.exit_code, 0) << theirs.text;
  EXPECT_THAT(theirs.text, HasSubstr("cuBLAS         2.00 us  [2.00, 2.00]  cuBLASLt id 66, tile 128x256, "));
  // What one of them lacks, the other has.
  const Ended none = run("", "TUNER_FAKE_CUBLASLT_NONE=1");
  EXPECT_EQ(none.exit_code, 0) << none.text;
  EXPECT_THAT(none.text, HasSubstr("]  cublasSgemm\n"));
}

TEST_F(BenchGpuTensor, ACublasLtThatHasNothingIsToldInOneLine) {
  write({product({.types = kBrain})});
  const Ended none = run("", "TUNER_FAKE_CUBLASLT_NONE=1");
  EXPECT_EQ(none.exit_code, 0) << none.text;
  EXPECT_THAT(none.text, HasSubstr("  cuBLASLt cuBLASLt: has no algorithm for it (status 15)\n"));
  EXPECT_THAT(none.text, HasSubstr("  ours "));
  const Ended absent = run("", "TUNER_LIBCUBLASLT=/not/there.so");
  EXPECT_EQ(absent.exit_code, 0) << absent.text;
  EXPECT_THAT(absent.text,
              HasSubstr("  cuBLASLt no cuBLASLt: /not/there.so: cannot open shared object file"));
  EXPECT_THAT(absent.text, HasSubstr("TUNER_LIBCUBLASLT names the file of libcublasLt.so.13"));
  // Sizes that the library does not take bytes of.
  write({product({.n = 7, .k = 12, .types = kBytes})});
  const Ended odd = run();
  EXPECT_EQ(odd.exit_code, 0) << odd.text;
  EXPECT_THAT(odd.text, HasSubstr("  cuBLASLt cuBLASLt: has no algorithm for it (status 15)\n"));
}

TEST_F(BenchGpuTensor, AWrongCublasLtIsNoPeer) {
  write({product({.types = kBrain})});
  const Ended wrong = run("", "TUNER_FAKE_CUBLASLT_WRONG=1");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.text,
              HasSubstr("  cuBLASLt id 6, tile -, stages -, cluster auto, custom 5 (heuristic #5): wrong "
                        "answer: out[0, 0] is "));
  EXPECT_THAT(wrong.text, HasSubstr("; 19 tried, 1 refused, 18 wrong; "));
  EXPECT_THAT(wrong.text, Not(HasSubstr("cuBLASLt/ours")));
}

// One wrong element is seen although rounding of the product is allowed for.
TEST_F(BenchGpuTensor, AWrongProductIsSeenUnderItsEpilogueToo) {
  for (const Types& types : {kNarrowBrain, kNarrowHalf}) {
    write({product({.bias = true, .types = types})});
    const Ended wrong = run("", "TUNER_FAKE_CUBLASLT_WRONG=1");
    EXPECT_EQ(wrong.exit_code, 1) << wrong.text;
    EXPECT_THAT(wrong.text, HasSubstr("wrong answer: out[0, 0] is "));
  }
}

// What peers cannot be put right for is told before they are asked.
TEST_F(BenchGpuTensor, OtherEpiloguesHaveNoPeer) {
  PackTask t = product({.types = kBrain});
  t.workload_key.replace(t.workload_key.find("act=none"), 8, "act=sigmoid");
  write({t});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text,
              HasSubstr("  cuBLASLt more follows it than bias, residual and relu in this order: not "
                        "compared\n"));
}

// The library that is really installed, where one is: it has every symbol we ask for.
TEST_F(BenchGpuTensor, TheInstalledCublasLtHasWhatWeAskFor) {
  write({product({.types = kBrain})});
  const Ended ended = run("", "-u TUNER_LIBCUBLASLT");
  if (ended.text.find("no cuBLASLt: libcublasLt") != std::string::npos)
    GTEST_SKIP() << "no cuBLASLt is installed here";
  EXPECT_THAT(ended.text, Not(HasSubstr("the library has no ")));
}

// --- products of float32 that may take TF32 ---

// cublasSgemm would be called with TF32 off: not what the task allows.
TEST_F(BenchGpuTensor, OfTf32CublasLtAloneIsThePeerOnTensorCores) {
  write({product({.types = kTf32}, " ns=4000"),
         product({.batch = 3, .transpose_a = true, .transpose_b = true, .bias = true, .types = kTf32})});
  const Ended ended = run("", "TUNER_FAKE_CUBLAS_NS=1 TUNER_FAKE_CUBLASLT_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuBLASLt       3.00 us  [3.00, 3.00]  id 66, tile 128x256, "));
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuBLASLt/ours: 0.671 over 2 tasks\n"));
  EXPECT_THAT(ended.text, Not(HasSubstr("cublasSgemm")));
  // Of a tolerance of 0.01: float32 would err by less than 1e-4 of it.
  for (const json& t : result()["tasks"]) EXPECT_GT(t["peer"]["max_error"].get<double>(), 0.01);
  const Ended absent = run("", "TUNER_LIBCUBLASLT=/not/there.so");
  EXPECT_EQ(absent.exit_code, 0) << absent.text;
  EXPECT_THAT(absent.text, HasSubstr("  cuBLASLt no cuBLASLt: /not/there.so: "));
}

// --- convolutions ---

TEST_F(BenchGpuTensor, AConvolutionOf16BitsTakesWhatCudnnOffers) {
  write({convolution({.types = kNarrowBrain}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  // With another value of its knob the same engine takes twice or six times as long.
  EXPECT_THAT(ended.text,
              HasSubstr("cuDNN          1.50 us  [1.50, 1.50]  engine 1, tile 1, tensor cores (heuristic A "
                        "#4)\n"));
  const json algorithm = result()["tasks"][0]["peer"]["algorithm"];
  EXPECT_EQ(algorithm["engine"], 1);
  EXPECT_EQ(algorithm["knob:_tile"], 1);
  EXPECT_EQ(algorithm["tensor_cores"], true);
  EXPECT_THAT(ended.text, HasSubstr("cuDNN/ours  0.375"));
}

// Its functions write the type they read.
TEST_F(BenchGpuTensor, WhereCudnnHasNoFloat32OutItsOwnIsCompared) {
  write({convolution({.types = kBrain}), convolution({.bias = true, .types = kBrain}),
         convolution({.filters = 8, .stride = 2, .groups = 2, .types = kBrain}),
         convolution({.channels = 6, .groups = 6, .types = kNarrowBrain}),
         convolution({.bias = true, .types = kNarrowBrain})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 5 tasks"));
  EXPECT_THAT(ended.text, HasSubstr("tensor cores (heuristic A #4); out in bfloat16\n"));
  EXPECT_LT(result()["tasks"][0]["peer"]["max_error"].get<double>(), 1);
}

TEST_F(BenchGpuTensor, WhereTf32IsAllowedCudnnTakesTensorCores) {
  write({convolution({.types = kTf32}, " ns=4000"), convolution({}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(
      ended.text,
      HasSubstr("cuDNN          1.50 us  [1.50, 1.50]  engine 1, tile 1, tensor cores (heuristic A #4)\n"));
  EXPECT_THAT(ended.text, HasSubstr("cuDNN          3.00 us  [3.00, 3.00]  engine 5 (heuristic A #5)\n"));
  EXPECT_GT(result()["tasks"][0]["peer"]["max_error"].get<double>(), 0.01);
}

// Strides, groups, bias: the reference says whether the library was told of the right order, of images and of
// weights.
TEST_F(BenchGpuTensor, WhereChannelsComeLastCudnnGetsAWeightOfItsOwn) {
  std::vector<PackTask> tasks;
  for (const Types& types : {kBrain, kNarrowBrain, kHalf, kNarrowHalf, kTf32, Types{}}) {
    tasks.push_back(convolution({.last = true, .types = types}));
    tasks.push_back(convolution({.filters = 8, .stride = 2, .groups = 2, .last = true, .types = types}));
    tasks.push_back(convolution({.bias = true, .last = true, .types = types}));
    tasks.push_back(convolution({.size = 1, .padding = 0, .last = true, .types = types}));
  }
  const size_t count = tasks.size();
  write(std::move(tasks));
  for (const char* caches : {"warm", "rotate"}) {
    const Ended ended = run(str("--caches ", caches));
    EXPECT_EQ(ended.exit_code, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(str("over ", count, " tasks")));
    EXPECT_THAT(ended.text, HasSubstr("tensor cores (heuristic A #4); weight as [OC, KH, KW, IC]\n"));
    EXPECT_THAT(
        ended.text,
        HasSubstr("(heuristic A #4); bias in its graph; bias in bfloat16; weight as [OC, KH, KW, IC]\n"));
  }
  EXPECT_THAT(result()["tasks"][0]["workload"].get<std::string>(), HasSubstr(" layout=NHWC "));
}

// The faster of two libraries is the peer, and both do what follows.
TEST_F(BenchGpuTensor, AConvolutionOfOneTapIsAlsoAProductOfCublasLt) {
  Image image{.size = 1, .padding = 0, .bias = true, .last = true, .types = kNarrowBrain, .relu = true};
  write({convolution(image, " ns=4000")});
  const Ended product = run("", "TUNER_FAKE_CUDNN_NS=3000 TUNER_FAKE_CUBLASLT_NS=1000");
  EXPECT_EQ(product.exit_code, 0) << product.text;
  EXPECT_THAT(product.text,
              HasSubstr("cuDNN          1.00 us  [1.00, 1.00]  cuBLASLt id 66, tile 128x256, "));
  EXPECT_THAT(product.text, HasSubstr("; as a product of 126 pixels, bias and relu in its epilogue\n"));
  EXPECT_EQ(result()["tasks"][0]["peer"]["library"], "cuBLASLt");
  const Ended convolution = run("", "TUNER_FAKE_CUDNN_NS=1000 TUNER_FAKE_CUBLASLT_NS=3000");
  EXPECT_EQ(convolution.exit_code, 0) << convolution.text;
  EXPECT_THAT(convolution.text, HasSubstr("cuDNN          0.50 us  [0.50, 0.50]  engine 1, tile 1, "));
  EXPECT_EQ(result()["tasks"][0]["peer"]["library"], "cuDNN");
  // A product alone would not do the same work.
  const Ended bare = run("", "TUNER_FAKE_CUBLASLT_NO_EPILOGUE=1 TUNER_FAKE_CUBLASLT_NS=1");
  EXPECT_EQ(bare.exit_code, 0) << bare.text;
  EXPECT_EQ(result()["tasks"][0]["peer"]["library"], "cuDNN") << bare.text;
  // Nothing of the kind where a pixel is skipped, or channels do not lie side by side.
  image.stride = 2;
  Image first = image;
  first.stride = 1, first.last = false;
  write({BenchGpu::convolution(image), BenchGpu::convolution(first)});
  const Ended none = run("", "TUNER_FAKE_CUBLASLT_NS=1");
  EXPECT_EQ(none.exit_code, 0) << none.text;
  EXPECT_THAT(none.text, Not(HasSubstr("as a product")));
}

// Rounded to out's type, the bias is what ready-made kernels add; as the task has it, one is compiled for the
// graph.
TEST_F(BenchGpuTensor, OfA16BitConvolutionBothTypesOfBiasAreTried) {
  write({convolution({.bias = true, .last = true, .types = kNarrowHalf, .relu = true})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  const json searches = result()["tasks"][0]["peer"]["searches"];
  EXPECT_THAT(searches[0]["what"].get<std::string>(), HasSubstr("bias in float16"));
  EXPECT_THAT(searches[0]["finalists"][0]["name"].get<std::string>(), HasSubstr("engine 1, tile 1, "));
  EXPECT_THAT(searches[1]["what"].get<std::string>(), Not(HasSubstr("bias in float16")));
  EXPECT_THAT(searches[1]["finalists"][0]["name"].get<std::string>(), HasSubstr("engine 6, "));
}

// An answer of float32 from images of 16 bits, where the library has it.
TEST_F(BenchGpuTensor, OutMayBeWiderThanDataWhereCudnnHasIt) {
  write({convolution({.bias = true, .types = kBrain})});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_WIDE_OUT=1");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("engine 6, tensor cores (heuristic A #1); bias in its graph\n"));
}

TEST_F(BenchGpuTensor, ACudnnWithoutBfloat16IsToldInOneLine) {
  write({convolution({.types = kBrain})});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NO_BFLOAT16=1");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(
      ended.text,
      HasSubstr("  cuDNN    cuDNN: no plan for this graph; cuDNN: cudnnGetConvolutionForwardAlgorithm_v7 "
                "offers no algorithm for it (status 3000)\n"));
  EXPECT_THAT(ended.text, HasSubstr("  ours "));
  const Ended wrong = run("", "TUNER_FAKE_CUDNN_WRONG=1");
  EXPECT_EQ(wrong.exit_code, 1) << wrong.text;
  EXPECT_THAT(wrong.text, HasSubstr("engine 3 (heuristic A #2): wrong answer: out[0, 0, 0, 0] is 1e+03"));
  EXPECT_THAT(wrong.text,
              HasSubstr("; implicit_precomp_gemm on tensor cores: wrong answer: out[0, 0, 0, 0] is 1e+03"));
}

TEST_F(BenchGpuTensor, ConvolutionsOfBytesHaveNoPeer) {
  write({convolution({.types = kBytes})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("  cuDNN    cuDNN: convolutions of int8 are not compared\n"));
}

// --- ceilings ---

TEST_F(BenchGpuTensor, SharesAreOfTheTensorPeakThatWasMeasuredInTheSameRun) {
  PackTask brain = product({.types = kBrain}, " ns=4000"),
           bytes = product({.n = 8, .k = 12, .types = kBytes}, " ns=4000"),
           tf32 = product({.types = kTf32}, " ns=4000");
  brain.checker = str("FAKECUBIN\nkernel ", kMmaBrainKernel, " probe_mma\nkernel ", kMmaTf32Kernel,
                      " probe_mma\nkernel ", kMmaByteKernel, " probe_mma\n");
  write({brain, bytes, tf32, convolution({.types = kTf32})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  // A launch takes a microsecond on this driver: 8 blocks of 8 warps on each of 10 multiprocessors, 256
  // rounds.
  const double products = 128.0 * 256 * 8 * 80 / 1000, of_brains = 2 * 16 * 8 * 16 * products,
               of_bytes = 2 * 16 * 8 * 32 * products, of_tf32 = 2 * 16 * 8 * 8 * products;
  const json j = result();
  EXPECT_NEAR(j["mma_16bit_gflops"].get<double>(), of_brains, 1e-3 * of_brains);
  EXPECT_NEAR(j["mma_int8_gops"].get<double>(), of_bytes, 1e-3 * of_bytes);
  EXPECT_NEAR(j["mma_tf32_gflops"].get<double>(), of_tf32, 1e-3 * of_tf32);
  EXPECT_THAT(ended.text, HasSubstr(", by mma.sync out of registers\nTF32 tensor peak measured: "));
  EXPECT_NEAR(j["tasks"][0]["share_of_ceiling"].get<double>(), 770 / 4000.0 / of_brains, 1e-9);
  EXPECT_EQ(j["tasks"][0]["ceiling"], "16-bit tensor peak, measured");
  EXPECT_NEAR(j["tasks"][1]["share_of_ceiling"].get<double>(), 960 / 4000.0 / of_bytes, 1e-9);
  EXPECT_EQ(j["tasks"][1]["ceiling"], "int8 tensor peak, measured");
  EXPECT_NEAR(j["tasks"][2]["share_of_ceiling"].get<double>(), 770 / 4000.0 / of_tf32, 1e-9);
  for (const int task : {2, 3}) EXPECT_EQ(j["tasks"][task]["ceiling"], "TF32 tensor peak, measured");
}

// Packs of before bring the other two.
TEST_F(BenchGpuTensor, AnUnknownTf32PeakIsOneLineAndTheOthersAreTold) {
  PackTask tf32 = product({.types = kTf32}, " ns=4000"), brain = product({.types = kBrain});
  tf32.checker =
      str("FAKECUBIN\nkernel ", kMmaBrainKernel, " probe_mma\nkernel ", kMmaByteKernel, " probe_mma\n");
  write({tf32, brain});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("\ntensor peaks measured: 16 bits "));
  EXPECT_THAT(ended.text,
              HasSubstr("\nTF32 tensor peak not measured: the pack has no kernel for it; pack again\n"));
  EXPECT_THAT(ended.text, HasSubstr("  0.00 TFLOP/s\n")) << "and is no share of the fp32 peak";
  EXPECT_FALSE(result()["tasks"][0].contains("ceiling"));
  EXPECT_EQ(result()["tasks"][1]["ceiling"], "16-bit tensor peak, measured");
}

// Packs of before, and packs for GPUs whose tensor cores we do not use.
TEST_F(BenchGpuTensor, AnUnknownTensorPeakIsOneLine) {
  PackTask t = product({.types = kBrain}, " ns=4000");
  t.checker = str("FAKECUBIN\nkernel ", kFfmaKernel, " probe_ffma\n");
  write({t});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text,
              HasSubstr("\ntensor peaks not measured: the pack has no kernel for it; pack again\n"));
  EXPECT_THAT(ended.text, Not(HasSubstr("TF32 tensor peak")));
  EXPECT_THAT(ended.text, HasSubstr("  0.00 TFLOP/s\n"));
  EXPECT_FALSE(result()["tasks"][0].contains("ceiling"));
  EXPECT_GT(result()["ffma_gflops"], 0);
}

}  // namespace
}  // namespace tuner
