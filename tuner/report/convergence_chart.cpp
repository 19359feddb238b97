// The trials of a task in the order of their results, the best so far, and where its result stands.
#include <algorithm>
#include <cmath>

#include "compiler_core/base/outcome.h"
#include "compiler_core/base/status.h"
#include "tuner/report/chart.h"
#include "tuner/report/figures.h"

namespace tuner::page {
namespace {

constexpr double kCurveTop = 10, kCurveHeight = 250, kFailures = 16, kCurveAxisHeight = 44;  // pixels
constexpr size_t kMostSteps = 600;                                                           // of a curve

// The best time after each trial that improved on it.
struct Curve {
  std::vector<std::pair<size_t, double>> steps;  // trial, from 1, and time
  std::vector<double> times;                     // of all trials that were timed to the end, ascending
  std::vector<double> bounds;                    // of all that were ended early
};

Curve curve_of(const Facts& points) {
  Curve c;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!points[i][1].is_number()) continue;
    const double ns = points[i][1].get<double>();
    if (points[i][2] == "cut") {
      c.bounds.push_back(ns);
      continue;
    }
    c.times.push_back(ns);
    if (c.steps.empty() || ns < c.steps.back().second) c.steps.emplace_back(i + 1, ns);
  }
  std::ranges::sort(c.times);
  if (c.steps.size() > kMostSteps) {
    const std::vector<std::pair<size_t, double>> all = std::move(c.steps);
    c.steps.clear();
    for (size_t i = 0; i < kMostSteps; ++i) c.steps.push_back(all[i * (all.size() - 1) / (kMostSteps - 1)]);
  }
  return c;
}

// Times between `floor` and `high` have a place; slower ones stand at the top.
struct CurveScale {
  size_t trials = 1;
  double floor = 0, high = 0;
  bool timed() const { return high > floor; }
  double bottom() const { return timed() ? kCurveTop + kCurveHeight : kCurveTop; }
  double x(double n) const { return n / static_cast<double>(trials); }
  double y(double ns) const {
    return kCurveTop + kCurveHeight * (1 - (std::min(ns, high) - floor) / (high - floor));
  }
};

double smallest(const Facts& numbers) {
  double least = INFINITY;
  for (const Facts& n : numbers)
    if (n.is_number()) least = std::min(least, n.get<double>());
  return least;
}

CurveScale scale_of(const Facts& task, const Curve& curve, size_t trials) {
  CurveScale s{.trials = trials};
  if (curve.times.empty() && curve.bounds.empty()) return s;
  const Facts& best = part(task, "best");
  const bool ended = curve.times.empty();
  const double fastest = ended ? *std::ranges::min_element(curve.bounds) : curve.times.front();
  const double first = ended ? fastest : curve.steps.front().second;
  const double usual = ended ? fastest : curve.times[curve.times.size() * 85 / 100];
  double low = std::min(fastest, smallest(part(part(task, "baseline"), "mean")));
  if (number(best, "low_ns") > 0) low = std::min(low, number(best, "low_ns"));
  s.high = std::min(std::max({usual, std::min(first, 6 * fastest), 1.15 * fastest}), 8 * fastest);
  s.high = std::max(s.high, 1.02 * number(best, "high_ns"));
  s.floor = std::max(0.0, low - 0.06 * (s.high - low));
  return s;
}

void draw_scale(Chart& chart, const CurveScale& s, bool failures) {
  const double bottom = s.bottom() + (failures ? kFailures : 0);
  if (s.timed()) {
    const Unit unit = unit_of(s.floor > 0 ? s.floor : s.high);
    for (const double t : ticks(s.floor / unit.ns, s.high / unit.ns, 5)) {
      const double y = s.y(t * unit.ns);
      chart.grid({0, y}, {1, y});
      chart.words({0, y + 4}, -8, "end", tick(t));
    }
    chart.side_words(str("time per call, ", unit.name));
  }
  for (const double t : ticks(0, static_cast<double>(s.trials), 5))
    if (t == std::floor(t)) chart.words({s.x(t), bottom + 18}, 0, "middle", grouped(static_cast<int64_t>(t)));
  chart.grid({0, bottom}, {1, bottom});
  chart.words({0.5, bottom + 38}, 0, "middle", "trials");
}

// A line that holds its height until the next point.
std::vector<Point> stairs(const CurveScale& s, const std::vector<std::pair<size_t, double>>& steps) {
  std::vector<Point> line;
  for (const auto& [n, ns] : steps) {
    const Point at{s.x(static_cast<double>(n)), s.y(ns)};
    if (!line.empty()) line.push_back({at.x, line.back().y});
    line.push_back(at);
  }
  if (!line.empty()) line.push_back({1, line.back().y});
  return line;
}

void draw_baseline(Chart& chart, const Facts& base, const CurveScale& s) {
  const size_t line =
      chart.add_kind({Shape::kDashedLine, "baseline", "a search without a model: " + text(base, "source")});
  const size_t range = chart.add_kind({Shape::kBand, "band", "95 % interval of its mean over runs"});
  const Facts &x = part(base, "x"), &mean = part(base, "mean"), &low = part(base, "low"),
              &high = part(base, "high");
  std::vector<std::pair<size_t, double>> steps;
  std::vector<Point> means, upper, lower;
  for (size_t i = 0; i < x.size() && i < mean.size(); ++i) {
    const double n = x[i].get<double>(), ns = mean[i].get<double>();
    if (n > static_cast<double>(s.trials)) break;
    if (i < low.size() && i < high.size()) {
      means.push_back({s.x(n), s.y(ns)});
      upper.push_back({s.x(n), s.y(high[i].get<double>())});
      lower.push_back({s.x(n), s.y(std::max(s.floor, low[i].get<double>()))});
    } else if (steps.empty() || ns < steps.back().second) {
      steps.emplace_back(static_cast<size_t>(n), ns);
    }
  }
  chart.band(range, upper, lower);
  chart.path(line, means.empty() ? stairs(s, steps) : means);
}

