// Candidates whose output lies on an operand, out += 2 * x: it holds data before every call that is checked,
// timed calls add up on top of each other, and what does not add is found.
#include "tests/measure_server/candidate_fixture.h"

namespace tuner {
namespace {

using testing::HasSubstr;

class InPlaceCandidate : public CandidateTest {
 protected:
  void SetUp() override {
    CandidateTest::SetUp();
    write_set("", 1);
    write_set(".other", 2);
  }

  static Manifest adding_manifest() {
    Manifest m = doubling_manifest();
    m.args[1].role = BufferRole::kInOut;
    return m;
  }

  // Inputs and answer; what out holds is the same in all sets.
  void write_set(const std::string& ending, int seed) {
    const auto values = [](int64_t factor) {
      std::vector<float> made(kCount);
      for (int64_t i = 0; i < kCount; ++i)
        made[i] = 0.25f + static_cast<float>((i * factor) % 1009) / 1009.0f;
      return made;
    };
    const std::vector<float> x = values(seed == 1 ? 7919 : 104729), before = values(6007);
    std::vector<double> answer;
    for (int64_t i = 0; i < kCount; ++i) answer.push_back(double{before[i]} + 2.0 * x[i]);
    const auto write = [&](const std::string& name, const std::vector<float>& numbers) {
      std::ofstream(dir_ / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(numbers.data()), kCount * sizeof(float));
    };
    write("x" + ending, x);
    write("before", before);
    ASSERT_TRUE(write_reference(dir_ / ("sum" + ending), answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }

  RunRequest adding_request(const std::string& body) {
    RunRequest r =
        request(build("int32_t doubling(void* const* args, const tuner_runtime* rt) {"
                      "  const float* x = args[0]; float* out = args[1];" +
                          body + "\n}",
                      adding_manifest()));
    r.inputs = {{"x", (dir_ / "x").string()}, {"out", (dir_ / "before").string()}};
    r.references = {{"out", (dir_ / "sum").string()}};
    r.others = {{.inputs = {{"x", (dir_ / "x.other").string()}},
                 .references = {{"out", (dir_ / "sum.other").string()}}}};
    return r;
  }
  RunReply run_adding(const std::string& body) { return run(adding_request(body)); }
};

constexpr const char* kAdd = "for (int i = 0; i < N; ++i) out[i] += 2 * x[i]; return 0;";

// Several times, as the moment of the pause and the inputs of the last call are drawn.
TEST_F(InPlaceCandidate, WhatAddsIsRightHoweverOftenItIsTimed) {
  for (int i = 0; i < 6; ++i) {
    const RunReply r = run_adding(kAdd);
    EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
    EXPECT_FALSE(r.run_ns.empty());
  }
}

TEST_F(InPlaceCandidate, WhatOverwritesIsWrong) {
  const RunReply r = run_adding("for (int i = 0; i < N; ++i) out[i] = 2 * x[i]; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
}

// As tiles that overlap would.
TEST_F(InPlaceCandidate, WhatAddsTwiceToAnElementIsWrong) {
  const RunReply r =
      run_adding("for (int i = 0; i < N; ++i) out[i] += 2 * x[i]; out[77] += 2 * x[77]; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
}

TEST_F(InPlaceCandidate, WhatDoesNothingWhileItIsTimedIsWrong) {
  const RunReply r = run_adding(str("static int calls; if (calls++ > 0 && calls < 500) return 0;", kAdd));
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
}

TEST_F(InPlaceCandidate, ItsDataMustBeThere) {
  RunRequest r = adding_request(kAdd);
  r.inputs.pop_back();
  EXPECT_THAT(runner->run(r).message(), HasSubstr("no data file for inout out"));
}

// A kernel of two outputs, twice and three times x.
class TwoOutputs : public CandidateTest {
 protected:
  RunReply run_both(const std::string& body) {
    Manifest m = doubling_manifest();
    m.args.push_back(m.args[1]);
    m.args[2].name = "thrice";
    std::vector<float> x(kCount);
    std::ifstream(dir_ / "x.f32", std::ios::binary).read(reinterpret_cast<char*>(x.data()), kCount * 4);
    std::vector<double> answer;
    for (const float v : x) answer.push_back(3.0 * v);
    EXPECT_TRUE(write_reference(dir_ / "thrice.ref", answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
    RunRequest r =
        request(build("int32_t doubling(void* const* args, const tuner_runtime* rt) {"
                      "  const float* x = args[0]; float* thrice = args[2]; static int calls; ++calls;"
                      "  doubling_right(args); for (int i = 0; i < N; ++i) thrice[i] = 3 * x[i];" +
                          body + " return 0; }",
                      m));
    r.references.push_back({"thrice", (dir_ / "thrice.ref").string()});
    return run(r);
  }
};

TEST_F(TwoOutputs, AreBothRight) {
  const RunReply r = run_both("");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_F(TwoOutputs, AWrongSecondOneIsFoundWheneverItIsWrong) {
  for (const char* const when : {"1", "calls > 1"}) {
    const RunReply r = run_both(str("if (", when, ") thrice[N - 1] += 1;"));
    EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << when;
    EXPECT_THAT(r.message, HasSubstr("thrice[3, 7, 39] is ")) << when;
  }
  const RunReply beside = run_both("thrice[-1] = 1;");
  EXPECT_EQ(beside.outcome, Outcome::kCrashed);
  EXPECT_THAT(beside.message, HasSubstr("thrice"));
}

}  // namespace
}  // namespace tuner
