// Does an emulator run this process? By files of other architectures, and by the words that it was called
// with.
#include "compiler_core/base/process_emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/base/input_file.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ProcessEmulator, ProgramsOfOtherArchitecturesAreForeign) {
  const std::string own = read_whole("/proc/self/exe")->substr(0, 64);
  EXPECT_FALSE(is_foreign_program(own));
  std::string other = own;
  other[18] = 8;  // the machine: MIPS
  EXPECT_TRUE(is_foreign_program(other));
  EXPECT_FALSE(is_foreign_program("#!/bin/sh\n"));
  EXPECT_FALSE(is_foreign_program(""));
}

TEST(ProcessEmulator, ListsOfOtherCpusAreForeign) {
  const std::string x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\n",
                    arm = "processor\t: 0\nCPU implementer\t: 0x41\n";
  EXPECT_NE(is_foreign_cpuinfo(x86), is_foreign_cpuinfo(arm));
  EXPECT_FALSE(is_foreign_cpuinfo(""));
}

TEST(ProcessEmulator, TheEmulatorsWordsStandInFrontOfTheProgram) {
  const std::vector<std::string> own = {"bin/runner", "--probe"};
  EXPECT_THAT(
      words_before_program({"qemu-aarch64", "-L", "/sysroot", "bin/runner", "--probe"}, own, "/x/bin/runner"),
      ElementsAre("qemu-aarch64", "-L", "/sysroot"));
  // As binfmt_misc calls it where it keeps the program's first word.
  EXPECT_THAT(words_before_program({"/usr/bin/qemu-aarch64", "/x/bin/runner", "bin/runner", "--probe"}, own,
                                   "/x/bin/runner"),
              ElementsAre("/usr/bin/qemu-aarch64"));
  EXPECT_THAT(words_before_program(own, own, "/x/bin/runner"), IsEmpty());
}

TEST(ProcessEmulator, APlainProcessHasNone) {
  if (is_emulated_process()) GTEST_SKIP() << "an emulator runs this test";
  EXPECT_THAT(emulator_words(), IsEmpty());
  EXPECT_FALSE(path_of_this_program().empty());
}

}  // namespace
}  // namespace tuner
