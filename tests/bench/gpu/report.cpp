#include "tests/bench/gpu/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace tuner {

using nlohmann::json;

namespace {

// GFLOP/s and GB/s are both "per nanosecond".
double gflops(const TaskReport& t) { return static_cast<double>(t.flops) / t.time_ns.middle; }
double gbps(const TaskReport& t) { return static_cast<double>(t.bytes) / t.time_ns.middle; }

// What a task can reach at most on this device, in 10^9 of its units a second.
struct Ceiling {
  std::string name;
  double rate = 0;  // 0: not known
};
// Of copies, of tensor cores, or of float32: that peak is of this run where it was measured, else the data
// sheet's.
Ceiling ceiling_of(const RunReport& run, const TaskReport& t) {
  if (t.memory_bound) return {"copy", run.copy_gbps};
  if (t.dtype == DType::kBFloat16 || t.dtype == DType::kFloat16)
    return {"16-bit tensor peak, measured", run.mma_16bit_gops};
  if (t.dtype == DType::kInt8) return {"int8 tensor peak, measured", run.mma_int8_gops};
  if (t.allow_tf32) return {"TF32 tensor peak, measured", run.mma_tf32_gops};
  if (run.ffma_gflops > 0) return {"fp32 peak, measured", run.ffma_gflops};
  return {"fp32 peak", run.device.fp32_peak_gflops};
}

// 0: the ceiling is not known.
double share_of_ceiling(const RunReport& run, const TaskReport& t) {
  const double ceiling = ceiling_of(run, t).rate;
  return ceiling > 0 ? (t.memory_bound ? gbps(t) : gflops(t)) / ceiling : 0;
}

std::map<std::string, std::vector<double>> ratios_by_peer(const RunReport& run) {
  std::map<std::string, std::vector<double>> ratios;
  for (const TaskReport& t : run.tasks)
    if (t.error.empty() && !t.peer.timed.ns.empty()) ratios[t.peer.name].push_back(t.peer.timed.ratio.middle);
  return ratios;
}

void print_time(const char* who, const Figure& ns) {
  std::printf("  %-8s %10.2f us  [%.2f, %.2f]", who, ns.middle / 1000, ns.low / 1000, ns.high / 1000);
}

void print_ratio(const std::string& who, const Figure& ratio) {
  std::printf("  %s/ours  %.3f  [%.3f, %.3f]\n", who.c_str(), ratio.middle, ratio.low, ratio.high);
}

// "searched cuDNN, bias in bfloat16: heuristic A 31, fallback 3; 34 tried, 2 refused, 1 wrong; 1.2 s, all of
// them".
void print_search(const SearchReport& s) {
  if (s.tried == 0 && !s.is_whole) {
    std::printf("           not asked, the time was over: %s%s%s%s\n", s.library.c_str(),
                s.what.empty() ? "" : " (", s.what.c_str(), s.what.empty() ? "" : ")");
    return;
  }
  std::string offered;
  for (const Fact& f : s.offered)
    if (const int64_t* n = std::get_if<int64_t>(&f.value); n != nullptr && *n > 0)
      offered += str(offered.empty() ? "" : ", ", f.name, " ", *n);
  std::printf("           searched %s%s%s%s: %s; %lld tried, %lld refused, %lld wrong; %.2f s, %s%s%s\n",
              s.library.c_str(), s.what.empty() ? "" : " (", s.what.c_str(), s.what.empty() ? "" : ")",
              offered.empty() ? "nothing offered" : offered.c_str(), static_cast<long long>(s.tried),
              static_cast<long long>(s.refused), static_cast<long long>(s.wrong), s.seconds,
              s.is_whole ? "all of them" : "then the time was over",
              s.why.empty() ? "" : "; first failure: ", s.why.c_str());
}

void print_peer(const PeerReport& peer) {
  const char* gap = peer.note.empty() ? "" : "  ";
  if (peer.name.empty()) {
    std::printf("  peer     none for this operator\n");
  } else if (!peer.missing.empty()) {
    std::printf("  %-8s %s\n", peer.name.c_str(), peer.missing.c_str());
  } else if (peer.timed.ns.empty()) {
    std::printf("  %-8s right%s%s\n", peer.name.c_str(), gap, peer.note.c_str());
  } else {
    print_time(peer.name.c_str(), peer.timed.time_ns);
    std::printf("%s%s\n", gap, peer.note.c_str());
    print_ratio(peer.name, peer.timed.ratio);
  }
  if (!peer.plain.ns.empty())
    std::printf("           calls one by one: %s %.2f us, %s/ours %.3f\n", peer.name.c_str(),
                peer.plain.time_ns.middle / 1000, peer.name.c_str(), peer.plain.ratio.middle);
  for (const AlsoReport& also : peer.also) {
    if (also.timed.ns.empty()) continue;
    print_time("beside", also.timed.time_ns);
    std::printf("  %s %s; %.3f of ours\n", also.name.c_str(), also.note.c_str(), also.timed.ratio.middle);
  }
  for (const SearchReport& s : peer.searches) print_search(s);
}

void print_rate(const RunReport& run, const TaskReport& t) {
  const double percent = 100 * share_of_ceiling(run, t);
  const bool of_tensor_cores = !t.memory_bound && (t.dtype != DType::kFloat32 || t.allow_tf32);
  if (t.memory_bound)
    std::printf("  %.0f GB/s, %.1f %% of the copy rate\n", gbps(t), percent);
  else if (!of_tensor_cores)
    std::printf("  %.2f TFLOP/s, %.1f %% of fp32 peak\n", gflops(t) / 1000, percent);
  else if (percent > 0)
    std::printf("  %.2f %s, %.1f %% of the tensor peak\n", gflops(t) / 1000,
                t.dtype == DType::kInt8 ? "TOP/s" : "TFLOP/s", percent);
  else
    std::printf("  %.2f %s\n", gflops(t) / 1000, t.dtype == DType::kInt8 ? "TOP/s" : "TFLOP/s");
}

json of(const Figure& i) { return {{"low", i.low}, {"median", i.middle}, {"high", i.high}}; }

void print_others(const std::vector<OtherReport>& others) {
  for (const OtherReport& o : others) {
    if (!o.error.empty()) {
      std::printf("  failed   %s", o.error.c_str());
    } else if (o.ns.empty()) {
      std::printf("  right    max error %.2g of the tolerance", o.max_error);
    } else {
      print_time("or", o.time_ns);
    }
    std::printf("  %s %s\n", o.template_name.c_str(), o.config.c_str());
  }
}

json of(const OtherReport& o) {
  json j = {{"template", o.template_name}, {"config", o.config}, {"artifact", o.artifact}};
  if (!o.error.empty()) {
    j["error"] = o.error;
    return j;
  }
  j["max_error"] = o.max_error;
  if (o.ns.empty()) return j;
  j["ns"] = o.ns;
  j["time_ns"] = of(o.time_ns);
  return j;
}

json of(const Calibration& c) {
  json loads = json::array();
  for (const Calibration::SharedLoad& l : c.shared_loads)
    loads.push_back({{"lanes", l.lanes}, {"passes_by_the_model", l.passes}, {"clocks", l.clocks}});
  return {{"shared_128_bit_loads", loads},
          {"latency_clocks",
           {{"shared", c.shared_clocks}, {"l1", c.l1_clocks}, {"l2", c.l2_clocks}, {"dram", c.dram_clocks}}},
          {"ffma_a_clock", c.ffma_a_clock},
          {"clock_mhz", c.clock_mhz}};
}

// "split k" is split_k there.
json of(const Facts& facts) {
  json j = json::object();
  for (const Fact& f : facts) {
    std::string key = f.name;
    std::ranges::replace(key, ' ', '_');
    std::visit([&](const auto& value) { j[key] = value; }, f.value);
  }
  return j;
}

json of(const SearchReport& s) {
  json finalists = json::array();
  for (const SearchReport::Timed& t : s.finalists)
    finalists.push_back({{"name", t.name},
                         {"quick_ns", t.quick_ns},
                         {"ns", t.ns > 0 ? json(t.ns) : json(nullptr)},
                         {"max_error", t.max_error},
                         {"algorithm", of(t.facts)}});
  return {{"library", s.library}, {"what", s.what},       {"counts", s.counts},    {"offered", of(s.offered)},
          {"tried", s.tried},     {"refused", s.refused}, {"wrong", s.wrong},      {"all_tried", s.is_whole},
          {"why", s.why},         {"seconds", s.seconds}, {"finalists", finalists}};
}

void put(json& j, const Timed& timed) {
  j["ns"] = timed.ns;
  j["time_ns"] = of(timed.time_ns);
  j["ratio_to_ours"] = of(timed.ratio);
}

json of(const PeerReport& p) {
  if (p.name.empty()) return nullptr;
  json j = {{"name", p.name}, {"note", p.note}};
  for (const SearchReport& s : p.searches) j["searches"].push_back(of(s));
  if (!p.missing.empty()) {
    j["missing"] = p.missing;
    return j;
  }
  if (!p.library.empty()) j["library"] = p.library;
  if (!p.facts.empty()) j["algorithm"] = of(p.facts);
  if (!p.timed.ns.empty()) put(j, p.timed);
  if (!p.plain.ns.empty()) put(j["one_by_one"], p.plain);
  if (p.max_error >= 0) j["max_error"] = p.max_error;
  for (const AlsoReport& also : p.also) {
    json& beside = j["beside"].emplace_back(json{{"name", also.name},
                                                 {"note", also.note},
                                                 {"algorithm", of(also.facts)},
                                                 {"max_error", also.max_error}});
    if (!also.timed.ns.empty()) put(beside, also.timed);
  }
  return j;
}

json of(const RunReport& run, const TaskReport& t) {
  json j = {{"workload", t.workload}, {"target", t.target}, {"template", t.template_name},
            {"config", t.config},     {"flops", t.flops},   {"bytes", t.bytes},
            {"artifact", t.artifact}, {"states", t.states}};
  for (const OtherReport& o : t.others) j["others"].push_back(of(o));
  if (!t.error.empty()) {
    j["error"] = t.error;
    return j;
  }
  j["max_error"] = t.max_error;
  j["output_sha256"] = t.output;
  j["peer"] = of(t.peer);
  if (t.ns.empty()) return j;
  j["ns"] = t.ns;
  j["time_ns"] = of(t.time_ns);
  j["calls_a_batch"] = t.calls;
  j["batches"] = t.one_by_one.empty() ? "CUDA graphs" : str("calls one by one: ", t.one_by_one);
  if (!t.plain_ns.empty()) j["one_by_one"] = {{"ns", t.plain_ns}, {"time_ns", of(t.plain_time_ns)}};
  j["operand_sets"] = t.sets;
  if (const Ceiling ceiling = ceiling_of(run, t); ceiling.rate > 0) {
    j["ceiling"] = ceiling.name;
    j["share_of_ceiling"] = share_of_ceiling(run, t);
  }
  return j;
}

}  // namespace

