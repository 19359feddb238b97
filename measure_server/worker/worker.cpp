#include "measure_server/worker/worker.h"

#include <google/protobuf/util/time_util.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "compiler_core/runtime/cuda_driver.h"
#include "templates/schedule_template.h"
#include "templates/workload.h"

namespace tuner {
namespace {

constexpr int kPollMs = 2'000;           // how long an idle Sync waits; well below a lease's life
constexpr int kInfrastructureTries = 3;  // of a run that failed through no fault of the candidate

constexpr double kRaceDisturbed =
    1.05;  // times the calm level: finalists are near enough each other to be strict
constexpr double kClearlySlower = 1.2;  // times the best: how much slower it is need not be known well
constexpr int kDisturbedTries = 2;      // of a run beside which the sentinel was slow

constexpr int kGpuTries = 12;  // a GPU that was quarantined may come back: about two minutes

v1::Outcome outcome_of(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
  v1::Outcome_Parse(upper, &outcome);
  return outcome;
}

std::string random_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", device(), device());
  return text;
}

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::string data_key(const v1::Lease& lease) { return str(lease.workload_key(), "|", lease.input_seed()); }

// What the answers of the trial's template may err: that depends on its algorithm. A trial of a template that
// is not known here does not build.
CheckSpec check_for(const v1::Lease& lease, const std::string& template_name, const BuildReply& data) {
  const AnyTemplate* t = find_template(template_name);
  const Result<Workload> workload = workload_from_key(lease.workload_key());
  if (t == nullptr || !workload) return {data.absolute, data.relative};
  const Tolerance allowed = t->tolerance(*workload);
  return {allowed.absolute, allowed.relative};
}

void pin_this_process(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::start(WorkerOptions options) {
  std::unique_ptr<Worker> worker(new Worker(std::move(options)));
  RETURN_IF_ERROR(worker->open());
  return worker;
}

Worker::~Worker() { stop(); }

Status Worker::open() {
  char host[256] = "unknown";
  ::gethostname(host, sizeof host - 1);
  host_ = host;
  incarnation_ = random_id();
  cpus_ = affinity();
  std::error_code error;
  std::filesystem::create_directories(options_.work_dir, error);
  if (error)
    return failed("work folder ", options_.work_dir, ": ", error.message(),
                  "; choose another with --work-dir");
  ASSIGN_OR_RETURN(spool_, Spool::open(options_.work_dir + "/results.spool"));
  if (!spool_->warning().empty()) spdlog::warn("{}", spool_->warning());
  if (!spool_->records().empty())
    spdlog::info("{} results of an earlier run are still to be reported", spool_->records().size());

  std::string runner = options_.runner;
  if (runner.empty()) {
    ASSIGN_OR_RETURN(runner, find_runner());
  }
  ASSIGN_OR_RETURN(runner_, RunnerClient::start(runner));
  // The peak is measured before the builder or anything else of ours is busy.
  ASSIGN_OR_RETURN(probe_, runner_->probe());
  calm_ = std::make_unique<CalmLevel>(options_.work_dir + "/calm_sentinel", probe_.hardware);
  const std::vector<int> last = runner_cpus(1);
  std::vector<int> others;
  for (const int cpu : cpus_)
    if (std::find(last.begin(), last.end(), cpu) == last.end()) others.push_back(cpu);
  ASSIGN_OR_RETURN(beside_.client, BuilderClient::start(options_.program, others));
  find_gpu();
  pin_this_process(others);
  core_ = std::make_unique<WorkerCore>(
      WorkerCore::Options{.slots = options_.slots, .cpus = static_cast<int>(cpus_.size())}, *spool_);
  core_->on_news([this] { interrupt_wait(); });
  core_->on_revoked_run([this](const std::string& trial) {
    std::lock_guard lock(mutex_);
    if (const auto it = running_.find(trial); it != running_.end()) runner_->cancel(it->second);
  });
  return Status::ok();
}

// The first device of this host, when there is one and candidates can be compiled for it.
void Worker::find_gpu() {
  if (probe_.devices.empty()) return;
  const DeviceInfo& device = probe_.devices.front();
  const Result<BuildReply> cuda = beside_.client->ask({.kind = "hello_cuda"}, std::chrono::seconds(30));
  if (!cuda.is_ok() || cuda->outcome != "ok") {
    spdlog::warn("{} is not measured on: {}", device.name, cuda.is_ok() ? cuda->message : cuda.message());
    return;
  }
  gpu_toolchain_ = cuda->toolchain;
  for (const std::string& arch : native_archs({.arch = device.arch}))
    gpu_targets_.push_back("cuda -arch=" + arch);
}

bool Worker::on_gpu(const v1::Lease& lease) const {
  return std::find(gpu_targets_.begin(), gpu_targets_.end(), lease.target()) != gpu_targets_.end();
}

std::vector<int> Worker::runner_cpus(int threads) const {
  const size_t n = std::min<size_t>(std::max(threads, 1), cpus_.size());
  return {cpus_.end() - static_cast<std::ptrdiff_t>(n), cpus_.end()};
}

void Worker::stop() {
  stopped_ = true;
  if (core_ != nullptr) core_->stop();
  interrupt_wait();
  std::lock_guard lock(mutex_);
  for (const auto& [trial, id] : running_) runner_->cancel(id);
}

void Worker::fail(Status status) {
  spdlog::error("{}", status.message());
  {
    std::lock_guard lock(mutex_);
    if (end_.is_ok()) end_ = std::move(status);
  }
  stop();
}

Status Worker::run(DaemonLink& link) {
  std::thread builds([&] { build(beside_, WorkerCore::Builds::kBesideRuns); });
  std::thread more_builds([&] { build_instead_of_runs(); });
  std::thread runs([&] { run_candidates(); });
  talk(link);
  stop();
  builds.join();
  more_builds.join();
  runs.join();
  std::lock_guard lock(mutex_);
  return end_;
}

Status Worker::register_with(DaemonLink& link) {
  v1::RegisterRequest request;
  request.set_worker_id(options_.worker_id.empty() ? host_ : options_.worker_id);
  request.set_incarnation(incarnation_);
  request.set_protocol(1);
  request.set_races(true);
  request.set_harness_abi(probe_.harness_abi);
  request.add_targets(beside_.client->hello().host_target);
  for (const std::string& target : gpu_targets_) request.add_targets(target);
  request.set_max_threads(static_cast<int>(cpus_.size()));
  v1::Environment* environment = request.mutable_environment();
  *environment = record_for({}).environment();
  v1::RegisterReply reply;
  RETURN_IF_ERROR(link.register_worker(request, &reply));
  core_->set_session(reply.session());
  spdlog::info("registered as {} ({}), peak {:.0f} GFLOP/s on one thread", request.worker_id(),
               beside_.client->hello().host_target, probe_.peaks.of(DType::kFloat32, 1));
  if (!gpu_targets_.empty())
    spdlog::info("also measures \"{}\" on {}", gpu_targets_.back(), probe_.devices.front().fingerprint);
  return Status::ok();
}

// --- talking ---

void Worker::talk(DaemonLink& link) {
  std::mt19937 jitter(std::random_device{}());
  int backoff_ms = 100;
  bool registered = false, said_unreachable = false;
  while (!stopped_ && !(core_->draining() && core_->idle())) {
    Status status;
    if (registered) {
      std::stop_token interrupt;
      {
        std::lock_guard lock(mutex_);
        wait_ = std::stop_source();
        interrupt = wait_.get_token();
      }
      const v1::SyncRequest request = core_->make_request(core_->draining() ? 200 : kPollMs);
      if (stopped_) return;
      v1::SyncReply reply;
      // With results in it the call is answered at once; cutting it short would only send them twice.
      const bool reports = request.results_size() > 0 || request.races_size() > 0;
      status = link.sync(request, &reply, reports ? std::stop_token() : interrupt);
      if (status.is_ok())
        core_->apply(reply);
      else if (!reports && interrupt.stop_requested())
        continue;
    } else {
      status = register_with(link);
      registered = status.is_ok();
    }
    if (status.is_ok()) {
      if (std::exchange(said_unreachable, false)) spdlog::info("the daemon is there again");
      backoff_ms = 100;
      continue;
    }
    if (stopped_) return;
    const bool unknown_session = status.code() == StatusCode::kAborted;
    if (!unknown_session && status.code() != StatusCode::kUnavailable &&
        status.code() != StatusCode::kDeadlineExceeded)
      return fail(status);
    if (unknown_session) {  // the daemon restarted: what is held is kept
      registered = false;
    } else if (core_->draining()) {
      // A draining worker does not wait for a daemon that may never come back: results stay in the spool.
      spdlog::warn("{}; leaving, unreported results are kept", status.message());
      return;
    } else if (!std::exchange(said_unreachable, true)) {
      spdlog::warn("{}; held work goes on, trying again", status.message());
    }
    const int pause = backoff_ms / 2 + static_cast<int>(jitter() % static_cast<unsigned>(backoff_ms));
    for (int waited = 0; waited < pause && !stopped_; waited += 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    backoff_ms = std::min(backoff_ms * 2, 2'000);
  }
}

void Worker::interrupt_wait() {
  std::lock_guard lock(mutex_);
  wait_.request_stop();
}

// --- building ---

v1::MeasureRecord Worker::record_for(const v1::Lease& lease) const {
  v1::MeasureRecord record;
  record.set_trial_id(lease.trial_id());
  record.set_attempt(lease.attempt());
  *record.mutable_options() = lease.options();
  v1::Environment* e = record.mutable_environment();
  e->set_hardware(probe_.hardware);
  e->set_toolchain(beside_.client->hello().toolchain);
  e->set_harness_abi(probe_.harness_abi);
  e->set_worker_id(options_.worker_id.empty() ? host_ : options_.worker_id);
  e->set_worker_incarnation(incarnation_);
  e->set_host(host_);
  if (on_gpu(lease)) {
    e->set_hardware(probe_.devices.front().fingerprint);
    e->set_toolchain(gpu_toolchain_);
    record.set_peak_gflops(probe_.devices.front().peak_gflops);
    return record;
  }
  const Result<Workload> workload = workload_from_key(lease.workload_key());
  const DType dtype = workload.is_ok() ? workload->dtype() : DType::kFloat32;
  record.set_peak_gflops(probe_.peaks.of(dtype, threads_of(lease.target())));
  return record;
}

void Worker::finish(const v1::Lease& lease, v1::MeasureRecord record) {
  *record.mutable_finished_at() = google::protobuf::util::TimeUtil::GetCurrentTime();
  const Status status = core_->finish(lease, record);
  if (!status.is_ok()) fail(status);
}

// Where compiling is what a trial waits for, the core of the runs is idle half of the time.
void Worker::build_instead_of_runs() {
  if (cpus_.size() < 2) return;
  Result<std::unique_ptr<BuilderClient>> client = BuilderClient::start(options_.program, runner_cpus(1));
  if (!client.is_ok()) return spdlog::warn("one builder only: {}", client.message());
  instead_.client = *std::move(client);
  build(instead_, WorkerCore::Builds::kInsteadOfRuns);
}

void Worker::build(Compiler& compiler, WorkerCore::Builds builds) {
  while (const std::optional<v1::Lease> lease = core_->next_to_build(builds)) {
    if (lease->finalists_size() > 0) {
      build_race(compiler, *lease);
      continue;
    }
    v1::MeasureRecord record = record_for(*lease);
    const auto now_ms = [] {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
    const double started_ms = now_ms();
    const double queue_ms = std::max(0.0, started_ms - static_cast<double>(core_->held_since_ms(*lease)));
    const double limit_s = lease->options().build_timeout_s() > 0 ? lease->options().build_timeout_s() : 10;
    const Result<BuildReply> reply = ask_builder(
        compiler, build_request(*lease), std::chrono::milliseconds(static_cast<int64_t>(limit_s * 1000)));
    record.set_build_ms(now_ms() - started_ms);
    record.set_queue_ms(queue_ms);
    if (!reply.is_ok()) {
      const StatusCode code = reply.status().code();
      record.set_outcome(code == StatusCode::kDeadlineExceeded ? v1::BUILD_TIMEOUT
                         : code == StatusCode::kUnavailable    ? v1::DEVICE_LOST
                                                               : v1::BUILD_ERROR);
      record.set_message(reply.message());
    } else if (reply->outcome == "unable") {
      record.set_outcome(v1::DEVICE_LOST);
      record.set_message(reply->message);
    } else if (reply->outcome != "ok") {
      record.set_outcome(outcome_of(reply->outcome));
      record.set_message(reply->message);
    } else {
      // The reference answer belongs to the task: made here, so that a run never waits for a compile.
      const Result<BuildReply> data = data_for(*lease);
      if (data.is_ok()) {
        core_->built(*lease, reply->digest, record.build_ms(), queue_ms);
        continue;
      }
      record.set_outcome(v1::DEVICE_LOST);
      record.set_message(str("no reference answer: ", data.message()));
    }
    finish(*lease, record);
  }
}

BuildRequest Worker::build_request(const v1::Lease& lease) const {
  return {.kind = "build",
          .directory = options_.work_dir,
          .workload_key = lease.workload_key(),
          .target = lease.target(),
          .template_name = lease.template_name(),
          .config = lease.config(),
          .template_version = lease.template_version()};
}

// As a rule every finalist is in the work folder already, since it was measured as a trial.
void Worker::build_race(Compiler& compiler, const v1::Lease& lease) {
  const double limit_s = lease.options().build_timeout_s() > 0 ? lease.options().build_timeout_s() : 10;
  std::vector<RaceEntry> entries;
  std::string trouble;
  const Result<BuildReply> data = data_for(lease);
  if (!data.is_ok()) trouble = str("no reference answer: ", data.message());
  for (const v1::RaceCandidate& c : lease.finalists()) {
    if (!data.is_ok()) break;
    BuildRequest request = build_request(lease);
    request.template_name = c.template_name();
    request.template_version = c.template_version();
    request.config = c.config();
    const Result<BuildReply> reply =
        ask_builder(compiler, request, std::chrono::milliseconds(static_cast<int64_t>(limit_s * 1000)));
    if (reply.is_ok() && reply->outcome == "ok") {
      entries.push_back({c, {reply->digest, check_for(lease, c.template_name(), *data)}});
      continue;
    }
    trouble = str("trial ", c.trial_id(),
                  " cannot be built again: ", reply.is_ok() ? reply->message : reply.message());
    spdlog::warn("{}: {}", lease.trial_id(), trouble);
  }
  if (entries.empty()) return core_->finish_race(lease, race_result_for(lease, trouble));
  {
    std::lock_guard lock(mutex_);
    races_[lease.trial_id()] = std::move(entries);
  }
  core_->built(lease, /*digest=*/"", 0, 0);
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
  }
  const BuildRequest request{.kind = "data",
                             .directory = options_.work_dir,
                             .workload_key = lease.workload_key(),
                             .input_seed = lease.input_seed()};
  ASSIGN_OR_RETURN(BuildReply data, ask_builder(beside_, request, std::chrono::minutes(10)));
  if (data.outcome != "ok") return failed(data.message);
  std::lock_guard lock(mutex_);
  return data_[key] = data;
}

// --- running ---

v1::MeasureRecord Worker::measure(const WorkerCore::Built& built) {
  const v1::Lease& lease = built.lease;
  const v1::MeasureOptions& options = lease.options();
  v1::MeasureRecord record = record_for(lease);
  record.set_build_ms(built.build_ms);
  record.set_queue_ms(built.queue_ms);
  record.set_artifact_digest(built.digest);
  RunRequest request;
  request.artifact_dir = options_.work_dir + "/artifacts";
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
  request.cpus = runner_cpus(threads_of(lease.target()));

  Result<RunReply> reply = failed("not run");
  const int tries = on_gpu(lease) ? kGpuTries : kInfrastructureTries;
  bool gpu_sick = false;
  int disturbed = 0;
  for (int i = 0; i < tries && !stopped_; ++i) {
    if (gpu_sick) wait_for_gpu(i);
    const Result<BuildReply> data = data_for(lease);
    if (!data.is_ok()) {
      reply = data.status();
      continue;
    }
    request.inputs.clear();
    request.references.clear();
    for (const auto& d : data->inputs) request.inputs.push_back({d.arg, d.path});
    for (const auto& d : data->references) request.references.push_back({d.arg, d.path});
    request.check = check_for(lease, lease.template_name(), *data);
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
    if (reply.is_ok() && !on_gpu(lease)) {
      calm_->observe(reply->sentinel_before_ns);
      calm_->observe(reply->sentinel_after_ns);
    }
    std::lock_guard lock(mutex_);
    running_.erase(lease.trial_id());
    // Timed while something else slowed the machine down: once more. After that it stands as it is, and its
    // sentinels say so.
    if (reply.is_ok() && reply->outcome == "ok" && !on_gpu(lease) && disturbed < kDisturbedTries &&
        calm_->disturbed(std::max(reply->sentinel_before_ns, reply->sentinel_after_ns))) {
      ++disturbed;
      --i;
      continue;
    }
    if (reply.is_ok() || reply.status().code() == StatusCode::kAborted) break;
    spdlog::warn("trial {}: {}", lease.trial_id(), reply.message());
    // Perhaps its data is gone or damaged: look again, and make it anew if so.
    data_.erase(data_key(lease));
    gpu_sick = reply.status().code() == StatusCode::kUnavailable && on_gpu(lease);
  }
  if (!reply.is_ok()) {
    record.set_outcome(v1::DEVICE_LOST);
    record.set_message(reply.message());
    return record;
  }
  record.set_outcome(outcome_of(reply->outcome));
  record.set_message(reply->message);
  record.mutable_run_ns()->Add(reply->run_ns.begin(), reply->run_ns.end());
  record.mutable_cpu_ns()->Add(reply->cpu_ns.begin(), reply->cpu_ns.end());
  record.set_cut(reply->cut);
  record.set_max_error(std::isfinite(reply->max_error) ? reply->max_error : 0);
  record.set_sentinel_before_ns(reply->sentinel_before_ns);
  record.set_sentinel_after_ns(reply->sentinel_after_ns);
  record.set_run_ms(reply->run_ms);
  record.set_check_ms(reply->check_ms);
  record.set_device_state(reply->device_state);
  return record;
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

v1::RaceResult Worker::race(const WorkerCore::Built& built) {
  const v1::Lease& lease = built.lease;
  std::vector<RaceEntry> entries;
  {
    std::lock_guard lock(mutex_);
    entries = std::move(races_[lease.trial_id()]);
    races_.erase(lease.trial_id());
  }
  const Result<BuildReply> data = data_for(lease);
  if (!data.is_ok()) return race_result_for(lease, str("no reference answer: ", data.message()));
  RunRequest base;
  base.artifact_dir = options_.work_dir + "/artifacts";
  for (const auto& d : data->inputs) base.inputs.push_back({d.arg, d.path});
  for (const auto& d : data->references) base.references.push_back({d.arg, d.path});
  if (lease.options().memory_limit_bytes() > 0)
    base.memory_limit_bytes = lease.options().memory_limit_bytes();
  // Of a whole heat, in which each finalist may take as long as a trial.
  base.run_timeout_s = (lease.options().run_timeout_s() > 0 ? lease.options().run_timeout_s() : 10) *
                       static_cast<double>(entries.size());
  base.cpus = runner_cpus(threads_of(lease.target()));
  const auto heat = [&](RaceRequest request) -> Result<RaceReply> {
    Result<RaceReply> reply = failed("not run");
    for (int i = 0; i < kInfrastructureTries && !stopped_; ++i) {
      request.base.id = next_request_++;
      request.disturbed_above_ns = kRaceDisturbed * calm_->ns();
      {
        std::lock_guard lock(mutex_);
        running_[lease.trial_id()] = request.base.id;
      }
      // Asked after the id can be cancelled, so that no revocation falls between.
      reply = core_->holds(lease) ? runner_->race(request)
                                  : Result<RaceReply>(Status(StatusCode::kAborted, "revoked"));
      if (reply.is_ok())
        for (const RaceReply::Candidate& c : reply->candidates)
          for (const double ns : c.sentinel_ns) calm_->observe(ns);
      std::lock_guard lock(mutex_);
      running_.erase(lease.trial_id());
      if (reply.is_ok() || reply.status().code() == StatusCode::kAborted) break;
      spdlog::warn("{}: {}", lease.trial_id(), reply.message());
    }
    return reply;
  };
  Result<v1::RaceResult> result = run_heats(entries, base, with_defaults(lease.race()), heat);
  v1::RaceResult out = race_result_for(lease, result.is_ok() ? result->error() : result.message());
  if (result.is_ok()) out.MergeFrom(*result);
  return out;
}

// A GPU that fails its check is asked again after 2, 4, ... 15 s: every lease would end as device_lost else.
void Worker::wait_for_gpu(int tries) const {
  const auto pause = std::chrono::seconds(std::min(1 << std::min(tries, 4), 15));
  const auto end = std::chrono::steady_clock::now() + pause;
  while (!stopped_ && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void Worker::run_candidates() {
  while (const std::optional<WorkerCore::Built> built = core_->next_to_run()) {
    if (built->lease.finalists_size() > 0) {
      const v1::RaceResult result = race(*built);
      if (!stopped_ && core_->holds(built->lease)) core_->finish_race(built->lease, result);
      continue;
    }
    const v1::MeasureRecord record = measure(*built);
    // A run ended by a revocation or by stop() says nothing: the daemon has given the trial up, or will give
    // it to another.
    if (record.outcome() == v1::DEVICE_LOST && (stopped_ || !core_->holds(built->lease))) continue;
    finish(built->lease, record);
  }
}

}  // namespace tuner
