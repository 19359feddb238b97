// The data of a task, made by several workers of a host at once: one of them wins, whole.
#include "measure_server/worker/task_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen/reference.h"
#include "measure_server/runner/reference_file.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 1;

namespace fs = std::filesystem;

Workload product() {
  MatmulWorkload w;
  w.m = w.n = w.k = 24;
  return Workload(w);
}

std::string bytes_of(const std::string& path) {
  const Result<std::string> bytes = read_whole(path);
  EXPECT_TRUE(bytes) << bytes.message();
  return bytes ? *bytes : "";
}

// Inputs and answers of the others are those of one seed, the one that is told.
void expect_of_one_seed(const Workload& w, const TaskData& data) {
  const Program program = w.compute();
  ASSERT_EQ(data.others.size(), 1u);
  const auto values = given_values(w, program, kSeed, data.others[0].seed);
  ASSERT_EQ(data.others[0].inputs.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(bytes_of(data.others[0].inputs[i].second), element_bytes(values[i], DType::kFloat32));
  const auto answers = reference_answer(program, values);
  ASSERT_TRUE(answers) << answers.message();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_reference(folder.file("ref"), answers->at(0), {24, 24}, ReferenceKind::kFull));
  EXPECT_EQ(bytes_of(data.others[0].references[0].second), bytes_of(folder.file("ref")));
}

TEST(TaskData, WorkersOfOneHostMakeItAtOnceAndOneOfThemWins) {
  const Workload w = product();
  for (int round = 0; round < 12; ++round) {
    const TemporaryFolder folder;
    std::vector<Result<TaskData>> made(6, Result<TaskData>(failed("not run")));
    std::vector<std::thread> workers;
    for (Result<TaskData>& m : made)
      workers.emplace_back([&] { m = task_data(w, kSeed, folder.file("references")); });
    for (std::thread& worker : workers) worker.join();
    for (const Result<TaskData>& m : made) {
      ASSERT_TRUE(m) << m.message();
      EXPECT_EQ(m->others[0].seed, made[0]->others[0].seed) << "all use what is there";
    }
    expect_of_one_seed(w, *made[0]);
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(folder.file("references")))
      left.push_back(entry.path().filename().string());
    EXPECT_EQ(left.size(), 1u) << "what lost is removed";
  }
}

TEST(TaskData, WhatIsDamagedOrOfAnEarlierReleaseIsMadeAgain) {
  const Workload w = product();
  const TemporaryFolder folder;
  const std::string references = folder.file("references");
  const Result<TaskData> first = task_data(w, kSeed, references);
  ASSERT_TRUE(first) << first.message();
  EXPECT_GT(first->made_bytes, 0);
  const Result<TaskData> again = task_data(w, kSeed, references);
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(again->made_bytes, 0) << "it is there";
  EXPECT_EQ(again->others[0].seed, first->others[0].seed);
  ASSERT_TRUE(replace_file(first->others[0].inputs[0].second, "torn"));
  const Result<TaskData> mended = task_data(w, kSeed, references);
  ASSERT_TRUE(mended) << mended.message();
  EXPECT_NE(mended->others[0].seed, first->others[0].seed);
  expect_of_one_seed(w, *mended);
  // As earlier releases wrote it, when two processes could mix their sets.
  const fs::path complete = fs::path(first->references[0].second).parent_path() / "complete";
  std::string text = bytes_of(complete.string());
  ASSERT_TRUE(text.starts_with("4 "));
  ASSERT_TRUE(replace_file(complete.string(), text.substr(2)));
  const Result<TaskData> newer = task_data(w, kSeed, references);
  ASSERT_TRUE(newer) << newer.message();
  EXPECT_NE(newer->others[0].seed, mended->others[0].seed);
}

}  // namespace
}  // namespace tuner
