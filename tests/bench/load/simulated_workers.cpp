#include "tests/bench/load/simulated_workers.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>

#include "measure.grpc.pb.h"
#include "proto/grpc_access.h"

namespace tuner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSettleMs = 3'000;  // until then all of them come at once
constexpr int kLatestRepeatMs = 5'000;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// A time that depends on the config alone, the same in every process.
double formula_ns(const std::string& config) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : config) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return 1e6 + static_cast<double>(hash % 900'000);
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
  record.set_run_ms(6);
  record.set_artifact_digest("simulated");
  *record.mutable_environment() = environment;
  *record.mutable_options() = lease.options();
  return record;
}

class Fleet {
 public:
  explicit Fleet(const WorkersPlan& plan) : plan_(plan) {
    arguments_.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else all of them would share one connection
    arguments_.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments_.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    credentials_ = channel_credentials(plan_.daemon, arguments_);
  }
  Result<WorkersResult> run();

 private:
  // What the queue hands back: a call that has ended.
  struct Ticket {
    virtual ~Ticket() = default;
    virtual void ended() = 0;
  };
  struct Worker : Ticket {
    explicit Worker(Fleet& fleet) : fleet(fleet) {}
    void ended() override { fleet.take(*this); }
    Fleet& fleet;
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
    bool registering = true, away = true;     // away: its last call failed, or it has made none
    Clock::time_point sent;
  };
  // A Sync that comes once more. Nobody hears the answer.
  struct Repeat : Ticket {
    explicit Repeat(Fleet& fleet) : fleet(fleet) {}
    void ended() override { fleet.repeating_.erase(this); }
    Fleet& fleet;
    v1::SyncRequest request;
    v1::SyncReply reply;
    grpc::ClientContext context;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::SyncReply>> sync;
  };
  using Later = std::pair<Clock::time_point, Worker*>;
  struct LaterRepeat {
    Worker* worker;
    v1::SyncRequest request;
  };

