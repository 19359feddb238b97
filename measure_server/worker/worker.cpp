#include "measure_server/worker/worker.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/room.h"
#include "compiler_core/foreign/commands.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/worker/isolation_rule.h"
#include "measure_server/worker/machine_facts.h"
#include "measure_server/worker/shared_cache.h"
#include "measure_server/worker/worker_identity.h"
#include "measure_server/worker/worker_parts.h"

namespace tuner {
namespace {

// Of the memory sentinel, beside a trial: the memory that cores share is never as steady as a core.
constexpr double kMemoryDisturbed = 1.25;

}  // namespace

constexpr char kCalmPulses[] = "/calm_pulses";

std::string data_key(const v1::Lease& lease) { return str(lease.workload_key(), "|", lease.input_seed()); }

bool is_disk_trouble(const Status& why) {
  for (const int error : {ENOSPC, EDQUOT, EROFS, EIO, EACCES})
    if (why.message().find(std::strerror(error)) != std::string::npos) return true;
  return false;
}

Result<std::unique_ptr<Worker>> Worker::start(WorkerOptions options) {
  std::unique_ptr<Worker> worker(new Worker(std::move(options)));
  RETURN_IF_ERROR(worker->open());
  return worker;
}

Worker::~Worker() { stop(); }

Status Worker::open_work_folder() {
  ASSIGN_OR_RETURN(folder_, tuner::open_work_folder(options_.work_dir, options_.next_work_dir));
  worker_id_ = worker_id_in(*folder_, host_, options_.worker_id, options_.worker_name);
  std::error_code error;
  std::filesystem::create_directories(shared_dir() + kCalmPulses, error);
  if (error)
    return failed("folder ", shared_dir(), ": ", error.message(), "; choose another with --shared-dir");
  documents_.emplace(shared_dir());
  remove_old_work_folders(user_cache_folder());
  ASSIGN_OR_RETURN(spool_, Spool::open(work_dir() + "/results.spool"));
  if (!spool_->warning().empty()) spdlog::warn("{}", spool_->warning());
  if (const size_t owed = spool_->records().size() + spool_->races().size(); owed > 0)
    spdlog::info("{} results of an earlier run are still to be reported", owed);
  return Status::ok();
}

Status Worker::open() {
  host_ = host_name();
  incarnation_ = random_incarnation();
  cpus_ = usable_cpus();
  RETURN_IF_ERROR(open_work_folder());

  std::string runner = options_.runner;
  if (runner.empty()) {
    ASSIGN_OR_RETURN(runner, find_runner());
  }
  ASSIGN_OR_RETURN(runner_, RunnerClient::start(runner));
  RETURN_IF_ERROR(find_isolation());
  // Peaks are measured before the builder or anything else of ours is busy.
  ASSIGN_OR_RETURN(probe_, machine_facts(*runner_, shared_dir() + "/machine.json"));
  calm_memory_ =
      std::make_unique<CalmLevel>(shared_dir() + "/calm_memory", probe_.hardware, kMemoryDisturbed);
  calm_sentinel_ =
      std::make_unique<CalmLevel>(shared_dir() + "/calm_sentinel", probe_.hardware, kMemoryDisturbed);
  forget_old_pulses();
  const std::vector<int> last = runner_cpus(1);
  std::vector<int> others;
  for (const int cpu : cpus_)
    if (std::find(last.begin(), last.end(), cpu) == last.end()) others.push_back(cpu);
  ASSIGN_OR_RETURN(beside_.client, options_.make_maker(others));
  find_targets();
  if (served_.empty()) return failed("no back end of this worker can compile for this machine");
  find_device();
  start_device_builders(others);
  use_cpus(others);
  // Each builder has one lease, and one more waits for it.
  const int slots =
      std::max(options_.slots, for_device_.empty() ? 0 : 2 * static_cast<int>(for_device_.size() + 1));
  core_ = std::make_unique<WorkerCore>(
      WorkerCore::Options{.slots = slots,
                          .cpus = static_cast<int>(cpus_.size()),
                          .take_built = options_.take_built,
                          .on_device = [this](const v1::Lease& lease) { return on_device(lease); }},
      *spool_);
  talk_ = std::make_unique<Talk>(*core_,
                                 Talk::Options{.hello = hello(), .registered = [this] { say_registered(); }});
  fitness_ = std::make_unique<Fitness>(*core_, Fitness::Options{.check = [this] { return able(); }});
  core_->on_news([this] { talk_->interrupt(); });
  core_->on_phase([this] { talk_->phase_began(); });
  runner_->on_wait_for_device([this](bool waits) { core_->wait_for_device(running_lease_, waits); });
  runner_->on_long_wait([this](const std::string& line) {
    if (const auto more = wait_trouble_.say()) spdlog::warn("{}{}", line, *more);
  });
  core_->on_revoked_run([this](const std::string& trial) {
    std::lock_guard lock(mutex_);
    if (const auto it = running_.find(trial); it != running_.end()) runner_->cancel(it->second);
  });
  return Status::ok();
}

// Of each task its own: so the level says that pulses are those of like kernels.
CalmLevel& Worker::calm_pulse(const v1::Lease& lease) {
  const std::string task = str(lease.workload_key(), "|", lease.target());
  const std::string hardware =
      on_device(lease) ? device_->fingerprint : probe_.hardware + " | pulses at an even clock";
  char file[32];
  std::snprintf(file, sizeof file, "/%016zx", std::hash<std::string>()(task));
  return calm_pulses_
      .try_emplace(task, shared_dir() + kCalmPulses + file, str(hardware, " | ", task), kPulseDisturbed)
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
  const auto found = std::ranges::find(probe_.devices, options_.device, &DeviceInfo::ordinal);
  if (found == probe_.devices.end()) {
    if (options_.device > 0)
      spdlog::warn("no GPU is measured on: --device {}, but this host has {}", options_.device,
                   probe_.devices.size());
    return;
  }
  const DeviceInfo& device = *found;
  const Result<BuildReply> reply = beside_.client->ask(
      {.kind = "hello", .family = device.family, .device = device.fingerprint}, std::chrono::seconds(30));
  std::string unable = reply.is_ok() ? "no back end for it" : reply.message();
  if (reply.is_ok() && !reply->backends.empty()) unable = reply->backends.front().unable;
  // What compiles elsewhere for it says nothing of its toolkit here.
  if (unable.empty() && !builds_elsewhere())
    unable =
        check_driver_takes(toolkit_major(reply->backends.front().toolchain), device.driver_version).message();
  if (!unable.empty()) return spdlog::warn("{} is not measured on: {}", device.name, unable);
  device_ = &device;
  calm_copy_ = std::make_unique<CalmLevel>(shared_dir() + "/calm_copy", device.fingerprint, kMemoryDisturbed);
  for (const std::string& target : reply->backends.front().targets)
    served_.push_back({.target = target,
                       .hardware = device.fingerprint,
                       .toolchain = reply->backends.front().toolchain,
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
  options_.stopping();
  if (core_ != nullptr) core_->stop();
  if (talk_ != nullptr) talk_->stop();
  if (fitness_ != nullptr) fitness_->stop();
  std::lock_guard lock(mutex_);
  for (const auto& [trial, id] : running_) runner_->cancel(id);
}

Status Worker::run(DaemonLink& link) {
  writer_ = std::make_unique<ResultWriter>([this](const auto& results) { write(results); });
  std::vector<std::thread> builds;
  builds.emplace_back([&] { build(beside_, WorkerCore::Builds::kBesideRuns); });
  if (builds_elsewhere())
    fetch_more(builds);
  else
    builds.emplace_back([&] { build_instead_of_runs(); });
  for (const std::unique_ptr<Compiler>& compiler : for_device_)
    builds.emplace_back([this, &compiler] { build(*compiler, WorkerCore::Builds::kForDevice); });
  std::thread runs([&] { run_candidates(); });
  std::thread tending([&] { fitness_->tend(); });
  const Status end = talk_->run(link);
  if (!end.is_ok()) spdlog::error("{}", end.message());
  stop();
  for (std::thread& thread : builds) thread.join();
  runs.join();
  tending.join();
  writer_.reset();  // what was measured last is on disk, too
  return end;
}

v1::RegisterRequest Worker::hello() const {
  v1::RegisterRequest request;
  request.set_worker_id(worker_id_);
  request.set_incarnation(incarnation_);
  request.set_protocol(1);
  request.set_races(true);
  request.set_kind(builds_elsewhere() ? v1::RUNNER : v1::FULL);
  request.set_harness_abi(probe_.harness_abi);
  for (const Served& offered : served_) request.add_targets(offered.target);
  for (const std::string& feature : features_) request.add_cpu_features(feature);
  for (const BuildReply::Template& t : beside_.client->hello().templates) {
    v1::TemplateVersion* const has = request.add_templates();
    has->set_name(t.name);
    has->set_version(t.version);
  }
  add_source_compilers(request);
  request.set_max_threads(static_cast<int>(cpus_.size()));
  *request.mutable_environment() = record_for({}).environment();
  if (builds_elsewhere() && device_ != nullptr) request.set_cuda_driver(device_->driver_version);
  request.set_peak_gflops(peak_of(DType::kFloat32, 1));
  if (const auto& levels = probe_.bandwidths.levels; !levels.empty() && !levels.front().gbps.empty())
    request.set_read_gbps(levels.front().gbps.front());
  // What earlier runs of this worker, or of others on this host, saw when the machine was calm.
  request.set_sentinel_ns(calm_sentinel_->ns());
  request.set_memory_sentinel_ns(calm_memory_->ns());
  return request;
}

// Which compilers there are, a runner's builders say. Programs of users are run here, whoever built them: by
// the list that this process and its runner have.
void Worker::add_source_compilers(v1::RegisterRequest& request) const {
  const auto commands = command_offers();
  for (const auto& [name, toolchain] : commands) {
    v1::SourceCompiler* const has = request.add_source_compilers();
    has->set_name(name);
    has->set_toolchain(toolchain);
  }
  if (builds_elsewhere()) return;
  const Result<BuildReply> reply = beside_.client->ask({.kind = "sources"}, std::chrono::minutes(2));
  if (!reply) return spdlog::warn("compiles no sources of users: {}", reply.message());
  for (const BuildReply::SourceCompiler& compiler : reply->source_compilers) {
    if (compiler.name.starts_with(kCommandWord)) continue;
    v1::SourceCompiler* const has = request.add_source_compilers();
    has->set_name(compiler.name);
    has->set_toolchain(compiler.toolchain);
  }
}

// Asked of the runner that is here now: kept facts may be from before the last boot.
Status Worker::find_isolation() {
  ASSIGN_OR_RETURN(const ProbeReply here, runner_->probe({.max_threads = -1}, seconds_from_now(10)));
  const Isolation reached = isolation_from_name(here.isolation).value_or(Isolation::kNone);
  spdlog::info("isolation of candidates: {}{}{}", here.isolation, here.isolation_missing.empty() ? "" : "; ",
               here.isolation_missing);
  return may_run(reached, here.isolation_missing, options_.least_isolation, options_.daemon,
                 ::geteuid() == 0);
}

void Worker::say_registered() const {
  spdlog::info("registered as {} ({}), peak {:.3g} GFLOP/s on one thread", worker_id_, host_target(),
               peak_of(DType::kFloat32, 1));
  if (served_.size() > 1)
    spdlog::info("also measures \"{}\" on {}", served_.back().target, served_.back().hardware);
}

// --- what this worker can do ---

Status Worker::able() {
  RETURN_IF_ERROR(disk_takes(work_dir()));
  if (shared_dir() != work_dir()) RETURN_IF_ERROR(disk_takes(shared_dir()));
  RETURN_IF_ERROR(core_->spool_again());
  // A runner that is busy is alive.
  const Result<ProbeReply> alive = runner_->probe({.max_threads = -1}, seconds_from_now(10));
  if (!alive.is_ok() && alive.status().code() != StatusCode::kDeadlineExceeded)
    return alive.status().with_context("the runner: ");
  return Status::ok();
}

bool Worker::may_give_back(const v1::Lease& lease) {
  std::lock_guard lock(mutex_);
  constexpr size_t kMostKnown = 1'000;
  if (given_back_.size() >= kMostKnown) given_back_.clear();
  return ++given_back_[lease.trial_id()] <= kMostReturns;
}

bool Worker::gave_back_version(const v1::Lease& lease, const std::string& template_name,
                               const BuildReply& reply) {
  if (!may_give_back(lease)) return false;
  if (const auto more = version_trouble_.say())
    spdlog::warn("{} is given back: {}{}", lease.trial_id(), reply.message, *more);
  v1::TemplateVersion found;
  found.set_name(template_name);
  found.set_version(reply.found);
  core_->give_back(lease, found);
  return true;
}

// What several builders could not make says nothing of this worker, nor of the trial: another worker may
// build it itself.
bool Worker::gave_back_unmade(const v1::Lease& lease, const std::string& why) {
  if (!builds_elsewhere() || !may_give_back(lease)) return false;
  if (const auto more = unmade_trouble_.say())
    spdlog::warn("{} is given back: {}{}", lease.trial_id(), why, *more);
  core_->give_back(lease);
  return true;
}

bool Worker::gave_back(const v1::Lease& lease, const Status& why, bool surely_ours) {
  const Status trouble = surely_ours || is_disk_trouble(why) ? why : able();
  if (trouble.is_ok() || !may_give_back(lease)) return false;
  // In this order: the lease is not delivered to a worker that takes it at once.
  fitness_->unfit(trouble.message());
  core_->give_back(lease);
  return true;
}

}  // namespace tuner
