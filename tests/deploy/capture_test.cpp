// Shape capture: what an application asked for, as a job file, also from several processes.
#include "deploy/runtime/capture.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "tests/deploy/runtime_fixture.h"
#include "tests/random_seed.h"
#include "tests/support/wait_until.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

using runtime::add_uses;
using runtime::Capture;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using testing::kConv;
using testing::kMatmul;
using testing::kSoftmax;
using testing::workload_of;

class CaptureTest : public testing::RuntimeTest {
 protected:
  // The captured file, read as `tuner submit` reads it: key -> uses.
  std::map<std::string, int64_t> uses() {
    const auto entries = read_job_file(path("shapes.json"));
    EXPECT_TRUE(entries.is_ok()) << entries.message();
    std::map<std::string, int64_t> result;
    if (entries)
      for (const JobEntry& e : *entries) result[e.workload.key() + " on " + e.target] = e.uses;
    return result;
  }
  static std::string key(const std::string& json, const std::string& target = "cpu") {
    return workload_of(json).key() + " on " + target;
  }
  std::vector<std::string> messages_;
  std::function<void(const std::string&)> hear_ = [this](const std::string& line) {
    messages_.push_back(line);
  };
};

Capture::Calls counter(uint64_t calls) { return std::make_shared<const std::atomic<uint64_t>>(calls); }

TEST_F(CaptureTest, AJobFileWithHowOftenEachWorkloadRan) {
  auto calls = std::make_shared<std::atomic<uint64_t>>(0);
  {
    Capture capture(path("shapes.json"), hear_);
    capture.asked(workload_of(kConv), "cpu -threads=2", calls);
    capture.asked(workload_of(kSoftmax), "cpu", counter(0));  // never run
    ASSERT_TRUE(capture.flush().is_ok());
    EXPECT_EQ(uses()[key(kConv, "cpu -threads=2")], 1) << "asked for, not run as yet";
    *calls = 1;
    ASSERT_TRUE(capture.flush().is_ok());
    EXPECT_EQ(uses()[key(kConv, "cpu -threads=2")], 1) << "the run that was counted ahead";
    *calls = 16;
  }  // written when it goes
  EXPECT_THAT(uses(), ::testing::ElementsAre(::testing::Pair(key(kConv, "cpu -threads=2"), 16),
                                             ::testing::Pair(key(kSoftmax), 1)));
  EXPECT_THAT(messages_, ::testing::IsEmpty());
}

TEST_F(CaptureTest, WritesOnItsOwnWhileTheApplicationRuns) {
  Capture capture(path("shapes.json"), hear_, std::chrono::milliseconds(5));
  auto calls = std::make_shared<std::atomic<uint64_t>>(0);
  capture.asked(workload_of(kConv), "cpu", calls);
  *calls = 7;
  wait_until(std::chrono::seconds(30),
             [&] { return fs::exists(path("shapes.json")) && uses()[key(kConv)] == 7; });
  EXPECT_EQ(uses()[key(kConv)], 7);
}

TEST_F(CaptureTest, SeveralProcessesShareOneFile) {
  constexpr int kProcesses = 6, kRounds = 10;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto calls = std::make_shared<std::atomic<uint64_t>>(0);
      Capture capture(path("shapes.json"), {}, std::chrono::milliseconds(1));
      capture.asked(workload_of(kMatmul), "cpu", calls);
      bool fine = true;
      for (int i = 0; i < kRounds; ++i) {
        *calls += 1;
        fine = capture.flush().is_ok() && fine;
      }
      ::_exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(uses()[key(kMatmul)], kProcesses * kRounds);
}

TEST_F(CaptureTest, WhatPeopleWroteStays) {
  std::ofstream(path("shapes.json")) << R"([{"op":"softmax","rows":9,"columns":70,"trials":64,"uses":5},)"
                                     << kMatmul.substr(0, kMatmul.size() - 1) << R"(,"seed":7}])";
  {
    Capture capture(path("shapes.json"), hear_);
    capture.asked(workload_of(kSoftmax), "cpu", counter(0));
    capture.asked(workload_of(kConv), "cpu", counter(0));
  }
  const auto entries = read_job_file(path("shapes.json"));
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].trials, 64);
  EXPECT_EQ((*entries)[0].uses, 6);
  EXPECT_EQ((*entries)[1].seed, 7u);
  EXPECT_EQ((*entries)[2].workload.key(), workload_of(kConv).key());
}

