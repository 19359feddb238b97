// Kernels that call the C library's mathematics: their libraries ask for libm themselves, so that a program
// that knows nothing of it can load and link them; other libraries need nothing.
#include <gmock/gmock.h>

#include "tests/models/onnx_model.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

class MathLibrary : public ::testing::Test {
 protected:
  // y = operator(x, x), or operator(x).
  void save(const std::string& name, const std::string& op, int operands = 1) const {
    OnnxModel model;
    model.input("x", DType::kFloat32, {1, 96});
    model.node(op, std::vector<std::string>(static_cast<size_t>(operands), "x"), {"y"});
    model.output("y", DType::kFloat32, {1, 96});
    shell_.write(name + ".onnx", model.bytes());
  }
  void run(const std::string& script) const {
    const CommandResult ran = shell_.run(script);
    ASSERT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
  }
  std::string needed(const std::string& library) const {
    return shell_.run("readelf -d " + library + " | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p'").out;
  }

  const testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(MathLibrary, IsAskedForByTheLibrariesWhoseKernelsCallIt) {
  save("waves", "Sin");
  save("powers", "Pow", 2);
  save("plain", "Tanh");  // expanded
  for (const char* name : {"waves", "powers", "plain"}) {
    const bool calls = std::string(name) != "plain";
    SCOPED_TRACE(name);
    run(str("tuner compile ", name, ".onnx -o ", name, " --no-tune"));
    run(str("tuner extract ", name, ".onnx -o ", name, ".json"));
    run(str("tuner build ", name, ".json -o b_", name, " --name ", name, " --db none.db"));
    for (const std::string& folder : {std::string(name), str("b_", name)}) {
      SCOPED_TRACE(folder);
      const std::string library = str(folder, "/lib/lib", name);
      EXPECT_EQ(needed(library + ".so"), calls ? "libm.so.6\n" : "");
      const std::string pc = shell_.read(str(folder, "/lib/pkgconfig/", name, ".pc")),
                        cmake = shell_.read(str(folder, "/lib/cmake/", name, "/", name, "Config.cmake"));
      using Text = ::testing::Matcher<std::string>;
      EXPECT_THAT(pc, calls ? Text(HasSubstr("\nLibs.private: -lm\n")) : Text(Not(HasSubstr("-lm"))));
      EXPECT_THAT(cmake, calls ? Text(HasSubstr("INTERFACE_LINK_LIBRARIES \"Threads::Threads;m\")"))
                               : Text(Not(HasSubstr("Threads;m"))));
    }
  }
  // With the archive alone, whoever links needs to say it.
  run("tuner build waves.json -o archive --name waves --db none.db --emit a");
  EXPECT_THAT(shell_.read("archive/lib/pkgconfig/waves.pc"), HasSubstr("-lwaves -lm -pthread\n"));
}

TEST_F(MathLibrary, ProgramsThatDoNotKnowItLoadAndLinkKernels) {
  save("waves", "Sin");
  run("tuner compile waves.onnx -o waves --no-tune");
  shell_.write("load.c", R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** words) {
  void* library = dlopen(words[count - 1], RTLD_NOW);
  if (!library) puts(dlerror());
  return library && dlsym(library, "tuner_waves_model") ? 0 : 1;
}
)");
  run("cc -O1 load.c -o load -ldl && ./load $PWD/waves/lib/libwaves.so");
  EXPECT_THAT(needed("load"), Not(HasSubstr("libm")));
  shell_.write("link.c", R"(
#include <stdio.h>
#include "waves.h"
_Alignas(64) static float x[96], y[96];
int main(void) {
  tuner_context* context = NULL;
  int i;
  for (i = 0; i < 96; ++i) x[i] = 1;
  if (waves_create("waves/waves.weights", NULL, &context) != 0 || waves_run(context, x, y) != 0) return 1;
  printf("%.4f\n", y[95]);
  waves_destroy(context);
  return 0;
}
)");
  for (const char* libraries :
       {"-Lwaves/lib -lwaves -Wl,-rpath,$PWD/waves/lib", "waves/lib/libwaves.a -lm"}) {
    const CommandResult ran =
        shell_.run(str("cc -std=c11 -O1 link.c -Iwaves/include ", libraries, " -pthread -o link && ./link"));
    EXPECT_EQ(ran.exit_code, 0) << libraries << "\n" << ran.err;
    EXPECT_EQ(ran.out, "0.8415\n");
  }
}

}  // namespace
}  // namespace tuner
