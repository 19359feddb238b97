#include "tests/bench/load/simulated_workers.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>

#include "measure.grpc.pb.h"

namespace tuner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSettleMs = 3'000;  // until then all of them come at once

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// A time that depends on the config alone, the same in every process.
double formula_ns(const std::string& config) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : config) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return 1e5 + static_cast<double>(hash % 900'000);
}

v1::MeasureRecord measured(const v1::Lease& lease, const v1::Environment& environment) {
  v1::MeasureRecord record;
  record.set_trial_id(lease.trial_id());
  record.set_attempt(lease.attempt());
  record.set_outcome(v1::OK);
  const double ns = formula_ns(lease.config());
  for (const double factor : {1.0, 1.01, 0.99}) {
    record.add_run_ns(ns * factor);
    record.add_cpu_ns(ns * factor);
  }
  record.set_build_ms(1);
  record.set_run_ms(1);
  record.set_artifact_digest("simulated");
  *record.mutable_environment() = environment;
  *record.mutable_options() = lease.options();
  return record;
}

class Fleet {
 public:
  explicit Fleet(const WorkersPlan& plan) : plan_(plan) {}
  Result<WorkersResult> run();

 private:
  struct Worker {
    std::unique_ptr<v1::Workers::Stub> stub;
    v1::RegisterRequest hello;
    v1::SyncRequest request;
    v1::SyncReply reply;
    v1::RegisterReply welcome;
    std::unique_ptr<grpc::ClientContext> context;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::SyncReply>> sync;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::RegisterReply>> enter;
    std::map<std::string, v1::Lease> leased;  // being "measured"
    bool registering = true;
    Clock::time_point sent;
  };
  using Later = std::pair<Clock::time_point, Worker*>;

  void add_worker(int number);
  void call(Worker& worker);
  void take(Worker& worker);
  void answer_later(Worker& worker);
  void answer(Worker& worker);

  const WorkersPlan plan_;
  WorkersResult result_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::priority_queue<Later, std::vector<Later>, std::greater<>> thinking_;
  Clock::time_point begun_;
  std::minstd_rand random_{1};
  int in_flight_ = 0;
  bool ending_ = false;
};

void Fleet::add_worker(int number) {
  auto worker = std::make_unique<Worker>();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else all of them would share one connection
  worker->stub = v1::Workers::NewStub(
      grpc::CreateCustomChannel(plan_.daemon, grpc::InsecureChannelCredentials(), arguments));
  worker->hello.set_worker_id(str(plan_.name, "-", number));
  worker->hello.set_incarnation("1");
  worker->hello.set_protocol(1);
  worker->hello.add_targets(plan_.target);
  worker->hello.set_max_threads(64);
  v1::Environment* const environment = worker->hello.mutable_environment();
  environment->set_hardware("simulated");
  environment->set_toolchain("none");
  environment->set_worker_id(worker->hello.worker_id());
  environment->set_worker_incarnation("1");
  environment->set_host("simulated");
  environment->set_harness_abi(1);
  worker->request.set_free_slots(plan_.slots);
  worker->request.set_wait_ms(15'000);
  workers_.push_back(std::move(worker));
}

void Fleet::call(Worker& worker) {
  worker.context = std::make_unique<grpc::ClientContext>();
  worker.context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  worker.context->set_wait_for_ready(true);
  worker.sent = Clock::now();
  ++in_flight_;
  ++result_.calls;
  if (worker.registering) {
    worker.enter = worker.stub->AsyncRegister(worker.context.get(), worker.hello, &queue_);
    worker.enter->Finish(&worker.welcome, &worker.status, &worker);
  } else {
    worker.reply.Clear();
    worker.sync = worker.stub->AsyncSync(worker.context.get(), worker.request, &queue_);
    worker.sync->Finish(&worker.reply, &worker.status, &worker);
  }
}

// What a call gave, and the next one.
void Fleet::take(Worker& worker) {
  if (!worker.status.ok()) {
    ++result_.failures;
    if (worker.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) worker.registering = true;
    if (!ending_) thinking_.emplace(Clock::now() + std::chrono::milliseconds(200), &worker);
    return;
  }
  if (worker.registering) {
    worker.registering = false;
    worker.request.set_session(worker.welcome.session());
  } else {
    for (const v1::Ack& ack : worker.reply.acks()) {
      auto* const owed = worker.request.mutable_results();
      for (int i = owed->size() - 1; i >= 0; --i) {
        if (owed->Get(i).trial_id() != ack.trial_id() || owed->Get(i).attempt() != ack.attempt()) continue;
        owed->DeleteSubrange(i, 1);
        ++result_.acknowledged;
        result_.last_ack_ms = ms_between(begun_, Clock::now());
        result_.ledger.emplace_back(ack.trial_id(), ack.attempt());
      }
    }
    if (worker.reply.leases_size() > 0) {
      const Clock::time_point now = Clock::now();
      if (ms_between(begun_, now) > kSettleMs) result_.turn_ms.push_back(ms_between(worker.sent, now));
      if (result_.first_lease_ms < 0) result_.first_lease_ms = ms_between(begun_, now);
    }
    for (const v1::Lease& lease : worker.reply.leases())
      if (lease.finalists_size() == 0) worker.leased[lease.trial_id()] = lease;
  }
  if (worker.leased.empty()) {
    if (!ending_) call(worker);
  } else {
    // From half to one and a half times as long, or all would go on coming together.
    const auto think_us =
        static_cast<int64_t>(plan_.think_ms * (500.0 + static_cast<double>(random_() % 1000)));
    thinking_.emplace(Clock::now() + std::chrono::microseconds(think_us), &worker);
  }
}

void Fleet::answer(Worker& worker) {
  for (const auto& [id, lease] : worker.leased)
    *worker.request.add_results() = measured(lease, worker.hello.environment());
  worker.leased.clear();
  call(worker);
}

Result<WorkersResult> Fleet::run() {
  for (int i = 0; i < plan_.workers; ++i) add_worker(i);
  begun_ = Clock::now();
  for (const std::unique_ptr<Worker>& worker : workers_) call(*worker);
  const Clock::time_point end =
      begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan_.seconds));
  while (!ending_ || in_flight_ > 0) {
    const Clock::time_point now = Clock::now();
    if (!ending_ && now >= end) {
      ending_ = true;
      for (const std::unique_ptr<Worker>& worker : workers_)
        if (worker->context != nullptr) worker->context->TryCancel();
    }
    while (!ending_ && !thinking_.empty() && thinking_.top().first <= now) {
      Worker* const worker = thinking_.top().second;
      thinking_.pop();
      answer(*worker);
    }
    Clock::time_point until = ending_ ? now + std::chrono::seconds(1) : end;
    if (!thinking_.empty() && !ending_) until = std::min(until, thinking_.top().first);
    void* tag = nullptr;
    bool ok = false;
    const auto deadline = std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now());
    const auto got = queue_.AsyncNext(&tag, &ok, deadline);
    if (got != grpc::CompletionQueue::GOT_EVENT) continue;
    --in_flight_;
    take(*static_cast<Worker*>(tag));
  }
  queue_.Shutdown();
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
  }
  return std::move(result_);
}

}  // namespace

Result<WorkersResult> run_simulated_workers(const WorkersPlan& plan) {
  if (plan.workers < 1 || plan.slots < 1)
    return invalid_argument("simulated workers: found ", plan.workers, " with ", plan.slots,
                            " slots, expected at least one of each");
  return Fleet(plan).run();
}

}  // namespace tuner::bench
