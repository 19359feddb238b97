#include "measure_server/worker/worker.h"

#include <sched.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "compiler_core/base/room.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/worker/machine_facts.h"
#include "measure_server/worker/shared_cache.h"
#include "measure_server/worker/worker_parts.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

// Of the memory sentinel, beside a trial: the memory that cores share is never as steady as a core.
constexpr double kMemoryDisturbed = 1.25;
constexpr int kPollMs = 2'000;  // how long an idle Sync waits; well below a lease's life

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

void pin_this_process(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

v1::Outcome outcome_of(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
  v1::Outcome_Parse(upper, &outcome);
  return outcome;
}

constexpr char kCalmPulses[] = "/calm_pulses";

std::string data_key(const v1::Lease& lease) { return str(lease.workload_key(), "|", lease.input_seed()); }

CheckSpec check_for(const v1::Lease& lease, const std::string& template_name, const BuildReply& data) {
  const AnyTemplate* t = find_template(template_name);
  const Result<Workload> workload = workload_from_key(lease.workload_key());
  if (t == nullptr || !workload) return {data.absolute, data.relative};
  const Tolerance allowed = t->tolerance(*workload);
  return {allowed.absolute, allowed.relative};
}

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
  if (!error) std::filesystem::create_directories(shared_dir() + kCalmPulses, error);
  if (error)
    return failed("work folder ", options_.work_dir, ": ", error.message(),
                  "; choose another with --work-dir");
  remove_old_work_folders(user_cache_folder());
  ASSIGN_OR_RETURN(spool_, Spool::open(options_.work_dir + "/results.spool"));
  if (!spool_->warning().empty()) spdlog::warn("{}", spool_->warning());
  if (!spool_->records().empty())
    spdlog::info("{} results of an earlier run are still to be reported", spool_->records().size());

  std::string runner = options_.runner;
  if (runner.empty()) {
    ASSIGN_OR_RETURN(runner, find_runner());
  }
  ASSIGN_OR_RETURN(runner_, RunnerClient::start(runner));
  // Peaks are measured before the builder or anything else of ours is busy.
  ASSIGN_OR_RETURN(probe_, machine_facts(*runner_, shared_dir() + "/machine.json"));
  calm_memory_ =
      std::make_unique<CalmLevel>(shared_dir() + "/calm_memory", probe_.hardware, kMemoryDisturbed);
  forget_old_pulses();
  const std::vector<int> last = runner_cpus(1);
  std::vector<int> others;
  for (const int cpu : cpus_)
    if (std::find(last.begin(), last.end(), cpu) == last.end()) others.push_back(cpu);
  ASSIGN_OR_RETURN(beside_.client, BuilderClient::start(options_.program, others));
  find_targets();
  if (served_.empty()) return failed("no back end of this worker can compile for this machine");
  find_device();
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

// Of each task its own: the more wide arithmetic kernels do, the lower is the clock they find.
CalmLevel& Worker::calm_pulse(const v1::Lease& lease) {
  const std::string task = str(lease.workload_key(), "|", lease.target());
  char file[32];
  std::snprintf(file, sizeof file, "/%016zx", std::hash<std::string>()(task));
  return calm_pulses_
      .try_emplace(task, shared_dir() + kCalmPulses + file, str(probe_.hardware, " | ", task),
                   kPulseDisturbed)
      .first->second;
}

// Levels that are no news any more.
void Worker::forget_old_pulses() const {
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& entry : std::filesystem::directory_iterator(shared_dir() + kCalmPulses, error))
    if (now - entry.last_write_time(error) > CalmLevel::kNews && !error)
      std::filesystem::remove(entry, error);
}

// What back ends make of this machine without looking for devices: its CPU, and what has its own interpreter.
void Worker::find_targets() {
  for (const BuildReply::BackendHere& here : beside_.client->hello().backends) {
    if (!here.unable.empty()) {
      spdlog::warn("\"{}\" is not measured: {}", here.targets.back(), here.unable);
      continue;
    }
    for (const std::string& target : here.targets)
      served_.push_back({target, probe_.hardware, here.toolchain});
    features_.insert(features_.end(), here.features.begin(), here.features.end());
  }
}

// The first device of this host, when there is one and candidates can be compiled for it.
void Worker::find_device() {
  if (probe_.devices.empty()) return;
  const DeviceInfo& device = probe_.devices.front();
  const Result<BuildReply> reply = beside_.client->ask(
      {.kind = "hello", .family = device.family, .device = device.arch}, std::chrono::seconds(30));
  std::string unable = reply.is_ok() ? "no back end for it" : reply.message();
  if (reply.is_ok() && !reply->backends.empty()) unable = reply->backends.front().unable;
  if (!unable.empty()) return spdlog::warn("{} is not measured on: {}", device.name, unable);
  for (const std::string& target : reply->backends.front().targets)
    served_.push_back({.target = target,
                       .hardware = device.fingerprint,
                       .toolchain = reply->backends.front().toolchain,
                       .peak_gflops = device.peak_gflops,
                       .on_device = true});
}

const Worker::Served* Worker::served(const std::string& target) const {
  const auto it = std::ranges::find(served_, target, &Served::target);
  return it == served_.end() ? nullptr : &*it;
}

bool Worker::on_device(const v1::Lease& lease) const {
  const Served* offered = served(lease.target());
  return offered != nullptr && offered->on_device;
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
  for (const Served& offered : served_) request.add_targets(offered.target);
  for (const std::string& feature : features_) request.add_cpu_features(feature);
  request.set_max_threads(static_cast<int>(cpus_.size()));
  v1::Environment* environment = request.mutable_environment();
  *environment = record_for({}).environment();
  v1::RegisterReply reply;
  RETURN_IF_ERROR(link.register_worker(request, &reply));
  core_->set_session(reply.session());
  spdlog::info("registered as {} ({}), peak {:.0f} GFLOP/s on one thread", request.worker_id(), host_target(),
               probe_.peaks.of(DType::kFloat32, 1));
  if (served_.size() > 1)
    spdlog::info("also measures \"{}\" on {}", served_.back().target, served_.back().hardware);
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

}  // namespace tuner
