#include "tuner/report/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "compiler_core/base/status.h"
#include "tuner/text/format.h"

namespace tuner::page {
namespace {

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), format, args...);
  return out.data();
}

}  // namespace

const Facts& part(const Facts& facts, const char* key) {
  static const Facts none;
  if (!facts.is_object()) return none;
  const auto at = facts.find(key);
  return at == facts.end() ? none : *at;
}

double number(const Facts& facts, const char* key) {
  const Facts& found = part(facts, key);
  return found.is_number() ? found.get<double>() : 0;
}

std::string text(const Facts& facts, const char* key) {
  const Facts& found = part(facts, key);
  return found.is_string() ? found.get<std::string>() : "";
}

bool is_set(const Facts& facts, const char* key) {
  const Facts& found = part(facts, key);
  return found.is_boolean() && found.get<bool>();
}

std::string time(double ns) { return ns > 0 ? format_time(ns) : "-"; }

std::string digits(double x) {
  return print(x >= 1000 ? "%.0f" : x >= 100 ? "%.1f" : x >= 10 ? "%.2f" : "%.3f", x);
}

Unit unit_of(double ns) {
  constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const Unit& unit : kUnits)
    if (ns >= unit.ns) return unit;
  return kUnits[3];
}

std::string interval(double low_ns, double high_ns) {
  const Unit unit = unit_of(low_ns);
  return str(digits(low_ns / unit.ns), " to ", digits(high_ns / unit.ns), " ", unit.name);
}

std::string percent(double share, int places) { return print("%.*f %%", places, 100 * share); }

std::string grouped(int64_t n) {
  std::string out = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    out.insert(static_cast<size_t>(at), ",");
  return out;
}

std::string count(int64_t n, std::string_view one, std::string_view many) {
  return str(grouped(n), " ", n == 1 ? one : many);
}

std::string factor(double x) { return print(x >= 10 ? "%.1fx" : "%.2fx", x); }

std::string duration(double ms) {
  return ms >= 120'000 ? print("%.1f min", ms / 60'000)
         : ms >= 1000  ? print("%.1f s", ms / 1000)
                       : print("%.0f ms", ms);
}

std::string outcome(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string tick(double x) { return print("%.4g", x); }

std::vector<double> ticks(double low, double high, double wanted) {
  std::vector<double> out;
  if (!(high > low)) return out;
  const double raw = (high - low) / std::max(1.0, wanted),
               magnitude = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * magnitude;
  for (const double m : {5.0, 2.5, 2.0, 1.0})
    if (m * magnitude >= raw) step = m * magnitude;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) out.push_back(i * step);
  return out;
}

}  // namespace tuner::page