// As the facts name a trial that was right.
const std::string kRight(outcome_name(Outcome::kOk));

std::string told(const Facts& mark, size_t trials) {
  const std::string kind = text(mark, "outcome");
  const double ns = number(mark, "ns");
  return str(text(mark, "trial"), ", trial ", grouped(static_cast<int64_t>(number(mark, "n"))), " of ",
             grouped(static_cast<int64_t>(trials)), "\n",
             kind == kRight  ? time(ns)
             : kind == "cut" ? str("ended early: slower than ", time(ns))
                             : "failed: " + outcome(kind),
             "\n", text(mark, "template"), "\n", bounded(text(mark, "config"), kMostOfConfig));
}

void draw_trials(Chart& chart, const Facts& marks, const CurveScale& s) {
  const size_t ok = chart.add_kind({Shape::kDot, kRight, "a trial"});
  const size_t cut = chart.add_kind({Shape::kRing, "cut", "ended early: at least so slow"});
  const size_t slow = chart.add_kind({Shape::kTriangle, "slow", "slower than the scale reaches"});
  const size_t failed = chart.add_kind({Shape::kCross, "failed", "failed"});
  const double radius = marks.size() > 400 ? 2 : 2.8;
  for (const Facts& mark : marks) {
    const std::string kind = text(mark, "outcome");
    const double ns = number(mark, "ns"), x = s.x(number(mark, "n"));
    if (kind != kRight && kind != "cut")
      chart.mark(failed, {x, s.bottom() + kFailures / 2}, told(mark, s.trials));
    else if (ns > s.high)
      chart.mark(slow, {x, kCurveTop}, told(mark, s.trials));
    else
      chart.mark(kind == kRight ? ok : cut, {x, s.y(ns)}, told(mark, s.trials), radius);
  }
}

// The mark stands at the time that the headline names: the race's, if one certified it. The time of its trial
// is another dot.
void draw_result(Chart& chart, const Facts& best, const CurveScale& s) {
  if (best.is_null()) return;
  const bool raced = is_set(best, "raced");
  const size_t winner =
      chart.add_kind({Shape::kDiamond, raced ? "winner" : "fastest",
                      raced ? "the winner: its time in the race" : "the fastest trial: not certified"});
  const double x = s.x(number(best, "n")), ns = number(best, "time_ns");
  // What is not certified claims no interval.
  std::string certain;
  if (const double low = number(best, "low_ns"), high = number(best, "high_ns"); low > 0) {
    chart.line(chart.add_kind({Shape::kLine, "whisker", "95 % interval of that time"}), {x, s.y(high)},
               {x, s.y(low)});
    certain = str(" (95 %: ", interval(low, high), ")");
  }
  const std::string trial = str("trial ", grouped(static_cast<int64_t>(number(best, "n"))), " of ",
                                grouped(static_cast<int64_t>(s.trials)));
  const std::string when =
      raced ? str("\n", time(number(best, "trial_ns")), " when it was tried, as ", trial) : str("\n", trial);
  chart.mark(winner, {x, s.y(ns)},
             str(text(best, "trial"), raced ? ", the winner\n" : ", the fastest\n", time(ns),
                 raced ? " in the race" : "", certain, when, "\n", text(best, "template"), "\n",
                 bounded(text(best, "described"), kMostOfConfig)));
}

}  // namespace

Html convergence_chart(const Facts& task) {
  const Facts& points = part(part(task, "convergence"), "points");
  const Facts& marks = part(part(task, "convergence"), "marks");
  if (points.empty()) return html("<p class='note'>No trial has a result yet.</p>");
  const Curve curve = curve_of(points);
  const CurveScale s = scale_of(task, curve, points.size());
  const bool failures = std::ranges::any_of(
      marks, [](const Facts& m) { return text(m, "outcome") != kRight && text(m, "outcome") != "cut"; });
  Chart chart("Best time so far over the trials", s.bottom() + (failures ? kFailures : 0) + kCurveAxisHeight,
              s.timed() ? 58 : 14, 14);
  draw_scale(chart, s, failures);
  const size_t best = chart.add_kind({Shape::kLine, "curve", "best trial so far"});
  if (s.timed()) draw_baseline(chart, part(task, "baseline"), s);
  if (s.timed()) chart.path(best, stairs(s, curve.steps));
  draw_trials(chart, marks, s);
  if (s.timed()) draw_result(chart, part(task, "best"), s);

  Html out;
  if (curve.times.empty())
    out << "<p class='note'>No trial gave a right answer that was timed to the end.</p>";
  out << chart.code();
  if (marks.size() < points.size())
    out << "<p class='note'>" << grouped(static_cast<int64_t>(marks.size())) << " of "
        << grouped(static_cast<int64_t>(points.size()))
        << " trials are drawn: the result, the finalists, improvements, examples of each outcome, and an "
           "even "
           "sample of the others. <code>tuner records export</code> has all of them.</p>";
  if (const std::string why = text(part(task, "baseline"), "why"); !why.empty())
    out << "<p class='note'>No baseline: " << why << ".</p>";
  return out;
}

}  // namespace tuner::page
