#include "tuner/model/plan_view.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr std::string_view kViews[] = {"plan", "layers", "memory"};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

// "1.5 MiB"; small ones exactly.
std::string size_text(int64_t bytes) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"GiB", 1024.0 * 1024 * 1024}, {"MiB", 1024.0 * 1024}, {"KiB", 1024}};
  for (const auto& [name, unit] : kUnits) {
    if (static_cast<double>(bytes) < 10 * unit) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / unit, name);
    return text;
  }
  return str(bytes, " bytes");
}

// Without the version, which is the same for all.
std::string_view short_key(std::string_view key) { return key.starts_with("v1 ") ? key.substr(3) : key; }

}  // namespace

std::string work_text(const CompiledPlan& plan, const PlanStep& step) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  return str(kernel.is_used() ? str("by ", kernel.function, " of ", kernel.used.from, ": ") : "",
             short_key(step.workload));
}

namespace {

std::string head(const CompiledPlan& plan) {
  std::string text = str(plan.model, ": ", plan.steps.size(), " steps, ", plan.kernels.size(), " kernels");
  if (!plan.source.empty()) text += ", from " + plan.source;
  return text + str("\n", plan.target, "\n");
}

std::string place_text(const PlanOperand& operand) {
  const bool numbered = operand.at == "input" || operand.at == "output";
  return str(operand.name, " ", operand.at, numbered ? str(" ", operand.index) : "",
             numbered && operand.offset == 0 ? "" : str(" +", operand.offset), " (", size_text(operand.bytes),
             ")");
}

std::string plan_text(const CompiledPlan& plan, int width) {
  std::string text = head(plan);
  const auto line = [&](const std::string& words) { text += shortened(words, width) + "\n"; };
  for (const std::string& input : plan.inputs) line("input  " + input);
  for (const std::string& output : plan.outputs) line("output " + output);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    line(str(s + 1, " ", step.name));
    line(str("    ", short_key(step.workload)));
    line(kernel.is_used()
             ? str("    used: ", kernel.function, " of ", kernel.used.from, ", ", kernel.used.library)
             : str("    ", kernel.template_name, ", ", kernel.answer, " config ", kernel.config));
    if (step.nodes.size() > 1) {
      std::string nodes;
      for (const std::string& node : step.nodes) nodes += (nodes.empty() ? "" : ", ") + node;
      line("    nodes  " + nodes);
    }
    for (const PlanOperand& operand : step.reads) line("    reads  " + place_text(operand));
    line("    writes " + place_text(step.writes));
  }
  return text;
}

std::string layers_text(const CompiledPlan& plan, int width) {
  TextTable table({{.name = "step", .importance = 3, .least = 8},
                   {.name = "time", .importance = 5, .right = true},
                   {.name = "roofline", .importance = 4, .right = true},
                   {.name = "config", .importance = 2, .least = 5},
                   {.name = "workload", .importance = 1, .least = 20}});
  double sum = 0;
  size_t timed = 0, cold = 0;
  for (const PlanStep& step : plan.steps) {
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    sum += kernel.time_ns;
    timed += kernel.time_ns > 0 ? 1 : 0;
    cold += kernel.time_ns > 0 && kernel.cold ? 1 : 0;
    table.add({step.name, kernel.time_ns > 0 ? format_time(kernel.time_ns) : "-",
               kernel.roofline_share > 0 ? percent(kernel.roofline_share) : "-", kernel.answer,
               work_text(plan, step)});
  }
  std::string text = head(plan) + table.text(width);
  if (timed == 0) return text + "No step was tuned for just its workload: no time is known.\n";
  text += str("sum of ", timed == plan.steps.size() ? "all" : str(timed, " of ", plan.steps.size()),
              " steps: ", format_time(sum));
  if (cold > 0) text += str(", ", cold, " of them with constants cold");
  return text + "\n";
}

// Values of the arena, with the steps that they live from and to.
struct Room {
  std::string name;
  int64_t offset = 0, bytes = 0;
  size_t first = 0, last = 0;
};

std::vector<Room> rooms_of(const CompiledPlan& plan) {
  std::map<int64_t, Room> rooms;  // by value
  const auto touch = [&](const PlanOperand& operand, size_t step) {
    if (operand.at != "arena") return;
    const auto [it, is_new] =
        rooms.try_emplace(operand.value, Room{operand.name, operand.offset, operand.bytes, step, step});
    it->second.last = step;
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const PlanOperand& operand : plan.steps[s].reads) touch(operand, s + 1);
    touch(plan.steps[s].writes, s + 1);
  }
  std::vector<Room> out;
  for (auto& [value, room] : rooms) out.push_back(std::move(room));
  std::ranges::stable_sort(out, {}, &Room::first);
  return out;
}

std::string memory_text(const CompiledPlan& plan, int width) {
  const int64_t workspace = plan.workspace_bytes + plan.threads * plan.workspace_bytes_per_thread;
  std::string text = head(plan);
  text += str("arena      ", size_text(plan.arena_bytes), ", a context");
  if (plan.largest_live_bytes > 0)
    text += str("; largest live set ", size_text(plan.largest_live_bytes), " (",
                percent(static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.largest_live_bytes)),
                " of it)");
  text += str("\nworkspace  ", size_text(workspace), ", a context on ", plan.threads,
              plan.threads == 1 ? " thread\n" : " threads\n", "weights    ", size_text(plan.weights.bytes),
              ", ", plan.weights.entries, " entries, shared by all\n", "one context at most ",
              size_text(plan.arena_bytes + workspace + plan.weights.bytes), ", inputs and outputs apart\n");
  TextTable table({{.name = "value", .importance = 1, .least = 10},
                   {.name = "offset", .importance = 3, .right = true},
                   {.name = "bytes", .importance = 3, .right = true},
                   {.name = "steps", .importance = 2, .right = true}});
  const std::vector<Room> rooms = rooms_of(plan);
  for (const Room& room : rooms)
    table.add({room.name, str(room.offset), str(room.bytes), str(room.first, "-", room.last)});
  return rooms.empty() ? text : text + table.text(width);
}

}  // namespace

std::span<const std::string_view> compiled_views() { return kViews; }

Result<std::string> compiled_text(const CompiledPlan& plan, std::string_view view, int width) {
  if (view == "plan") return plan_text(plan, width);
  if (view == "layers") return layers_text(plan, width);
  if (view == "memory") return memory_text(plan, width);
  return invalid_argument("--as ", view, ": not for a compiled model; expected plan, layers or memory");
}

}  // namespace tuner