void print_head(const RunReport& run) {
  std::printf("%s, %s\n", fingerprint(run.device).c_str(), run.date.c_str());
  if (run.rounds == 0) {
    std::printf("kernels are run and compared; nothing is timed\n");
    return;
  }
  std::printf("fp32 peak %.1f TFLOP/s at the highest clock; copy %.0f GB/s (read + written)\n",
              run.device.fp32_peak_gflops / 1000, run.copy_gbps);
  if (run.ffma_gflops > 0)
    std::printf("fp32 peak %.1f TFLOP/s measured: multiply-adds that touch no memory\n",
                run.ffma_gflops / 1000);
  else
    std::printf("fp32 peak not measured: %s\n", run.ffma_missing.c_str());
  if (run.mma_missing.empty())
    std::printf(
        "tensor peaks measured: 16 bits %.1f TFLOP/s, int8 %.1f TOP/s, by mma.sync out of registers\n",
        run.mma_16bit_gops / 1000, run.mma_int8_gops / 1000);
  else
    std::printf("tensor peaks not measured: %s\n", run.mma_missing.c_str());
  if (run.tf32_missing.empty())
    std::printf("TF32 tensor peak measured: %.1f TFLOP/s, likewise\n", run.mma_tf32_gops / 1000);
  else if (run.mma_missing.empty())
    std::printf("TF32 tensor peak not measured: %s\n", run.tf32_missing.c_str());
  std::printf("%s%s\n", run.cublas.starts_with("no ") ? "" : "cuBLAS ", run.cublas.c_str());
  std::printf("%s%s\n", run.cublaslt.starts_with("no ") ? "" : "cuBLASLt ", run.cublaslt.c_str());
  std::printf("%s%s\n", run.cudnn.starts_with("no ") ? "" : "cuDNN ", run.cudnn.c_str());
  std::printf("%d rounds in turn, batches of %.3g ms, operands %s; medians with 95 %% intervals, seed %llu\n",
              run.rounds, run.fill_ns / 1e6, run.caches == Caches::kRotate ? "rotated over 3 x L2" : "warm",
              static_cast<unsigned long long>(run.seed));
}

