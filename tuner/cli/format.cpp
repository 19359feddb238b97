#include "tuner/cli/format.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <utility>

namespace tuner::cli {

namespace {

struct Unit {
  double ns;
  const char* name;
};
Unit unit_of(double ns) {
  constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const Unit& unit : kUnits)
    if (ns >= unit.ns) return unit;
  return kUnits[3];
}

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

// Four significant digits without an exponent.
std::string number(double value) {
  return print(value >= 1000 ? "%.0f" : value >= 100 ? "%.1f" : value >= 10 ? "%.2f" : "%.3f", value);
}

std::tm utc(int64_t us) {
  const std::time_t seconds = static_cast<std::time_t>(us / 1'000'000);
  std::tm tm{};
  ::gmtime_r(&seconds, &tm);
  return tm;
}

}  // namespace

std::string format_time(double ns) {
  const Unit unit = unit_of(ns);
  return number(ns / unit.ns) + " " + unit.name;
}

std::string format_time(double ns, double low_ns, double high_ns) {
  const Unit unit = unit_of(ns);
  return number(ns / unit.ns) + " " + unit.name + " (95 %: " + number(low_ns / unit.ns) + " .. " +
         number(high_ns / unit.ns) + " " + unit.name + ")";
}

std::string format_race(const TunedConfig& t) {
  if (t.race_id == 0) return "not raced: the time of one trial";
  char text[200];
  std::snprintf(
      text, sizeof text,
      "%d finalist%s, %s; at most %.1f %% slower than the fastest; %.4g x sentinel (95 %%: %.4g .. %.4g)",
      t.finalists, t.finalists == 1 ? "" : "s", t.tied > 1 ? str(t.tied, " tie").c_str() : "one winner",
      100 * t.regret_bound, t.ratio, t.ratio_low, t.ratio_high);
  return text;
}

std::string format_gflops(int64_t flops, double ns, double peak_gflops) {
  if (ns <= 0) return "-";
  const double gflops = static_cast<double>(flops) / ns;
  std::string text = number(gflops) + " GFLOP/s";
  if (peak_gflops > 0)
    text += print(" (%.1f %% of the measured peak of %s)", 100 * gflops / peak_gflops,
                  number(peak_gflops).c_str());
  return text;
}

std::string format_speed(const Workload& workload, double ns, double peak_gflops) {
  if (!workload.memory_bound() || ns <= 0) return format_gflops(workload.flops(), ns, peak_gflops);
  return number(static_cast<double>(workload.bytes()) / ns) + " GB/s";
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

}  // namespace tuner::cli
