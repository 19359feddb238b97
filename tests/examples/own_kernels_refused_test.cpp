// What is wrong with a user's kernel is said in one line before anything of it runs: exit code 2, no file, no
// database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compiler_core/base/npy.h"
#include "compiler_core/foreign/confined_program.h"
#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSource[] = R"(#include <stdint.h>
#include "more.h"
void twice(const float* x, float* y, int32_t n) { for (int i = 0; i < n; i += STEP) for (int k = i; k < i + STEP; ++k) y[k] = 2 * x[k]; }
void plain(const float* x, float* y, int32_t n) { for (int i = 0; i < n; ++i) y[i] = 2 * x[i]; }
)";
constexpr char kJob[] = R"({
  "op": "kernel", "source": "twice.c", "function": "twice", "sizes": {"n": 64},
  "arguments": [{"name": "x", "type": "float32", "shape": ["n"]},
                {"name": "y", "type": "float32", "shape": ["n"], "role": "out"},
                {"name": "count", "type": "int32", "value": "n"}],
  "knobs": {"STEP": [1, 2, 4], "MODE": ["fast", "small"]}, "flags": ["-O2"], "reference": {"function": "plain"},
  "trials": 2
})";

class OwnKernelsRefused : public ::testing::Test {
 protected:
  OwnKernelsRefused() {
    line_.write("twice.c", kSource);
    line_.write("more.h", "/* more */\n");
    const std::vector<float> floats(64);
    const std::vector<double> doubles(64);
    line_.write("x.npy", npy_bytes(DType::kFloat32, {64}, floats.data(), 256));
    line_.write("short.npy", npy_bytes(DType::kFloat32, {32}, floats.data(), 128));
    line_.write("double.npy", npy_bytes(DType::kFloat64, {64}, doubles.data(), 512));
    line_.write("no.npy", "this is no array");
  }
  void write_job(const std::string& at, const std::string& value) const {
    json job = json::parse(kJob);
    if (!at.empty()) job[json::json_pointer(at)] = json::parse(value);
    line_.write("job.json", job.dump());
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(line_.folder()))
      if (entry.path().string().find("/.home/") == std::string::npos) names.insert(entry.path().string());
    return names;
  }
  std::string refused(const std::string& before = "") const {
    const std::set<std::string> files_before = files();
    const testing::CommandResult r = line_.run(before + "tuner submit job.json --db made.db");
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(files(), files_before);
    EXPECT_THAT(r.err, Not(HasSubstr("root:")));
    std::string why = r.err.substr(0, r.err.find('\n'));
    EXPECT_EQ(why.size() + 1, r.err.size()) << r.err;
    EXPECT_TRUE(testing::one_line(why)) << r.err;
    EXPECT_LT(why.size(), 600u) << why;
    EXPECT_THAT(why, HasSubstr("job.json: "));
    return why;
  }
  testing::CommandLine line_{TUNER_BIN_DIR};
};

