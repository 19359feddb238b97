// Candidates whose output lies on an operand, out += 2 * x: it holds data before every call that is checked, timed
// calls add up on top of each other, and what does not add is found.
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
    m.args[1].role = "inout";
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
    EXPECT_EQ(r.outcome, "ok") << r.message;
    EXPECT_FALSE(r.run_ns.empty());
  }
}

TEST_F(InPlaceCandidate, WhatOverwritesIsWrong) {
  const RunReply r = run_adding("for (int i = 0; i < N; ++i) out[i] = 2 * x[i]; return 0;");
  EXPECT_EQ(r.outcome, "wrong_answer");
}

// As tiles that overlap would.
TEST_F(InPlaceCandidate, WhatAddsTwiceToAnElementIsWrong) {
  const RunReply r =
      run_adding("for (int i = 0; i < N; ++i) out[i] += 2 * x[i]; out[77] += 2 * x[77]; return 0;");
  EXPECT_EQ(r.outcome, "wrong_answer");
}

TEST_F(InPlaceCandidate, WhatDoesNothingWhileItIsTimedIsWrong) {
  const RunReply r = run_adding(str("static int calls; if (calls++ > 0 && calls < 500) return 0;", kAdd));
  EXPECT_EQ(r.outcome, "wrong_answer");
}

TEST_F(InPlaceCandidate, ItsDataMustBeThere) {
  RunRequest r = adding_request(kAdd);
  r.inputs.pop_back();
  EXPECT_THAT(runner->run(r).message(), HasSubstr("no data file for inout out"));
}

}  // namespace
}  // namespace tuner