void print_calibration(const Calibration& c) {
  std::printf("\nby the clock of one multiprocessor, which ran at %.0f MHz:\n", c.clock_mhz);
  std::printf("  %.1f multiply-adds of float32 a clock\n", c.ffma_a_clock);
  std::printf(
      "  clocks of a load that the next one needs: shared memory %.1f, L1 %.1f, L2 %.1f, beyond %.1f\n",
      c.shared_clocks, c.l1_clocks, c.l2_clocks, c.dram_clocks);
  std::printf("  clocks of a warp's 128-bit load of shared memory, by where its lanes load:\n");
  for (const Calibration::SharedLoad& l : c.shared_loads)
    std::printf("    %6.2f  by the model %2d  %s\n", l.clocks, l.passes, l.lanes.c_str());
  std::fflush(stdout);
}

void print_task(const RunReport& run, const TaskReport& t, size_t number, size_t of) {
  std::printf("\n%zu of %zu  %s\n", number, of, t.workload.c_str());
  if (!t.template_name.empty()) std::printf("  %s %s\n", t.template_name.c_str(), t.config.c_str());
  if (!t.error.empty()) {
    std::printf("  failed   %s\n", t.error.c_str());
    print_others(t.others);
  } else {
    if (t.ns.empty()) {
      std::printf("  right    max error %.2g of the tolerance\n", t.max_error);
    } else {
      print_time("ours", t.time_ns);
      print_rate(run, t);
      if (!t.one_by_one.empty())
        std::printf("           calls one by one, not as CUDA graphs: %s\n", t.one_by_one.c_str());
      if (!t.plain_ns.empty())
        std::printf("           calls one by one: ours %.2f us\n", t.plain_time_ns.middle / 1000);
    }
    print_others(t.others);
    print_peer(t.peer);
    for (size_t i = 0; i < t.states.size(); ++i)
      if (i == 0 || t.states[i] != t.states[i - 1])
        std::printf("  %s %s\n", i == 0 ? "device  " : "   later", t.states[i].c_str());
  }
  std::fflush(stdout);
}