  void add_worker(int number);
  std::chrono::system_clock::time_point deadline() const {
    return std::chrono::system_clock::now() + std::chrono::milliseconds(plan_.wait_ms + 15'000);
  }
  void call(Worker& worker);
  void take(Worker& worker);
  void note_away(Worker& worker);
  void note_here(Worker& worker);
  void take_acks(Worker& worker);
  void answer(Worker& worker);
  void repeat_later(Worker& worker);
  void repeat(const LaterRepeat& call);
  void act(Clock::time_point now);
  Clock::time_point next_act(Clock::time_point otherwise) const;

  const WorkersPlan plan_;
  grpc::ChannelArguments arguments_;
  // Read once for all: workers of a farm have a host each.
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  WorkersResult result_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::priority_queue<Later, std::vector<Later>, std::greater<>> thinking_;
  std::multimap<Clock::time_point, LaterRepeat> repeats_;
  std::map<Repeat*, std::unique_ptr<Repeat>> repeating_;
  std::ofstream ledger_;
  Clock::time_point begun_;
  std::minstd_rand random_{1};
  WorkersResult::Arrival arrival_;  // as long as workers are away
  int away_ = 0, in_flight_ = 0;
  bool ending_ = false;
};

void Fleet::add_worker(int number) {
  auto worker = std::make_unique<Worker>(*this);
  worker->stub =
      v1::Workers::NewStub(grpc::CreateCustomChannel(plan_.daemon.address, credentials_, arguments_));
  worker->hello.set_worker_id(str(plan_.name, plan_.daemon.tls() ? "." : "-", number));
  // A restarted process is another one.
  const std::string incarnation = str(::getpid(), "-", begun_.time_since_epoch().count());
  worker->hello.set_incarnation(incarnation);
  worker->hello.set_protocol(1);
  worker->hello.add_targets(plan_.target);
  worker->hello.set_max_threads(64);
  v1::Environment* const environment = worker->hello.mutable_environment();
  environment->set_hardware("simulated");
  environment->set_toolchain("none");
  environment->set_worker_id(worker->hello.worker_id());
  environment->set_worker_incarnation(incarnation);
  environment->set_host("simulated");
  environment->set_harness_abi(1);
  worker->request.set_free_slots(plan_.slots);
  worker->request.set_wait_ms(plan_.wait_ms);
  workers_.push_back(std::move(worker));
}

void Fleet::call(Worker& worker) {
  worker.context = std::make_unique<grpc::ClientContext>();
  worker.context->set_deadline(deadline());
  worker.context->set_wait_for_ready(true);
  worker.sent = Clock::now();
  ++in_flight_;
  ++result_.calls;
  if (worker.registering) {
    worker.enter = worker.stub->AsyncRegister(worker.context.get(), worker.hello, &queue_);
    worker.enter->Finish(&worker.welcome, &worker.status, static_cast<Ticket*>(&worker));
  } else {
    worker.reply.Clear();
    worker.sync = worker.stub->AsyncSync(worker.context.get(), worker.request, &queue_);
    worker.sync->Finish(&worker.reply, &worker.status, static_cast<Ticket*>(&worker));
    repeat_later(worker);
  }
}

// What a call gave, and the next one.
void Fleet::take(Worker& worker) {
  if (!worker.status.ok()) {
    ++result_.failures;
    note_away(worker);
    if (worker.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) worker.registering = true;
    if (!ending_) thinking_.emplace(Clock::now() + std::chrono::milliseconds(200), &worker);
    return;
  }
  note_here(worker);
  if (worker.registering) {
    worker.registering = false;
    worker.request.set_session(worker.welcome.session());
  } else {
    take_acks(worker);
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

void Fleet::note_away(Worker& worker) {
  if (worker.away || ending_) return;
  worker.away = true;
  if (away_++ == 0) arrival_ = {.from_ms = ms_between(begun_, Clock::now())};
}

void Fleet::note_here(Worker& worker) {
  if (ending_) return;
  if (worker.registering) {
    arrival_.last_ms = ms_between(begun_, Clock::now());
    if (arrival_.registered++ == 0) arrival_.first_ms = arrival_.last_ms;
  }
  if (!worker.away) return;
  worker.away = false;
  if (--away_ == 0 && 2 * arrival_.registered >= plan_.workers) result_.arrivals.push_back(arrival_);
}

void Fleet::take_acks(Worker& worker) {
  auto* const owed = worker.request.mutable_results();
  for (const v1::Ack& ack : worker.reply.acks())
    for (int i = owed->size() - 1; i >= 0; --i) {
      if (owed->Get(i).trial_id() != ack.trial_id() || owed->Get(i).attempt() != ack.attempt()) continue;
      owed->DeleteSubrange(i, 1);
      ++result_.acknowledged;
      result_.last_ack_ms = ms_between(begun_, Clock::now());
      if (ledger_.is_open()) ledger_ << ack.trial_id() << ' ' << ack.attempt() << '\n';
    }
  if (ledger_.is_open() && worker.reply.acks_size() > 0) ledger_.flush();
}

void Fleet::repeat_later(Worker& worker) {
  if (static_cast<double>(random_() % 1'000'000) >= plan_.repeated * 1e6) return;
  repeats_.emplace(Clock::now() + std::chrono::milliseconds(random_() % kLatestRepeatMs),
                   LaterRepeat{&worker, worker.request});
}

void Fleet::repeat(const LaterRepeat& call) {
  auto owned = std::make_unique<Repeat>(*this);
  Repeat* const again = owned.get();
  repeating_[again] = std::move(owned);
  again->request = call.request;
  again->context.set_deadline(deadline());
  ++in_flight_;
  ++result_.repeated;
  again->sync = call.worker->stub->AsyncSync(&again->context, again->request, &queue_);
  again->sync->Finish(&again->reply, &again->status, static_cast<Ticket*>(again));
}

// What is due by now.
void Fleet::act(Clock::time_point now) {
  while (!thinking_.empty() && thinking_.top().first <= now) {
    Worker* const worker = thinking_.top().second;
    thinking_.pop();
    answer(*worker);
  }
  while (!repeats_.empty() && repeats_.begin()->first <= now) {
    repeat(repeats_.begin()->second);
    repeats_.erase(repeats_.begin());
  }
}

Clock::time_point Fleet::next_act(Clock::time_point otherwise) const {
  if (!thinking_.empty()) otherwise = std::min(otherwise, thinking_.top().first);
  if (!repeats_.empty()) otherwise = std::min(otherwise, repeats_.begin()->first);
  return otherwise;
}

void Fleet::answer(Worker& worker) {
  for (const auto& [id, lease] : worker.leased)
    *worker.request.add_results() = measured(lease, worker.hello.environment());
  worker.leased.clear();
  call(worker);
}

Result<WorkersResult> Fleet::run() {
  if (!plan_.ledger.empty()) {
    ledger_.open(plan_.ledger, std::ios::app);
    if (!ledger_) return failed("ledger ", plan_.ledger, ": could not be opened");
  }
  begun_ = Clock::now();
  for (int i = 0; i < plan_.workers; ++i) add_worker(i);
  away_ = plan_.workers;
  for (const std::unique_ptr<Worker>& worker : workers_) call(*worker);
  const Clock::time_point end =
      begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan_.seconds));
  while (!ending_ || in_flight_ > 0) {
    const Clock::time_point now = Clock::now();
    if (!ending_ && now >= end) {
      ending_ = true;
      for (const std::unique_ptr<Worker>& worker : workers_)
        if (worker->context != nullptr) worker->context->TryCancel();
      for (const auto& [call, owned] : repeating_) call->context.TryCancel();
    }
    if (!ending_) act(now);
    const Clock::time_point until = ending_ ? now + std::chrono::seconds(1) : next_act(end);
    void* tag = nullptr;
    bool ok = false;
    const auto wake = std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now());
    const auto got = queue_.AsyncNext(&tag, &ok, wake);
    if (got != grpc::CompletionQueue::GOT_EVENT) continue;
    --in_flight_;
    static_cast<Ticket*>(tag)->ended();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
  }
  if (ledger_.is_open() && !ledger_) return failed("ledger ", plan_.ledger, ": could not be written");
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
