#include "measure_server/worker/builder_worker.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/worker/worker_identity.h"
#include "measure_server/worker/worker_parts.h"

namespace tuner {
namespace {

constexpr std::chrono::minutes kDataLimit{10};
constexpr double kBuildLimitS = 10;
constexpr size_t kLeastSenders = 4;
constexpr size_t kWaitForSender = 4;  // orders a sender; then compilers wait

BuildRequest request_of(const v1::BuildOrder& order, const std::string& directory, int64_t cache_bytes) {
  return {.kind = order.data() ? "data" : "build",
          .directory = directory,
          .cache_bytes = cache_bytes,
          .workload_key = order.workload_key(),
          .target = order.target(),
          .template_name = order.template_name(),
          .config = order.config(),
          .template_version = order.template_version(),
          .input_seed = order.input_seed()};
}

std::chrono::milliseconds limit_of(const v1::BuildOrder& order) {
  if (order.data()) return kDataLimit;
  return std::chrono::milliseconds(
      static_cast<int64_t>((order.limit_s() > 0 ? order.limit_s() : kBuildLimitS) * 1000));
}

v1::Built failure(BuildOutcome outcome, const std::string& message) {
  v1::Built built;
  built.set_outcome(std::string(build_outcome_name(outcome)));
  built.set_message(message);
  return built;
}

}  // namespace

Result<std::unique_ptr<BuilderWorker>> BuilderWorker::start(BuilderOptions options) {
  std::unique_ptr<BuilderWorker> worker(new BuilderWorker(std::move(options)));
  RETURN_IF_ERROR(worker->open());
  return worker;
}

BuilderWorker::~BuilderWorker() { stop(); }

Status BuilderWorker::open() {
  host_ = host_name();
  incarnation_ = random_incarnation();
  ASSIGN_OR_RETURN(folder_, open_work_folder(options_.work_dir, options_.next_work_dir));
  worker_id_ = worker_id_in(*folder_, host_, options_.worker_id, options_.worker_name);
  RETURN_IF_ERROR(make_folders(shared_dir()).with_context("choose another folder with --shared-dir: "));
  const std::vector<int> cpus = usable_cpus();
  const size_t wanted = options_.builders > 0 ? static_cast<size_t>(options_.builders) : cpus.size();
  // Each may use all CPUs: a task's reference answer, which its trials wait for, is made by as many threads.
  // Processes that compile have a CPU each all the same, as there are no more of them.
  for (size_t i = 0; i < wanted; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<BuilderClient> client, BuilderClient::start(options_.program, cpus));
    clients_.push_back(std::move(client));
  }
  ASSIGN_OR_RETURN(const BuildReply made,
                   clients_.front()->ask({.kind = "compilers"}, std::chrono::seconds(30)));
  if (made.compilers.empty())
    return failed("no back end of this builder can compile",
                  made.outcome == BuildOutcome::kOk ? "" : ": " + made.message);
  const Result<BuildReply> sources = clients_.front()->ask({.kind = "sources"}, std::chrono::minutes(2));
  if (!sources) spdlog::warn("compiles no sources of users: {}", sources.message());
  // One is made by each, and one more waits for it.
  core_ = std::make_unique<BuilderCore>(static_cast<int>(2 * wanted));
  const auto say = [this] {
    spdlog::info("registered as {}, a builder with {} compilers at once", worker_id_, clients_.size());
  };
  talk_ = std::make_unique<Talk>(
      *core_,
      Talk::Options{.hello = hello(made.compilers, sources ? sources->source_compilers
                                                           : std::vector<BuildReply::SourceCompiler>()),
                    .registered = say});
  fitness_ = std::make_unique<Fitness>(*core_, Fitness::Options{.check = [this] { return able(); }});
  core_->on_news([this] { talk_->interrupt(); });
  core_->on_phase([this] { talk_->phase_began(); });
  return Status::ok();
}

