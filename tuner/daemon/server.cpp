#include "tuner/daemon/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "measure.grpc.pb.h"
#include "proto/grpc_status.h"
#include "tuner/daemon/call_threads.h"
#include "tuner/transport/gate.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;
constexpr std::chrono::seconds kShutdownGrace{2};
constexpr std::chrono::seconds kSlowReader{20};  // a watcher that takes nothing for so long is dropped

grpc::Status too_many(const char* what) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          std::string("the daemon has too many ") + what + " already; try again in a while"};
}

// A Sync: answered by the coordinator's desk, waits without a thread.
class SyncReactor final : public grpc::ServerUnaryReactor {
 public:
  SyncReactor(Coordinator& coordinator, const v1::SyncRequest& request, v1::SyncReply* reply)
      : coordinator_(coordinator) {
    // gRPC keeps this alive at least until the method that made it has returned.
    call_ = coordinator.sync(request, reply, [this](const Status& status) { Finish(to_grpc(status)); });
  }
  void OnCancel() override { coordinator_.cancel_sync(call_); }
  void OnDone() override { delete this; }

 private:
  Coordinator& coordinator_;
  uint64_t call_ = 0;
};

// A Watch: a thread of its own sends, one event at a time, and waits until each is taken.
class WatchReactor final : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  WatchReactor(grpc::CallbackServerContext& context, CallThreads& threads, Coordinator& coordinator,
               const v1::WatchRequest& request)
      : context_(context) {
    const auto watch = [this, &coordinator, &request] {
      const Status status = coordinator.watch(
          request, [this](const v1::JobEvent& event) { return send(event); },
          [this] { return gone_.load(); });
      Finish(to_grpc(status));
    };
    if (!threads.run_long(watch)) Finish(too_many("watchers"));
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    written_ = true;
    if (!ok) gone_ = true;
    changed_.notify_all();
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  void OnDone() override { delete this; }

 private:
  // False: the reader is gone, or takes nothing. A write that is not taken must not be followed by another.
  bool send(const v1::JobEvent& event) {
    std::unique_lock lock(mutex_);
    if (gone_) return false;
    event_ = event;
    written_ = false;
    StartWrite(&event_);
    changed_.wait_for(lock, kSlowReader, [&] { return written_ || gone_; });
    if (written_ && !gone_) return true;
    // gRPC wants the write's end before the call's; cancelled, it comes at once.
    gone_ = true;
    context_.TryCancel();
    changed_.wait(lock, [&] { return written_; });
    return false;
  }

  grpc::CallbackServerContext& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1::JobEvent event_;
  bool written_ = true;
  std::atomic<bool> gone_{false};
};

class WorkersService final : public v1::Workers::CallbackService {
 public:
  WorkersService(Coordinator& coordinator, CallThreads& threads)
      : coordinator_(coordinator), threads_(threads) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterReply* reply) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run = threads_.run_short([=, this] {
      const Status status = coordinator_.register_worker(*request, reply);
      if (status.code() == StatusCode::kAborted)
        reactor->Finish({grpc::StatusCode::ALREADY_EXISTS, status.message()});
      else
        reactor->Finish(to_grpc(status));
    });
    if (!run) reactor->Finish(too_many("calls"));
    return reactor;
  }
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext*, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    return new SyncReactor(coordinator_, *request, reply);
  }

 private:
  Coordinator& coordinator_;
  CallThreads& threads_;
};

