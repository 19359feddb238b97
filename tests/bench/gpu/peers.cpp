#include "tests/bench/gpu/peers.h"

#include <algorithm>
#include <limits>

#include "tests/bench/gpu/ceilings.h"

namespace tuner {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int kRounds = 3;           // in which finalists take turns
constexpr size_t kFinalists = 5;     // of those that count together, and of each question beside them
constexpr int64_t kWaysOfCheck = 8;  // of a question, where nothing is timed: the first that is right will do
constexpr double kShortNs = 30'000;  // below it the way to the device shows in the time of one call
constexpr int64_t kCallsOfShort = 16;  // recorded, and timed together
constexpr double kLeastSeconds = 0.05;
constexpr double kLongNs =
    20e6;  // a first call that is that long, and much longer than the fastest, is the last one
constexpr double kMuchLonger = 4;

double now_s() { return duration<double>(steady_clock::now().time_since_epoch()).count(); }

class PeerFinder {
 public:
  PeerFinder(DeviceBench& bench, const PeerOptions& options, DeviceCase& ours, PeerReport& report)
      : bench_(bench), options_(options), ours_(ours), report_(report) {
    options_.interleave.rounds = std::min(options.interleave.rounds, kRounds);
  }

  Status ask(const std::vector<Question>& questions) {
    const double end_s = now_s() + options_.seconds;
    for (size_t i = 0; i < questions.size(); ++i) {
      const Question& q = questions[i];
      const bool found = std::ranges::any_of(found_, [](const Found& f) { return f.counts; });
      if (q.kind == Question::Kind::kIfNone && found) continue;
      if (q.kind == Question::Kind::kBeside && options_.interleave.rounds == 0) continue;
      if (found && now_s() >= end_s) {
        report_.searches.push_back({.library = q.library,
                                    .what = q.what,
                                    .counts = q.kind != Question::Kind::kBeside,
                                    .is_whole = false});
        continue;
      }
      const auto left =
          std::count_if(questions.begin() + static_cast<int64_t>(i), questions.end(),
                        [](const Question& other) { return other.kind != Question::Kind::kIfNone; });
      const double share_s = (end_s - now_s()) / static_cast<double>(std::max<int64_t>(left, 1));
      RETURN_IF_ERROR(ask(q, std::max(share_s, kLeastSeconds)));
    }
    return Status::ok();
  }

  // The fastest of what was right, and the fastest of each question beside it. None is right: the report says
  // why.
  Status finish(const Contestant& us, std::vector<Contestant>& contestants) {
    const bool any = std::ranges::any_of(found_, [](const Found& f) { return f.counts; });
    if (!any) {
      std::vector<std::string> told;
      for (const SearchReport& s : report_.searches) {
        if (!s.counts || s.why.empty() || std::ranges::find(told, s.why) != told.end()) continue;
        report_.missing += str(told.empty() ? "" : "; ", s.why);
        report_.failed = report_.failed || s.tried > 0;
        told.push_back(s.why);
      }
      if (report_.missing.empty()) report_.missing = "no library has anything for it";
      return Status::ok();
    }
    keep_the_fastest();
    RETURN_IF_ERROR(race(us));
    const auto faster = [](const Found& a, const Found& b) { return a.ns < b.ns; };
    for (size_t s = 0; s < report_.searches.size(); ++s) {
      std::vector<Found> beside;
      std::ranges::copy_if(found_, std::back_inserter(beside),
                           [s](const Found& f) { return !f.counts && f.search == s; });
      if (beside.empty()) continue;
      const Found& best = *std::ranges::min_element(beside, faster);
      report_.also.push_back({.name = report_.searches[s].library,
                              .note = note_of(best),
                              .facts = best.finalist.way.facts,
                              .max_error = best.finalist.max_error});
      also_.push_back({.name = str("also ", report_.searches[s].library), .call = bind(best.finalist.way)});
    }
    std::erase_if(found_, [](const Found& f) { return !f.counts; });
    const Found& best = *std::ranges::min_element(found_, faster);
    report_.library = report_.searches[best.search].library;
    report_.max_error = best.finalist.max_error;
    report_.note = note_of(best);
    report_.facts = best.finalist.way.facts;
    contestants.push_back({.name = report_.name, .call = bind(best.finalist.way)});
    std::ranges::move(also_, std::back_inserter(contestants));
    return Status::ok();
  }

