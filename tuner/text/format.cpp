#include "tuner/text/format.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <utility>

#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "templates/workload/needed_work.h"

namespace tuner {

namespace {

struct Unit {
  double ns;
  const char* name;
};
Unit unit_of(double ns) {
  constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  constexpr double kRoundsUp = 0.99995;  // of a unit: four digits make 1.000 of it
  for (const Unit& unit : kUnits)
    if (ns >= kRoundsUp * unit.ns) return unit;
  return kUnits[3];
}

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

// Four significant digits without an exponent; 9.9996 is 10.00.
std::string number(double value) {
  return print(value >= 999.95   ? "%.0f"
               : value >= 99.995 ? "%.1f"
               : value >= 9.9995 ? "%.2f"
                                 : "%.3f",
               value);
}

std::tm utc(int64_t us) {
  const std::time_t seconds = static_cast<std::time_t>(us / 1'000'000);
  std::tm tm{};
  ::gmtime_r(&seconds, &tm);
  return tm;
}

// The number as it is printed: shares are those of printed numbers, so that a reader finds the same.
double printed(double value) { return std::atof(number(value).c_str()); }

}  // namespace

void append_format(std::string& out, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  const size_t at = out.size();
  out.resize(at + static_cast<size_t>(std::max(length, 0)) + 1);  // vsnprintf ends with a 0
  std::vsnprintf(out.data() + at, out.size() - at, format, again);
  va_end(again);
  out.pop_back();
}

std::string fixed(double value, int digits) { return print("%.*f", digits, value); }

std::string format_time(double ns) {
  const Unit unit = unit_of(ns);
  return number(ns / unit.ns) + " " + unit.name;
}

std::string format_time(double ns, double low_ns, double high_ns) {
  if (low_ns == high_ns) return format_time(ns) + " (exact)";
  const Unit unit = unit_of(ns);
  return number(ns / unit.ns) + " " + unit.name + " (95 %: " + number(low_ns / unit.ns) + " .. " +
         number(high_ns / unit.ns) + " " + unit.name + ")";
}

std::string format_tie(const TunedConfig& t) {
  switch (t.won_by) {
    case WonBy::kStored:
      return t.tied > 1 ? "the stored answer stays" : "the stored answer won";
    case WonBy::kDefault:
      return "the default config won the tie";
    case WonBy::kSmallest:
      return "the smallest code won the tie";
    case WonBy::kOrder:
      return "the first by name won the tie";
    case WonBy::kFastest:
      break;
  }
  return t.tied > 1 ? "the fastest won" : "";
}

std::string format_race(const TunedConfig& t) {
  if (t.race_id == 0) return "none that decides: the time is that of one trial";
  std::string text = print("%d finalist%s, ", t.finalists, t.finalists == 1 ? "" : "s");
  text += t.tied > 1 ? str(t.tied, " tie: ", format_tie(t)) : "one winner";
  text += print("; at most %.1f %% slower than the fastest; ", 100 * t.regret_bound);
  if (t.turns > 0) text += print("%d of %d turns disturbed and taken anew; ", t.discarded, t.turns);
  if (t.ratio_low == t.ratio_high) return text + "by an exact clock";
  return text + print("%.4g x pulse (95 %%: %.4g .. %.4g)", t.ratio, t.ratio_low, t.ratio_high);
}

double roofline_ns(const Workload& workload, const TunedConfig& t) {
  const double memory_ns = t.read_gbps > 0 ? static_cast<double>(workload.bytes()) / t.read_gbps : 0;
  // The operators on rows do little that is a multiply-add: their arithmetic is no bound.
  const double arithmetic_ns = workload.memory_bound() || t.peak_gflops <= 0
                                   ? 0
                                   : static_cast<double>(needed_flops(workload)) / t.peak_gflops;
  return std::max(memory_ns, arithmetic_ns);
}

double roofline_share(const Workload& workload, const TunedConfig& t) {
  return t.time_ns > 0 ? roofline_ns(workload, t) / t.time_ns : 0;
}

std::string peak_owner(DType dtype, const TargetFamily& family) {
  // Of a device, records tell the peak by the data sheet, for their own type.
  if (dtype == DType::kFloat32 || !family.bound_by_host()) return std::string(family.peak_owner());
  return std::string(dtype_name(dtype));
}

std::string format_speed(const Workload& workload, const TunedConfig& t) {
  if (t.time_ns <= 0) return "-";
  if (workload.memory_bound()) return number(static_cast<double>(workload.bytes()) / t.time_ns) + " GB/s";
  if (workload.flops() == 0)  // a user's kernel, of which he says nothing, or how many bytes it moves
    return workload.least_bytes() > 0 ? number(workload.least_bytes() / t.time_ns) + " GB/s" : "";
  const auto flops = static_cast<double>(workload.flops()),
             needed = static_cast<double>(needed_flops(workload));
  std::string speed = number(flops / t.time_ns) + " GFLOP/s";
  if (needed < flops) speed += str(", ", number(needed / t.time_ns), " without padding");
  if (t.peak_gflops <= 0) return speed;
  Target target;
  if (const Result<Target> parsed = parse_target(t.target)) target = *parsed;
  return speed + print(" (%.1f %% of the %s peak of %s)",
                       100 * printed(needed / t.time_ns) / printed(t.peak_gflops),
                       peak_owner(workload.dtype(), *target.family).c_str(), number(t.peak_gflops).c_str());
}

std::string format_roofline(const Workload& workload, const TunedConfig& t) {
  const double bound_ns = roofline_ns(workload, t);
  if (bound_ns <= 0 || t.time_ns <= 0 || t.read_gbps <= 0) return "";
  const std::string bound = format_time(bound_ns);
  // Winograd and its like do less arithmetic than is counted, so they may be above it.
  const AnyTemplate* const by = find_template(t.template_name);
  if (by == nullptr || by->algorithm() == "direct")
    return print("%.0f %% of the roofline (%s)", 100 * bound_ns / t.time_ns, bound.c_str());
  return print("%.2fx the roofline of direct sums (%s)", bound_ns / t.time_ns, bound.c_str());
}

std::string format_utc(int64_t us) {
  if (us == 0) return "-";
  const std::tm tm = utc(us);
  return print("%04d-%02d-%02d %02d:%02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
               tm.tm_min, tm.tm_sec);
}

std::string iso_utc(int64_t us) {
  if (us == 0) return "";
  const std::tm tm = utc(us);
  return print("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
               tm.tm_hour, tm.tm_min, tm.tm_sec, static_cast<int>(us % 1'000'000));
}

std::string format_outcomes(const std::vector<std::pair<Outcome, int64_t>>& outcomes) {
  std::string text;
  for (const auto& [outcome, count] : outcomes)
    text += str(text.empty() ? "" : ", ", count, " ", outcome_name(outcome));
  return text.empty() ? "none" : text;
}

}  // namespace tuner
