// bench_gpu as a process, on a CUDA driver and a cuBLAS of ours: what it compares, what it refuses, what it
// says when something is not there.
#include "tests/bench/bench_gpu_fixture.h"

namespace tuner {
namespace {

TEST_F(BenchGpu, AProductIsTimedInTurnWithCublas) {
  write({product({}, "matmul m=5 n=7 k=11 ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUBLAS_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuBLAS 13.1.0"));
  EXPECT_THAT(ended.text, HasSubstr("ours           4.00 us  [4.00, 4.00]"));
  EXPECT_THAT(ended.text, HasSubstr("cuBLAS         3.00 us  [3.00, 3.00]"));
  EXPECT_THAT(ended.text, HasSubstr("cuBLAS/ours  0.750  [0.750, 0.750]"));
  EXPECT_THAT(ended.text, HasSubstr("1980 MHz, memory 2619 MHz, 41 C, 213 W, throttled by power cap"));
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuBLAS/ours: 0.750 over 1 task\n"));
  const json j = result();
  EXPECT_THAT(j["device"].get<std::string>(), HasSubstr("Fake GPU sm_90"));
  EXPECT_EQ(j["fp32_peak_gflops"], 2560);
  const json& t = j["tasks"][0];
  EXPECT_EQ(t["ns"].size(), 6u);
  EXPECT_EQ(t["peer"]["ns"].size(), 6u);
  EXPECT_NEAR(t["peer"]["ratio_to_ours"]["median"].get<double>(), 0.75, 1e-3);
  // 2 * 5 * 7 * 11 operations in 4 us, of 2560 GFLOP/s.
  EXPECT_NEAR(t["share_of_ceiling"].get<double>(), 770 / 4000.0 / 2560, 1e-6);
  EXPECT_EQ(t["artifact"].get<std::string>().size(), 64u);
  EXPECT_EQ(t["states"].size(), 3u);
}

// Each is another way to call cuBLAS; the reference says whether it was the right one.
TEST_F(BenchGpu, CublasGetsOperandsInWhateverWayTheyAreStored) {
  std::vector<PackTask> tasks;
  tasks.push_back(product({}, "matmul m=5 n=7 k=11"));
  tasks.push_back(product({.transpose_a = true}, "matmul m=5 n=7 k=11 ta=1"));
  tasks.push_back(product({.transpose_b = true}, "matmul m=5 n=7 k=11 tb=1"));
  tasks.push_back(product({.transpose_a = true, .transpose_b = true}, "matmul m=5 n=7 k=11 ta=1 tb=1"));
  tasks.push_back(product({.batch = 3}, "matmul b=3 m=5 n=7 k=11"));
  tasks.push_back(product({.batch = 3, .transpose_b = true}, "matmul b=3 m=5 n=7 k=11 tb=1"));
  write(std::move(tasks));
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 6 tasks"));
}

// What follows the product is done by the library too; only where it has nothing of the kind, a bare product
// is compared.
TEST_F(BenchGpu, ThePeerDoesBiasAndActivationAsOursDoes) {
  write({product({.bias = true, .relu = true}, "matmul m=5 n=7 k=11 bias=1 relu=1")});
  const Ended whole = run("", "TUNER_FAKE_CUBLAS_NS=1");
  EXPECT_EQ(whole.exit_code, 0) << whole.text;
  EXPECT_THAT(whole.text, HasSubstr("cuBLAS/ours  1.600"));
  EXPECT_THAT(whole.text, HasSubstr("(heuristic #3); bias and relu in its epilogue\n"));
  EXPECT_EQ(result()["tasks"][0]["peer"]["library"], "cuBLASLt");
  const Ended bare = run("", "TUNER_FAKE_CUBLASLT_NO_EPILOGUE=1");
  EXPECT_EQ(bare.exit_code, 0) << bare.text;
  EXPECT_THAT(bare.text, HasSubstr("cuBLAS/ours  1.600"));
  EXPECT_THAT(bare.text, HasSubstr("(heuristic #3); the product alone, without bias and activation\n"));
  const Ended sgemm = run("", "TUNER_LIBCUBLASLT=/not/there.so");
  EXPECT_EQ(sgemm.exit_code, 0) << sgemm.text;
  EXPECT_THAT(sgemm.text, HasSubstr("cuBLAS/ours  1.000"));
  EXPECT_THAT(sgemm.text, HasSubstr("cublasSgemm; the product alone, without bias and activation\n"));
}

// --- batches ---

// The host takes longer to queue a call than our kernel runs. Recorded, that does not count.
TEST_F(BenchGpu, BatchesAreCudaGraphsAndCallsOneByOneStandBeside) {
  write({product({}, "matmul m=5 n=7 k=11 ns=4000")});
  const Ended ended =
      run("", "TUNER_FAKE_CUBLAS_NS=5000 TUNER_FAKE_CUBLASLT_NS=90000 TUNER_FAKE_CUDA_LAUNCH_NS=4500");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("ours           4.00 us  [4.00, 4.00]"));
  EXPECT_THAT(ended.text, HasSubstr("cuBLAS/ours  1.250  [1.250, 1.250]"));
  EXPECT_THAT(ended.text, HasSubstr("           calls one by one: ours 4.50 us\n"));
  EXPECT_THAT(ended.text, HasSubstr("           calls one by one: cuBLAS 5.00 us, cuBLAS/ours 1.111\n"));
  const json t = result()["tasks"][0];
  EXPECT_EQ(t["batches"], "CUDA graphs");
  EXPECT_EQ(t["ns"].size(), 6u);
  EXPECT_EQ(t["one_by_one"]["ns"].size(), 5u);
  EXPECT_NEAR(t["peer"]["one_by_one"]["ratio_to_ours"]["median"].get<double>(), 5.0 / 4.5, 1e-3);
  EXPECT_GE(t["calls_a_batch"], 50'000 / 4000);
}

// Both sides alike, and the reason is told.
TEST_F(BenchGpu, WhereCallsCannotBeRecordedBothAreQueuedOneByOne) {
  write({product({.types = {.dtype = DType::kBFloat16}},
                 Product{.types = {.dtype = DType::kBFloat16}}.kernel())});
  for (const auto& [setting, why] :
       {std::pair("TUNER_FAKE_CUDA_NO_GRAPHS=1", "ours: cuStreamBeginCapture: "),
        {"TUNER_FAKE_CUBLASLT_NO_CAPTURE=1", "cuBLASLt: cuBLASLt: cublasLtMatmul answered status 15"}}) {
    const Ended ended = run("", str(setting, " TUNER_FAKE_CUDA_LAUNCH_NS=9000"));
    EXPECT_EQ(ended.exit_code, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(str("           calls one by one, not as CUDA graphs: ", why)));
    EXPECT_THAT(ended.text, HasSubstr("ours           9.00 us  [9.00, 9.00]"));
    EXPECT_THAT(ended.text, HasSubstr("cuBLASLt/ours  1.000"));
    EXPECT_THAT(result()["tasks"][0]["batches"].get<std::string>(),
                HasSubstr(str("calls one by one: ", why)));
    EXPECT_FALSE(result()["tasks"][0].contains("one_by_one"));
  }
}

// --- convolutions ---

TEST_F(BenchGpu, AConvolutionIsTimedInTurnWithTheBestOfCudnnsAlgorithmsThatAreRight) {
  write({convolution({}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuDNN 9.15.0\n"));
  // Of engine 2 there is no plan, 3 is faster and wrong, 1 has tensor cores, 0 is slower.
  EXPECT_THAT(ended.text, HasSubstr("cuDNN          3.00 us  [3.00, 3.00]  engine 5 (heuristic A #5)\n"));
  EXPECT_THAT(ended.text, HasSubstr("cuDNN/ours  0.750  [0.750, 0.750]"));
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of cuDNN/ours: 0.750 over 1 task\n"));
  const json t = result()["tasks"][0];
  EXPECT_EQ(t["peer"]["ns"].size(), 6u);
  EXPECT_LT(t["peer"]["max_error"].get<double>(), 1);
  EXPECT_EQ(t["peer"]["algorithm"]["engine"], 5);
  EXPECT_EQ(t["peer"]["algorithm"]["found_by"], "heuristic A #5");
  EXPECT_EQ(t["peer"]["algorithm"]["tensor_cores"], false);
  EXPECT_EQ(t["peer"]["algorithm"]["workspace_bytes"], 4096);
}

// What was asked, and what came of it: a reader sees whether the peer was used well.
TEST_F(BenchGpu, TheSearchForThePeerIsTold) {
  write({convolution({}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  const json searches = result()["tasks"][0]["peer"]["searches"];
  const json& direct = searches[0];
  EXPECT_EQ(direct["library"], "cuDNN");
  EXPECT_EQ(direct["counts"], true);
  EXPECT_EQ(direct["all_tried"], true);
  // A has engines 2, 3, two tiles of 1, 5 and Winograd's; B the same and a third tile.
  EXPECT_EQ(direct["offered"]["heuristic_A"], 6);
  EXPECT_EQ(direct["offered"]["heuristic_B"], 7);
  EXPECT_EQ(direct["offered"]["fallback"], 1);
  EXPECT_EQ(direct["offered"]["of_other_arithmetic"], 4);
  EXPECT_EQ(direct["offered"]["of_other_algorithms"], 1);
  EXPECT_EQ(direct["tried"], 4) << "2, 3, 5, 0";
  EXPECT_EQ(direct["refused"], 1);
  EXPECT_EQ(direct["wrong"], 1);
  EXPECT_EQ(direct["finalists"][0]["name"], "engine 5 (heuristic A #5)");
  EXPECT_NEAR(direct["finalists"][0]["ns"].get<double>(), 3000, 1);
  EXPECT_NEAR(direct["finalists"][0]["quick_ns"].get<double>(), 3000, 1);
  EXPECT_THAT(
      ended.text,
      HasSubstr("           searched cuDNN: heuristic A 6, heuristic B 7, fallback 1, engines by their "
                "defaults 6, of other arithmetic 4, of other algorithms 1; 4 tried, 1 refused, 1 wrong; "));
  EXPECT_THAT(ended.text,
              HasSubstr(" s, all of them; first failure: engine 3 (heuristic A #2): wrong answer: out["));
}

// Other terms than ours: told beside the peer, and never the peer.
TEST_F(BenchGpu, OtherLayoutsAndAlgorithmsStandBesideThePeer) {
  write({convolution({.bias = true, .relu = true}, " ns=4000")});
  const Ended ended = run("", "TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuDNN/ours  0.750"));
  EXPECT_THAT(
      ended.text,
      HasSubstr(
          "  beside         3.00 us  [3.00, 3.00]  cuDNN engine 5 (heuristic A #5); bias and relu in its "
          "graph; images as NHWC, in and out; 0.750 of ours\n"));
  EXPECT_THAT(ended.text,
              HasSubstr("  beside         1.80 us  [1.80, 1.80]  cuDNN engine 4, winograd (heuristic A "
                        "#6); bias and relu in its graph; by Winograd and FFT; 0.450 of ours\n"));
  const json beside = result()["tasks"][0]["peer"]["beside"];
  ASSERT_EQ(beside.size(), 2u);
  EXPECT_EQ(beside[1]["algorithm"]["winograd"], true);
  EXPECT_EQ(beside[1]["ns"].size(), 6u);
  EXPECT_LT(beside[0]["max_error"].get<double>(), 1) << "an image that lies otherwise is compared as it lies";
}

TEST_F(BenchGpu, ASearchEndsWithItsSeconds) {
  write({convolution({})});
  EXPECT_EQ(run("--peer-seconds 0.1").exit_code, 0);
  EXPECT_LT(result()["tasks"][0]["peer"]["searches"].size(), 4u);
  const Ended wrong = run("--peer-seconds 0");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.text, HasSubstr("--peer-seconds: expected a number from 0.1 to 600, found \"0\""));
}

// Each is described to cuDNN in another way; the reference says whether it was the right one.
TEST_F(BenchGpu, CudnnGetsStridesPaddingAndGroups) {
  write({convolution({}), convolution({.stride = 2}), convolution({.size = 1, .padding = 0}),
         convolution({.filters = 8, .size = 5, .stride = 2, .padding = 2, .groups = 2}),
         convolution({.channels = 6, .groups = 6}), convolution({.bias = true})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("over 6 tasks"));
  EXPECT_THAT(ended.text, HasSubstr("engine 5 (heuristic A #5); bias in its graph\n"));
}

TEST_F(BenchGpu, ACudnnThatIsWrongOrNotThereIsNoPeer) {
  write({convolution({})});
  const Ended wrong = run("", "TUNER_FAKE_CUDNN_WRONG=1");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.text,
              HasSubstr("  cuDNN    engine 3 (heuristic A #2): wrong answer: out[0, 0, 0, 0] is 1e+03"));
  EXPECT_THAT(wrong.text, HasSubstr("; direct: wrong answer: "));
  EXPECT_THAT(wrong.text, Not(HasSubstr("cuDNN/ours")));
  const Ended absent = run("", "TUNER_LIBCUDNN=/not/there.so");
  EXPECT_EQ(absent.exit_code, 0) << absent.text;
  EXPECT_THAT(absent.text, HasSubstr("cuDNN    no cuDNN: /not/there.so: cannot open shared object file"));
  EXPECT_THAT(absent.text, HasSubstr("TUNER_LIBCUDNN names the file of libcudnn.so.9"));
}

// Where its graphs have nothing, the functions of before are asked.
TEST_F(BenchGpu, ACudnnWithoutPlansIsAskedByItsOlderFunctions) {
  write({convolution({.bias = true, .relu = true}, " ns=4000")});
  const Ended older = run("", "TUNER_FAKE_CUDNN_NO_GRAPH=1 TUNER_FAKE_CUDNN_NS=3000");
  EXPECT_EQ(older.exit_code, 0) << older.text;
  EXPECT_THAT(older.text,
              HasSubstr("cuDNN          3.00 us  [3.00, 3.00]  implicit_precomp_gemm; its older functions; "
                        "the convolution alone, without bias and activation\n"));
  // A graph of the convolution alone comes before them.
  const Ended bare = run("", "TUNER_FAKE_CUDNN_NO_STEPS=1");
  EXPECT_EQ(bare.exit_code, 0) << bare.text;
  EXPECT_THAT(bare.text,
              HasSubstr("engine 5 (heuristic A #5); the convolution alone, without bias and activation\n"));
}

// What the library cannot be told is said in its column, and ours is timed.
TEST_F(BenchGpu, ImagesThatChangeTheirLayoutHaveNoCudnnPeer) {
  PackTask t = convolution({});
  t.workload_key.replace(t.workload_key.find("layout=NCHW"), 11, "layout=NHWC out_layout=NCHW");
  write({t});
  const Ended ended = run();
  EXPECT_THAT(ended.text,
              HasSubstr("cuDNN    cuDNN: data in NHWC and NCHW; only NCHW and NHWC are compared"));
  EXPECT_THAT(ended.text, HasSubstr("ours "));
}

// --- the device for cuDNN ---

TEST_F(BenchGpu, WritesWhatCudnnAsksOfTheDevice) {
  const std::string command = str("cd ", dir_.string(), " && env TUNER_LIBCUDA=", TUNER_FAKE_CUDA,
                                  " TUNER_LIBCUDNN=", TUNER_FAKE_CUDNN, " ", TUNER_BENCH_GPU_PATH,
                                  " --device-properties device.json > log");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(dir_ / "device.json");
  EXPECT_EQ(json::parse(in, nullptr, false)["deviceVer"], 900);
  EXPECT_EQ(run("--device-properties device.json").exit_code, 2) << "it stands alone";
}

// The library that is really installed, where one is: it has every symbol we ask for.
TEST_F(BenchGpu, TheInstalledCudnnHasWhatWeAskFor) {
  write({convolution({})});
  const Ended ended = run("", "-u TUNER_LIBCUDNN");
  if (ended.text.find("no cuDNN: libcudnn") != std::string::npos)
    GTEST_SKIP() << "no cuDNN is installed here";
  EXPECT_THAT(ended.text, Not(HasSubstr("the library has no ")));
}

// --- ceilings ---

TEST_F(BenchGpu, SharesAreOfThePeakThatWasMeasuredInTheSameRun) {
  PackTask t = product({}, "matmul m=5 n=7 k=11 ns=4000");
  write({t});
  EXPECT_THAT(run().text, HasSubstr("fp32 peak not measured: the pack has no kernel for it; pack again\n"));
  EXPECT_EQ(result()["tasks"][0]["ceiling"], "fp32 peak");
  t.checker = str("FAKECUBIN\nkernel ", kFfmaKernel, " probe_ffma\n");
  write({t});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  // A launch takes a microsecond on this driver: 8 blocks of 256 threads on each of 10 multiprocessors.
  const double gflops = 2.0 * kFfmaPerRound * 256 * 256 * 80 / 1000;
  EXPECT_NEAR(result()["ffma_gflops"].get<double>(), gflops, 1e-3 * gflops);
  EXPECT_NEAR(result()["tasks"][0]["share_of_ceiling"].get<double>(), 770 / 4000.0 / gflops, 1e-9);
  EXPECT_EQ(result()["tasks"][0]["ceiling"], "fp32 peak, measured");
}

TEST_F(BenchGpu, ARowOperatorIsTimedInTurnWithACopyOfItsTraffic) {
  write({copying({"copy ns=16"})});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  const json t = result()["tasks"][0];
  EXPECT_EQ(t["bytes"], 8000);
  EXPECT_EQ(t["peer"]["name"], "copy");
  // The driver copies in 1 ns and one more a kilobyte: of the 4000 bytes that are read.
  EXPECT_NEAR(t["peer"]["time_ns"]["median"].get<double>(), 5, 0.1);
  EXPECT_NEAR(t["peer"]["ratio_to_ours"]["median"].get<double>(), 5.0 / 16, 0.01);
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of copy/ours: 0.31"));
}

TEST_F(BenchGpu, RotatedCallsTakeTurnsOnMoreOperandsThanL2Holds) {
  write({copying({"copy ns=1000 beyond_l2_ns=3000"})});
  ASSERT_EQ(run().exit_code, 0);
  EXPECT_NEAR(result()["tasks"][0]["time_ns"]["median"].get<double>(), 1000, 1);
  const Ended rotated = run("--caches rotate");
  EXPECT_EQ(rotated.exit_code, 0) << rotated.text;
  EXPECT_NEAR(result()["tasks"][0]["time_ns"]["median"].get<double>(), 3000, 1);
  EXPECT_GT(result()["tasks"][0]["operand_sets"], 3 * 256 * 1024 / 8000);
}

TEST_F(BenchGpu, AWrongAnswerIsRefusedAndTheOtherTasksAreTimed) {
  write({product({}, "doubling n=35 ns=1"), copying({"copy"}), copying({"beside"}, 2000)});
  const Ended ended = run();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.text, HasSubstr("failed   wrong answer: out[0, 0] is "));
  EXPECT_THAT(ended.text, HasSubstr("failed   wrote outside out"));
  EXPECT_THAT(ended.text, Not(HasSubstr("cuBLAS/ours")));
  EXPECT_THAT(ended.text, HasSubstr("geometric mean of copy/ours: "));
  EXPECT_THAT(ended.text, HasSubstr("2 of 3 tasks have no time"));
  EXPECT_FALSE(result()["tasks"][0].contains("ns"));
  EXPECT_FALSE(result()["tasks"][0].contains("peer"));
}

TEST_F(BenchGpu, AWrongCublasIsNoPeer) {
  write({product({}, "matmul m=5 n=7 k=11")});
  const Ended both = run("", "TUNER_FAKE_CUBLAS_WRONG=1 TUNER_FAKE_CUBLASLT_WRONG=1");
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.text, HasSubstr("; cublasSgemm: wrong answer: out["));
  EXPECT_THAT(both.text, HasSubstr("ours "));
  EXPECT_THAT(both.text, Not(HasSubstr("cuBLAS/ours")));
  // Where the other library is right, it is the peer.
  const Ended one = run("", "TUNER_FAKE_CUBLAS_WRONG=1 TUNER_FAKE_CUBLAS_NS=1");
  EXPECT_EQ(one.exit_code, 0) << one.text;
  EXPECT_THAT(one.text, HasSubstr("cuBLAS/ours  1.600"));
  EXPECT_THAT(one.text, HasSubstr("1 tried, 0 refused, 1 wrong; "));
}

TEST_F(BenchGpu, WithoutCublasTheColumnSaysWhy) {
  write({product({}, "matmul m=5 n=7 k=11")});
  const Ended ended = run("", "TUNER_LIBCUBLAS=/not/there.so");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cuBLAS   no cuBLAS: /not/there.so: cannot open shared object file"));
  EXPECT_THAT(ended.text, HasSubstr("TUNER_LIBCUBLAS names the file of libcublas.so.13"));
  EXPECT_THAT(ended.text, Not(HasSubstr("cuBLAS/ours")));
  EXPECT_THAT(result()["tasks"][0]["peer"]["missing"].get<std::string>(), HasSubstr("no cuBLAS"));
}

TEST_F(BenchGpu, TakesTheCandidateThatCameFurthestAndWasFastestThere) {
  write({copying({"copy ns=9000", "copy ns=7000", "copy ns=5000", "wrong ns=1"})});
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_NEAR(result()["tasks"][0]["time_ns"]["median"].get<double>(), 9000, 1) << "the first";
  add_result(0, 0, "ok", 9000);
  add_result(1, 0, "ok", 4000);
  add_result(1, 1, "ok", 7000);
  add_result(2, 0, "ok", 5000);  // left behind after the first round
  add_result(3, 0, "wrong_answer", 1);
  const Ended ended = run("--results results.jsonl");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  EXPECT_NEAR(result()["tasks"][0]["time_ns"]["median"].get<double>(), 7000, 1);
}

TEST_F(BenchGpu, TheBestOnesTakeTurnsAndTheFastestIsHeldAgainstThePeer) {
  write({copying({"copy ns=9000", "copy ns=7000", "copy ns=8000", "wrong ns=1"})});
  // By the results the second one was slower, and the third one did not go on.
  add_result(0, 0, "ok", 9000);
  add_result(0, 1, "ok", 5000);
  add_result(1, 0, "ok", 9000);
  add_result(1, 1, "ok", 6000);
  add_result(2, 0, "ok", 8000);
  add_result(3, 0, "wrong_answer", 1);
  const Ended two = run("--results results.jsonl --best 2");
  EXPECT_EQ(two.exit_code, 0) << two.text;
  const json t = result()["tasks"][0];
  EXPECT_NEAR(t["time_ns"]["median"].get<double>(), 7000, 1);
  EXPECT_THAT(t["config"].get<std::string>(), HasSubstr("ns=7000"));
  ASSERT_EQ(t["others"].size(), 1u);
  EXPECT_NEAR(t["others"][0]["time_ns"]["median"].get<double>(), 9000, 1);
  EXPECT_EQ(t["others"][0]["ns"].size(), 6u);
  EXPECT_EQ(t["peer"]["name"], "copy");
  EXPECT_EQ(t["peer"]["ns"].size(), 6u);
  EXPECT_THAT(two.text, HasSubstr("  or             9.00 us  [9.00, 9.00]  t copy ns=9000"));
  EXPECT_EQ(run("--results results.jsonl --best 3").exit_code, 0);
  ASSERT_EQ(result()["tasks"][0]["others"].size(), 2u);
  EXPECT_NEAR(result()["tasks"][0]["others"][1]["time_ns"]["median"].get<double>(), 8000, 1);
  // Without results the first ones; one that is wrong is told and the others are timed.
  const Ended all = run("--best 4");
  EXPECT_EQ(all.exit_code, 1) << all.text;
  EXPECT_THAT(all.text, HasSubstr("  failed   wrong answer: out[0, 0] is "));
  ASSERT_EQ(result()["tasks"][0]["others"].size(), 3u);
  EXPECT_FALSE(result()["tasks"][0]["others"][0].contains("ns"));
  EXPECT_EQ(run("--best 0").exit_code, 2);
}

TEST_F(BenchGpu, ACheckRunsEachKernelAndEachPeerOnceAndTimesNothing) {
  write({copying({"copy ns=9000", "copy ns=7000"}), convolution({}), product({}, "doubling n=35")});
  const Ended checked = run("--check --best 2", str("TUNER_FAKE_CUDA_TURNS=", (dir_ / "turns").string()));
  EXPECT_EQ(checked.exit_code, 1) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("kernels are run and compared; nothing is timed\n"));
  EXPECT_THAT(checked.text, HasSubstr("  right    max error "));
  EXPECT_THAT(checked.text, HasSubstr("  cuDNN    right  engine 5 "));
  EXPECT_THAT(checked.text, HasSubstr("  failed   wrong answer: out[0, 0] is "));
  EXPECT_THAT(checked.text, HasSubstr("2 of 3 tasks are right\n"));
  EXPECT_THAT(checked.text, Not(HasSubstr(" us ")));
  EXPECT_THAT(checked.text, Not(HasSubstr("geometric mean")));
  const json tasks = result()["tasks"];
  EXPECT_FALSE(tasks[0].contains("ns"));
  EXPECT_FALSE(tasks[0].contains("share_of_ceiling"));
  EXPECT_EQ(tasks[0]["others"].size(), 1u);
  EXPECT_EQ(tasks[0]["output_sha256"].get<std::string>().size(), 64u);
  EXPECT_NE(tasks[0]["output_sha256"], tasks[1]["output_sha256"]);
  // The same when it is timed, and in another process.
  run();
  EXPECT_EQ(result()["tasks"][0]["output_sha256"], tasks[0]["output_sha256"]);
}

TEST_F(BenchGpu, CalibratingTellsClocksOfLoadsAndNeedsKernelsForIt) {
  PackTask t = copying({"copy"});
  write({t});
  const Ended without = run("--calibrate");
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.text, HasSubstr("bench_gpu: the pack has no kernels to calibrate with; pack again\n"));
  t.checker = "FAKECUBIN\n";
  int clocks = 0;
  for (const char* name : {kLinksKernel, kClocksFfma, kClocksLds128, kClocksShared, kClocksL1, kClocksL2})
    t.checker +=
        str("kernel ", name, name == kLinksKernel ? " probe_links" : " probe_clocks n=", clocks += 160, "\n");
  write({t});
  const Ended ended = run("--calibrate");
  EXPECT_EQ(ended.exit_code, 0) << ended.text;
  const json found = result()["calibration"];
  // 320 clocks a round of 1024 threads; 480 a round of 16 loads of 8 warps; then 640, 800 and 960 of 16
  // loads.
  EXPECT_EQ(found["ffma_a_clock"], 1024.0 * kFfmaPerRound / 320);
  EXPECT_EQ(found["shared_128_bit_loads"][0]["clocks"], 480.0 / 128);
  EXPECT_EQ(found["latency_clocks"], (json{{"shared", 40.0}, {"l1", 50.0}, {"l2", 60.0}, {"dram", 60.0}}));
  EXPECT_GT(found["clock_mhz"], 0);
  EXPECT_EQ(result()["tasks"].size(), 0u);
  EXPECT_THAT(ended.text, HasSubstr("shared memory 40.0, L1 50.0, L2 60.0, beyond 60.0\n"));
  EXPECT_THAT(ended.text, HasSubstr("      3.75  by the model  4  one after the other\n"));
  EXPECT_EQ(run("--calibrate --check").exit_code, 2);
}

TEST_F(BenchGpu, WithoutAGpuOneLineSaysWhy) {
  write({copying({"copy"})});
  const Ended ended = run("", "TUNER_LIBCUDA=/not/there.so");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.text, HasSubstr("bench_gpu: no GPU: the driver library"));
  EXPECT_EQ(std::count(ended.text.begin(), ended.text.end(), '\n'), 1);
}

TEST_F(BenchGpu, ADeviceThatHangsOrFaultsEndsTheRunAndKeepsWhatWasFound) {
  write({copying({"copy"}), copying({"illegal_address"}, 2000), copying({"copy"}, 3000)});
  const Ended fault = run();
  EXPECT_EQ(fault.exit_code, 1);
  EXPECT_THAT(fault.text, HasSubstr("stopped: the device failed: "));
  EXPECT_THAT(fault.text, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  ASSERT_EQ(result()["tasks"].size(), 2u);
  EXPECT_EQ(result()["tasks"][0]["ns"].size(), 6u);

  write({copying({"hang"})});
  const Ended hang = run("--deadline 0.3");
  EXPECT_EQ(hang.exit_code, 1);
  EXPECT_THAT(hang.text, HasSubstr("the device has not answered within 0.6 s: timing of 1 task;"));
}

TEST_F(BenchGpu, WrongUseIsTold) {
  EXPECT_EQ(run().exit_code, 2) << "there is no pack";
  write({copying({"copy"})});
  EXPECT_EQ(run("--rounds 2").exit_code, 2);
  EXPECT_EQ(run("--rounds").exit_code, 2);
  const Ended flushed = run("--caches flush");
  EXPECT_EQ(flushed.exit_code, 2);
  EXPECT_THAT(flushed.text, HasSubstr("--caches: expected warm or rotate, found \"flush\""));
  EXPECT_EQ(run("another.pack").exit_code, 2);
  const Ended ended = run("--results none.jsonl");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.text, HasSubstr("none.jsonl: cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "none.jsonl"));
}

}  // namespace
}  // namespace tuner
