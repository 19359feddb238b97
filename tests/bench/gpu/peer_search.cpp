#include "tests/bench/gpu/peer_search.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr double kShareToTime = 0.6;  // of the seconds; the rest is for checking
constexpr double kPatience = 3;       // times as long for a library that has nothing right yet
constexpr double kHopeless = 1.5;     // slower than the fastest right one by that: cannot win, not checked

void note(SearchReport& report, const PeerWay& way, const Status& why) {
  if (report.why.empty()) report.why = str(way.name, way.name.empty() ? "" : ": ", why.message());
}

struct TimedWay {
  PeerWay way;
  double ns = 0;
};

Result<std::vector<TimedWay>> time_all(WaySource& source, const SearchOptions& options,
                                       const SearchHooks& hooks, double begin_s, SearchReport& report) {
  std::vector<TimedWay> timed;
  const auto over = [&] {
    const double limit_s = options.seconds * (timed.empty() ? kPatience : kShareToTime);
    return hooks.now_s() - begin_s >= limit_s;
  };
  while (report.tried < options.most) {
    if (over()) {
      report.is_whole = false;
      break;
    }
    std::optional<Result<PeerWay>> way = source.next(over);
    if (!way) {
      report.is_whole = !over();
      break;
    }
    ++report.tried;
    Status status = way->status();
    if (status) {
      const Result<double> ns = hooks.time(**way);
      if (ns.is_ok()) timed.push_back({.way = std::move(**way), .ns = *ns});
      status = ns.status();
      if (!status) note(report, **way, status);
    } else if (report.why.empty()) {
      report.why = status.message();
    }
    if (status.code() == StatusCode::kUnavailable) return status;
    report.refused += status ? 0 : 1;
  }
  std::ranges::stable_sort(timed, {}, &TimedWay::ns);
  return timed;
}

}  // namespace

Result<std::vector<Finalist>> search(WaySource& source, const SearchOptions& options,
                                     const SearchHooks& hooks, SearchReport& report) {
  const double begin_s = hooks.now_s();
  ASSIGN_OR_RETURN(std::vector<TimedWay> timed, time_all(source, options, hooks, begin_s, report));
  report.offered = source.offered();
  std::vector<Finalist> right;
  for (TimedWay& t : timed) {
    const double limit_s = options.seconds * (right.empty() ? kPatience : 1);
    if (right.size() == options.finalists || hooks.now_s() - begin_s >= limit_s) break;
    if (!right.empty() && t.ns > kHopeless * right.front().quick_ns) break;
    const Result<double> error = hooks.check(t.way);
    if (error.status().code() == StatusCode::kUnavailable) return error.status();
    if (error.is_ok()) {
      right.push_back({.way = std::move(t.way), .quick_ns = t.ns, .max_error = *error});
    } else {
      if (report.wrong++ == 0) report.why.clear();  // says more than a refusal
      note(report, t.way, error.status());
    }
  }
  report.seconds = hooks.now_s() - begin_s;
  if (timed.empty() && report.why.empty()) report.why = source.refusal();
  for (const Finalist& f : right)
    report.finalists.push_back(
        {.name = f.way.name, .quick_ns = f.quick_ns, .max_error = f.max_error, .facts = f.way.facts});
  return right;
}

}  // namespace tuner
