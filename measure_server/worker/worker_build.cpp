// Worker: leases to artifacts, in the builder process.
#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/target.h"
#include "measure_server/worker/worker.h"
#include "measure_server/worker/worker_parts.h"
#include "templates/workload/workload.h"

namespace tuner {

v1::MeasureRecord Worker::record_for(const v1::Lease& lease) const {
  v1::MeasureRecord record;
  record.set_trial_id(lease.trial_id());
  record.set_attempt(lease.attempt());
  *record.mutable_options() = lease.options();
  v1::Environment* e = record.mutable_environment();
  const Served* offered = served(lease.target());
  e->set_hardware(offered != nullptr ? offered->hardware : probe_.hardware);
  e->set_toolchain(offered != nullptr ? offered->toolchain : served_.front().toolchain);
  e->set_harness_abi(probe_.harness_abi);
  e->set_worker_id(worker_id_);
  e->set_worker_incarnation(incarnation_);
  e->set_host(host_);
  const Result<Workload> workload = workload_from_key(lease.workload_key());
  const DType dtype = workload.is_ok() ? workload->dtype() : DType::kFloat32;
  if (offered != nullptr && offered->on_device) {
    record.set_peak_gflops(device_->peak_of(dtype));
    return record;
  }
  const Result<Target> target = parse_target(lease.target());
  if (!target.is_ok() || !target->family->bound_by_host()) return record;
  if (offered == nullptr && !is_host(lease.target()))
    record.set_device_state(str("code for \"", lease.target(), "\" measured on \"", host_target(), "\""));
  record.set_peak_gflops(peak_of(dtype, target->threads));
  if (workload.is_ok()) record.set_read_gbps(probe_.bandwidths.of(workload->bytes(), target->threads));
  return record;
}

bool Worker::is_host(const std::string& target) const {
  Result<Target> code = parse_target(target), host = parse_target(host_target());
  if (!code || !host) return false;
  code->threads = host->threads;
  return code->name() == host->name();
}

void Worker::finish(const v1::Lease& lease, v1::MeasureRecord record) {
  // TimeUtil::GetCurrentTime() has whole seconds.
  *record.mutable_finished_at() = google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(wall_time_us());
  core_->ran(lease);
  writer_->put({lease, std::move(record)});
}

void Worker::write(const std::vector<WorkerCore::Finished>& results) {
  if (const Status spooled = core_->finish(results); !spooled.is_ok()) fitness_->unfit(spooled.message());
}

void Worker::finish_race(const v1::Lease& lease, const v1::RaceResult& result) {
  if (const Status spooled = core_->finish_race(lease, result); !spooled.is_ok())
    fitness_->unfit(spooled.message());
}

// Where compiling is what a trial waits for, the core of the runs is idle half of the time.
void Worker::build_instead_of_runs() {
  if (cpus_.size() < 2) return;
  Result<std::unique_ptr<Maker>> client = options_.make_maker(runner_cpus(1));
  if (!client.is_ok()) return spdlog::warn("one builder only: {}", client.message());
  instead_.client = *std::move(client);
  build(instead_, WorkerCore::Builds::kInsteadOfRuns);
}

void Worker::fetch_more(std::vector<std::thread>& threads) {
  for (int i = 1; i < options_.fetchers; ++i) {  // beside_ is the first
    Result<std::unique_ptr<Maker>> client = options_.make_maker({});
    if (!client) return spdlog::warn("{} artifacts at once: {}", i, client.message());
    fetchers_.push_back(std::make_unique<Compiler>());
    Compiler& compiler = *fetchers_.back();
    compiler.client = *std::move(client);
    threads.emplace_back([this, &compiler] { build(compiler, WorkerCore::Builds::kBesideRuns); });
  }
}

void Worker::start_device_builders(const std::vector<int>& cpus) {
  constexpr size_t kMostBuilders = 8;
  if (builds_elsewhere() || std::ranges::none_of(served_, &Served::on_device)) return;
  const size_t wanted = options_.device_builders > 0 ? static_cast<size_t>(options_.device_builders)
                                                     : std::min(cpus.size(), kMostBuilders);
  for (size_t i = 1; i < wanted; ++i) {  // beside_ is the first
    Result<std::unique_ptr<Maker>> client = options_.make_maker(cpus);
    if (!client.is_ok()) return spdlog::warn("{} builders for the device only: {}", i, client.message());
    auto compiler = std::make_unique<Compiler>();
    compiler->client = *std::move(client);
    for_device_.push_back(std::move(compiler));
  }
}

void Worker::build(Compiler& compiler, WorkerCore::Builds builds) {
  while (const std::optional<v1::Lease> lease = core_->next_to_build(builds)) {
    if (!has_document(*lease)) continue;
    if (lease->finalists_size() > 0)
      build_race(compiler, *lease);
    else
      build_one(compiler, *lease);
  }
}

// False: it is not to be had, through nobody's fault that could be measured. The lease is given back, or has
// come back too often.
bool Worker::has_document(const v1::Lease& lease) {
  if (!lease.has_document() || !options_.fetch_document) return true;
  const Status fetched = options_.fetch_document(lease);
  if (fetched) return true;
  if (stopped_ || gave_back(lease, fetched)) return false;
  if (const auto more = document_trouble_.say())
    spdlog::warn("{}: {}{}", lease.trial_id(), fetched.message(), *more);
  if (may_give_back(lease)) {
    core_->give_back(lease);
  } else if (lease.finalists_size() > 0) {
    finish_race(lease, race_result_for(lease, fetched.message()));
  } else {
    v1::MeasureRecord record = record_for(lease);
    record.set_outcome(v1::DEVICE_LOST);
    record.set_message(fetched.message());
    finish(lease, record);
  }
  return false;
}

void Worker::build_one(Compiler& compiler, const v1::Lease& lease) {
  v1::MeasureRecord record = record_for(lease);
  const auto now_ms = [] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double started_ms = now_ms();
  const double queue_ms = std::max(0.0, started_ms - static_cast<double>(core_->held_since_ms(lease)));
  const double limit_s = lease.options().build_timeout_s() > 0 ? lease.options().build_timeout_s() : 10;
  const Result<BuildReply> reply = ask_builder(
      compiler, build_request(lease), std::chrono::milliseconds(static_cast<int64_t>(limit_s * 1000)));
  record.set_build_ms(reply.is_ok() && builds_elsewhere() ? reply->build_ms : now_ms() - started_ms);
  record.set_queue_ms(queue_ms);
  if (reply.is_ok() && !reply->toolchain.empty())
    record.mutable_environment()->set_toolchain(reply->toolchain);
  Status ours;  // trouble that is not the candidate's
  if (reply.status().code() == StatusCode::kNotFound) {
    core_->await_again(lease);
    return;
  }
  // A runner only fetches: whatever goes wrong there is no candidate's fault.
  if (!reply.is_ok() && (reply.status().code() == StatusCode::kUnavailable || builds_elsewhere())) {
    ours = reply.status();
  } else if (!reply.is_ok()) {
    record.set_outcome(reply.status().code() == StatusCode::kDeadlineExceeded ? v1::BUILD_TIMEOUT
                                                                              : v1::BUILD_ERROR);
    record.set_message(reply.message());
  } else if (reply->outcome == BuildOutcome::kOtherVersion) {
    if (gave_back_version(lease, lease.template_name(), *reply)) return;
    ours = failed(reply->message);
  } else if (reply->outcome == BuildOutcome::kUnable) {
    if (gave_back_unmade(lease, reply->message)) return;
    ours = failed(reply->message);
  } else if (reply->outcome != BuildOutcome::kOk) {
    record.set_outcome(outcome_of(*trial_outcome(reply->outcome)));
    record.set_message(reply->message);
  } else {
    // The reference answer belongs to the task: made here, so that a run never waits for a compile.
    const Result<BuildReply> data = data_for(lease);
    if (data.is_ok()) {
      core_->built(lease, {.digest = reply->digest,
                           .build_ms = record.build_ms(),
                           .queue_ms = queue_ms,
                           .toolchain = reply->toolchain,
                           .absolute = reply->absolute,
                           .relative = reply->relative,
                           .direct = reply->direct});
      return;
    }
    if (data.status().code() == StatusCode::kNotFound) {
      core_->await_again(lease);
      return;
    }
    const Status none = data.status().with_context("no reference answer: ");
    if (none.code() == StatusCode::kInvalidConfig) {
      record.set_outcome(v1::BUILD_ERROR);
      record.set_message(none.message());
    } else {
      ours = none;
    }
  }
  if (!ours.is_ok()) {
    const bool no_builder = ours.code() == StatusCode::kUnavailable;
    if (stopped_ || gave_back(lease, ours, no_builder) || gave_back_unmade(lease, ours.message())) return;
    record.set_outcome(v1::DEVICE_LOST);
    record.set_message(ours.message());
  }
  finish(lease, record);
}

BuildRequest Worker::build_request(const v1::Lease& lease) const {
  return {.kind = "build",
          .directory = shared_dir(),
          .cache_bytes = options_.cache_bytes,
          .workload_key = lease.workload_key(),
          .target = lease.target(),
          .template_name = lease.template_name(),
          .config = lease.config(),
          .template_version = lease.template_version(),
          .trial_id = lease.trial_id()};
}

// As a rule every finalist is in the work folder already, since it was measured as a trial.
void Worker::build_race(Compiler& compiler, const v1::Lease& lease) {
  const double limit_s = lease.options().build_timeout_s() > 0 ? lease.options().build_timeout_s() : 10;
  std::vector<RaceEntry> entries;
  Status trouble;
  const Result<BuildReply> data = data_for(lease);
  if (data.status().code() == StatusCode::kNotFound) return core_->await_again(lease);
  if (!data.is_ok()) trouble = data.status().with_context("no reference answer: ");
  std::string toolchain;
  for (int i = 0; i < lease.finalists_size() && data.is_ok(); ++i) {
    const v1::RaceCandidate& c = lease.finalists(i);
    BuildRequest request = build_request(lease);
    request.candidate = i;
    request.template_name = c.template_name();
    request.template_version = c.template_version();
    request.config = c.config();
    const Result<BuildReply> reply =
        ask_builder(compiler, request, std::chrono::milliseconds(static_cast<int64_t>(limit_s * 1000)));
    if (reply.is_ok() && reply->outcome == BuildOutcome::kOk) {
      const Result<std::string> binary =
          read_whole(artifact_files(shared_dir() + "/artifacts", reply->digest)[0]);
      entries.push_back(
          {c, {reply->digest, {reply->absolute, reply->relative}}, binary ? code_bytes(*binary) : 0});
      toolchain = reply->toolchain;
      continue;
    }
    if (reply.is_ok() && reply->outcome == BuildOutcome::kOtherVersion &&
        gave_back_version(lease, c.template_name(), *reply))
      return;
    if (reply.status().code() == StatusCode::kNotFound) return core_->await_again(lease);
    if (reply.is_ok() && reply->outcome == BuildOutcome::kUnable && gave_back_unmade(lease, reply->message))
      return;
    trouble = reply.is_ok() ? failed(reply->message) : reply.status();
    trouble = trouble.with_context(str("trial ", c.trial_id(), " cannot be built again: "));
    if (const auto more = race_trouble_.say())
      spdlog::warn("{}: {}{}", lease.trial_id(), trouble.message(), *more);
  }
  if (entries.empty()) {
    if (!stopped_ && !gave_back(lease, trouble, trouble.code() == StatusCode::kUnavailable))
      finish_race(lease, race_result_for(lease, trouble.message()));
    return;
  }
  {
    std::lock_guard lock(mutex_);
    races_[lease.trial_id()] = std::move(entries);
  }
  core_->built(lease, {.toolchain = toolchain});
}

// Unavailable only after several tries: that is this host's trouble, not the candidate's.
Result<BuildReply> Worker::ask_builder(Compiler& compiler, const BuildRequest& request,
                                       std::chrono::milliseconds limit) {
  std::lock_guard lock(compiler.mutex);
  for (int i = 1;; ++i) {
    Result<BuildReply> reply = compiler.client->ask(request, limit);
    if (reply.is_ok() || reply.status().code() != StatusCode::kUnavailable || i == kInfrastructureTries ||
        stopped_)
      return reply;
    std::this_thread::sleep_for(std::chrono::milliseconds(200 * i));
  }
}

Result<BuildReply> Worker::data_for(const v1::Lease& lease) {
  const std::string key = data_key(lease);
  {
    std::lock_guard lock(mutex_);
    if (const auto it = data_.find(key); it != data_.end()) return it->second;
    if (const auto it = unmakable_.find(key); it != unmakable_.end()) return invalid_config(it->second);
  }
  // This builder has all cores but the last, the runs', which is left alone; so is one for the launching
  // thread of each other GPU, where the system puts no thread while there are idle ones. What many threads do
  // to the clock and the memory that cores share would still be seen in the times of a CPU kernel, and a
  // kernel of several threads has their cores.
  const int spared = std::max<int>(1, static_cast<int>(probe_.devices.size()));
  const int threads = static_cast<int>(cpus_.size()) - spared;
  const bool by_many = !builds_elsewhere() && threads > 1 && core_->begin_many_threads();
  const BuildRequest request{.kind = "data",
                             .directory = shared_dir(),
                             .cache_bytes = options_.cache_bytes,
                             .workload_key = lease.workload_key(),
                             .input_seed = lease.input_seed(),
                             .trial_id = lease.trial_id(),
                             .threads = by_many ? threads : 1};
  const Result<BuildReply> data = ask_builder(beside_, request, std::chrono::minutes(10));
  if (by_many) core_->end_many_threads();
  RETURN_IF_ERROR(data.status());
  std::lock_guard lock(mutex_);
  if (data->outcome == BuildOutcome::kOk) return data_[key] = *data;
  if (data->outcome != BuildOutcome::kInvalidConfig) return failed(data->message);
  // A user's reference that breaks does so each time.
  return invalid_config(unmakable_[key] = data->message);
}

}  // namespace tuner
