#include "measure_server/runner/device_race.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "measure_server/runner/heat.h"

namespace tuner {
namespace {

// The child of one heat, and what has become of it.
struct Bench {
  DeviceHost& device;
  uint64_t id;
  double limit_s;  // of an order
  bool peer_gone = false;
  RunReply trouble{};  // of the sentinel; `error` is empty if there is none

  bool lost() const { return device.child() < 0; }

  Beside beside() {
    if (lost()) return {};
    const DeviceMessage m = device.ask({.kind = DeviceOrder::Kind::kCopy}, id, limit_s, peer_gone);
    const double ns = m.reply.sentinel_before_ns;
    if (m.reply.outcome == Outcome::kOk) return {.compute_ns = ns, .memory_ns = ns};
    trouble = m.reply;
    // A copy of ours has no verdict: what ends it was left by a finalist, or is the device's.
    if (trouble.error.empty()) {
      trouble.error = str("device: beside the turns of a race: ", trouble.message);
      trouble.device_sick = true;
    }
    return {};
  }
};

class DeviceContestant final : public Contestant {
 public:
  DeviceContestant(Bench& bench, size_t number, int samples, RunRequest request)
      : bench_(bench), number_(number), samples_(samples), request_(std::move(request)) {}

  bool take_turn() override {
    if (has_left_ || bench_.lost()) return false;
    const bool first = !std::exchange(began_, true);
    const DeviceMessage m = ask({.kind = DeviceOrder::Kind::kTurn,
                                 .racer = number_,
                                 .samples = samples_,
                                 .request = first ? request_ : RunRequest{}});
    if (has_left_) return false;
    const RunReply& turn = m.reply;
    all_.run_ns.insert(all_.run_ns.end(), turn.run_ns.begin(), turn.run_ns.end());
    all_.cpu_ns.insert(all_.cpu_ns.end(), turn.cpu_ns.begin(), turn.cpu_ns.end());
    pulses_ns_.insert(pulses_ns_.end(), m.pulses_ns.begin(), m.pulses_ns.end());
    was_calm_ = turn.disturbed == 0;
    if (turn.pulse_ns > 0)
      all_.pulse_ns = all_.pulse_ns > 0 ? std::min(all_.pulse_ns, turn.pulse_ns) : turn.pulse_ns;
    return true;
  }
  bool turn_was_calm() const override { return was_calm_; }

  RunReply finish() override {
    if (!has_left_ && !bench_.lost()) {
      const DeviceMessage m = ask({.kind = DeviceOrder::Kind::kFinish, .racer = number_});
      all_.outcome = m.reply.outcome;
      all_.max_error = m.reply.max_error;
    }
    return has_left_ ? end_ : all_;
  }
  const std::vector<double>& other_ns() const override { return other_ns_; }
  const std::vector<double>& pulses_ns() const override { return pulses_ns_; }
  bool peer_gone() const override { return bench_.peer_gone; }

  // Its verdict or trouble, where the child ended on it.
  const RunReply* ended_bench() const { return ended_bench_ ? &end_ : nullptr; }

 private:
  DeviceMessage ask(const DeviceOrder& order) {
    DeviceMessage m = bench_.device.ask(order, bench_.id, bench_.limit_s, bench_.peer_gone);
    if (m.reply.outcome == Outcome::kOk) return m;
    has_left_ = true;
    ended_bench_ = bench_.lost();
    end_ = m.reply;
    return m;
  }

  Bench& bench_;
  const size_t number_;
  const int samples_;
  const RunRequest request_;
  RunReply all_, end_;  // what it took in all turns; why it left
  std::vector<double> other_ns_, pulses_ns_;
  bool began_ = false, has_left_ = false, ended_bench_ = false, was_calm_ = true;
};

// A heat of the candidates that are `in`. `culprit`: of these, the one on which the child ended.
RaceReply heat_of(Bench& bench, const RaceRequest& request, const std::vector<size_t>& in, bool& go_on,
                  std::optional<size_t>& culprit) {
  std::vector<std::unique_ptr<Contestant>> contestants;
  std::vector<const DeviceContestant*> theirs;
  for (const size_t i : in) {
    RunRequest one = request.base;
    one.digest = request.candidates[i].digest;
    one.check = request.candidates[i].check;
    auto contestant = std::make_unique<DeviceContestant>(bench, i, request.samples, std::move(one));
    theirs.push_back(contestant.get());
    contestants.push_back(std::move(contestant));
  }
  RaceReply reply = run_heat(
      request, contestants, [] {}, [&] { return bench.beside(); }, go_on);
  for (size_t k = 0; k < in.size(); ++k)
    if (const RunReply* end = theirs[k]->ended_bench(); end != nullptr) {
      reply.device_sick = end->device_sick;
      if (end->error.empty()) culprit = k;
    }
  if (!bench.trouble.error.empty()) {
    reply.error = bench.trouble.error;
    reply.device_sick = bench.trouble.device_sick;
    go_on = go_on && !bench.peer_gone;
  }
  return reply;
}

}  // namespace

RaceReply run_device_race(DeviceHost& device, const RaceRequest& request, bool& go_on) {
  RaceReply out;
  out.id = request.base.id;
  out.candidates.resize(request.candidates.size());
  std::vector<size_t> in;
  for (size_t i = 0; i < request.candidates.size(); ++i) in.push_back(i);
  const double share_s = request.base.run_timeout_s / static_cast<double>(in.size());
  while (!in.empty()) {
    if (const Status fresh = device.renew(request.base.device); !fresh.is_ok()) {
      out.error = fresh.message();
      out.device_sick = true;
      return out;
    }
    Bench bench{.device = device, .id = request.base.id, .limit_s = share_s};
    std::optional<size_t> culprit;
    RaceReply heat = heat_of(bench, request, in, go_on, culprit);
    if (!heat.error.empty() || !go_on) {
      out.error = heat.error;
      out.device_sick = heat.device_sick;
      return out;
    }
    if (!culprit) {
      for (size_t k = 0; k < in.size(); ++k) out.candidates[in[k]] = std::move(heat.candidates[k]);
      return out;
    }
    out.candidates[in[*culprit]] = std::move(heat.candidates[*culprit]);
    in.erase(in.begin() + static_cast<std::ptrdiff_t>(*culprit));
  }
  return out;
}

}  // namespace tuner
