#include "tuner/model/run_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/output_file.h"
#include "tuner/model/device_counts.h"
#include "tuner/model/model_run.h"
#include "tuner/model/named_file.h"
#include "tuner/model/tensor_file.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;

constexpr int kRounds = 20;     // unless told
constexpr int64_t kShown = 4;   // first elements of each output
constexpr size_t kDigits = 16;  // of its digest; JSON has all

// Where each output goes, "" for nowhere; refused before the model runs.
Result<std::vector<std::string>> output_files(const CompiledModel& model,
                                              std::map<std::string, std::string> asked) {
  const tuner_model& table = model.table();
  std::vector<std::string> files;
  std::string names;
  for (int32_t o = 0; o < table.num_outputs; ++o) {
    names += str(o == 0 ? "" : ", ", table.outputs[o].name);
    auto node = asked.extract(table.outputs[o].name);
    files.push_back(node ? node.mapped() : "");
    if (node) RETURN_IF_ERROR(check_output(files.back()));
  }
  if (asked.empty()) return files;
  return invalid_argument("--output: no output is called \"", asked.begin()->first, "\"; expected ", names);
}

ordered_json output_json(const tuner_arg& tensor, const AlignedBuffer& elements) {
  const DType dtype = dtype_from_name(tensor.dtype).value_or(DType::kUInt8);
  const int64_t shown = std::min(kShown, tensor.bytes / dtype_bytes(dtype));
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank)},
          {"first", load_elements(elements.data(), shown, dtype)},
          {"sha256", sha256_hex({elements.as<char>(), static_cast<size_t>(tensor.bytes)})}};
}

std::string outputs_text(const tuner_model& model, const ordered_json& outputs, int width) {
  TextTable table({{.name = "output", .importance = 4, .least = 8},
                   {.name = "type", .importance = 3},
                   {.name = "first elements", .importance = 2, .least = 12},
                   {.name = "sha256", .importance = 1, .least = 8}});
  for (size_t o = 0; o < outputs.size(); ++o) {
    std::string first;
    for (const ordered_json& number : outputs[o]["first"]) {
      char text[32];
      std::snprintf(text, sizeof text, "%s%.6g", first.empty() ? "" : " ", number.get<double>());
      first += text;
    }
    table.add({outputs[o]["name"], type_text(model.outputs[o]), first,
               outputs[o]["sha256"].get<std::string>().substr(0, kDigits)});
  }
  return table.text(width);
}

ordered_json times_json(const ModelRun& run, const ModelTimes& times) {
  ordered_json out{
      {"whole_ns", times.whole_ns}, {"sum_ns", times.sum_ns()}, {"steps", ordered_json::array()}};
  const std::vector<PlanStep>& steps = run.model().plan().steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    out["steps"].push_back(
        {{"name", steps[s].name}, {"workload", steps[s].workload}, {"time_ns", times.step_ns[s]}});
    if (times.step_ns[s] <= 0) out["steps"].back()["not_run"] = true;
    const PlanKernel& kernel = run.model().plan().kernels[static_cast<size_t>(steps[s].kernel)];
    if (kernel.is_used()) out["steps"].back()["used"] = str(kernel.used.from, ":", kernel.function);
  }
  return out;
}

// Times the model, and `before` in turn with it if that is not null.
Status add_times(const ModelRunRequest& request, ModelRun& now, ModelRun* before, int width,
                 RunReport& report) {
  const int rounds = request.runs > 0 ? request.runs : kRounds;
  std::vector<ModelRun*> models = {&now};
  if (before != nullptr) models.push_back(before);
  ASSIGN_OR_RETURN(const std::vector<ModelTimes> times, time_models(models, rounds));
  report.facts["rounds"] = rounds;
  report.facts["times"] = times_json(now, times[0]);
  const CompiledPlan& plan = now.model().plan();
  report.text += str("\n", rounds, rounds == 1 ? " round on " : " rounds on ", now.threads(),
                     now.threads() == 1 ? " thread" : " threads", "; medians\n");
  if (before != nullptr) {
    report.facts["before"] = times_json(*before, times[1]);
    report.text += comparison_text(before->model().plan(), times[1], plan, times[0], width);
  } else if (request.profile) {
    report.text += times_text(plan, times[0], width);
  } else {
    report.text += str("whole ", format_time(times[0].whole_ns), "\n");
  }
  return Status::ok();
}

}  // namespace

Result<RunReport> run_report(const ModelRunRequest& request, int width) {
  RunOptions options{.threads = request.threads, .inputs = {}, .seed = request.seed};
  ASSIGN_OR_RETURN(const CompiledPlan plan, read_plan(request.folder));
  ASSIGN_OR_RETURN(options.inputs, named_files(request.inputs, "--input", plan.inputs));
  ASSIGN_OR_RETURN(auto asked, named_files(request.outputs, "--output", plan.outputs));
  ASSIGN_OR_RETURN(ModelRun now, ModelRun::open(request.folder, options));
  const tuner_model& table = now.model().table();
  ASSIGN_OR_RETURN(const std::vector<std::string> files, output_files(now.model(), std::move(asked)));
  std::unique_ptr<ModelRun> before;
  if (!request.before.empty()) {
    ASSIGN_OR_RETURN(ModelRun other, ModelRun::open(request.before, options));
    before = std::make_unique<ModelRun>(std::move(other));
  }
  std::vector<StepCosts> costs;
  if (!request.trace.empty() && !is_accelerated(plan))
    return invalid_argument(
        "--trace: ", request.folder,
        " has no steps on an accelerator; compile it with --target npu, or use --profile");
  if (!request.trace.empty()) RETURN_IF_ERROR(check_output(request.trace));
  if (is_accelerated(plan)) {
    nlohmann::json trace{{"displayTimeUnit", "ms"}, {"traceEvents", nlohmann::json::array()}};
    ASSIGN_OR_RETURN(costs, step_costs(now, request.trace.empty() ? nullptr : &trace));
    if (!request.trace.empty()) RETURN_IF_ERROR(write_file(request.trace, trace.dump() + "\n"));
  } else {
    RETURN_IF_ERROR(now.run());
  }
  RunReport report;
  report.facts = {{"model", table.name}, {"threads", now.threads()}, {"outputs", ordered_json::array()}};
  for (size_t o = 0; o < files.size(); ++o) {
    const tuner_arg& tensor = table.outputs[o];
    if (!files[o].empty()) RETURN_IF_ERROR(write_tensor_file(files[o], tensor, now.output(o).data()));
    report.facts["outputs"].push_back(output_json(tensor, now.output(o)));
  }
  report.text = outputs_text(table, report.facts["outputs"], width);
  if (!costs.empty()) {
    report.facts["accelerator"] = costs_json(plan, costs);
    report.text += "\n" + costs_text(plan, costs, width);
  }
  if (request.profile || request.runs > 0 || before != nullptr)
    RETURN_IF_ERROR(add_times(request, now, before.get(), width, report));
  return report;
}

}  // namespace tuner
