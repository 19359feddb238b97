// The C header of compiled models, with a table and a weights file that are made here: where arguments point
// to, what a context owns, and which files are refused.
#include "compiler_core/runtime/tuner_model.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

// What the steps of a run were given, and what they answer.
struct Watched {
  std::vector<std::vector<const void*>> args;
  int32_t threads = 0;
  void* workspace = nullptr;
  int32_t answer = 0;
};
Watched watched;
int32_t one_argument(void* const* args, const tuner_runtime* rt) {
  watched.args.push_back({args[0]});
  watched.workspace = rt->workspace;
  watched.threads = rt->num_threads;
  return 0;
}
int32_t five_arguments(void* const* args, const tuner_runtime* /*rt*/) {
  watched.args.emplace_back(args, args + 5);
  return watched.answer;
}

// By the words of the header: lanes of eight words, mixed at the end.
uint64_t checksum_of(const std::string& blocks) {
  std::array<uint64_t, 8> lanes{};
  for (size_t at = 0; at < blocks.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, blocks.data() + at, 8);
    uint64_t& lane = lanes[at / 8 % 8];
    lane = (lane ^ word) * 0x9e3779b97f4a7c15U;
    lane ^= lane >> 29;
  }
  uint64_t all = 0;
  for (const uint64_t lane : lanes) {
    all = (all ^ lane) * 0xbf58476d1ce4e5b9U;
    all ^= all >> 31;
  }
  return all;
}

// Two inputs and two outputs; 192 bytes of constants; an arena of 256 bytes.
class ModelContext : public ::testing::Test {
 protected:
  ModelContext() {
    constants_.resize(192, '\1');
    constants_[100] = '\7';
    table_.version = TUNER_MODEL_VERSION;
    table_.instruction_sets = "";
    table_.weights_digest = digest_.c_str();
    table_.weights_checksum = checksum_of(constants_);
    table_.weights_bytes = 128 + 192;
    table_.arena_bytes = 256;
    table_.workspace_bytes = 1000;
    table_.workspace_bytes_per_thread = 5000;
    table_.num_inputs = table_.num_outputs = table_.num_steps = 2;
    table_.steps = steps_.data();
    write_weights();
    watched = {};
  }
  ~ModelContext() override { tuner_context_destroy(context_); }

  void write_weights(const std::string& more = "") {
    tuner_weights_header header{};
    std::memcpy(header.magic, TUNER_WEIGHTS_MAGIC, 8);
    header.version = TUNER_WEIGHTS_VERSION;
    header.header_bytes = sizeof header;
    header.file_bytes = 128 + 192;
    std::memcpy(header.digest, digest_.data(), 64);
    std::ofstream(path_, std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&header), sizeof header) << constants_ << more;
  }
  int32_t create(const tuner_runtime* runtime = nullptr) {
    tuner_context_destroy(context_);
    return tuner_model_create(&table_, path_.c_str(), runtime, &context_);
  }
  int32_t run(size_t input = 0, size_t output = 0) {
    const void* inputs[] = {memory_, memory_ + 64 + input};
    void* outputs[] = {memory_ + 128, memory_ + 192 + output};
    return tuner_context_run(context_, inputs, outputs);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("net.weights"), digest_ = std::string(64, 'd');
  std::string constants_;
  const tuner_place first_ = {TUNER_ARENA, 0, 64};
  const std::array<tuner_place, 5> second_ = {{{TUNER_INPUT, 1, 0},
                                               {TUNER_WEIGHTS, 0, 192},
                                               {TUNER_OUTPUT, 0, 64},
                                               {TUNER_OUTPUT, 1, 0},
                                               {TUNER_ARENA, 0, 128}}};
  std::array<tuner_step, 2> steps_ = {{{"one", "", one_argument, &first_, 1, 0, nullptr, 0, 0},
                                       {"two", "", five_arguments, second_.data(), 5, 1, nullptr, 0, 0}}};
  tuner_model table_{};
  tuner_context* context_ = nullptr;
  alignas(64) char memory_[320] = {};
};

TEST_F(ModelContext, ArgumentsPointToArenaWeightsInputsAndOutputs) {
  ASSERT_EQ(create(), 0);
  for (int runs = 0; runs < 2; ++runs) {
    watched.args.clear();
    ASSERT_EQ(run(), 0);
    ASSERT_EQ(watched.args.size(), 2U);
    const auto* const arena = static_cast<const char*>(watched.args[0][0]) - 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena) % 64, 0U);
    EXPECT_EQ(watched.args[1][0], memory_ + 64);
    EXPECT_EQ(static_cast<const char*>(watched.args[1][1])[36], '\7') << "byte 100 of the constants";
    EXPECT_EQ(watched.args[1][2], memory_ + 128 + 64);
    EXPECT_EQ(watched.args[1][3], memory_ + 192);
    EXPECT_EQ(watched.args[1][4], arena + 128);
  }
}

