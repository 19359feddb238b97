// The finalists of a race with their intervals.
#include <algorithm>
#include <cmath>

#include "compiler_core/base/status.h"
#include "tuner/report/chart.h"
#include "tuner/report/figures.h"

namespace tuner::page {
namespace {

constexpr double kRaceTop = 4, kRow = 24, kRaceAxisHeight = 30;  // pixels
constexpr size_t kMostRows = 64, kMostName = 11;

std::string told(const Facts& f, bool decided) {
  const char* standing = !decided              ? ""
                         : is_set(f, "winner") ? ", the winner"
                         : is_set(f, "tied")   ? ", as fast as the winner as far as the race can tell"
                                               : ", slower than the winner";
  const auto processes = static_cast<int64_t>(number(f, "processes"));
  return str(text(f, "trial"), standing, "\n", time(number(f, "time_ns")),
             " (95 %: ", interval(number(f, "low_ns"), number(f, "high_ns")), ")\n",
             count(processes, "process", "processes"), ", ",
             count(static_cast<int64_t>(number(f, "samples")), "sample", "samples"), "\n",
             text(f, "template"), "\n", bounded(text(f, "config"), kMostOfConfig));
}

Html explained(const Facts& race, bool decided) {
  const Facts& all = part(race, "finalists");
  Html out(
      "<p class='note'>The finalists are measured again, in turn, in fresh processes. A bar is the range in "
      "which one more process lies in 95 % of cases. ");
  if (!decided)
    out << "This race certified nothing: " << text(race, "uncertified_why") << ".";
  else if (all.size() > 1)
    out << "The winner is at most " << percent(number(race, "regret_bound"))
        << " slower than the fastest of them.";
  // The winner comes first, the others by time.
  if (decided && all.size() > 1 && number(all[1], "time_ns") < number(all[0], "time_ns"))
    out << " Finalists are compared process by process, so another one may have the smaller time.";
  return out << "</p>";
}

// From the lowest interval to the highest. Far slower finalists, as the default often is, stand at the right
// end.
struct RaceScale {
  double low = INFINITY, high = 0, pad = 0;
  double x(double ns) const { return (std::min(ns, high) - low + pad) / (high - low + 2 * pad); }
};

RaceScale scale_of(const Facts& finalists, size_t rows) {
  constexpr double kFar = 1.3;
  RaceScale s;
  double fast = 0, fastest = INFINITY;
  for (size_t i = 0; i < rows; ++i) {
    const Facts& f = finalists[i];
    if (!(number(f, "time_ns") > 0)) continue;
    s.low = std::min(s.low, number(f, "low_ns"));
    s.high = std::max(s.high, number(f, "high_ns"));
    fastest = std::min(fastest, number(f, "time_ns"));
    if (is_set(f, "winner") || is_set(f, "tied")) fast = std::max(fast, number(f, "high_ns"));
  }
  s.high = std::min(s.high, kFar * (fast > 0 ? fast : fastest));
  s.pad = 0.06 * (s.high > s.low ? s.high - s.low : 0.01 * s.low + 1e-9);
  return s;
}

struct Kinds {
  size_t winner, tied, slower, far, finalist;
  size_t of(const Facts& f, bool decided, const RaceScale& s) const {
    if (number(f, "time_ns") > s.high) return far;
    return !decided ? finalist : is_set(f, "winner") ? winner : is_set(f, "tied") ? tied : slower;
  }
};

void draw_row(Chart& chart, const Facts& f, double y, bool decided, const Kinds& kinds, const RaceScale& s) {
  const double ns = number(f, "time_ns");
  const char* css = is_set(f, "winner") ? "strong" : "";
  chart.words({0, y + 4}, -12, "end", bounded(text(f, "trial"), kMostName), css);
  chart.words({1, y + 4}, 10, "start", time(ns), css);
  if (!(ns > 0)) return;
  const size_t kind = kinds.of(f, decided, s);
  if (kind != kinds.far) chart.bar(kind, {s.x(number(f, "low_ns")), y}, {s.x(number(f, "high_ns")), y});
  chart.mark(kind, {s.x(ns), y}, told(f, decided), 4.5);
}

}  // namespace

Html race_chart(const Facts& race) {
  if (const std::string why = text(race, "why"); !why.empty())
    return html("<p class='note'>Not shown: ", why, ".</p>");
  const Facts& all = part(race, "finalists");
  const size_t rows = std::min(all.size(), kMostRows);
  const RaceScale s = scale_of(all, rows);
  if (!(s.high > 0)) return html("<p class='note'>Not shown: no finalist of the race has a time.</p>");
  const bool decided = std::ranges::any_of(all, [](const Facts& f) { return is_set(f, "winner"); });

  const double bottom = kRaceTop + kRow * static_cast<double>(rows);
  Chart chart("Finalists of the race with their intervals", bottom + kRaceAxisHeight, 84, 80);
  chart.in_rows();
  const Kinds kinds{.winner = chart.add_kind({Shape::kDiamond, "winner", "the winner"}),
                    .tied = chart.add_kind({Shape::kDot, "tied", "as fast, as far as the race can tell"}),
                    .slower = chart.add_kind({Shape::kRing, "slower", "slower"}),
                    .far = chart.add_kind({Shape::kTriangle, "slow", "slower than the scale reaches"}),
                    .finalist = chart.add_kind({Shape::kDot, "finalist", "a finalist"})};
  const Unit unit = unit_of(s.low);
  for (const double t : ticks((s.low - s.pad) / unit.ns, (s.high + s.pad) / unit.ns, 3)) {
    const double x = (t * unit.ns - s.low + s.pad) / (s.high - s.low + 2 * s.pad);
    chart.grid({x, kRaceTop}, {x, bottom});
    chart.words({x, bottom + 18}, 0, "middle", str(tick(t), " ", unit.name));
  }
  for (size_t i = 0; i < rows; ++i)
    draw_row(chart, all[i], kRaceTop + kRow * (static_cast<double>(i) + 0.5), decided, kinds, s);
  Html out = html(explained(race, decided), chart.code());
  if (all.size() > rows)
    out << "<p class='note'>" << grouped(static_cast<int64_t>(all.size() - rows))
        << " slower finalists are not drawn.</p>";
  return out;
}

}  // namespace tuner::page
