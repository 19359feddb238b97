// The C API on a compiled model: open, facts, run, from many threads, and every way in which it can go wrong.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "compiler_core/codegen/compile.h"
#include "deploy/runtime/tuner_runtime_api.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/small_model.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
using testing::Numbers;
using testing::SmallModel;

class RuntimeModel : public ::testing::Test {
 protected:
  RuntimeModel() { CHECK(network_.write(out_, "net", host_target()).is_ok()); }
  ~RuntimeModel() override { tuner_model_close(model_); }

  void open() { ASSERT_EQ(tuner_model_open(out_.c_str(), &model_), TUNER_OK) << tuner_last_error(); }
  std::string refusal() {
    tuner_loaded_model* model = nullptr;
    EXPECT_EQ(tuner_model_open(out_.c_str(), &model), TUNER_INVALID);
    EXPECT_EQ(model, nullptr);
    return tuner_last_error();
  }
  // Runs the context on drawn inputs and compares.
  void use(tuner_model_context* context, uint32_t seed) const {
    const Numbers x = network_.input(seed);
    const SmallModel::Memory memory(x);
    ASSERT_EQ(tuner_model_run(context, memory.inputs().data(), memory.outputs().data()), TUNER_OK)
        << tuner_last_error();
    memory.expect(network_.answer(x));
  }

  const SmallModel network_;
  const TemporaryFolder folder_;
  const std::string out_ = folder_.file("out");
  tuner_loaded_model* model_ = nullptr;
};

TEST_F(RuntimeModel, TellsItsTensors) {
  open();
  ASSERT_EQ(tuner_model_num_inputs(model_), 1);
  ASSERT_EQ(tuner_model_num_outputs(model_), 2);
  tuner_operand x{}, features{};
  ASSERT_EQ(tuner_model_get_input(model_, 0, &x), TUNER_OK);
  EXPECT_STREQ(x.name, "x");
  EXPECT_STREQ(x.role, "input");
  EXPECT_STREQ(x.dtype, "float32");
  EXPECT_EQ(std::vector<int64_t>(x.shape, x.shape + x.rank), (std::vector<int64_t>{1, 3, 10, 12}));
  EXPECT_EQ(x.bytes, 1440);
  ASSERT_EQ(tuner_model_get_output(model_, 1, &features), TUNER_OK);
  EXPECT_STREQ(features.name, "features");
  EXPECT_EQ(features.bytes, 3840);
}

TEST_F(RuntimeModel, ContextsOutliveTheModel) {
  open();
  tuner_model_context *one = nullptr, *two = nullptr;
  ASSERT_EQ(tuner_model_new_context(model_, 0, &one), TUNER_OK) << tuner_last_error();
  ASSERT_EQ(tuner_model_new_context(model_, 2, &two), TUNER_OK) << tuner_last_error();
  tuner_model_close(model_);
  model_ = nullptr;
  use(one, 1);
  tuner_model_free_context(one);
  use(two, 2);
  tuner_model_free_context(two);
}

TEST_F(RuntimeModel, EightThreadsRunAtOnce) {
  open();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      tuner_model_context* context = nullptr;
      ASSERT_EQ(tuner_model_new_context(model_, 1 + static_cast<int32_t>(t % 2), &context), TUNER_OK);
      for (uint32_t run = 0; run < 10; ++run) use(context, 10 * t + run);
      tuner_model_free_context(context);
    });
  for (std::thread& thread : threads) thread.join();
}

// Its threads are those of the parent: a run would wait for them for ever.
TEST_F(RuntimeModel, AfterForkTheChildMakesContextsOfItsOwn) {
  open();
  tuner_model_context* context = nullptr;
  ASSERT_EQ(tuner_model_new_context(model_, 2, &context), TUNER_OK) << tuner_last_error();
  use(context, 1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    const SmallModel::Memory memory(network_.input(1));
    const bool refused =
        tuner_model_run(context, memory.inputs().data(), memory.outputs().data()) == TUNER_INVALID &&
        std::string_view(tuner_last_error()).find("before fork()") != std::string_view::npos;
    tuner_model_context* own = nullptr;
    const bool made = tuner_model_new_context(model_, 2, &own) == TUNER_OK &&
                      tuner_model_run(own, memory.inputs().data(), memory.outputs().data()) == TUNER_OK;
    tuner_model_free_context(own);
    tuner_model_free_context(context);
    ::_exit(!refused ? 1 : made ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  use(context, 2);
  tuner_model_free_context(context);
}

TEST_F(RuntimeModel, MistakesAreToldInOneLine) {
  open();
  tuner_model_context* context = nullptr;
  tuner_operand operand{};
  EXPECT_EQ(tuner_model_open(nullptr, &model_), TUNER_INVALID);
  EXPECT_EQ(tuner_model_get_input(model_, 1, &operand), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "tuner_model_get_input: expected an index from 0 to 0, found 1");
  EXPECT_EQ(tuner_model_get_output(model_, -1, &operand), TUNER_INVALID);
  EXPECT_EQ(tuner_model_new_context(model_, -1, &context), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "tuner_model_new_context: expected 0 to 4096 threads, found -1");
  EXPECT_EQ(tuner_model_new_context(nullptr, 0, &context), TUNER_INVALID);
  EXPECT_EQ(tuner_model_num_inputs(nullptr), 0);
  ASSERT_EQ(tuner_model_new_context(model_, 0, &context), TUNER_OK);
  const SmallModel::Memory memory(network_.input(1));
  const void* unaligned[] = {memory.x.as<char>() + 4};
  const void* none[] = {nullptr};
  EXPECT_EQ(tuner_model_run(context, unaligned, memory.outputs().data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("aligned to 64 bytes"));
  EXPECT_EQ(tuner_model_run(context, none, memory.outputs().data()), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "tuner_model_run: input 0 is NULL");
  std::vector<void*> outputs = memory.outputs();
  outputs[1] = memory.features.as<char>() + 4;
  EXPECT_EQ(tuner_model_run(context, memory.inputs().data(), outputs.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("aligned to 64 bytes"));
  outputs[1] = nullptr;
  EXPECT_EQ(tuner_model_run(context, memory.inputs().data(), outputs.data()), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "tuner_model_run: output 1 is NULL");
  EXPECT_EQ(tuner_model_run(nullptr, unaligned, nullptr), TUNER_INVALID);
  use(context, 3);
  tuner_model_free_context(context);
  tuner_model_free_context(nullptr);
  tuner_model_close(nullptr);
}

TEST_F(RuntimeModel, DamagedFoldersAreRefused) {
  const auto cut = [&](const std::string& file) {
    std::filesystem::resize_file(out_ + "/" + file, std::filesystem::file_size(out_ + "/" + file) - 64);
  };
  cut("net.weights");
  EXPECT_THAT(refusal(), HasSubstr("net.weights: has another length"));
  cut("lib/libnet.so");
  EXPECT_THAT(refusal(), HasSubstr("libnet.so: is damaged"));
  cut("plan.json");
  EXPECT_THAT(refusal(), HasSubstr("plan.json: line "));
  std::filesystem::remove(out_ + "/plan.json");
  EXPECT_THAT(refusal(), HasSubstr("plan.json"));
}

}  // namespace
}  // namespace tuner
