// GPU candidates in the real runner, on a driver of ours (fake_cuda).
#pragma once

#include "tests/measure_server/candidate_fixture.h"

namespace tuner {

class DeviceTest : public CandidateTest {
 protected:
  static void SetUpTestSuite() {
    std::string folder = (std::filesystem::temp_directory_path() / "device_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    state = folder;
    // The runner passes its environment on to the process that loads the driver.
    setenv("TUNER_LIBCUDA", TUNER_FAKE_CUDA, 1);
    setenv("TUNER_LIBNVML", TUNER_FAKE_CUDA, 1);
    setenv("TUNER_FAKE_CUDA_LOG", (state / "contexts").c_str(), 1);
    setenv("TUNER_FAKE_CUDA_SICK", (state / "sick").c_str(), 1);
    setenv("TUNER_FAKE_CUDA_HANGS", (state / "hangs").c_str(), 1);
    CandidateTest::SetUpTestSuite();
  }
  static void TearDownTestSuite() {
    CandidateTest::TearDownTestSuite();
    std::filesystem::remove_all(state);
  }
  // After each test a good candidate is right, in the same runner.
  void TearDown() override {
    const RunReply good = run_device("doubling");
    EXPECT_EQ(good.outcome, Outcome::kOk) << good.message << good.error;
    CandidateTest::TearDown();
  }

  static Manifest device_manifest() {
    Manifest m = doubling_manifest();
    m.kind = binary_kind::kCubin;
    m.target = "cuda -arch=sm_90";
    m.launches = {LaunchInfo{.kernel = "k", .grid = {5, 1, 1}, .block = {256, 1, 1}, .params = {0, 1}}};
    return m;
  }
  RunRequest device_request(const std::string& binary, Manifest manifest = device_manifest()) {
    const Result<std::string> digest =
        save_artifact({std::move(manifest), binary}, (dir_ / "artifacts").string());
    EXPECT_TRUE(digest.is_ok()) << digest.message();
    RunRequest r = request(digest.is_ok() ? *digest : "");
    r.min_repeat_ms = 0.1;
    r.run_timeout_s = 5;
    return r;
  }
  // A module of one kernel `k` that behaves so; see fake_cuda.cpp.
  static std::string module_of(const std::string& behaviour) {
    return str("FAKECUBIN\nkernel k ", behaviour, " n=", kCount, "\n");
  }
  RunReply run_device(const std::string& behaviour) { return run(device_request(module_of(behaviour))); }

  static int contexts() {
    std::ifstream in(state / "contexts");
    int n = 0;
    for (std::string line; std::getline(in, line);) ++n;
    return n;
  }

  inline static std::filesystem::path state;
};

}  // namespace tuner
