// Whole networks, compiled for other CPUs than this one: AVX2 code runs here, AArch64 code under qemu. And by
// eight threads at once.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/support/temporary_folder.h"
#include "tests/templates/aarch64_run.h"
#include "tests/tuner/model/network_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/placed_model.h"

namespace tuner {
namespace {

using testing::NetworkModel;

struct Case {
  const char* name;
  int64_t narrower, image;
};
constexpr Case kCases[] = {{"mlp", 1, 28}, {"unet", 8, 32}, {"resnet50", 16, 64}};

Target target_of(const std::string& text) {
  auto target = parse_target(text);
  CHECK(target.is_ok()) << target.message();
  return *std::move(target);
}

class ModelTargets : public ::testing::TestWithParam<Case> {
 protected:
  const NetworkModel network_{GetParam().name, GetParam().narrower, GetParam().image};
  const TemporaryFolder folder_;
};

TEST_P(ModelTargets, Avx2CodeRunsHere) {
  const Target target = target_of("llvm -mcpu=haswell");
  if (const Status runs = runs_here(target); !runs) GTEST_SKIP() << runs.message();
  const Status written = testing::write_packed(network_.packed(target), folder_.file("out"));
  ASSERT_TRUE(written) << written.message();
  const auto model = CompiledModel::open(folder_.file("out"));
  ASSERT_TRUE(model.is_ok()) << model.message();
  EXPECT_EQ(std::string(model->table().instruction_sets).find("avx512"), std::string::npos);
  auto context = model->context();
  ASSERT_TRUE(context.is_ok()) << context.message();
  const AlignedBuffer in(static_cast<int64_t>(4 * network_.input().size())),
      out(static_cast<int64_t>(4 * network_.outputs()));
  std::ranges::copy(network_.input(), in.as<float>());
  const Status ran = context->run({in.data()}, {out.data()});
  ASSERT_TRUE(ran) << ran.message();
  network_.expect_right(out.as<float>());
}

// What runs before the first step and behind the last one. `serial_for` is the ABI's parallel_for on one
// thread.
constexpr char kEnd[] = R"(
  ldr x19, =output0
  ldr x20, =OUT_BYTES
write_more:
  mov x0, #1
  mov x1, x19
  mov x2, x20
  mov x8, #64              // write
  svc #0
  cmp x0, #0
  b.le failed
  add x19, x19, x0
  subs x20, x20, x0
  b.ne write_more
  mov x0, #0
  mov x8, #93              // exit
  svc #0
failed:
  mov x0, #1
  mov x8, #93
  svc #0
)";

std::string place_label(const tuner_place& place) {
  const std::string of[] = {"arena", "weights", str("input", place.index), str("output", place.index)};
  return str(of[place.kind], " + ", place.offset);
}

// A program of no libraries: calls the steps one after the other and writes the output.
std::string program_of(const ModelToPack& model, const PlacedModel& placed, const std::string& weights,
                       const std::string& input) {
  std::ostringstream text;
  text << "  .text\n  .globl _start\n_start:\n";
  for (size_t s = 0; s < placed.steps.size(); ++s)
    text << "  ldr x0, =args" << s << "\n  ldr x1, =runtime\n  bl "
         << model.kernels[model.kernel_of_step[s]].code.manifest.entry << "\n  cbnz w0, failed\n";
  std::string end = str(kEnd, kAarch64Runtime);
  const std::string word = "OUT_BYTES";
  end.replace(end.find(word), word.size(), str(placed.outputs[0].bytes));
  text << end;
  for (size_t s = 0; s < placed.steps.size(); ++s) {
    text << "args" << s << ":\n";
    for (const tuner_place& place : placed.steps[s].args) text << "  .quad " << place_label(place) << "\n";
  }
  text << "  .balign 64\nweights:\n  .incbin \"" << weights << "\"\n  .balign 64\ninput0:\n  .incbin \""
       << input << "\"\n  .bss\n  .balign 64\noutput0:\n  .zero " << placed.outputs[0].bytes
       << "\n  .balign 64\narena:\n  .zero " << model.memory.arena_bytes + 64
       << "\n  .balign 64\nworkspace:\n  .zero "
       << placed.workspace_bytes + placed.workspace_bytes_per_thread + 64 << "\n";
  return text.str();
}

Status aarch64_tools() {
  for (const char* tool : {TUNER_LLVM_TOOLS "/llvm-mc", TUNER_LLVM_TOOLS "/ld.lld"})
    if (::access(tool, X_OK) != 0) return not_found(tool, " is not here");
  if (std::system("command -v qemu-aarch64 > /dev/null 2>&1") != 0)
    return not_found("qemu-aarch64 is not here (package qemu-user)");
  return Status::ok();
}

void expect_runs(const std::string& command) {
  const int state = std::system(("timeout 120 " + command).c_str());
  ASSERT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << command;
}

TEST_P(ModelTargets, Aarch64CodeRunsUnderQemu) {
  if (const Status tools = aarch64_tools(); !tools) GTEST_SKIP() << tools.message();
  const ModelToPack model = network_.packed(target_of("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"));
  const auto placed = place_model(model, folder_.file("weights"));
  ASSERT_TRUE(placed.is_ok()) << placed.message();
  ASSERT_TRUE(replace_file(folder_.file("input"), {reinterpret_cast<const char*>(network_.input().data()),
                                                   4 * network_.input().size()}));
  ASSERT_TRUE(replace_file(folder_.file("start.s"),
                           program_of(model, *placed, folder_.file("weights"), folder_.file("input"))));
  std::string objects = folder_.file("start.o");
  for (size_t k = 0; k < model.kernels.size(); ++k) {
    const std::string object = folder_.file(str("kernel", k, ".o"));
    ASSERT_TRUE(replace_file(object, model.kernels[k].code.object));
    objects += " " + object;
  }
  ASSERT_NO_FATAL_FAILURE(
      expect_runs(str(TUNER_LLVM_TOOLS "/llvm-mc -triple=aarch64-linux-gnu -filetype=obj ",
                      folder_.file("start.s"), " -o ", folder_.file("start.o"))));
  ASSERT_NO_FATAL_FAILURE(
      expect_runs(str(TUNER_LLVM_TOOLS "/ld.lld -static -o ", folder_.file("program"), " ", objects)));
  ASSERT_NO_FATAL_FAILURE(
      expect_runs(str("qemu-aarch64 -cpu cortex-a72 ", folder_.file("program"), " > ", folder_.file("out"))));
  const auto found = read_whole(folder_.file("out"));
  ASSERT_TRUE(found.is_ok()) << found.message();
  ASSERT_EQ(found->size(), 4 * network_.outputs());
  network_.expect_right(reinterpret_cast<const float*>(found->data()));
}

INSTANTIATE_TEST_SUITE_P(Networks, ModelTargets, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Under tsan too: contexts share code and weights, and nothing else.
TEST(ModelThreads, EightRunAWholeMobileNet) {
  const NetworkModel network("mobilenetv2", 8, 32);
  const TemporaryFolder folder;
  const Status written = testing::write_packed(network.packed(host_target()), folder.file("out"));
  ASSERT_TRUE(written) << written.message();
  const auto model = CompiledModel::open(folder.file("out"));
  ASSERT_TRUE(model.is_ok()) << model.message();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      // Some bring threads of their own.
      ThreadPool pool(2);
      const tuner_runtime runtime = pool.runtime(nullptr);
      auto context = model->context(t % 4 == 0 ? &runtime : nullptr);
      ASSERT_TRUE(context.is_ok()) << context.message();
      const AlignedBuffer in(static_cast<int64_t>(4 * network.input().size())),
          out(static_cast<int64_t>(4 * network.outputs()));
      std::ranges::copy(network.input(), in.as<float>());
      for (int run = 0; run < 3; ++run) {
        const Status ran = context->run({in.data()}, {out.data()});
        ASSERT_TRUE(ran) << ran.message();
        network.expect_right(out.as<float>());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tuner
