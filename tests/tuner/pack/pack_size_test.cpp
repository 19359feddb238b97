// Packs of the examples for GPUs stay small: what is large about a task, its inputs and its answer, is not in
// them.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "compiler_core/backend.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "templates/registry/registry.h"
#include "tuner/pack/pack_builder.h"

namespace tuner {
namespace {

constexpr int64_t kMostPackBytes = 40'000'000;

// Every job file of the examples that is for CUDA.
std::vector<std::string> example_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TUNER_SOURCE_DIR "/examples"))
    if (entry.path().filename().string().ends_with("_cuda.json")) files.push_back(entry.path().string());
  return files;
}

// As many candidates as `tuner pack` takes unless told, each as large as the largest default of its task, and
// what a task has once.
TEST(PackSize, OfEveryExampleIsBelow40Megabytes) {
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  const std::vector<std::string> files = example_files();
  ASSERT_GE(files.size(), 7u);
  for (const std::string& file : files) {
    const auto tasks = read_tasks(file, "");
    ASSERT_TRUE(tasks.is_ok()) << tasks.message();
    int64_t bytes = 0, of_references = 0;
    for (const CliTask& task : *tasks) {
      for (const Buffer& arg : task.workload.compute().args)
        if (is_result(arg->role))
          of_references += reference_file_bytes(arg->shape, packed_reference_kind(task.workload, arg));
      const auto served = templates_for(task.workload, task.target);
      ASSERT_TRUE(served.is_ok()) << served.message();
      int64_t largest = 0;
      for (const AnyTemplate* t : *served) {
        const auto instance = t->apply(task.workload, task.target);
        ASSERT_TRUE(instance.is_ok()) << instance.message();
        const ConfigSpace& space = (*instance)->space();
        const auto program = (*instance)->instantiate(space.at(space.default_index()));
        ASSERT_TRUE(program.is_ok()) << program.message();
        const auto artifact = backend_of(task.target).compile(*program, task.target);
        ASSERT_TRUE(artifact.is_ok()) << artifact.message();
        largest = std::max(largest, static_cast<int64_t>(artifact->binary.size()));
      }
      bytes += PackOptions{}.candidates * largest;
    }
    std::cout << std::filesystem::path(file).filename().string() << ": " << tasks->size() << " tasks, "
              << (bytes + of_references) / 1000 << " KB, of which reference answers " << of_references / 1000
              << "\n";
    EXPECT_LT(of_references, int64_t{1'000'000} * std::ssize(*tasks)) << file;
    EXPECT_LT(bytes + of_references, kMostPackBytes) << file;
  }
}

}  // namespace
}  // namespace tuner
