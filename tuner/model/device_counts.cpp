#include "tuner/model/device_counts.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "tuner/text/terminal.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;
using CostsFunction = void (*)(double* cycles, double* nanojoules);
using TimelineFunction = const char* (*)(int32_t keep);

const PlanKernel& kernel_of(const CompiledPlan& plan, size_t step) {
  return plan.kernels[static_cast<size_t>(plan.steps[step].kernel)];
}

// 12345678 as "12,345,678".
std::string with_commas(double value) {
  std::string digits = std::to_string(static_cast<int64_t>(value));
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}
std::string microjoules(double nanojoules) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f uJ", nanojoules / 1000);
  return text;
}

StepCosts sum_of(const std::vector<StepCosts>& costs) {
  StepCosts sum;
  for (const StepCosts& each : costs) sum.cycles += each.cycles, sum.nanojoules += each.nanojoules;
  return sum;
}

// Who wrote the bytes at a place last, and whether the other side has a copy.
struct Held {
  bool on_device = false, copied = false;
  int64_t bytes = 0;
};
using Place = std::tuple<std::string, int64_t, int64_t>;
Place place_of(const PlanOperand& operand) { return {operand.at, operand.index, operand.offset}; }

void count_copy(Held& held, bool reader_on_device, int64_t bytes, DeviceCopies& copies) {
  if (held.on_device == reader_on_device || held.copied) return;
  held.copied = true;
  ++(reader_on_device ? copies.to_device : copies.to_host);
  (reader_on_device ? copies.to_device_bytes : copies.to_host_bytes) += bytes;
}

// Adds the events of a step that begins at this cycle, and a slice for the whole of it.
void append_trace(const char* text, const std::string& step, double begin, nlohmann::json& trace) {
  const auto one = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!one.is_object()) return;
  auto& events = trace["traceEvents"];
  double end = 0;
  for (nlohmann::json event : one.at("traceEvents")) {
    if (event.at("ph") != "X") {
      if (begin == 0) events.push_back(std::move(event));
      continue;
    }
    const double ts = event.at("ts").get<double>();
    end = std::max(end, ts + event.at("dur").get<double>());
    event["ts"] = begin + ts;
    events.push_back(std::move(event));
  }
  constexpr int kStepRow = 100;  // below the queues
  events.push_back({{"name", step}, {"ph", "X"}, {"pid", 0}, {"tid", kStepRow}, {"ts", begin}, {"dur", end}});
}

}  // namespace

bool is_accelerated(const CompiledPlan& plan) {
  return std::ranges::any_of(plan.kernels, [](const PlanKernel& k) { return k.is_accelerated(); });
}

Result<std::vector<StepCosts>> step_costs(ModelRun& run, nlohmann::json* trace) {
  const CompiledPlan& plan = run.model().plan();
  std::vector<StepCosts> costs(plan.steps.size());
  std::map<std::string, CostsFunction> functions;
  std::map<std::string, TimelineFunction> timelines;
  for (size_t s = 0; s < costs.size(); ++s) {
    const PlanKernel& kernel = kernel_of(plan, s);
    costs[s].accelerated = kernel.is_accelerated();
    if (!costs[s].accelerated || functions.contains(kernel.used.costs)) continue;
    void* const found = run.model().symbol(kernel.used.costs);
    if (found == nullptr)
      return failed(kernel.used.library, ": has no function ", kernel.used.costs,
                    "; compile the model again");
    functions[kernel.used.costs] = reinterpret_cast<CostsFunction>(found);
    void* const timeline = trace == nullptr ? nullptr : run.model().symbol(kernel.used.timeline);
    if (timeline == nullptr) continue;
    timelines[kernel.used.timeline] = reinterpret_cast<TimelineFunction>(timeline);
    timelines[kernel.used.timeline](1);
  }
  double begin = 0;
  run.context().watch([&](size_t step, bool done) {
    if (!done || !costs[step].accelerated) return;
    const PlanUse& used = kernel_of(plan, step).used;
    functions.at(used.costs)(&costs[step].cycles, &costs[step].nanojoules);
    if (const auto timeline = timelines.find(used.timeline); timeline != timelines.end())
      append_trace(timeline->second(1), plan.steps[step].name, begin, *trace);
    begin += costs[step].cycles;
  });
  const Status ran = run.run();
  run.context().watch(nullptr);
  for (const auto& [name, timeline] : timelines) timeline(0);
  RETURN_IF_ERROR(ran);
  return costs;
}

DeviceCopies device_copies(const CompiledPlan& plan) {
  DeviceCopies copies;
  std::map<Place, Held> held;  // what is not there was made by the host: inputs
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const bool on_device = kernel_of(plan, s).is_accelerated();
    for (const PlanOperand& operand : plan.steps[s].reads)
      if (operand.at != "weights") count_copy(held[place_of(operand)], on_device, operand.bytes, copies);
    const PlanOperand& written = plan.steps[s].writes;
    held[place_of(written)] = {on_device, false, written.bytes};
  }
  for (auto& [place, each] : held)
    if (std::get<0>(place) == "output") count_copy(each, false, each.bytes, copies);
  return copies;
}

std::string costs_text(const CompiledPlan& plan, const std::vector<StepCosts>& costs, int width) {
  TextTable table({{.name = "step", .importance = 4, .least = 8},
                   {.name = "cycles", .importance = 3},
                   {.name = "energy", .importance = 2},
                   {.name = "workload", .importance = 1, .least = 12}});
  size_t steps = 0;
  for (size_t s = 0; s < costs.size(); ++s) {
    if (!costs[s].accelerated) continue;
    ++steps;
    table.add({plan.steps[s].name, with_commas(costs[s].cycles), microjoules(costs[s].nanojoules),
               plan.steps[s].workload});
  }
  const StepCosts sum = sum_of(costs);
  const DeviceCopies copies = device_copies(plan);
  return str(table.text(width), steps, " of ", costs.size(),
             " steps on the accelerator, simulated: ", with_commas(sum.cycles), " cycles, ",
             microjoules(sum.nanojoules), "\ncopies: ", copies.to_device, " to it (",
             with_commas(static_cast<double>(copies.to_device_bytes)), " bytes), ", copies.to_host, " back (",
             with_commas(static_cast<double>(copies.to_host_bytes)), " bytes)\n");
}

ordered_json costs_json(const CompiledPlan& plan, const std::vector<StepCosts>& costs) {
  const StepCosts sum = sum_of(costs);
  const DeviceCopies copies = device_copies(plan);
  ordered_json out{{"cycles", sum.cycles},
                   {"energy_nj", sum.nanojoules},
                   {"copies_to_device", copies.to_device},
                   {"bytes_to_device", copies.to_device_bytes},
                   {"copies_to_host", copies.to_host},
                   {"bytes_to_host", copies.to_host_bytes},
                   {"steps", ordered_json::array()}};
  for (size_t s = 0; s < costs.size(); ++s) {
    if (!costs[s].accelerated) continue;
    out["steps"].push_back({{"name", plan.steps[s].name},
                            {"workload", plan.steps[s].workload},
                            {"cycles", costs[s].cycles},
                            {"energy_nj", costs[s].nanojoules}});
  }
  return out;
}

}  // namespace tuner