TEST_F(OwnKernelsRefused, WhatAnEntrySays) {
  const struct {
    const char *at, *value, *message;
  } cases[] = {
      {"/language", R"("rust")",
       "language: expected \"c\", \"c++\", \"cuda\", \"ptx\", \"cubin\" or \"command\""},
      {"/functon", R"("twice")", "\"functon\": unknown key; did you mean function?"},
      {"/function", R"("twice; rm -rf /")", "function: expected a name for C"},
      {"/function", R"("")", "function: expected a name for C"},
      {"/source", R"("none.c")", "none.c"},
      {"/source", R"(".")", "source: \".\""},
      {"/source", R"("/etc/passwd")", "is an absolute path"},
      {"/source", R"("../twice.c")", "leads out of the folder"},
      {"/include", R"("more.h")", "include: expected a list"},
      {"/sizes", R"({"n": 1.5})", "sizes.n: expected an integer"},
      {"/sizes", R"({"n": 4611686018427387904})", "sizes.n: expected an integer from 0 to 2^40"},
      {"/sizes", R"({"n": 64, "int": 3})", "\"int\" is a keyword"},
      {"/arguments", "[]", "arguments: expected 1 to 64, found 0"},
      {"/arguments/1/role", R"("in")", "expected a buffer of role"},
      {"/arguments/1/role", R"("output")", "role: expected \"in\", \"out\" or \"inout\""},
      {"/arguments/0/type", R"("float8")", "type: expected one of bool"},
      {"/arguments/0/value", "3", "shape: expected either"},
      {"/arguments/0/shape", "[]", "shape: expected a list of 1 to 8 extents"},
      {"/arguments/0/shape", R"(["m"])", "unknown name"},
      {"/arguments/0/shape", R"x(["n // (n - 64)"])x", "division by zero"},
      {"/arguments/0/shape", R"(["n - 65"])", "shape: expected extents of at least 1"},
      {"/arguments/0/shape", R"(["2 ** 40", "2 ** 40"])", "is larger than 2^40 bytes"},
      {"/arguments/0/shape", R"(["2 ** 64"])", "64 bits"},
      {"/arguments/0/shape", R"(["n / 2"])", "//"},
      {"/arguments/0/contents", R"("ones")", "contents: expected \"random\""},
      {"/arguments/0/contents", R"("double.npy")", "double.npy"},
      {"/arguments/0/contents", R"("short.npy")", "has shape [32], expected [64] of x"},
      {"/arguments/0/contents", R"("no.npy")", "no.npy"},
      {"/arguments/0/contents", R"({"from": 2, "to": 1})", "contents: expected from <= to"},
      {"/arguments/1/contents", R"("zeros")", "contents: is of inputs"},
      {"/arguments/0/tolerance", R"({"absolute": 1})", "tolerance: is of outputs"},
      {"/arguments/1/tolerance", R"({"absolute": -1})", "tolerance.absolute"},
      {"/arguments/2/value", R"("n ** 6")", "does not fit int32"},
      {"/arguments/2/name", R"("x")", "the name is taken"},
      {"/knobs/STEP", "[]", "knobs.STEP: expected 1 to 4096 values"},
      {"/knobs/STEP", "[1, 2, 2]", "the value 2 is there twice"},
      {"/knobs/STEP", "[true, false]", "write 0 and 1"},
      {"/knobs/STEP", R"({"from": 1, "to": 100000})", "knobs.STEP: expected 1 to 4096 values, found more"},
      {"/knobs/STEP", R"({"from": 1, "to": 8, "step": 0})", "knobs.STEP.step"},
      {"/knobs/MODE", R"(["a b"])", "expected words of letters"},
      {"/knobs/MODE", R"(["a;b"])", "expected words of letters"},
      {"/knobs/MODE", R"(["\"quoted\""])", "expected words of letters"},
      {"/knobs/MODE", R"x(["$(id)"])x", "expected words of letters"},
      {"/knobs", R"({"STEP": [1], "while": [1]})", "\"while\" is a keyword"},
      {"/knobs", R"({"STEP": [1], "twice": [1]})", "the macro would replace the function"},
      {"/knobs", R"({"STEP": [1], "n": [1]})", "the macro would replace the function or size"},
      {"/default", R"({"STEPS": 1})", "default.STEPS: there is no knob"},
      {"/default", R"({"STEP": 3})", "default.STEP: expected a value of the knob"},
      {"/constraints", R"(["STEP <"])", "constraints[0]: column"},
      {"/constraints", R"(["STEP < size"])", "constraints[0]"},
      {"/constraints", R"(["STEP > 4"])", "knobs: "},
      {"/constraints", R"(["STEP > 1"])", "knobs: "},
      {"/constraints", R"(["MODE == 'slow'"])", "constraints[0]"},
      {"/compiler", R"("/bin/sh")", "compiler: expected a name such as"},
      {"/compiler", R"("icc")", "the compiler \"icc\" is not on this host's list (cc, c++)"},
      {"/flags", R"(["-o/tmp/x"])", "is not allowed"},
      {"/flags", R"(["-fplugin=x.so"])", "is not allowed"},
      {"/flags", R"(["@words"])", "is not allowed"},
      {"/flags", R"(["-B/tmp"])", "is not allowed"},
      {"/flags", R"(["-wrapper", "id"])", "is not allowed"},
      {"/flags", R"(["-DX={OTHER}"])", "there is no knob and no size {OTHER}"},
      {"/flags", R"(["-DX={STEP"])", "a brace without its other"},
      {"/flags", R"(["-{MODE}"])", "is not allowed"},
      {"/flops", R"("-n")", "flops: expected at least 0"},
      {"/reference", R"("plain")", "reference: expected \"default\""},
      {"/reference", R"({"function": "twice"})", "the kernel is its own reference"},
      {"/reference", R"({"source": "none.c", "function": "plain"})", "none.c"},
      {"/reference", R"({"files": {"z": "x.npy"}})", "found none for y"},
      {"/reference", R"({"files": {"y": "double.npy"}})", "reference.files.y: double.npy"},
      {"/reference", R"({"files": {"y": "short.npy"}})", "reference.files.y: short.npy"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(str(c.at, " ", c.value));
    write_job(c.at, c.value);
    EXPECT_THAT(refused(), HasSubstr(c.message));
  }
}

TEST_F(OwnKernelsRefused, WhatAFileHolds) {
  write_job("", "");
  const auto with = [&](const std::string& text) {
    line_.write("twice.c", text + kSource);
    return refused();
  };
  EXPECT_THAT(with("#include \"/etc/passwd\"\n"), HasSubstr("twice.c:1: #include \"/etc/passwd\""));
  EXPECT_THAT(with("#include \"../secret.h\"\n"), HasSubstr("leads out of the folder"));
  EXPECT_THAT(with(std::string("\0", 1)), HasSubstr("has a byte 0"));
  EXPECT_THAT(with(std::string(10 << 20, ' ')), HasSubstr("1048576 bytes"));
  line_.write("twice.c", kSource);
  line_.write("more.h", "#include \"twice.c\"\n");
  EXPECT_THAT(refused(), HasSubstr("twice.c includes more.h includes twice.c: a circle"));
  line_.run("ln -sf /etc/passwd more.h");
  EXPECT_THAT(refused(), HasSubstr("by a link"));
}

// What only a compiler can tell.
TEST_F(OwnKernelsRefused, WhatDoesNotCompile) {
  if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
  const auto with = [&](const std::string& text) {
    line_.write("twice.c", text + kSource);
    return refused();
  };
  write_job("/function", R"("thrice")");
  EXPECT_THAT(refused(), HasSubstr("the default config: cc refuses it: "));
  write_job("/reference", R"({"function": "plane"})");
  EXPECT_THAT(refused(), HasSubstr("the reference: cc refuses it: "));
  write_job("/arguments/0/type", R"("float64")");
  EXPECT_THAT(refused(), HasSubstr("incompatible pointer type"));
  write_job("/flags", R"(["-march=abacus"])");
  EXPECT_THAT(refused(), HasSubstr("abacus"));
  write_job("", "");
  EXPECT_THAT(with("int missing(void);\nint x(void) { return missing(); }\n"), HasSubstr("missing"));
  EXPECT_THAT(with("#include </etc/passwd>\n"), HasSubstr("/etc/passwd"));
  EXPECT_THAT(with("__asm__(\".incbin \\\"/etc/passwd\\\"\");\n"), HasSubstr("/etc/passwd"));
  EXPECT_THAT(with("#include <none.h>\n"), HasSubstr("none.h"));
  EXPECT_THAT(with("#error \x1b[31mred\n"), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tuner
