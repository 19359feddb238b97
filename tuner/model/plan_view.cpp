#include "tuner/model/plan_view.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr std::string_view kViews[] = {"graph", "plan", "layers", "memory"};

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
  text += str("\n", plan.target, "\n");
  std::string others;
  for (const std::string& cpu : plan.cpus)
    if (cpu != plan.target) others += (others.empty() ? "also for " : ", ") + cpu;
  return others.empty() ? text : text + others + "\n";
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
  for (const auto& [input, output] : plan.states) line(str("state  ", output, " may lie on ", input));
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
    for (const PlanGuard& guard : step.guards)
      line(str("    only if ", place_text(guard.condition), guard.wanted ? " is true" : " is false"));
    for (const PlanOperand& operand : step.reads) line("    reads  " + place_text(operand));
    line("    writes " + place_text(step.writes));
  }
  return text;
}

// Numbers of steps: "[2], [5]".
std::string steps_text(const std::vector<size_t>& steps) {
  std::string text;
  for (const size_t step : steps) text += str(text.empty() ? "[" : ", [", step + 1, "]");
  return text;
}

// Bytes of one that are also bytes of the other. Views and parts of a value are values of their own, on the
// same memory.
int64_t shared_bytes(const PlanOperand& a, const PlanOperand& b) {
  if (a.at != b.at || a.index != b.index) return 0;
  return std::max<int64_t>(0,
                           std::min(a.offset + a.bytes, b.offset + b.bytes) - std::max(a.offset, b.offset));
}

// The steps that made what step `s` reads there, in order: one, or one for each part.
std::vector<size_t> writers_of(const CompiledPlan& plan, size_t s, const PlanOperand& read) {
  std::vector<size_t> writers;
  int64_t missing = read.bytes;
  for (size_t before = s; before > 0 && missing > 0; --before) {
    const int64_t shared = shared_bytes(plan.steps[before - 1].writes, read);
    if (shared > 0) writers.insert(writers.begin(), before - 1);
    missing -= shared;
  }
  return writers;
}

// Each step with the steps that made what it reads, and those that read what it writes.
std::string graph_text(const CompiledPlan& plan, int width) {
  std::vector<std::vector<std::vector<size_t>>> writers(plan.steps.size());  // by step and operand
  std::vector<std::vector<size_t>> readers(plan.steps.size());
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const PlanOperand& read : plan.steps[s].reads) {
      const bool given = read.at == "weights" || read.at == "input";
      writers[s].push_back(given ? std::vector<size_t>() : writers_of(plan, s, read));
      for (const size_t w : writers[s].back())
        if (readers[w].empty() || readers[w].back() != s) readers[w].push_back(s);
    }
  std::string text = head(plan);
  const auto line = [&](const std::string& words) { text += shortened(words, width) + "\n"; };
  for (const std::string& input : plan.inputs) line("input  " + input);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const std::string_view key = short_key(step.workload);
    line(str("[", s + 1, "] ", step.name, ": ", key.substr(0, key.find(' '))));
    std::string constants;
    for (size_t r = 0; r < step.reads.size(); ++r) {
      const PlanOperand& read = step.reads[r];
      const std::string from = steps_text(writers[s][r]);
      if (read.at == "weights")
        constants += (constants.empty() ? "" : ", ") + read.name;
      else
        line(str("    reads   ", from.empty() ? read.at : from, " ", read.name));
    }
    if (!constants.empty()) line("    weights " + constants);
    const std::string to = steps_text(readers[s]);
    line(str("    writes  ", step.writes.name, " (", size_text(step.writes.bytes), ")",
             to.empty() ? "" : " to ", to, step.writes.at == "output" ? ", an output" : ""));
  }
  for (const std::string& output : plan.outputs) line("output " + output);
  return text;
}

// "+4.2 %": how much longer than alone. Nothing where one of both is not known.
std::string loss_text(double inside_ns, double alone_ns) {
  if (inside_ns <= 0 || alone_ns <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (inside_ns / alone_ns - 1));
  return text;
}

// What the steps take alone and inside the model, below the table.
std::string layers_summary(const CompiledPlan& plan) {
  double alone = 0, inside = 0;  // of steps that both are known of
  size_t timed = 0, cold = 0;
  for (const PlanStep& step : plan.steps) {
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    if (kernel.time_ns <= 0) continue;
    alone += kernel.time_ns;
    inside += step.inside_ns;
    ++timed;
    cold += kernel.cold ? 1 : 0;
  }
  std::string text;
  const bool guarded = std::ranges::any_of(plan.steps, [](const PlanStep& s) { return !s.guards.empty(); });
  if (plan.whole_ns > 0)
    text += str("whole: ", format_time(plan.whole_ns), " a run",
                guarded ? ", if it had to run every step; a condition of the model leaves some out\n" : "\n");
  if (timed == 0) return text + "No step was tuned for just its workload: no time alone is known.\n";
  text += str("sum of ", timed == plan.steps.size() ? "all" : str(timed, " of ", plan.steps.size()),
              " steps, each alone: ", format_time(alone));
  if (cold > 0) text += str(", ", cold, " of them with constants cold");
  text += "\n";
  if (inside > 0)
    text += str("the same inside the model: ", format_time(inside), ", ", loss_text(inside, alone), "\n");
  return text;
}

std::string layers_text(const CompiledPlan& plan, int width) {
  TextTable table({{.name = "step", .importance = 3, .least = 8},
                   {.name = "alone", .importance = 6, .right = true},
                   {.name = "inside", .importance = 5, .right = true},
                   {.name = "loss", .importance = 5, .right = true},
                   {.name = "roofline", .importance = 4, .right = true},
                   {.name = "config", .importance = 2, .least = 5},
                   {.name = "workload", .importance = 1, .least = 20}});
  for (const PlanStep& step : plan.steps) {
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    table.add({step.name, kernel.time_ns > 0 ? format_time(kernel.time_ns) : "-",
               step.inside_ns > 0 ? format_time(step.inside_ns) : "-",
               loss_text(step.inside_ns, kernel.time_ns),
               kernel.roofline_share > 0 ? percent(kernel.roofline_share) : "-", kernel.answer,
               work_text(plan, step)});
  }
  return head(plan) + table.text(width) + layers_summary(plan);
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
    for (const PlanGuard& guard : plan.steps[s].guards) touch(guard.condition, s + 1);
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
  if (view == "graph") return graph_text(plan, width);
  if (view == "plan") return plan_text(plan, width);
  if (view == "layers") return layers_text(plan, width);
  if (view == "memory") return memory_text(plan, width);
  return invalid_argument("--as ", view,
                          ": not for a compiled model; expected graph, plan, layers or memory");
}

}  // namespace tuner