TEST_F(CaptureTest, AFileThatIsNoJobFileIsLeftAlone) {
  std::ofstream(path("shapes.json")) << "my notes\n";
  {
    Capture capture(path("shapes.json"), hear_);
    capture.asked(workload_of(kSoftmax), "cpu", counter(1));
    EXPECT_FALSE(capture.flush().is_ok());
  }
  std::ifstream in(path("shapes.json"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "my notes\n");
  ASSERT_EQ(messages_.size(), 1u) << "said once";
  EXPECT_THAT(messages_[0], HasSubstr("is no job file, and is left as it is: line 1, column"));
}

TEST_F(CaptureTest, NoMoreEntriesThanAJobFileTakes) {
  std::vector<runtime::CapturedUse> many;
  for (int i = 1; i <= 5000; ++i) many.push_back({SoftmaxWorkload{i, 4}, "cpu", 1});
  const auto text = add_uses("", many);
  ASSERT_TRUE(text.is_ok()) << text.message();
  EXPECT_EQ(parse_job_text(*text, "shapes.json")->size(), 4096u);
  const auto more = add_uses(*text, {{SoftmaxWorkload{1, 4}, "cpu", 2'000'000'000}});
  EXPECT_EQ(parse_job_text(*more, "shapes.json")->front().uses, 1'000'000'000) << "the most a job file takes";
}

class CapturingLibrary : public CaptureTest {
 protected:
  ~CapturingLibrary() override {
    tuner_close(source_);
    ::unsetenv("TUNER_CAPTURE");
  }
  // A source without a database that captures into this file, if one is named. Its messages go to messages_.
  void open(const std::string& capture) {
    tuner_close(std::exchange(source_, nullptr));
    ::setenv("XDG_DATA_HOME", path("none").c_str(), 1);
    ::setenv("TUNER_CAPTURE", capture.c_str(), 1);
    tuner_options options{.struct_bytes = sizeof options, .message_user = &messages_};
    options.message = [](void* user, const char* line) {
      static_cast<std::vector<std::string>*>(user)->emplace_back(line);
    };
    ASSERT_EQ(tuner_open(nullptr, &options, &source_), TUNER_OK) << tuner_last_error();
  }
  tuner_source* source_ = nullptr;
};

TEST_F(CapturingLibrary, FindsTheEntriesThatItWrote) {
  open(path("shapes.json"));
  ASSERT_EQ(testing::use_once(source_, kSoftmax), "");
  open("");
  std::ifstream in(path("shapes.json"));
  nlohmann::json entry = nlohmann::json::parse(in).at(0);
  ASSERT_TRUE(entry.contains("target") && entry.contains("uses")) << entry;
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source_, entry.dump().c_str(), &f), TUNER_OK) << tuner_last_error();
  tuner_release(f);
  entry["target"] = "llvm -mcpu=haswell -threads=3";
  EXPECT_EQ(tuner_find(source_, entry.dump().c_str(), &f), TUNER_INVALID);
  EXPECT_EQ(std::string(tuner_last_error()), str("target: this source answers for \"", host_target().name(),
                                                 "\", found \"llvm -mcpu=haswell -threads=3\". Another "
                                                 "source may be opened with tuner_options.target"));
}

TEST_F(CapturingLibrary, DoesNotSendToAFileThatItCannotWrite) {
  std::ofstream(path("notes.json")) << "my notes\n";
  open(path("notes.json"));
  ASSERT_EQ(testing::use_once(source_, R"({"op":"softmax","rows":3,"columns":31})"), "");
  ASSERT_EQ(messages_.size(), 2u);
  EXPECT_THAT(messages_[0], HasSubstr("notes.json: is no job file, and is left as it is: line 1, column"));
  EXPECT_THAT(messages_[1], HasSubstr("To tune: give TUNER_CAPTURE a file other than " + path("notes.json")));
}

// The whole library, in a child that ends as applications do: by exit(), without closing anything.
TEST_F(CaptureTest, AnApplicationThatEndsWithoutClosingLeavesItsShapes) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("TUNER_CAPTURE", path("shapes.json").c_str(), 1);
    tuner_options options{.struct_bytes = sizeof options, .message = [](void*, const char*) {}};
    tuner_source* source = nullptr;
    ::setenv("XDG_DATA_HOME", path("none").c_str(), 1);
    if (tuner_open(nullptr, &options, &source) != TUNER_OK) ::_exit(2);
    for (int i = 0; i < 3; ++i)
      if (!testing::use_once(source, kSoftmax).empty()) ::_exit(3);
    if (!testing::use_once(source, kMatmul).empty()) ::_exit(4);
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const std::string host = host_target().name();
  EXPECT_THAT(uses(), ::testing::ElementsAre(::testing::Pair(key(kMatmul, host), 1),
                                             ::testing::Pair(key(kSoftmax, host), 3)));
}

// Whatever the file holds: added to, and then a job file, or refused in one line.
TEST(CaptureFuzz, DamagedFiles) {
  const RandomSeed seed(11);
  std::mt19937_64 random(seed);
  const std::string whole =
      *add_uses("", {{workload_of(kConv), "cpu", 3}, {workload_of(kMatmul), "cpu -threads=2", 9}});
  int taken = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = whole;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 4 == 0)
        text.erase(at, 1 + random() % 3);
      else
        text[at] = "0123456789,:[]{}\"x\n"[random() % 19];
    }
    const auto after = add_uses(text, {{workload_of(kSoftmax), "cpu", 1}});
    taken += after ? 1 : 0;
    EXPECT_EQ(after.message().find_first_of("\n\r"), std::string::npos) << text;
    const bool was_job_file = parse_job_text(text, "f").is_ok();
    EXPECT_TRUE(!was_job_file || (after && parse_job_text(*after, "f").is_ok())) << text;
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace tuner
