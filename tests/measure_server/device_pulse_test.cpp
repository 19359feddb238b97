// The pulse's PTX, as a driver's compiler sees it. ptxas is that compiler as a program; skipped where there
// is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "compiler_core/base/status.h"
#include "measure_server/runner/device_pulse_ptx.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

// What the command prints, and how it ends.
std::string output_of(const std::string& command, int& status) {
  std::string text;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char block[512];
  for (size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  status = pclose(pipe);
  return text;
}

// $CUDA_PATH/bin/ptxas, or that in PATH or where the toolkit is as a rule; empty: none.
std::string find_ptxas() {
  const char* given = std::getenv("CUDA_PATH");
  for (const std::string& path : {given != nullptr ? str(given, "/bin/ptxas") : "ptxas", std::string("ptxas"),
                                  std::string("/usr/local/cuda/bin/ptxas")}) {
    int status = 0;
    (void)output_of(path + " --version", status);
    if (status == 0) return path;
  }
  return "";
}

TEST(DevicePulse, DriversCompileItForOldAndNewArchitecturesWithoutSpills) {
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas in $CUDA_PATH, PATH or /usr/local/cuda";
  const TemporaryFolder folder;
  const std::string text = folder.path() / "pulse.ptx";
  std::ofstream(text) << kDevicePulsePtx;
  for (const char* arch : {"sm_75", "sm_80", "sm_90", "sm_90a"}) {
    int status = 0;
    const std::string said = output_of(str(ptxas, " -v -arch=", arch, " -o ", text, ".cubin ", text), status);
    EXPECT_EQ(status, 0) << arch << ": " << said;
    EXPECT_THAT(said, testing::HasSubstr("'tuner_pulse'")) << arch;
    EXPECT_THAT(said, testing::HasSubstr(" 0 bytes spill stores")) << arch;
  }
}

}  // namespace
}  // namespace tuner
