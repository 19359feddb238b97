#include "tests/bench/cpu/report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>

#include "templates/workload/needed_work.h"

namespace tuner {
namespace {

// After the type, "FMA" for float32.
constexpr std::string_view kOneCore = "peak of one core", kAllCores = "peak of all cores";

const Contestant* fastest(const ShapeReport& r, ContestantKind kind, bool direct_only) {
  const Contestant* best = nullptr;
  for (const Contestant& c : r.contestants) {
    if (c.kind != kind || c.ns.empty() || (direct_only && c.algorithm != "direct")) continue;
    if (best == nullptr || time_ns(c) < time_ns(*best)) best = &c;
  }
  return best;
}

std::optional<Against> against(const ShapeReport& r, bool direct_only, uint64_t seed) {
  const Contestant* ours = fastest(r, ContestantKind::kOurs, direct_only);
  const Contestant* peer = fastest(r, ContestantKind::kPeer, direct_only);
  if (ours == nullptr || peer == nullptr) return std::nullopt;
  return Against{peer->name, quantile_ratio_interval(peer->ns, ours->ns, kBenchQuantile, seed)};
}

const Contestant* probe(const ShapeReport& r, std::string_view part) {
  for (const Contestant& c : r.contestants)
    if (c.kind == ContestantKind::kProbe && c.name.find(part) != std::string::npos && !c.ns.empty())
      return &c;
  return nullptr;
}

std::string interval_text(const Figure& i) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", i.middle, i.low, i.high);
  return text;
}

}  // namespace

bool cores_are_free(const ShapeReport& r, int threads) { return threads == 1 || r.cores >= 0.96 * threads; }

double time_ns(const Contestant& c) { return quantile(c.ns, kBenchQuantile); }

void judge(ShapeReport& r, uint64_t seed) {
  r.any = against(r, /*direct_only=*/false, seed);
  r.direct = against(r, /*direct_only=*/true, seed);
  const Contestant* ours = fastest(r, ContestantKind::kOurs, false);
  if (ours == nullptr) return;
  const double ns = time_ns(*ours);
  const auto rate = [](const Contestant* c) { return c->work / time_ns(*c); };
  const Contestant* one = probe(r, kOneCore);
  const Contestant* all = probe(r, kAllCores);
  if (one != nullptr && all != nullptr) r.cores = rate(all) / rate(one);
  // Products of padding count as work, but may be passed over.
  const Workload& w = r.shape.workload;
  const double needed =
      w.flops() > 0 ? static_cast<double>(needed_flops(w)) / static_cast<double>(w.flops()) : 1;
  if (const Contestant* peak = all != nullptr ? all : one)
    r.share_of_peak = needed * static_cast<double>(r.flops) / ns / rate(peak);
  if (const Contestant* read = probe(r, "read "))
    r.share_of_bandwidth = static_cast<double>(r.bytes) / ns / rate(read);
  for (const Contestant& c : r.contestants)
    if (c.name == "ours, 1 thread" && !c.ns.empty()) r.scaling = time_ns(c) / ns;
}

std::vector<GroupSummary> summarise(const RunReport& run) {
  std::map<std::string, std::vector<const ShapeReport*>> groups;
  for (const ShapeReport& r : run.shapes)
    if (r.error.empty() && r.any && cores_are_free(r, run.threads)) groups[r.shape.group].push_back(&r);
  std::vector<GroupSummary> all;
  for (const auto& [group, shapes] : groups) {
    GroupSummary s{.group = group, .shapes = shapes.size()};
    std::vector<double> ratios, direct;
    for (const ShapeReport* r : shapes) {
      const double ratio = r->any->ratio.middle;
      if (ratios.empty() || ratio < s.worst) s.worst = ratio, s.worst_shape = r->shape.name;
      ratios.push_back(ratio);
      if (!r->direct) continue;
      const double of_direct = r->direct->ratio.middle;
      if (direct.empty() || of_direct < s.direct_worst)
        s.direct_worst = of_direct, s.direct_worst_shape = r->shape.name;
      direct.push_back(of_direct);
    }
    s.mean = geometric_mean(ratios);
    s.direct_mean = geometric_mean(direct);
    all.push_back(std::move(s));
  }
  return all;
}

