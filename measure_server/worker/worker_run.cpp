// Worker: artifacts to records, in the runner; one at a time.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <utility>

#include "compiler_core/target.h"
#include "measure_server/worker/machine_facts.h"
#include "measure_server/worker/run_request.h"
#include "measure_server/worker/try_policy.h"
#include "measure_server/worker/worker.h"
#include "measure_server/worker/worker_parts.h"
#include "templates/workload/needed_work.h"

namespace tuner {
namespace {

constexpr double kRaceMemoryDisturbed = 1.15;  // times the calm level
constexpr double kTurnPatienceMs = 60;

}  // namespace

Result<v1::MeasureRecord> Worker::measure(const WorkerCore::Built& built) {
  const v1::Lease& lease = built.lease;
  v1::MeasureRecord record = record_for(lease);
  record.set_build_ms(built.build_ms);
  record.set_queue_ms(built.queue_ms);
  record.set_artifact_digest(built.digest);
  if (!built.toolchain.empty()) record.mutable_environment()->set_toolchain(built.toolchain);
  RunRequest request = request_for(built);
  request.artifact_dir = shared_dir() + "/artifacts";
  request.cpus = runner_cpus(threads_of(lease.target()));
  if (on_device(lease)) put_on_device(request);
  CalmLevel& calm_pulse = this->calm_pulse(lease);
  const double patience_ms = request.patience_ms;

  Result<RunReply> reply = failed("not run");
  TryPolicy tries(on_device(lease), disturbed_in_a_row_);
  while (tries.may_try() && !stopped_) {
    if (tries.wait() > std::chrono::seconds(0)) wait_for_device(lease, tries.wait());
    const Result<BuildReply> data = data_for(lease);
    if (!data.is_ok()) {
      reply = data.status();
      tries.failed_before_run();
      continue;
    }
    take_data(*data, request);
    request.check = {built.absolute, built.relative};
    request.calm_pulse_ns = calm_pulse.ns();
    request.patience_ms = tries.patience_ms(patience_ms);
    request.id = next_request_++;
    {
      std::lock_guard lock(mutex_);
      running_[lease.trial_id()] = request.id;
    }
    // Asked after the id can be cancelled, so that no revocation falls between.
    if (!core_->holds(lease))
      reply = Status(StatusCode::kAborted, "revoked");
    else
      reply = runner_->run(request);
    if (reply.is_ok() && !on_device(lease)) observe(*reply, calm_pulse);
    std::lock_guard lock(mutex_);
    running_.erase(lease.trial_id());
    const bool memory_disturbed =
        reply.is_ok() && calm_memory_->disturbed(std::max(reply->memory_before_ns, reply->memory_after_ns));
    const TryPolicy::Verdict verdict = tries.after(reply, memory_disturbed, built.best_ns);
    disturbed_in_a_row_ = tries.disturbed_in_a_row();
    if (verdict == TryPolicy::Verdict::kStands) break;
    if (verdict == TryPolicy::Verdict::kDisturbed) continue;
    if (const auto more = run_trouble_.say())
      spdlog::warn("trial {}: {}{}", lease.trial_id(), reply.message(), *more);
    // Perhaps its data is gone or damaged: look again, and make it anew if so.
    data_.erase(data_key(lease));
  }
  if (!reply.is_ok()) return reply.status();
  for (const std::string& name : take_reply(*reply, record))
    if (const auto more = fact_trouble_.say())
      spdlog::warn("trial {}: the runner says \"{}\", which no record has{}", record.trial_id(), name, *more);
  record.set_discarded(tries.discarded());
  if (built.direct) raise_peak(lease, record);
  return record;
}

void Worker::observe(const RunReply& reply, CalmLevel& calm_pulse) {
  calm_pulse.observe(reply.pulse_ns);
  calm_memory_->observe(reply.memory_before_ns);
  calm_memory_->observe(reply.memory_after_ns);
  calm_sentinel_->observe(reply.sentinel_before_ns);
  calm_sentinel_->observe(reply.sentinel_after_ns);
}

double Worker::peak_of(DType dtype, int threads) const {
  std::lock_guard lock(peaks_mutex_);
  return probe_.peaks.of(dtype, threads);
}

void Worker::raise_peak(const v1::Lease& lease, v1::MeasureRecord& record) {
  constexpr std::chrono::minutes kNotAgainFor{1};  // it takes as long as some trials
  const Result<Workload> workload = workload_from_key(lease.workload_key());
  const Result<Target> target = parse_target(lease.target());
  const auto now = std::chrono::steady_clock::now();
  const std::span<const double> run_ns(record.run_ns().data(), static_cast<size_t>(record.run_ns_size()));
  if (on_device(lease) || !workload || !target || record.outcome() != v1::OK ||
      now < peaks_measured_ + kNotAgainFor ||
      !beats_peak(needed_flops(*workload), run_ns, record.peak_gflops()))
    return;
  peaks_measured_ = now;
  const Result<ProbeReply> facts = machine_facts_again(*runner_, shared_dir() + "/machine.json", probe_);
  if (!facts.is_ok()) return;
  {
    std::lock_guard lock(peaks_mutex_);
    probe_.peaks = facts->peaks;
  }
  record.set_peak_gflops(peak_of(workload->dtype(), target->threads));
}

// The launching thread has a core of its own beside those of workers for other GPUs of the host, which would
// wait for it otherwise.
void Worker::put_on_device(RunRequest& request) const {
  request.device = device_->ordinal;
  request.device_uuid = device_->uuid;
  const auto n = static_cast<int>(cpus_.size());
  request.cpus = {cpus_[static_cast<size_t>(n - 1 - device_->ordinal % n)]};
}

v1::RaceResult Worker::race_result_for(const v1::Lease& lease, const std::string& error) const {
  v1::RaceResult result;
  result.set_race_id(lease.trial_id());
  result.set_attempt(lease.attempt());
  result.set_error(error);
  *result.mutable_environment() = record_for(lease).environment();
  *result.mutable_options() = with_defaults(lease.race());
  return result;
}

Result<v1::RaceResult> Worker::race(const WorkerCore::Built& built) {
  const v1::Lease& lease = built.lease;
  std::vector<RaceEntry> entries;
  {
    std::lock_guard lock(mutex_);
    entries = std::move(races_[lease.trial_id()]);
    races_.erase(lease.trial_id());
  }
  const Result<BuildReply> data = data_for(lease);
  if (!data.is_ok()) return data.status().with_context("no reference answer: ");
  RunRequest base = heat_request_for(lease, entries.size());
  base.artifact_dir = shared_dir() + "/artifacts";
  take_data(*data, base);
  base.cpus = runner_cpus(threads_of(lease.target()));
  if (on_device(lease)) put_on_device(base);
  CalmLevel& calm_pulse = this->calm_pulse(lease);
  CalmLevel& calm_memory = on_device(lease) ? *calm_copy_ : *calm_memory_;
  const auto heat = [&](RaceRequest request) -> Result<RaceReply> {
    Result<RaceReply> reply = failed("not run");
    for (int i = 0; i < kInfrastructureTries && !stopped_; ++i) {
      request.base.id = next_request_++;
      request.base.calm_pulse_ns = calm_pulse.ns();
      request.base.patience_ms = kTurnPatienceMs;
      request.memory_disturbed_above_ns = kRaceMemoryDisturbed * calm_memory.ns();
      {
        std::lock_guard lock(mutex_);
        running_[lease.trial_id()] = request.base.id;
      }
      // Asked after the id can be cancelled, so that no revocation falls between.
      reply = core_->holds(lease) ? runner_->race(request)
                                  : Result<RaceReply>(Status(StatusCode::kAborted, "revoked"));
      if (reply.is_ok())
        for (const RaceReply::Candidate& c : reply->candidates) {
          calm_pulse.observe(c.pulse_ns);
          for (const double ns : c.memory_ns) calm_memory.observe(ns);
        }
      std::lock_guard lock(mutex_);
      running_.erase(lease.trial_id());
      if (reply.is_ok() || stands(reply.status())) break;
      if (const auto more = race_trouble_.say())
        spdlog::warn("{}: {}{}", lease.trial_id(), reply.message(), *more);
    }
    return reply;
  };
  v1::RaceOptions options = with_defaults(lease.race());
  options.set_constants(lease.options().constants() == "cold" ? "cold" : "warm");
  const auto tell = [&](const v1::RaceCourse& course) { core_->tell_course(lease, course); };
  Result<v1::RaceResult> result =
      run_heats(entries, {lease.default_trial(), lease.stored_trial()}, base, options, heat, tell);
  RETURN_IF_ERROR(result.status());
  v1::RaceResult out = race_result_for(lease, result->error());
  out.MergeFrom(*result);
  if (!built.toolchain.empty()) out.mutable_environment()->set_toolchain(built.toolchain);
  out.mutable_options()->set_constants(options.constants());
  return out;
}

// Nothing of the lease runs meanwhile.
void Worker::wait_for_device(const v1::Lease& lease, std::chrono::seconds limit) {
  core_->wait_for_device(lease, true);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!stopped_ && core_->holds(lease) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  core_->wait_for_device(lease, false);
}

void Worker::run_candidates() {
  while (const std::optional<WorkerCore::Built> built = core_->next_to_run()) {
    running_lease_ = built->lease;
    run_one(*built);
    if (!runner_->unlocked().empty() && !std::exchange(said_unlocked_, true))
      spdlog::warn("{}; runs of other processes on these cores may disturb those of this worker",
                   runner_->unlocked());
  }
}

// A run that ended by a revocation or by stop() says nothing: the daemon has given the lease up, or will give
// it to another.
void Worker::run_one(const WorkerCore::Built& built) {
  const v1::Lease& lease = built.lease;
  const auto over = [&] { return stopped_ || !core_->holds(lease); };
  // A runner that died may have died of the candidate; a core or a GPU that is not there is no fault of its.
  const auto returned = [&](const Status& why) {
    const bool sick = on_device(lease) && why.code() == StatusCode::kUnavailable;
    return gave_back(lease, why, sick || is_device_busy(why));
  };
  if (lease.finalists_size() > 0) {
    const Result<v1::RaceResult> result = race(built);
    if (over() || (!result.is_ok() && returned(result.status()))) return;
    return finish_race(lease, result.is_ok() ? *result : race_result_for(lease, result.message()));
  }
  const Result<v1::MeasureRecord> record = measure(built);
  if (record.is_ok()) return finish(lease, *record);
  if (record.status().code() == StatusCode::kNotFound) return core_->await_again(lease);  // its data is gone
  if (over() || returned(record.status())) return;
  v1::MeasureRecord lost = record_for(lease);
  lost.set_build_ms(built.build_ms);
  lost.set_queue_ms(built.queue_ms);
  lost.set_artifact_digest(built.digest);
  if (!built.toolchain.empty()) lost.mutable_environment()->set_toolchain(built.toolchain);
  lost.set_outcome(v1::DEVICE_LOST);
  lost.set_message(record.message());
  lost.set_refused(record.status().code() == StatusCode::kInvalidArgument);
  finish(lease, lost);
}

}  // namespace tuner