 private:
  struct Found {
    Finalist finalist;
    size_t search = 0;  // of the report's
    size_t place = 0;   // of its finalists
    bool counts = true;
    double ns = 0;  // in turn with the others; before that at first sight
  };

  Status ask(const Question& q, double seconds) {
    SearchReport& search_report =
        report_.searches.emplace_back(SearchReport{.library = q.library, .what = q.what});
    search_report.counts = q.kind != Question::Kind::kBeside;
    Result<std::unique_ptr<WaySource>> source = q.open();
    if (!source.is_ok()) {
      search_report.why = source.message();
      return source.status().code() == StatusCode::kUnavailable ? source.status() : Status::ok();
    }
    const bool is_timed = options_.interleave.rounds > 0;
    const SearchOptions how{
        .seconds = seconds, .finalists = kFinalists, .most = is_timed ? SearchOptions{}.most : kWaysOfCheck};
    const SearchHooks hooks{
        .now_s = now_s,
        .time = [&](const PeerWay& way) { return is_timed ? quick_ns(way) : Result<double>(0.0); },
        .check = [&](const PeerWay& way) { return ours_.check(bind(way), way.answer); }};
    ASSIGN_OR_RETURN(std::vector<Finalist> right, search(**source, how, hooks, search_report));
    for (size_t i = 0; i < right.size(); ++i) {
      Found& f = found_.emplace_back(Found{.search = report_.searches.size() - 1, .place = i});
      f.counts = search_report.counts;
      f.ns = right[i].quick_ns;
      f.finalist = std::move(right[i]);
    }
    return Status::ok();
  }

  // The way on memory to work in.
  std::function<Status(int set)> bind(const PeerWay& way) {
    Status there;
    if (const auto bytes = static_cast<int64_t>(way.workspace_bytes); bytes > workspace_->bytes()) {
      cuda::DeviceMemory larger;
      there = driver_status(cuda::DeviceMemory::allocate(bytes, larger));
      if (there) *workspace_ = std::move(larger);
    }
    return [there, workspace = workspace_, run = way.run](int set) {
      return there ? run(set, workspace->address()) : there;
    };
  }

  // One call after one that is not timed; of a short one the mean of some that are recorded.
  Result<double> quick_ns(const PeerWay& way) {
    const auto call = bind(way);
    const int sets = options_.interleave.sets;
    const auto timed = [&](const std::function<Status()>& work) -> Result<double> {
      double ns = 0;
      RETURN_IF_ERROR(driver_status(bench_.begin()));
      RETURN_IF_ERROR(work());
      RETURN_IF_ERROR(driver_status(bench_.end()));
      RETURN_IF_ERROR(driver_status(bench_.elapsed_ns(ns)));
      return ns;
    };
    ASSIGN_OR_RETURN(const double first, timed([&] { return call(0); }));  // loads it, too
    if (first > std::max(kLongNs, kMuchLonger * least_ns_)) return first;
    ASSIGN_OR_RETURN(const double one, timed([&] { return call(1 % sets); }));
    least_ns_ = std::min(least_ns_, one);
    if (one > kShortNs) return one;
    const auto several = [&] {
      for (int64_t i = 0; i < kCallsOfShort; ++i)
        if (!call(static_cast<int>(i % sets))) return cuda::CallStatus(cuda::kInvalidValue, "the call");
      return cuda::CallStatus();
    };
    cuda::DeviceGraph graph;
    const Status recorded = driver_status(cuda::DeviceGraph::record(bench_.stream(), several, graph));
    if (recorded.code() == StatusCode::kUnavailable) return recorded;
    if (!recorded) return one;  // as all others then, see record_graphs()
    const auto replay = [&] { return driver_status(graph.launch(bench_.stream())); };
    RETURN_IF_ERROR(replay());
    ASSIGN_OR_RETURN(const double all, timed(replay));
    return all / static_cast<double>(kCallsOfShort);
  }