std::vector<NetworkSum> network_sums(const RunReport& run) {
  std::vector<NetworkSum> sums;
  for (const ShapeReport& r : run.shapes) {
    if (!r.error.empty() || !cores_are_free(r, run.threads) ||
        r.shape.workload.get_if<Conv2dWorkload>() == nullptr)
      continue;
    const Contestant* ours = fastest(r, ContestantKind::kOurs, false);
    const Contestant* ours_direct = fastest(r, ContestantKind::kOurs, true);
    const Contestant* peer = fastest(r, ContestantKind::kPeer, false);
    const Contestant* peer_direct = fastest(r, ContestantKind::kPeer, true);
    if (ours == nullptr || ours_direct == nullptr || peer == nullptr || peer_direct == nullptr) continue;
    if (sums.empty() || sums.back().set != r.shape.set) sums.push_back({.set = r.shape.set});
    NetworkSum& sum = sums.back();
    sum.layers += r.shape.uses;
    sum.ours_ns += r.shape.uses * time_ns(*ours);
    sum.ours_direct_ns += r.shape.uses * time_ns(*ours_direct);
    sum.peer_ns += r.shape.uses * time_ns(*peer);
    sum.peer_direct_ns += r.shape.uses * time_ns(*peer_direct);
  }
  return sums;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string_view operands_text(Caches caches) {
  return caches == Caches::kWarm ? "warm" : caches == Caches::kRotate ? "rotated" : "flushed";
}

void print_head(const RunReport& run) {
  std::printf("%s, %s\ntarget %s, %s\n", run.cpu.c_str(), run.date.c_str(), run.target.c_str(),
              run.toolchain.c_str());
  for (const std::string& library : run.libraries) std::printf("%s\n", library.c_str());
  for (const MissingPeer& m : run.missing) std::printf("%s: %s\n", m.name.c_str(), m.why.c_str());
  std::printf(
      "%d rounds in turn, batches of %.3g ms, operands %s; %s; lower quartiles with 95 %% intervals, "
      "seed %llu\n",
      run.rounds, run.fill_ns / 1e6, operands_text(run.caches).data(),
      run.threads == 1 ? "CPU time of the thread" : "wall time", static_cast<unsigned long long>(run.seed));
}

void print_shape(const ShapeReport& r, size_t number, size_t of, int threads, uint64_t seed) {
  std::printf("\n%zu of %zu  %s  %s", number, of, r.shape.set.c_str(), r.shape.name.c_str());
  if (r.shape.uses > 1) std::printf(" (%d times)", r.shape.uses);
  std::printf("  %.4g MFLOP, %.4g MB in %s\n", static_cast<double>(r.flops) / 1e6,
              static_cast<double>(r.bytes) / 1e6, r.level.c_str());
  const Contestant* ours = fastest(r, ContestantKind::kOurs, false);
  for (const Contestant& c : r.contestants) {
    if (c.ns.empty()) continue;
    const Figure t = quantile_interval(c.ns, kBenchQuantile, seed);
    std::printf("  %-26s %10.2f us [%.2f, %.2f]", c.name.c_str(), t.middle / 1e3, t.low / 1e3, t.high / 1e3);
    if (c.kind == ContestantKind::kProbe) {
      std::printf("  %.1f %s\n", c.work / t.middle,
                  c.name.find(" peak of ") != std::string::npos ? "GFLOP/s" : "GB/s");
      continue;
    }
    std::printf("  %6.1f GFLOP/s %6.1f GB/s", static_cast<double>(r.flops) / t.middle,
                static_cast<double>(r.bytes) / t.middle);
    if (ours != nullptr && c.kind != ContestantKind::kOurs)
      std::printf("  /ours %.3f", quantile_ratio_interval(c.ns, ours->ns, kBenchQuantile, seed).middle);
    std::printf("  %s%s\n", c.algorithm == "direct" ? "" : (c.algorithm + ": ").c_str(), c.detail.c_str());
  }
  for (const MissingPeer& m : r.missing) std::printf("  %-26s %s\n", m.name.c_str(), m.why.c_str());
  if (!r.error.empty()) {
    std::printf("  FAILED  %s\n", r.error.c_str());
  } else {
    const DType dtype = r.shape.workload.dtype();
    const std::string peak = str(dtype == DType::kFloat32 ? "FMA" : dtype_name(dtype), " peak");
    std::printf("  ours: %.1f %% of the %s, %.1f %% of reading %s", 100 * r.share_of_peak, peak.c_str(),
                100 * r.share_of_bandwidth, r.level.c_str());
    if (r.scaling > 0) std::printf(", %.2f times one thread", r.scaling);
    if (r.cores > 0)
      std::printf(", where the %s is %.2f times%s", peak.c_str(), r.cores,
                  cores_are_free(r, threads) ? "" : ": CORES ARE NOT FREE, void");
    if (r.any) std::printf("; %s/ours %s", r.any->peer.c_str(), interval_text(r.any->ratio).c_str());
    if (r.direct && (r.direct->peer != r.any->peer || r.direct->ratio.middle != r.any->ratio.middle))
      std::printf("; direct: %s/ours %s", r.direct->peer.c_str(), interval_text(r.direct->ratio).c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

void print_summary(const RunReport& run) {
  std::printf("\n%-26s %-24s %9s %7s %7s  %-28s %-22s\n", "set", "shape", "us", "% peak", "% mem",
              "best peer/ours", "direct, like for like");
  for (const ShapeReport& r : run.shapes) {
    const Contestant* ours = fastest(r, ContestantKind::kOurs, false);
    if (!r.error.empty() || ours == nullptr) {
      std::printf("%-26s %-24s FAILED %s\n", r.shape.set.c_str(), r.shape.name.c_str(), r.error.c_str());
      continue;
    }
    std::printf(
        "%-26s %-24s %9.2f %7.1f %7.1f  %-28s %-22s %s\n", r.shape.set.c_str(), r.shape.name.c_str(),
        time_ns(*ours) / 1e3, 100 * r.share_of_peak, 100 * r.share_of_bandwidth,
        r.any ? interval_text(r.any->ratio).c_str() : "no peer",
        r.direct ? interval_text(r.direct->ratio).c_str() : "",
        cores_are_free(r, run.threads) ? (r.any ? r.any->peer.c_str() : "") : "VOID, cores were not free");
  }
  std::printf("\n%-26s %6s %9s %7s %-24s %9s %7s\n", "group", "shapes", "geo. mean", "worst", "", "direct",
              "worst");
  for (const GroupSummary& s : summarise(run)) {
    std::printf("%-26s %6zu %9.3f %7.3f %-24s", s.group.c_str(), s.shapes, s.mean, s.worst,
                s.worst_shape.c_str());
    if (s.direct_mean > 0)
      std::printf(" %9.3f %7.3f %s", s.direct_mean, s.direct_worst, s.direct_worst_shape.c_str());
    std::printf("\n");
  }
  for (const NetworkSum& s : network_sums(run))
    std::printf(
        "sum over %d convolutions of %s: ours %.2f ms (direct %.2f), best peers %.2f ms (direct %.2f): "
        "ours is %.3f of theirs\n",
        s.layers, s.set.c_str(), s.ours_ns / 1e6, s.ours_direct_ns / 1e6, s.peer_ns / 1e6,
        s.peer_direct_ns / 1e6, s.ours_ns / s.peer_ns);
  const auto bad = std::count_if(run.shapes.begin(), run.shapes.end(),
                                 [](const ShapeReport& r) { return !r.error.empty(); });
  if (bad > 0) std::printf("%td of %zu shapes have no figure\n", bad, run.shapes.size());
  const auto is_void = std::count_if(run.shapes.begin(), run.shapes.end(), [&](const ShapeReport& r) {
    return r.error.empty() && !cores_are_free(r, run.threads);
  });
  if (is_void > 0)
    std::printf("%td of %zu shapes are void and in no mean and no sum\n", is_void, run.shapes.size());
  if (!run.stopped.empty()) std::printf("stopped: %s\n", run.stopped.c_str());
  std::fflush(stdout);
}

}  // namespace tuner
