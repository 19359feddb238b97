#include "measure_server/worker/run_request.h"

#include <algorithm>
#include <cmath>

#include "measure_server/runner/sampling.h"
#include "measure_server/worker/run_facts.h"
#include "measure_server/worker/worker_parts.h"

namespace tuner {
namespace {

constexpr double kClearlySlower = 1.1;  // times the best: how much slower it is need not be known well

}  // namespace

RunRequest request_for(const WorkerCore::Built& built) {
  const v1::MeasureOptions& options = built.lease.options();
  RunRequest request;
  request.digest = built.digest;
  if (options.min_repeat_ms() > 0) request.min_repeat_ms = options.min_repeat_ms();
  if (options.repeats() > 0) request.repeats = options.repeats();
  if (options.precision() != 0) request.precision = std::max(options.precision(), 0.0);
  if (options.run_timeout_s() > 0) request.run_timeout_s = options.run_timeout_s();
  if (options.memory_limit_bytes() > 0) request.memory_limit_bytes = options.memory_limit_bytes();
  const double factor = options.cut_factor() == 0 ? 2 : options.cut_factor();
  if (factor > 0 && built.best_ns > 0) {
    request.cut_above_ns = factor * built.best_ns;
    request.slow_above_ns = kClearlySlower * built.best_ns;
  }
  request.cold_constants = options.constants() == "cold";
  return request;
}

RunRequest heat_request_for(const v1::Lease& lease, size_t finalists) {
  RunRequest base;
  if (lease.options().memory_limit_bytes() > 0)
    base.memory_limit_bytes = lease.options().memory_limit_bytes();
  if (lease.options().run_timeout_s() > 0) base.run_timeout_s = lease.options().run_timeout_s();
  base.run_timeout_s *= static_cast<double>(finalists);
  return base;
}

void take_data(const BuildReply& data, RunRequest& request) {
  const auto files = [](const std::vector<BuildReply::Data>& from) {
    std::vector<RunRequest::Data> out;
    for (const auto& d : from) out.push_back({d.arg, d.path});
    return out;
  };
  request.inputs = files(data.inputs);
  request.references = files(data.references);
  request.others.clear();
  for (const BuildReply::Set& set : data.others)
    request.others.push_back({files(set.inputs), files(set.references)});
}

std::vector<std::string> take_reply(const RunReply& reply, v1::MeasureRecord& record) {
  std::vector<std::string> unknown = add_facts(reply.facts, record);
  record.set_outcome(reply.outcome ? outcome_of(*reply.outcome) : v1::OUTCOME_UNSPECIFIED);
  record.set_message(reply.message);
  record.mutable_run_ns()->Add(reply.run_ns.begin(), reply.run_ns.end());
  record.mutable_cpu_ns()->Add(reply.cpu_ns.begin(), reply.cpu_ns.end());
  record.set_cut(reply.cut);
  record.set_max_error(std::isfinite(reply.max_error) ? reply.max_error : 0);
  record.set_sentinel_before_ns(reply.sentinel_before_ns);
  record.set_sentinel_after_ns(reply.sentinel_after_ns);
  record.set_memory_sentinel_before_ns(reply.memory_before_ns);
  record.set_memory_sentinel_after_ns(reply.memory_after_ns);
  record.set_run_ms(reply.run_ms);
  record.set_check_ms(reply.check_ms);
  record.set_isolation(reply.isolation);
  if (!reply.device_state.empty()) record.set_device_state(reply.device_state);
  return unknown;
}

bool surely_slower(const RunReply& reply, double best_ns) {
  if (reply.cut) return true;
  return best_ns > 0 && !reply.run_ns.empty() && std::ranges::min(reply.run_ns) > kMostDisturbed * best_ns;
}

}  // namespace tuner