v1::RegisterRequest BuilderWorker::hello(
    const std::vector<BuildReply::Compiler>& compilers,
    const std::vector<BuildReply::SourceCompiler>& source_compilers) const {
  v1::RegisterRequest request;
  request.set_worker_id(worker_id_);
  request.set_incarnation(incarnation_);
  request.set_protocol(1);
  request.set_kind(v1::BUILDER);
  request.mutable_environment()->set_host(host_);
  request.mutable_environment()->set_worker_id(worker_id_);
  request.mutable_environment()->set_worker_incarnation(incarnation_);
  for (const BuildReply::Compiler& c : compilers) {
    v1::Compiler* const compiler = request.add_compilers();
    compiler->set_family(c.family);
    compiler->set_toolchain(c.toolchain);
  }
  for (const BuildReply::SourceCompiler& c : source_compilers) {
    v1::SourceCompiler* const compiler = request.add_source_compilers();
    compiler->set_name(c.name);
    compiler->set_toolchain(c.toolchain);
  }
  for (const BuildReply::Template& t : clients_.front()->hello().templates) {
    v1::TemplateVersion* const has = request.add_templates();
    has->set_name(t.name);
    has->set_version(t.version);
  }
  return request;
}

Status BuilderWorker::able() const {
  RETURN_IF_ERROR(disk_takes(folder_->path()));
  return shared_dir() == folder_->path() ? Status::ok() : disk_takes(shared_dir());
}

Status BuilderWorker::run(DaemonLink& link, BlobLink& blobs) {
  const BlobTransfer transfer(
      blobs, [this] { return core_->session(); }, ending_.get_token());
  DocumentFetcher documents(shared_dir(), options_.cache_bytes, transfer);
  std::vector<std::thread> makers;
  for (const std::unique_ptr<BuilderClient>& client : clients_)
    makers.emplace_back([&, c = client.get()] { make_orders(*c, documents); });
  std::vector<std::thread> senders;
  for (size_t i = 0; i < senders_n(); ++i) senders.emplace_back([&] { send_made(transfer); });
  std::thread tending([&] { fitness_->tend(); });
  const Status end = talk_->run(link);
  if (!end.is_ok()) spdlog::error("{}", end.message());
  stop();
  for (std::vector<std::thread>* threads : {&makers, &senders})
    for (std::thread& thread : *threads) thread.join();
  tending.join();
  return end;
}

void BuilderWorker::stop() {
  ending_.request_stop();
  if (core_ != nullptr) core_->stop();
  if (talk_ != nullptr) talk_->stop();
  if (fitness_ != nullptr) fitness_->stop();
}

void BuilderWorker::make_orders(BuilderClient& client, DocumentFetcher& documents) {
  while (const std::optional<v1::BuildOrder> order = core_->next()) {
    const Status here = order->has_document()
                            ? documents.for_order(order->id(), order->workload_key(), order->document())
                            : Status::ok();
    if (here)
      make(client, *order);
    else
      could_not(*order, here);
  }
}

// A compiler that breaks or hangs is the candidate's doing; all else is this worker's trouble, and somebody
// else makes it.
void BuilderWorker::make(BuilderClient& client, const v1::BuildOrder& order) {
  const Result<BuildReply> reply =
      client.ask(request_of(order, shared_dir(), options_.cache_bytes), limit_of(order));
  if (reply.is_ok()) {
    std::unique_lock lock(mutex_);
    const size_t most = kWaitForSender * senders_n();
    if (!changed_.wait(lock, ending_.get_token(), [&] { return to_send_.size() < most; })) return;
    core_->sends(order.id());
    to_send_.push_back({order, *reply});
    lock.unlock();
    return changed_.notify_all();
  }
  if (reply.status().code() == StatusCode::kUnavailable || order.data())
    return could_not(order, reply.status(), /*no_builder=*/reply.status().code() == StatusCode::kUnavailable);
  v1::BuildDone done;
  done.set_id(order.id());
  const bool late = reply.status().code() == StatusCode::kDeadlineExceeded;
  *done.mutable_built() =
      failure(late ? BuildOutcome::kBuildTimeout : BuildOutcome::kBuildError, reply.message());
  core_->done(std::move(done));
}