TEST_F(ModelContext, HasWorkspaceForEveryThread) {
  tuner_runtime runtime = tuner_serial_runtime(nullptr);
  runtime.num_threads = 3;
  ASSERT_EQ(create(&runtime), 0);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(watched.threads, 3);
  EXPECT_GE(malloc_usable_size(watched.workspace), 1000U + 3 * 5000U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(watched.workspace) % 64, 0U);
  runtime.num_threads = 0;
  EXPECT_EQ(create(&runtime), -3);
  runtime.num_threads = 1, runtime.abi_version = TUNER_ABI_VERSION + 1;
  EXPECT_EQ(create(&runtime), -1);
}

TEST_F(ModelContext, EveryInputAndOutputIsAligned) {
  ASSERT_EQ(create(), 0);
  EXPECT_EQ(run(4, 0), TUNER_MODEL_UNALIGNED);
  EXPECT_EQ(run(0, 32), TUNER_MODEL_UNALIGNED);
  EXPECT_TRUE(watched.args.empty()) << "a step ran";
}

TEST_F(ModelContext, AStepThatRefusesIsToldAndTheNextRunForgetsIt) {
  ASSERT_EQ(create(), 0);
  watched.answer = -2;
  EXPECT_EQ(run(), -2);
  EXPECT_EQ(context_->failed_step, 1);
  watched.answer = 0;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(context_->failed_step, -1);
}

// Step "two" runs if a bool in the arena, in the weights, in an input and in an output has the wanted value.
TEST_F(ModelContext, AStepRunsIfAllItsGuardsHold) {
  const tuner_place places[] = {
      {TUNER_ARENA, 0, 128}, {TUNER_WEIGHTS, 0, 128 + 64}, {TUNER_INPUT, 1, 64}, {TUNER_OUTPUT, 0, 64}};
  for (const tuner_place& place : places)
    for (const int32_t wanted : {0, 1}) {
      const std::array<tuner_guard, 2> guards = {{{{TUNER_INPUT, 0, 0}, 1, 0}, {place, wanted, 0}}};
      steps_[1].guards = guards.data();
      steps_[1].num_guards = 2;
      for (const char first : {0, 1})
        for (const char value : {0, 1, 2}) {  // any byte but 0 is true
          constants_[64] = value;
          table_.weights_checksum = checksum_of(constants_);
          write_weights();
          ASSERT_EQ(create(), 0);
          context_->arena[128] = value;
          memory_[0] = first;
          memory_[64 + 64] = memory_[128 + 64] = value;  // input 1 and output 0
          std::vector<std::pair<int32_t, int32_t>> seen;
          tuner_context_watch(
              context_,
              [](void* data, int32_t step, int32_t done) {
                static_cast<decltype(seen)*>(data)->emplace_back(step, done);
              },
              &seen);
          watched.args.clear();
          ASSERT_EQ(run(), 0);
          const size_t runs = first != 0 && (value != 0) == (wanted != 0) ? 2 : 1;
          EXPECT_EQ(watched.args.size(), runs) << place.kind << " is " << int{value} << ", wanted " << wanted;
          EXPECT_EQ(seen.size(), 2 * runs) << "the hook sees steps that run";
          tuner_context_run_every_step(context_, 1);
          ASSERT_EQ(run(), 0);
          EXPECT_EQ(watched.args.size(), runs + 2);
          tuner_context_run_every_step(context_, 0);
          ASSERT_EQ(run(), 0);
          EXPECT_EQ(watched.args.size(), 2 * runs + 2);
        }
    }
}

// What is behind a step that is left out has its own arguments.
TEST_F(ModelContext, AStepBehindOneThatIsLeftOutHasItsOwnArguments) {
  const tuner_guard guard = {{TUNER_INPUT, 0, 0}, 1, 0};
  steps_[0].guards = &guard;
  steps_[0].num_guards = 1;
  ASSERT_EQ(create(), 0);
  ASSERT_EQ(run(), 0);
  ASSERT_EQ(watched.args.size(), 1U);
  EXPECT_EQ(watched.args[0][0], memory_ + 64);
  EXPECT_EQ(watched.args[0][3], memory_ + 192);
}

TEST_F(ModelContext, EveryBitOfTheWeightsCounts) {
  for (size_t bit = 0; bit < 8 * constants_.size(); bit += 13) {
    constants_[bit / 8] = static_cast<char>(constants_[bit / 8] ^ (1 << bit % 8));
    write_weights();
    EXPECT_EQ(create(), TUNER_WEIGHTS_DAMAGED) << bit;
    constants_[bit / 8] = static_cast<char>(constants_[bit / 8] ^ (1 << bit % 8));
  }
  write_weights("\1");
  EXPECT_EQ(create(), TUNER_WEIGHTS_SHORT) << "more than was written";
  write_weights();
  EXPECT_EQ(create(), 0);
  std::string foreign(64, 'd');
  foreign.back() = 'e';
  table_.weights_digest = foreign.c_str();
  EXPECT_EQ(create(), TUNER_WEIGHTS_FOREIGN) << "the last digit counts";
}

}  // namespace
}  // namespace tuner
