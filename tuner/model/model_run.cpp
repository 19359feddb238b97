#include "tuner/model/model_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <optional>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/statistics.h"
#include "tuner/model/plan_view.h"
#include "tuner/model/tensor_file.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;

double ns_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

Status check_names(const tuner_model& table, const std::map<std::string, std::string>& inputs) {
  std::string names;
  for (int32_t i = 0; i < table.num_inputs; ++i) names += str(i == 0 ? "" : ", ", table.inputs[i].name);
  for (const auto& given : inputs)
    if (std::none_of(table.inputs, table.inputs + table.num_inputs,
                     [&](const tuner_arg& input) { return given.first == input.name; }))
      return invalid_argument("--input: no input is called \"", given.first, "\"; expected ", names);
  return Status::ok();
}

// Samples of one model, in nanoseconds.
struct Samples {
  std::vector<std::vector<double>> steps;
  std::vector<double> whole;

  ModelTimes medians() {
    ModelTimes out;
    for (std::vector<double>& step : steps) out.step_ns.push_back(step.empty() ? 0 : median_in_place(step));
    out.whole_ns = median_in_place(whole);
    return out;
  }
};

Status run_watched(ModelRun& model, Samples& samples) {
  Clock::time_point begin;
  model.context().watch([&](size_t step, bool done) {
    const Clock::time_point now = Clock::now();
    if (done)
      samples.steps[step].push_back(model.context().step_ns().value_or(ns_between(begin, now)));
    else
      begin = Clock::now();
  });
  const Status ran = model.run();
  model.context().watch(nullptr);
  return ran;
}

Status run_whole(ModelRun& model, Samples& samples) {
  const Clock::time_point begin = Clock::now();
  RETURN_IF_ERROR(model.run());
  samples.whole.push_back(ns_between(begin, Clock::now()));
  return Status::ok();
}

std::string print(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string step_time(double step_ns) { return step_ns > 0 ? format_time(step_ns) : "not run"; }

std::string sums_text(const ModelTimes& times) {
  const double sum = times.sum_ns();
  return str("steps ", format_time(sum), ", whole ", format_time(times.whole_ns),
             sum > 0 ? print(" (%.1f %% of the sum)", 100 * times.whole_ns / sum) : "");
}

}  // namespace

Result<ModelRun> ModelRun::open(const std::string& folder, const RunOptions& options) {
  ASSIGN_OR_RETURN(CompiledModel model, CompiledModel::open(folder, options.cpu));
  const tuner_model& table = model.table();
  RETURN_IF_ERROR(check_names(table, options.inputs));
  const int there = static_cast<int>(usable_cpus().size());
  const int threads = options.threads > 0 ? options.threads : std::min<int>(table.threads, there);
  auto pool = threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr;
  const tuner_runtime runtime = pool ? pool->runtime(nullptr) : tuner_serial_runtime(nullptr);
  ASSIGN_OR_RETURN(ModelContext context, model.context(&runtime));
  ModelRun run(std::move(model), std::move(context), std::move(pool), threads);
  for (int32_t i = 0; i < table.num_inputs; ++i) {
    const tuner_arg& input = table.inputs[i];
    const auto file = options.inputs.find(input.name);
    if (file == options.inputs.end()) {
      run.inputs_.push_back(random_tensor(input, options.seed + static_cast<uint64_t>(i)));
      continue;
    }
    auto read = read_tensor_file(file->second, input);
    if (!read) return read.status().with_context(str("--input ", input.name, ": "));
    run.inputs_.push_back(*std::move(read));
  }
  for (int32_t o = 0; o < table.num_outputs; ++o) run.outputs_.emplace_back(table.outputs[o].bytes);
  const auto place = [](const tuner_arg* tensors, int32_t count, const std::string& name) {
    const tuner_arg* const end = tensors + count;
    const tuner_arg* const at =
        std::find_if(tensors, end, [&](const tuner_arg& t) { return t.name == name; });
    return at == end ? std::nullopt : std::optional(static_cast<size_t>(at - tensors));
  };
  for (const auto& [input, output] : run.model_.plan().states) {
    const auto from = place(table.inputs, table.num_inputs, input);
    const auto to = place(table.outputs, table.num_outputs, output);
    if (!from || !to || table.inputs[*from].bytes != table.outputs[*to].bytes)
      return invalid_argument(folder, "/plan.json: states: \"", printable(output), "\" cannot lie on \"",
                              printable(input), "\"");
    run.states_[*to] = *from;
  }
  return run;
}