// As many as there are compilers: each may have made something at the same time.
size_t BuilderWorker::senders_n() const { return std::max(kLeastSenders, clients_.size()); }

void BuilderWorker::send_made(const BlobTransfer& transfer) {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, ending_.get_token(), [&] { return !to_send_.empty(); });
    if (ending_.stop_requested()) return;
    const ToSend next = std::move(to_send_.front());
    to_send_.pop_front();
    lock.unlock();
    changed_.notify_all();
    send(transfer, next);
  }
}

void BuilderWorker::send(const BlobTransfer& transfer, const ToSend& what) {
  const Result<v1::Built> built = made(what.reply, transfer, what.order);
  if (!built.is_ok()) return could_not(what.order, built.status());
  v1::BuildDone done;
  done.set_id(what.order.id());
  *done.mutable_built() = *built;
  done.set_found_version(what.reply.found);
  core_->done(std::move(done));
}

void BuilderWorker::could_not(const v1::BuildOrder& order, const Status& why, bool no_builder) {
  if (ending_.stop_requested()) return;
  // Stopped meanwhile, or of a daemon of before.
  if (why.code() == StatusCode::kNotFound) return core_->give_back(order.id());
  if (const auto more = trouble_.say()) spdlog::warn("order {}: {}{}", order.id(), why.message(), *more);
  if (no_builder || is_disk_trouble(why)) {
    fitness_->unfit(why.message());
    return core_->give_back(order.id());
  }
  v1::BuildDone done;
  done.set_id(order.id());
  *done.mutable_built() = failure(BuildOutcome::kUnable, why.message());
  core_->done(std::move(done));
}

Status BuilderWorker::send_file(const std::string& path, const BlobTransfer& transfer,
                                const v1::BuildOrder& order, v1::Blob* name) const {
  ASSIGN_OR_RETURN(const std::string bytes, read_whole(path));
  *name = name_of(bytes);
  return transfer.send(order.id(), *name, bytes);
}

Result<v1::Built> BuilderWorker::made(const BuildReply& reply, const BlobTransfer& transfer,
                                      const v1::BuildOrder& order) const {
  v1::Built built;
  built.set_outcome(std::string(build_outcome_name(reply.outcome)));
  built.set_message(reply.message);
  built.set_toolchain(reply.toolchain);
  built.set_build_ms(reply.build_ms);
  built.set_absolute(reply.absolute);
  built.set_relative(reply.relative);
  built.set_direct(reply.direct);
  if (reply.outcome != BuildOutcome::kOk) return built;
  if (!order.data()) {
    ASSIGN_OR_RETURN(const Artifact artifact, load_artifact(shared_dir() + "/artifacts", reply.digest));
    const std::string bytes = artifact_blob(artifact);
    *built.mutable_artifact() = name_of(bytes);
    RETURN_IF_ERROR(transfer.send(order.id(), built.artifact(), bytes));
    return built;
  }
  const auto add = [&](uint64_t seed, const std::vector<BuildReply::Data>& inputs,
                       const std::vector<BuildReply::Data>& references) -> Status {
    v1::DataSet* const set = built.add_data();
    set->set_seed(seed);
    for (const BuildReply::Data& input : inputs) {
      v1::Input* const to = set->add_inputs();
      to->set_arg(input.arg);
      ASSIGN_OR_RETURN(const std::string bytes, read_whole(input.path));
      *to->mutable_blob() = name_of(bytes);
    }
    for (const BuildReply::Data& reference : references) {
      v1::Reference* const to = set->add_references();
      to->set_arg(reference.arg);
      RETURN_IF_ERROR(send_file(reference.path, transfer, order, to->mutable_blob()));
    }
    return Status::ok();
  };
  RETURN_IF_ERROR(add(order.input_seed(), reply.inputs, reply.references));
  for (const BuildReply::Set& set : reply.others) RETURN_IF_ERROR(add(set.seed, set.inputs, set.references));
  return built;
}

}  // namespace tuner
