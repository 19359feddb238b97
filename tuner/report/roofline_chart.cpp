// What the result could reach at most: the arithmetic of the machine and the bandwidths of its caches.
#include <algorithm>
#include <cmath>

#include "compiler_core/base/status.h"
#include "tuner/report/chart.h"
#include "tuner/report/figures.h"

namespace tuner::page {
namespace {

constexpr double kRoofTop = 12, kRoofHeight = 226, kRoofAxisHeight = 42;  // pixels

// Both axes are logarithmic: FLOP per byte, and GFLOP/s.
struct RoofScale {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  double x(double intensity) const { return (std::log10(intensity) - x0) / (x1 - x0); }
  double y(double rate) const { return kRoofTop + kRoofHeight * (1 - (std::log10(rate) - y0) / (y1 - y0)); }
};

struct Roofs {
  double intensity = 0, gflops = 0, peak = 0;
  std::string lives_in;
  const Facts* levels = nullptr;
};

RoofScale scale_of(const Roofs& r) {
  double left = std::min(r.intensity, 0.25), right = std::max(r.intensity, 16.0);
  for (const Facts& level : *r.levels)
    if (r.peak > 0) {
      left = std::min(left, r.peak / number(level, "gbps"));
      right = std::max(right, r.peak / number(level, "gbps"));
    }
  const double most = std::max(r.peak, r.gflops);
  return {.x0 = std::log10(left) - 0.25,
          .x1 = std::log10(right) + 0.35,
          .y0 = std::log10(std::min(r.gflops, most / 60)) - 0.25,
          .y1 = std::log10(most) + 0.3};
}

void draw_scale(Chart& chart, const RoofScale& s) {
  for (double e = std::ceil(s.y0); e <= s.y1; ++e) {
    const double y = s.y(std::pow(10, e));
    chart.grid({0, y}, {1, y});
    chart.words({0, y + 4}, -8, "end", tick(std::pow(10, e)));
  }
  for (double e = std::ceil(s.x0); e <= s.x1; ++e) {
    const double x = s.x(std::pow(10, e));
    chart.grid({x, kRoofTop}, {x, kRoofTop + kRoofHeight});
    chart.words({x, kRoofTop + kRoofHeight + 17}, 0, "middle", tick(std::pow(10, e)));
  }
  chart.grid({0, kRoofTop + kRoofHeight}, {1, kRoofTop + kRoofHeight});
  chart.words({0.5, kRoofTop + kRoofHeight + 38}, 0, "middle", "FLOP per byte");
  chart.side_words("GFLOP/s");
}

void draw_roofs(Chart& chart, const Roofs& r, const RoofScale& s) {
  const size_t bounding = chart.add_kind({Shape::kLine, "roof", "a roof of this kernel"});
  const size_t other = chart.add_kind({Shape::kLine, "other-roof", "bandwidth of another level of memory"});
  const double right = std::pow(10, s.x1), left = std::pow(10, s.x0), low = std::pow(10, s.y0);
  double above = -20;  // names are kept apart where lines come in close together
  for (const Facts& level : *r.levels) {
    const double gbps = number(level, "gbps");
    const bool bounds = text(level, "name") == r.lives_in;
    const double from = std::max(left, low / gbps), to = r.peak > 0 ? std::min(r.peak / gbps, right) : right;
    if (from >= to) continue;
    chart.line(bounds ? bounding : other, {s.x(from), s.y(gbps * from)}, {s.x(to), s.y(gbps * to)});
    const bool at_the_side = from <= left * 1.0001;
    Point at{s.x(from), at_the_side ? s.y(gbps * from) - 6 : kRoofTop + kRoofHeight - 8};
    if (std::abs(at.y - above) < 13 && at_the_side) at.y = above + 13;
    above = at.y;
    chart.words(at, 8, "start", str(text(level, "name"), " ", std::llround(gbps), " GB/s"),
                bounds ? "halo strong" : "halo");
  }
}

Html explained(const Facts& roofline, const Facts& best, const Roofs& r) {
  double bound = r.peak > 0 ? r.peak : INFINITY;
  for (const Facts& level : *r.levels)
    if (text(level, "name") == r.lives_in) bound = std::min(bound, number(level, "gbps") * r.intensity);
  Html out("<p class='note'>");
  out << digits(r.intensity) << " FLOP per byte, each argument read or written once.";
  if (!r.lives_in.empty()) out << " The arguments fit together in " << r.lives_in << ".";
  const std::string algorithm = text(best, "algorithm");
  if (std::isfinite(bound) && bound > 0) {
    out << " The kernel reaches " << percent(r.gflops / bound, 0) << " of that roof.";
    if (!algorithm.empty() && algorithm != "direct")
      out << " The roof is that of the direct algorithm; " << algorithm << " does less arithmetic.";
  }
  if (is_set(roofline, "peak_measured_now"))
    out << " The roofs were measured when this page was made.";
  else if (r.peak > 0)
    out << " The peak is the one in the records.";
  else
    out << " The peak of that machine is not known.";
  return out << "</p>";
}

}  // namespace

Html roofline_chart(const Facts& task) {
  const Facts &roofline = part(task, "roofline"), &best = part(task, "best");
  if (const std::string why = text(roofline, "why"); !why.empty())
    return html("<p class='note'>Not drawn: ", why, ".</p>");
  const Roofs r{.intensity = number(roofline, "flops") / number(roofline, "bytes"),
                .gflops = number(roofline, "gflops"),
                .peak = number(roofline, "peak_gflops"),
                .lives_in = text(roofline, "lives_in"),
                .levels = &part(roofline, "levels")};
  if (!(r.intensity > 0) || !std::isfinite(r.intensity) || !(r.gflops > 0))
    return html("<p class='note'>Not drawn: no right answer.</p>");
  const RoofScale s = scale_of(r);
  Chart chart("Roofline", kRoofTop + kRoofHeight + kRoofAxisHeight, 52, 16);
  draw_scale(chart, s);
  const size_t winner = chart.add_kind({Shape::kDiamond, is_set(best, "raced") ? "winner" : "fastest",
                                        is_set(best, "raced") ? "the winner" : "the fastest trial"});
  draw_roofs(chart, r, s);
  const size_t peak = chart.add_kind({Shape::kLine, "peak", text(roofline, "peak_name")});
  if (r.peak > 0) {
    chart.line(peak, {0, s.y(r.peak)}, {1, s.y(r.peak)});
    chart.words({0, s.y(r.peak) - 7}, 6, "start",
                str(text(roofline, "peak_name"), " ", std::llround(r.peak), " GFLOP/s"), "halo strong");
  }
  const Point at{s.x(r.intensity), s.y(r.gflops)};
  const bool near_right = at.x > 0.6;
  const std::string rate = digits(r.gflops) + " GFLOP/s";
  chart.words({at.x, at.y + 22}, near_right ? -11 : 11, near_right ? "end" : "start", rate, "halo strong");
  chart.mark(winner, at,
             str(text(best, "trial"), is_set(best, "raced") ? ", the winner\n" : ", the fastest trial\n",
                 time(number(best, "time_ns")), ", ", rate, "\n", text(best, "template"), "\n",
                 bounded(text(best, "described"), 400)));
  return html(explained(roofline, best, r), chart.code());
}

}  // namespace tuner::page