void print_summary(const RunReport& run) {
  std::printf("\n");
  for (const auto& [peer, ratios] : ratios_by_peer(run))
    std::printf("geometric mean of %s/ours: %.3f over %zu task%s\n", peer.c_str(), geometric_mean(ratios),
                ratios.size(), ratios.size() == 1 ? "" : "s");
  size_t bad = 0;
  for (const TaskReport& t : run.tasks) bad += t.error.empty() ? 0 : 1;
  if (run.rounds == 0)
    std::printf("%zu of %zu tasks are right\n", run.tasks.size() - bad, run.tasks.size());
  else if (bad > 0)
    std::printf("%zu of %zu tasks have no time\n", bad, run.tasks.size());
  if (!run.stopped.empty()) std::printf("stopped: %s\n", run.stopped.c_str());
  std::fflush(stdout);
}

Status write_json(const RunReport& run, const std::string& path) {
  json j = {
      {"format", 1},
      {"bench", "bench_gpu"},
      {"date", run.date},
      {"device", fingerprint(run.device)},
      {"arch", run.device.arch},
      {"driver_cuda", cuda_version_text(run.device.driver_version)},
      {"fp32_peak_gflops", run.device.fp32_peak_gflops},
      {"copy_gbps", run.copy_gbps},
      {"ffma_gflops", run.ffma_gflops},
      {"ffma_missing", run.ffma_missing},
      {"mma_16bit_gflops", run.mma_16bit_gops},
      {"mma_int8_gops", run.mma_int8_gops},
      {"mma_missing", run.mma_missing},
      {"mma_tf32_gflops", run.mma_tf32_gops},
      {"tf32_missing", run.tf32_missing},
      {"cublas", run.cublas},
      {"cublaslt", run.cublaslt},
      {"cudnn", run.cudnn},
      {"cudnn_math",
       "float32: multiply-adds, without Winograd and FFT (told beside); 16 bits, TF32: tensor cores, all"},
      {"cublas_math",
       "float32, TF32 off unless allowed; other types on tensor cores, sums in float32 or int32"},
      {"pack", run.pack},
      {"pack_about", run.pack_about},
      {"operands", run.caches == Caches::kRotate ? "rotated over 3 x L2" : "warm"},
      {"rounds", run.rounds},
      {"batch_ns", run.fill_ns},
      {"bootstrap_seed", run.seed},
      {"stopped", run.stopped},
      {"tasks", json::array()},
      {"geometric_means", json::object()}};
  if (run.calibration) j["calibration"] = of(*run.calibration);
  for (const TaskReport& t : run.tasks) j["tasks"].push_back(of(run, t));
  for (const auto& [peer, ratios] : ratios_by_peer(run))
    j["geometric_means"][peer + "/ours"] = geometric_mean(ratios);
  return write_text(j.dump(1, ' ', false, json::error_handler_t::replace) + "\n", path);
}

Status write_text(const std::string& text, const std::string& path) {
  const std::string temporary = path + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0)
    return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  return Status::ok();
}

}  // namespace tuner
