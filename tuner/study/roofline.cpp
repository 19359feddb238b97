#include "tuner/study/roofline.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "templates/workload/needed_work.h"
#include "tuner/study/inner_loop.h"
#include "tuner/text/format.h"

namespace tuner {

namespace {

// printf into a string, with a newline.
__attribute__((format(printf, 2, 3))) void say(std::string& out, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  out += line;
  out += '\n';
}

// The least share of the FMA peak that its loads leave this loop: each is one load, as wide as a vector, of
// the rate that L1 was measured at. 1: not limited by loads.
double share_left_by_loads(const InnerLoop& loop, const Target& target, const MachineRoofs& machine) {
  if (loop.multiply_adds == 0 || machine.fma_gflops <= 0 || machine.levels.empty() ||
      machine.levels.front().read_gbps <= 0)
    return 0;
  const double lanes = static_cast<double>(target.f32_lanes());
  const double fma_ns = loop.multiply_adds * 2 * lanes / machine.fma_gflops;
  const double load_ns = loop.loads * 4 * lanes / machine.levels.front().read_gbps;
  return std::min(1.0, fma_ns / load_ns);
}

std::string without_padding(int64_t needed) {
  char text[64];
  std::snprintf(text, sizeof text, ", %.4g without padding", static_cast<double>(needed) / 1e6);
  return text;
}

void say_loop(std::string& out, const InnerLoop& loop, const Target& target, const MachineRoofs& machine) {
  if (loop.label.empty()) {
    say(out, "inner loop   none: the kernel is straight code");
    return;
  }
  say(out, "inner loop   %s: %d multiply-adds, %d loads, %d stores of %d instructions; %d on the stack",
      loop.label.c_str(), loop.multiply_adds, loop.loads, loop.stores, loop.instructions, loop.spills);
  if (const double share = share_left_by_loads(loop, target, machine); share > 0)
    say(out, "             its loads leave at most %.0f %% of the FMA peak", 100 * share);
}

void say_course(std::string& out, const SearchCourse& course, double share) {
  const double gained = 100 * (1 - course.best_ns / course.best_of_first_half_ns);
  say(out, "search       %d right trials; the later half of them gained %.1f %%", course.trials, gained);
  if (template_is_ceiling(course, share))
    say(out,
        "WARNING      the template is the ceiling, not the search: the best stands at %.0f %% of the bound",
        100 * share);
}

}  // namespace

MachineRoofs measure_roofs(const Target& target, DType dtype, double recorded_gflops) {
  return backend_of(target)
      .roofs(target, dtype, recorded_gflops)
      .value_or(MachineRoofs{.fma_gflops = recorded_gflops, .peak_gflops = recorded_gflops});
}

std::string peak_name(DType dtype) {
  return dtype == DType::kFloat32 ? "FMA peak" : str(dtype_name(dtype), " peak");
}

const MachineRoofs::Level& level_for(const MachineRoofs& machine, int64_t bytes) {
  for (const MachineRoofs::Level& level : machine.levels)
    if (bytes <= level.capacity_bytes) return level;
  return machine.levels.back();
}

Result<SearchCourse> search_course(const CliTask& task, const Store& store) {
  std::vector<double> times;
  RETURN_IF_ERROR(store.for_each_record_of({task.key, task.target_name}, [&](const TrialWithRecord& t) {
    if (t.record->outcome == Outcome::kOk && !t.record->cut) times.push_back(record_time_ns(*t.record));
    return true;
  }));
  SearchCourse course{.trials = static_cast<int>(times.size())};
  if (times.empty()) return course;
  course.best_ns = *std::min_element(times.begin(), times.end());
  course.best_of_first_half_ns =
      *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>((times.size() + 1) / 2));
  return course;
}

bool template_is_ceiling(const SearchCourse& course, double share) {
  constexpr int kEnoughTrials = 64;
  constexpr double kNothing = 0.005, kFarBelow = 0.85;
  return course.trials >= kEnoughTrials && share > 0 && share < kFarBelow &&
         course.best_ns > (1 - kNothing) * course.best_of_first_half_ns;
}

Result<std::string> roofline_text(const CliTask& task, const ChosenKernel& kernel, const Store* store) {
  ASSIGN_OR_RETURN(const Program program, kernel.instance->instantiate(kernel.config));
  ASSIGN_OR_RETURN(const std::string assembly, backend_of(task.target).text("asm", program, task.target));
  const MachineRoofs machine =
      measure_roofs(task.target, task.workload.dtype(), kernel.tuned ? kernel.tuned->peak_gflops : 0);
  const std::string peak = peak_name(task.workload.dtype());
  if (machine.levels.empty()) return invalid_argument("no roofs are known of \"", task.target_name, "\"");
  const int64_t flops = task.workload.flops(), needed = needed_flops(task.workload),
                bytes = task.workload.bytes();
  const MachineRoofs::Level& level = level_for(machine, bytes);
  std::string out;
  say(out, "work         %.4g MFLOP%s; %.4g MB, each argument once, which live in %s",
      static_cast<double>(flops) / 1e6, needed < flops ? without_padding(needed).c_str() : "",
      static_cast<double>(bytes) / 1e6, level.name.c_str());
  if (machine.peak_gflops > 0)
    say(out, "%-12s %.1f GFLOP/s, %d thread%s, %s", peak.c_str(), machine.peak_gflops, task.target.threads,
        task.target.threads == 1 ? "" : "s", machine.measured ? "measured now" : "as the record says");
  else
    say(out, "%-12s not known: this is another CPU, and nothing was measured there", peak.c_str());
  for (const MachineRoofs::Level& each : machine.levels)
    if (each.read_gbps > 0) say(out, "read %-4s    %.1f GB/s", each.name.c_str(), each.read_gbps);
  const double memory_ns = level.read_gbps > 0 ? static_cast<double>(bytes) / level.read_gbps : 0;
  // The operators on rows do little that is a multiply-add: their arithmetic is no bound.
  const bool counts_flops = !task.workload.memory_bound() && machine.peak_gflops > 0;
  const double arithmetic_ns = counts_flops ? static_cast<double>(needed) / machine.peak_gflops : 0;
  const double bound_ns = std::max(arithmetic_ns, memory_ns);
  double share = 0;
  if (bound_ns > 0) {
    say(out, "bound        %s: %s%s",
        arithmetic_ns >= memory_ns ? "arithmetic" : ("reading " + level.name).c_str(),
        format_time(bound_ns).c_str(),
        kernel.schedule_template->algorithm() == "direct" ? "" : ", of the direct algorithm");
    if (kernel.tuned) share = bound_ns / kernel.tuned->time_ns;
  }
  if (!kernel.tuned)
    say(out, "measured     not yet: tuner submit measures it");
  else if (share > 0)
    say(out, "measured     %s, trial %s: %.1f %% of the bound", format_time(kernel.tuned->time_ns).c_str(),
        kernel.tuned->trial_name.c_str(), 100 * share);
  else
    say(out, "measured     %s, trial %s", format_time(kernel.tuned->time_ns).c_str(),
        kernel.tuned->trial_name.c_str());
  say_loop(out, busiest_inner_loop(assembly, program.name + "_pack"), task.target, machine);
  if (store != nullptr) {
    ASSIGN_OR_RETURN(const SearchCourse course, search_course(task, *store));
    if (course.trials > 0) say_course(out, course, share);
  }
  return out;
}

}  // namespace tuner