  // By first sight: of those that count together, and of each question beside them.
  void keep_the_fastest() {
    std::ranges::stable_sort(found_, {}, [](const Found& f) { return f.ns; });
    size_t counting = 0;
    std::vector<size_t> beside(report_.searches.size());
    std::erase_if(found_, [&](const Found& f) {
      size_t& number = f.counts ? counting : beside[f.search];
      return number++ >= kFinalists;
    });
  }

  Status race(const Contestant& us) {
    if (found_.size() < 2 || options_.interleave.rounds == 0) return Status::ok();
    std::vector<Contestant> racers(1);
    racers[0].name = us.name;
    racers[0].call = us.call;
    for (const Found& f : found_)
      racers.push_back({.name = f.finalist.way.name, .call = bind(f.finalist.way)});
    const Status recorded = record_graphs(bench_, options_.interleave, racers);
    if (recorded.code() == StatusCode::kUnavailable) return recorded;
    std::vector<std::string> states;
    RETURN_IF_ERROR(interleave(bench_, options_.interleave, racers, states));
    for (size_t i = 0; i < found_.size(); ++i) {
      if (racers[i + 1].ns.empty()) continue;
      found_[i].ns = median(racers[i + 1].ns);
      report_.searches[found_[i].search].finalists[found_[i].place].ns = found_[i].ns;
    }
    return Status::ok();
  }

  std::string note_of(const Found& f) const {
    const SearchReport& s = report_.searches[f.search];
    return str(s.library == report_.name ? "" : s.library + " ", f.finalist.way.name,
               s.what.empty() ? "" : "; ", s.what);
  }

  DeviceBench& bench_;
  PeerOptions options_;
  DeviceCase& ours_;
  PeerReport& report_;
  std::vector<Found> found_;
  std::vector<Contestant> also_;
  double least_ns_ = std::numeric_limits<double>::infinity();  // of a call, so far
  const std::shared_ptr<cuda::DeviceMemory> workspace_ = std::make_shared<cuda::DeviceMemory>();
};

Status add_copy(DeviceBench& bench, int64_t bytes, int sets, PeerReport& report,
                std::vector<Contestant>& contestants) {
  report.name = "copy";
  Result<Contestant> copy = copy_contestant(bench, bytes, sets);
  if (copy.is_ok()) {
    contestants.push_back(*std::move(copy));
    return Status::ok();
  }
  report.missing = copy.message();
  return copy.status().code() == StatusCode::kUnavailable ? copy.status() : Status::ok();
}

}  // namespace

Status add_peer(DeviceBench& bench, const Libraries& libraries, const PeerOptions& options, DeviceCase& ours,
                PeerReport& report, std::vector<Contestant>& contestants) {
  const Workload& workload = ours.workload();
  const auto* product = workload.get_if<MatmulWorkload>();
  const auto* convolution = workload.get_if<Conv2dWorkload>();
  if (product == nullptr && convolution == nullptr)
    return workload.memory_bound() ? add_copy(bench, workload.bytes(), ours.sets(), report, contestants)
                                   : Status::ok();
  const bool is_plain_float = product != nullptr && product->dtype == DType::kFloat32 && !product->allow_tf32;
  report.name = convolution != nullptr ? "cuDNN" : is_plain_float ? "cuBLAS" : "cuBLASLt";
  const Result<std::vector<Question>> questions = product != nullptr
                                                      ? questions_for(libraries, *product, ours)
                                                      : questions_for(libraries, *convolution, ours);
  if (!questions.is_ok()) {
    report.missing = questions.message();
    return Status::ok();
  }
  PeerFinder finder(bench, options, ours, report);
  RETURN_IF_ERROR(finder.ask(*questions));
  const Contestant us{.name = "ours", .call = contestants.front().call};
  return finder.finish(us, contestants);
}

}  // namespace tuner
