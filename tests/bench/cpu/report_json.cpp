#include <nlohmann/json.hpp>

#include "tests/bench/cpu/json_file.h"
#include "tests/bench/cpu/report.h"

namespace tuner {
namespace {

using nlohmann::json;

json of(const Figure& i) { return {{"low", i.low}, {"middle", i.middle}, {"high", i.high}}; }

json of(const std::vector<MissingPeer>& missing) {
  json list = json::array();
  for (const MissingPeer& m : missing) list.push_back({{"name", m.name}, {"why", m.why}});
  return list;
}

std::string_view kind_name(ContestantKind kind) {
  constexpr std::string_view kNames[] = {"ours", "peer", "peer as found", "probe"};
  return kNames[static_cast<size_t>(kind)];
}

json of(const Contestant& c, uint64_t seed) {
  json j = {{"name", c.name},
            {"kind", kind_name(c.kind)},
            {"ns", c.ns},
            {"calls_a_batch", c.calls},
            {"time_ns", of(quantile_interval(c.ns, kBenchQuantile, seed))}};
  if (c.kind == ContestantKind::kProbe) {
    j["work_a_call"] = c.work;
  } else {
    j["algorithm"] = c.algorithm;
    j["detail"] = c.detail;
    j["max_error_in_tolerances"] = c.max_error;
  }
  return j;
}

json of(const std::optional<Against>& a) {
  if (!a) return nullptr;
  return {{"peer", a->peer}, {"ratio", of(a->ratio)}};
}

json of(const ShapeReport& r, uint64_t seed) {
  json j = {{"set", r.shape.set},
            {"name", r.shape.name},
            {"group", r.shape.group},
            {"uses", r.shape.uses},
            {"workload", r.shape.workload.key()},
            {"flops", r.flops},
            {"bytes", r.bytes},
            {"level", r.level},
            {"operand_sets", r.sets},
            {"missing", of(r.missing)}};
  if (!r.error.empty()) {
    j["error"] = r.error;
    return j;
  }
  j["share_of_peak"] = r.share_of_peak;
  j["share_of_read_bandwidth"] = r.share_of_bandwidth;
  if (r.scaling > 0) j["times_one_thread"] = r.scaling;
  if (r.cores > 0) j["peak_times_one_core"] = r.cores;
  j["best_peer_over_ours"] = of(r.any);
  j["best_direct_peer_over_ours_direct"] = of(r.direct);
  j["contestants"] = json::array();
  for (const Contestant& c : r.contestants)
    if (!c.ns.empty()) j["contestants"].push_back(of(c, seed));
  return j;
}

}  // namespace

Status write_json(const RunReport& run, const std::string& path) {
  json j = {{"format", 2},
            {"bench", "bench_cpu"},
            {"date", run.date},
            {"cpu", run.cpu},
            {"target", run.target},
            {"toolchain", run.toolchain},
            {"libraries", run.libraries},
            {"missing_peers", of(run.missing)},
            {"threads", run.threads},
            {"clock", run.threads == 1 ? "CPU time of the thread" : "wall"},
            {"rounds", run.rounds},
            {"batch_ns", run.fill_ns},
            {"quantile_of_rounds", kBenchQuantile},
            {"operands", operands_text(run.caches)},
            {"bootstrap_seed", run.seed},
            {"stopped", run.stopped},
            {"shapes", json::array()},
            {"groups", json::array()},
            {"networks", json::array()}};
  for (const ShapeReport& r : run.shapes) j["shapes"].push_back(of(r, run.seed));
  for (const GroupSummary& s : summarise(run))
    j["groups"].push_back({{"group", s.group},
                           {"shapes", s.shapes},
                           {"geometric_mean", s.mean},
                           {"worst", s.worst},
                           {"worst_shape", s.worst_shape},
                           {"direct_geometric_mean", s.direct_mean},
                           {"direct_worst", s.direct_worst},
                           {"direct_worst_shape", s.direct_worst_shape}});
  for (const NetworkSum& s : network_sums(run))
    j["networks"].push_back({{"set", s.set},
                             {"layers", s.layers},
                             {"ours_ns", s.ours_ns},
                             {"ours_direct_ns", s.ours_direct_ns},
                             {"best_peers_ns", s.peer_ns},
                             {"best_direct_peers_ns", s.peer_direct_ns}});
  return write_json_file(j, path);
}

}  // namespace tuner
