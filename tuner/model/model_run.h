// ModelRun: a compiled model with inputs and outputs, run as often as one likes; and its times, step by step.
// States have one memory, as in a program: each run goes on from the state that the run before left.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tuner/model/compiled_model.h"

namespace tuner {

struct RunOptions {
  int threads = 0;                            // 0: as many as it is made for, and there are
  std::map<std::string, std::string> inputs;  // files, by the input's name (tensor_file.h)
  uint64_t seed = 1;                          // draws inputs that no file gives
  std::optional<size_t> cpu = {};             // of a library for several CPUs (CompiledModel::open())
};

class ModelRun {
 public:
  // Opens the folder and reads the inputs. InvalidArgument: of CompiledModel::open() and read_tensor_file(),
  // and for a file of an input that the model has not.
  static Result<ModelRun> open(const std::string& folder, const RunOptions& options);

  Status run();

  const CompiledModel& model() const { return model_; }
  int threads() const { return threads_; }
  const AlignedBuffer& output(size_t index) const {
    const auto state = states_.find(index);
    return state == states_.end() ? outputs_[index] : inputs_[state->second];
  }
  ModelContext& context() { return context_; }

 private:
  ModelRun(CompiledModel model, ModelContext context, std::unique_ptr<ThreadPool> pool, int threads)
      : model_(std::move(model)), pool_(std::move(pool)), context_(std::move(context)), threads_(threads) {}

  CompiledModel model_;
  std::unique_ptr<ThreadPool> pool_;  // null: the caller's thread
  ModelContext context_;
  int threads_;
  std::vector<AlignedBuffer> inputs_, outputs_;
  std::map<size_t, size_t> states_;  // inputs, by the outputs that lie on them
};

struct ModelTimes {
  std::vector<double> step_ns;  // the median of each step, over all runs that were watched; 0: it never ran
  double whole_ns = 0;          // the median of as many runs that were not

  double sum_ns() const;
};

// Runs the models in turn, once to warm up and then `rounds` times watched and unwatched. `every_step`: also
// steps that these inputs do not need.
Result<std::vector<ModelTimes>> time_models(const std::vector<ModelRun*>& models, int rounds,
                                            bool every_step = false);

// Steps by time, their share of the sum, and the sum against the whole; `width` 0: no limit.
std::string times_text(const CompiledPlan& plan, const ModelTimes& times, int width);
// Two models layer by layer, those of the same name beside each other.
std::string comparison_text(const CompiledPlan& before, const ModelTimes& before_times,
                            const CompiledPlan& now, const ModelTimes& now_times, int width);

}  // namespace tuner