class JobsService final : public v1::Jobs::CallbackService {
 public:
  JobsService(Coordinator& coordinator, CallThreads& threads)
      : coordinator_(coordinator), threads_(threads) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override {
    return soon(context, [=, this] { return coordinator_.submit(*request, reply); });
  }
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override {
    return new WatchReactor(*context, threads_, coordinator_, *request);
  }
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListRequest* request,
                                 v1::ListReply* reply) override {
    return soon(context, [=, this] { return coordinator_.list(*request, reply); });
  }
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) override {
    return waiting(context,
                   [=, this](const Coordinator::Cancelled&) { return coordinator_.cancel(*request, reply); });
  }
  grpc::ServerUnaryReactor* Rerun(grpc::CallbackServerContext* context, const v1::RerunRequest* request,
                                  v1::MeasureRecord* reply) override {
    return waiting(context, [=, this](const Coordinator::Cancelled& cancelled) {
      return coordinator_.rerun(*request, reply, cancelled);
    });
  }
  grpc::ServerUnaryReactor* Remeasure(grpc::CallbackServerContext* context,
                                      const v1::RemeasureRequest* request, v1::RaceResult* reply) override {
    return waiting(context, [=, this](const Coordinator::Cancelled& cancelled) {
      return coordinator_.remeasure(*request, reply, cancelled);
    });
  }
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context, const v1::ListWorkersRequest*,
                                        v1::ListWorkersReply* reply) override {
    return soon(context, [=, this] { return coordinator_.list_workers(reply); });
  }
  grpc::ServerUnaryReactor* Query(grpc::CallbackServerContext* context, const v1::QueryRequest* request,
                                  v1::QueryReply* reply) override {
    return soon(context, [=, this] { return coordinator_.query(*request, reply); });
  }
  grpc::ServerUnaryReactor* ReadJobFile(grpc::CallbackServerContext* context,
                                        const v1::ReadJobFileRequest* request,
                                        v1::ReadJobFileReply* reply) override {
    return soon(context, [=, this] { return coordinator_.read_job_file(*request, reply); });
  }

 private:
  // Runs a call that blocks briefly, for the disk.
  template <class Call>
  grpc::ServerUnaryReactor* soon(grpc::CallbackServerContext* context, Call call) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (!threads_.run_short([=] { reactor->Finish(to_grpc(call())); })) reactor->Finish(too_many("calls"));
    return reactor;
  }
  // Runs a call that waits for workers.
  template <class Call>
  grpc::ServerUnaryReactor* waiting(grpc::CallbackServerContext* context, Call call) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run =
        threads_.run_long([=] { reactor->Finish(to_grpc(call([=] { return context->IsCancelled(); }))); });
    if (!run) reactor->Finish(too_many("calls that wait"));
    return reactor;
  }

  Coordinator& coordinator_;
  CallThreads& threads_;
};

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(Coordinator& coordinator)
      : threads_({}), workers_(coordinator, threads_), jobs_(coordinator, threads_) {}
  ~GrpcServer() override { stop(); }

  Status listen(const std::vector<std::string>& addresses) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    // A dead peer is noticed after six seconds; its leases then run out within their TTL.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 4'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
    using Door = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Door::FROM_FD,
                                                                     grpc::InsecureServerCredentials());
    builder.RegisterService(&workers_);
    builder.RegisterService(&jobs_);
    for (const std::string& address : addresses) RETURN_IF_ERROR(check_listen_address(address));
    grpc::EnableDefaultHealthCheckService(true);  // for this process
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return failed("the server does not start: gRPC has logged why");
    set_serving(true);
    ASSIGN_OR_RETURN(gate_, transport::Gate::start(addresses, [this](int fd) {
                       grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
                       connection.listener_fd = -1;
                       connection.fd = fd;
                       acceptor_->HandleNewConnection(&connection);
                     }));
    return Status::ok();
  }

  const std::vector<std::string>& addresses() const override { return gate_->addresses(); }

  void set_serving(bool serving) override {
    if (server_ == nullptr || server_->GetHealthCheckService() == nullptr) return;
    server_->GetHealthCheckService()->SetServingStatus(serving);  // of all services known to it, and of ""
    for (const char* service : {"tuner.v1.Workers", "tuner.v1.Jobs"})
      server_->GetHealthCheckService()->SetServingStatus(service, serving);
  }
  transport::GateStats gate_stats() const override { return gate_->stats(); }
  void stop_listening() override { gate_->stop_listening(); }

  void stop() override {
    if (server_ == nullptr) return;
    if (gate_) gate_->stop_listening();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
    threads_.join();
    if (gate_) gate_->stop();
    server_.reset();
  }

 private:
  CallThreads threads_;
  WorkersService workers_;
  JobsService jobs_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<transport::Gate> gate_;  // in front of it: all connections come through here
};

}  // namespace

Status check_listen_address(const std::string& address) {
  if (address.starts_with("unix:")) {
    if (address.size() - 5 >= 108)
      return invalid_argument("listen ", address, ": the path has ", address.size() - 5,
                              " bytes, a socket's has at most 107");
    return Status::ok();
  }
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (colon == std::string::npos || colon == 0 || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535)
    return invalid_argument("listen ", address, ": expected HOST:PORT or unix:/path, as 127.0.0.1:7070");
  const std::string host = address.substr(0, colon);
  const bool loopback =
      host == "localhost" || host == "[::1]" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
  if (!loopback)
    return invalid_argument("listen ", address,
                            ": only loopback (127.0.0.1, [::1], localhost) is served without TLS: whoever "
                            "reaches the daemon can run code on its workers. From elsewhere: ssh -L ",
                            port, ":127.0.0.1:", port);
  return Status::ok();
}

Result<std::unique_ptr<Server>> Server::start(Coordinator& coordinator,
                                              const std::vector<std::string>& addresses) {
  auto server = std::make_unique<GrpcServer>(coordinator);
  RETURN_IF_ERROR(server->listen(addresses));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace tuner