Status ModelRun::run() {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const AlignedBuffer& input : inputs_) inputs.push_back(input.data());
  for (size_t o = 0; o < outputs_.size(); ++o) outputs.push_back(output(o).data());
  return context_.run(inputs, outputs);
}

double ModelTimes::sum_ns() const { return std::accumulate(step_ns.begin(), step_ns.end(), 0.0); }

Result<std::vector<ModelTimes>> time_models(const std::vector<ModelRun*>& models, int rounds,
                                            bool every_step) {
  std::vector<Samples> samples(models.size());
  for (size_t m = 0; m < models.size(); ++m) {
    samples[m].steps.resize(static_cast<size_t>(models[m]->model().table().num_steps));
    models[m]->context().run_every_step(every_step);
    RETURN_IF_ERROR(models[m]->run());
  }
  for (int round = 0; round < rounds; ++round)
    for (size_t m = 0; m < models.size(); ++m) {
      RETURN_IF_ERROR(run_watched(*models[m], samples[m]));
      RETURN_IF_ERROR(run_whole(*models[m], samples[m]));
    }
  std::vector<ModelTimes> out;
  for (Samples& each : samples) out.push_back(each.medians());
  return out;
}

std::string times_text(const CompiledPlan& plan, const ModelTimes& times, int width) {
  TextTable table({{.name = "step", .importance = 2, .least = 8},
                   {.name = "time", .importance = 4, .right = true},
                   {.name = "share", .importance = 3, .right = true},
                   {.name = "workload", .importance = 1, .least = 20}});
  std::vector<size_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t s) { return times.step_ns[s]; });
  const double sum = times.sum_ns();
  for (const size_t s : order) {
    table.add({plan.steps[s].name, step_time(times.step_ns[s]),
               print("%.1f %%", sum > 0 ? 100 * times.step_ns[s] / sum : 0), work_text(plan, plan.steps[s])});
  }
  return table.text(width) + sums_text(times) + "\n";
}

std::string comparison_text(const CompiledPlan& before, const ModelTimes& before_times,
                            const CompiledPlan& now, const ModelTimes& now_times, int width) {
  TextTable table({{.name = "step", .importance = 2, .least = 8},
                   {.name = "before", .importance = 4, .right = true},
                   {.name = "now", .importance = 4, .right = true},
                   {.name = "before/now", .importance = 5, .right = true},
                   {.name = "workload", .importance = 1, .least = 20}});
  std::vector<bool> met(before.steps.size(), false);
  for (size_t s = 0; s < now.steps.size(); ++s) {
    const auto other = std::ranges::find(before.steps, now.steps[s].name, &PlanStep::name);
    const double time = now_times.step_ns[s];
    std::vector<std::string> row = {now.steps[s].name, "-", step_time(time), "-",
                                    work_text(now, now.steps[s])};
    if (other != before.steps.end()) {
      const auto b = static_cast<size_t>(other - before.steps.begin());
      met[b] = true;
      row[1] = step_time(before_times.step_ns[b]);
      if (time > 0 && before_times.step_ns[b] > 0) row[3] = print("%.3f", before_times.step_ns[b] / time);
    }
    table.add(std::move(row));
  }
  for (size_t b = 0; b < before.steps.size(); ++b)
    if (!met[b])
      table.add({before.steps[b].name, step_time(before_times.step_ns[b]), "-", "-",
                 work_text(before, before.steps[b])});
  return str(table.text(width), "before: ", sums_text(before_times), "\nnow: ", sums_text(now_times),
             "\nwhole, before/now: ",
             print("%.3f", now_times.whole_ns > 0 ? before_times.whole_ns / now_times.whole_ns : 0), "\n");
}

}  // namespace tuner
