#include "tuner/daemon/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <latch>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "build.grpc.pb.h"
#include "measure.grpc.pb.h"
#include "proto/grpc_access.h"
#include "proto/grpc_status.h"
#include "tuner/daemon/call_threads.h"
#include "tuner/daemon/door.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/edge/prune_call.h"
#include "tuner/daemon/identity_watch.h"
#include "tuner/transport/gate.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

// What callers may send: a job of 4,096 tasks has 1.2 MiB, the 64 results of a Sync some hundred KiB. What is
// sent to them: lists of jobs.
constexpr int kMostReceived = 4 << 20, kMostSent = 16 << 20;
constexpr size_t kHeavyBytes = 64 << 10;  // a longer message is a heavy call
// Workers on the list: of one certificate or token, and of one connection of somebody without, which carries
// 100 calls.
constexpr size_t kMostOfCredentials = 1'024, kMostOfConnection = 128;
constexpr std::chrono::seconds kShutdownGrace{2};
constexpr std::chrono::seconds kSlowReader{20};  // a watcher that takes nothing for so long is dropped

grpc::Status too_many(const char* what) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          std::string("the daemon has too many ") + what + " already; try again in a while"};
}

// The answer of a call; where the process may have no more memory (ulimit -v), a refusal of this call alone.
template <class Call>
grpc::Status within_memory(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "the daemon has no memory left for this call; try again in a while, with less at once"};
  }
}

using identity::Caller;

// A call that is not answered.
grpc::ServerUnaryReactor* refused(grpc::CallbackServerContext& context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}
class RefusedWatch final : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  explicit RefusedWatch(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

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
               const v1::WatchRequest& request, const Scope& scope)
      : context_(context) {
    const auto watch = [this, &coordinator, &request, scope] {
      const Status status = coordinator.watch(
          request, [this](const v1::JobEvent& event) { return send(event); }, [this] { return gone_.load(); },
          scope);
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
  WorkersService(Coordinator& coordinator, Door& door, CallThreads& threads)
      : coordinator_(coordinator), door_(door), threads_(threads) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterReply* reply) override {
    Caller caller;
    grpc::Status admitted = door_.admit(*context, "/tuner.v1.Workers/Register", caller);
    if (admitted.ok()) admitted = Door::may_register(caller, request->worker_id());
    if (!admitted.ok()) return refused(*context, admitted);
    const Workers::Registrar registrar =
        caller.worker.empty() ? Workers::Registrar{"this connection " + context->peer(), kMostOfConnection}
                              : Workers::Registrar{caller.name, kMostOfCredentials};
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run = threads_.run_short([=, this] {
      const Status status = coordinator_.register_worker(*request, reply, registrar);
      if (status) door_.remember(caller, reply->session());
      if (status.code() == StatusCode::kAborted)
        reactor->Finish({grpc::StatusCode::ALREADY_EXISTS, status.message()});
      else
        reactor->Finish(to_grpc(status));
    });
    if (!run) reactor->Finish(too_many("calls"));
    return reactor;
  }
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    Caller caller;
    grpc::Status admitted = door_.admit(*context, "/tuner.v1.Workers/Sync", caller);
    if (admitted.ok()) admitted = door_.may_use(caller, request->session());
    if (!admitted.ok()) return refused(*context, admitted);
    return new SyncReactor(coordinator_, *request, reply);
  }

 private:
  Coordinator& coordinator_;
  Door& door_;
  CallThreads& threads_;
};

// Bytes of artifacts, to runners and from builders; each call is short.
class BlobsService final : public v1::Blobs::CallbackService {
 public:
  BlobsService(Coordinator& coordinator, Door& door, CallThreads& threads)
      : coordinator_(coordinator), door_(door), threads_(threads) {}

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* context, const v1::ReadBlobRequest* request,
                                 v1::ReadBlobReply* reply) override {
    return soon(context, "/tuner.v1.Blobs/Read", request->session(),
                [=, this] { return coordinator_.read_blob(*request, reply); });
  }
  grpc::ServerUnaryReactor* Write(grpc::CallbackServerContext* context, const v1::WriteBlobRequest* request,
                                  v1::WriteBlobReply* reply) override {
    return soon(context, "/tuner.v1.Blobs/Write", request->session(),
                [=, this] { return coordinator_.write_blob(*request, reply); });
  }

 private:
  template <class Call>
  grpc::ServerUnaryReactor* soon(grpc::CallbackServerContext* context, std::string_view method,
                                 const std::string& session, Call call) {
    Caller caller;
    grpc::Status admitted = door_.admit(*context, method, caller);
    if (admitted.ok()) admitted = door_.may_use(caller, session);
    if (!admitted.ok()) return refused(*context, admitted);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run = threads_.run_short([=] {
      const Status status = call();
      // The caller may not have it, whatever he tries: that is no trouble of the moment.
      if (status.code() == StatusCode::kUnavailable)
        reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, status.message()});
      else
        reactor->Finish(to_grpc(status));
    });
    if (!run) reactor->Finish(too_many("calls"));
    return reactor;
  }

  Coordinator& coordinator_;
  Door& door_;
  CallThreads& threads_;
};

class JobsService final : public v1::Jobs::CallbackService {
 public:
  JobsService(Coordinator& coordinator, Door& door, CallThreads& threads)
      : coordinator_(coordinator), door_(door), threads_(threads) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override {
    const auto call = [=, this](const Caller& caller) {
      return coordinator_.submit(*request, reply, caller.tenant);
    };
    return soon(context, "/tuner.v1.Jobs/Submit", call, request->ByteSizeLong());
  }
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override {
    Caller caller;
    if (const grpc::Status s = door_.admit(*context, "/tuner.v1.Jobs/Watch", caller); !s.ok())
      return new RefusedWatch(s);
    return new WatchReactor(*context, threads_, coordinator_, *request, caller.tenant);
  }
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListRequest* request,
                                 v1::ListReply* reply) override {
    const auto call = [=, this](const Caller& caller) {
      return coordinator_.list(*request, reply, caller.tenant);
    };
    // From the database, not from memory: as long as it has jobs.
    return soon(context, "/tuner.v1.Jobs/List", call,
                request->known() ? request->ByteSizeLong() : kHeavyBytes + request->ByteSizeLong());
  }
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) override {
    return waiting(context, "/tuner.v1.Jobs/Cancel",
                   [=, this](const Caller& caller, const Coordinator::Cancelled&) {
                     return coordinator_.cancel(*request, reply, caller.tenant);
                   });
  }
  grpc::ServerUnaryReactor* Rerun(grpc::CallbackServerContext* context, const v1::RerunRequest* request,
                                  v1::MeasureRecord* reply) override {
    return waiting(context, "/tuner.v1.Jobs/Rerun",
                   [=, this](const Caller& caller, const Coordinator::Cancelled& cancelled) {
                     return coordinator_.rerun(*request, reply, cancelled, caller.tenant);
                   });
  }
  grpc::ServerUnaryReactor* Remeasure(grpc::CallbackServerContext* context,
                                      const v1::RemeasureRequest* request, v1::RaceResult* reply) override {
    return waiting(context, "/tuner.v1.Jobs/Remeasure",
                   [=, this](const Caller& caller, const Coordinator::Cancelled& cancelled) {
                     return coordinator_.remeasure(*request, reply, cancelled, caller.tenant);
                   });
  }
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context, const v1::ListWorkersRequest*,
                                        v1::ListWorkersReply* reply) override {
    return soon(context, "/tuner.v1.Jobs/ListWorkers",
                [=, this](const Caller&) { return coordinator_.list_workers(reply); });
  }
  grpc::ServerUnaryReactor* Query(grpc::CallbackServerContext* context, const v1::QueryRequest* request,
                                  v1::QueryReply* reply) override {
    return soon(
        context, "/tuner.v1.Jobs/Query",
        [=, this](const Caller&) { return coordinator_.answers().query(*request, reply); },
        request->ByteSizeLong());
  }
  grpc::ServerUnaryReactor* ReadJobFile(grpc::CallbackServerContext* context,
                                        const v1::ReadJobFileRequest* request,
                                        v1::ReadJobFileReply* reply) override {
    return soon(
        context, "/tuner.v1.Jobs/ReadJobFile",
        [=, this](const Caller&) { return coordinator_.read_job_file(*request, reply); },
        request->ByteSizeLong());
  }
  // Both read up to thousands of rows, so they are heavy calls: few at a time.
  grpc::ServerUnaryReactor* Records(grpc::CallbackServerContext* context, const v1::RecordsRequest* request,
                                    v1::RecordsReply* reply) override {
    const auto call = [=, this](const Caller& caller) {
      return coordinator_.answers().records(*request, caller.tenant, reply);
    };
    return soon(context, "/tuner.v1.Jobs/Records", call, kHeavyBytes + request->ByteSizeLong());
  }
  grpc::ServerUnaryReactor* Races(grpc::CallbackServerContext* context, const v1::RacesRequest* request,
                                  v1::RacesReply* reply) override {
    const auto call = [=, this](const Caller& caller) {
      return coordinator_.answers().races(*request, caller.tenant, reply);
    };
    return soon(context, "/tuner.v1.Jobs/Races", call, kHeavyBytes + request->ByteSizeLong());
  }

 private:
  // Runs a call that blocks briefly, for the disk. `bytes`: of its request; many make it a heavy one.
  template <class Call>
  grpc::ServerUnaryReactor* soon(grpc::CallbackServerContext* context, std::string_view method, Call call,
                                 size_t bytes = 0) {
    Caller caller;
    if (const grpc::Status s = door_.admit(*context, method, caller); !s.ok()) return refused(*context, s);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto run = [=] { reactor->Finish(within_memory([&] { return to_grpc(call(caller)); })); };
    if (bytes > kHeavyBytes ? !threads_.run_heavy(run, bytes) : !threads_.run_short(run))
      reactor->Finish(too_many(bytes > kHeavyBytes ? "large calls" : "calls"));
    return reactor;
  }
  // Runs a call that waits for workers.
  template <class Call>
  grpc::ServerUnaryReactor* waiting(grpc::CallbackServerContext* context, std::string_view method,
                                    Call call) {
    Caller caller;
    if (const grpc::Status s = door_.admit(*context, method, caller); !s.ok()) return refused(*context, s);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run = threads_.run_long(
        [=] { reactor->Finish(to_grpc(call(caller, [=] { return context->IsCancelled(); }))); });
    if (!run) reactor->Finish(too_many("calls that wait"));
    return reactor;
  }

  Coordinator& coordinator_;
  Door& door_;
  CallThreads& threads_;
};

class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(Coordinator& coordinator, Store* store, Door& door, CallThreads& threads)
      : coordinator_(coordinator), store_(store), door_(door), threads_(threads) {}

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainReply* reply) override {
    Caller caller;
    if (const grpc::Status s = door_.admit(*context, "/tuner.v1.Admin/Drain", caller); !s.ok())
      return refused(*context, s);
    spdlog::info("audit: {} drains worker {}", caller.name, shown(request->worker_id()));
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(to_grpc(coordinator_.drain(*request, reply)));
    return reactor;
  }
  grpc::ServerUnaryReactor* Prune(grpc::CallbackServerContext* context, const v1::PruneRequest* request,
                                  v1::PruneReply* reply) override {
    Caller caller;
    if (const grpc::Status s = door_.admit(*context, "/tuner.v1.Admin/Prune", caller); !s.ok())
      return refused(*context, s);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool run = threads_.run_short([this, request, reply, reactor, name = caller.name] {
      const Status pruned =
          store_ != nullptr ? prune_records(*store_, *request, reply) : failed("this daemon does not prune");
      if (pruned && reply->records() > 0)
        spdlog::info("audit: {} prunes {} records of {}", name, reply->records(),
                     shown(request->task().workload_key()));
      reactor->Finish(to_grpc(pruned));
    });
    if (!run) reactor->Finish(too_many("calls"));
    return reactor;
  }

 private:
  Coordinator& coordinator_;
  Store* const store_;
  Door& door_;
  CallThreads& threads_;
};

class GrpcServer final : public Server {
 public:
  GrpcServer(Coordinator& coordinator, const std::string& identity, Store* store)
      : coordinator_(coordinator),
        gatekeeper_(identity, [] { return static_cast<int64_t>(std::time(nullptr)); }),
        door_(gatekeeper_, [this](std::string_view name) { return peer(name); }),
        threads_({}),
        workers_(coordinator, door_, threads_),
        blobs_(coordinator, door_, threads_),
        jobs_(coordinator, door_, threads_),
        admin_(coordinator, store, door_, threads_) {}
  ~GrpcServer() override { stop(); }

  Status listen(const std::vector<std::string>& addresses) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMostReceived);
    builder.SetMaxSendMessageSize(kMostSent);
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
    builder.RegisterService(&blobs_);
    builder.RegisterService(&jobs_);
    builder.RegisterService(&admin_);
    for (const std::string& address : addresses) RETURN_IF_ERROR(check_listen_address(address));
    RETURN_IF_ERROR(follow_identity(addresses));
    grpc::EnableDefaultHealthCheckService(true);  // for this process
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return failed("the server does not start: gRPC has logged why");
    // What it would write of a handshake of this daemon's own probe is in the log's words, once.
    quieten_grpc();
    set_serving(true);
    const auto hand_over = [this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.listener_fd = -1;
      connection.fd = fd;
      acceptor_->HandleNewConnection(&connection);
    };
    Result<std::unique_ptr<transport::Gate>> gate =
        transport::Gate::start(addresses, hand_over, {}, tls_.get());
    const Status started = gate.status();
    if (started) gate_ = *std::move(gate);
    gate_known_.count_down();
    if (started && tls_ != nullptr) identity_watch_.emplace(gatekeeper_);
    return started;
  }

  const std::vector<std::string>& addresses() const override { return gate_->addresses(); }

  Result<DaemonAccess> own_access() const override {
    DaemonAccess access{.address = gate_->addresses()[0]};
    if (!first_is_tls_) return access;
    ASSIGN_OR_RETURN(access.authority, gatekeeper_.authority());
    return access;
  }

  void set_serving(bool serving) override {
    if (server_ == nullptr || server_->GetHealthCheckService() == nullptr) return;
    server_->GetHealthCheckService()->SetServingStatus(serving);  // of all services known to it, and of ""
    for (const char* service : {"tuner.v1.Workers", "tuner.v1.Blobs", "tuner.v1.Jobs", "tuner.v1.Admin"})
      server_->GetHealthCheckService()->SetServingStatus(service, serving);
  }
  transport::GateStats gate_stats() const override { return gate_->stats(); }
  void stop_listening() override { gate_->stop_listening(); }

  void stop() override {
    if (server_ == nullptr) return;
    identity_watch_.reset();
    if (gate_) gate_->stop_listening();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
    threads_.join();
    if (gate_) gate_->stop();
    server_.reset();
  }

 private:
  Result<transport::TlsMaterial> tls_material() const {
    transport::TlsMaterial material;
    ASSIGN_OR_RETURN(identity::KeyAndCertificate daemon, gatekeeper_.daemon_certificate());
    ASSIGN_OR_RETURN(material.authority, gatekeeper_.authority());
    material.certificate = std::move(daemon.certificate);
    material.key = std::move(daemon.key);
    return material;
  }

  // What the identity says, now and whenever it changes.
  Status follow_identity(const std::vector<std::string>& addresses) {
    RETURN_IF_ERROR(prepare_tls(addresses));
    coordinator_.set_shares(gatekeeper_.shares());
    gatekeeper_.on_change([this] {
      coordinator_.set_shares(gatekeeper_.shares());
      if (tls_ != nullptr) renew_tls();
    });
    return Status::ok();
  }

  void renew_tls() {
    const Result<transport::TlsMaterial> fresh = tls_material();
    const Status renewed = fresh ? tls_->renew(*fresh) : fresh.status();
    if (!renewed)
      spdlog::error("identity: {}; new connections get the certificate of before", renewed.message());
  }

  Status prepare_tls(const std::vector<std::string>& addresses) {
    const auto wants_tls = [](const std::string& address) { return address.starts_with("tls:"); };
    first_is_tls_ = wants_tls(addresses.front());
    if (std::none_of(addresses.begin(), addresses.end(), wants_tls)) return Status::ok();
    ASSIGN_OR_RETURN(const transport::TlsMaterial material, tls_material());
    ASSIGN_OR_RETURN(tls_, transport::TlsServer::create(material));
    return Status::ok();
  }

  // The first calls may come before the gate's start has returned.
  std::optional<transport::Peer> peer(std::string_view name) const {
    gate_known_.wait();
    return gate_ ? gate_->peer(name) : std::nullopt;
  }

  Coordinator& coordinator_;
  identity::Gatekeeper gatekeeper_;
  Door door_;
  CallThreads threads_;
  WorkersService workers_;
  BlobsService blobs_;
  JobsService jobs_;
  AdminService admin_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<transport::TlsServer> tls_;  // null: no address wants it
  bool first_is_tls_ = false;
  std::latch gate_known_{1};
  std::unique_ptr<transport::Gate> gate_;  // in front of it: all connections come through here
  std::optional<IdentityWatch> identity_watch_;
};

}  // namespace

namespace {

// HOST:PORT.
struct HostPort {
  std::string host, port;
  bool is_loopback() const {
    return host == "localhost" || host == "[::1]" ||
           (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
  }
};

Result<HostPort> parse_host_port(const std::string& address, const std::string& whole, const char* expected) {
  const size_t colon = address.rfind(':');
  HostPort parts{address.substr(0, colon), colon == std::string::npos ? "" : address.substr(colon + 1)};
  if (parts.host.empty() || parts.port.empty() || parts.port.size() > 5 ||
      parts.port.find_first_not_of("0123456789") != std::string::npos || std::stoi(parts.port) > 65535)
    return invalid_argument("listen ", whole, ": expected ", expected, ", as 127.0.0.1:7070");
  return parts;
}

}  // namespace

Status check_listen_address(const std::string& address) {
  if (address.starts_with("unix:")) {
    if (address.size() - 5 >= 108)
      return invalid_argument("listen ", address, ": the path has ", address.size() - 5,
                              " bytes, a socket's has at most 107");
    return Status::ok();
  }
  constexpr char kExpected[] = "HOST:PORT, tls:HOST:PORT or unix:/path";
  const bool tls = address.starts_with("tls:");
  ASSIGN_OR_RETURN(const HostPort parts,
                   parse_host_port(tls ? address.substr(4) : address, address, kExpected));
  if (!tls && !parts.is_loopback())
    return invalid_argument("listen ", address,
                            ": only loopback (127.0.0.1, [::1], localhost) is served without TLS: whoever "
                            "reaches the daemon can run code on its workers. With it: `tuner admin ca`, then "
                            "--listen tls:",
                            address);
  return Status::ok();
}

Status check_pages_address(const std::string& address) {
  const bool tls = address.starts_with("tls:");
  ASSIGN_OR_RETURN(const HostPort parts,
                   parse_host_port(tls ? address.substr(4) : address, address, "HOST:PORT or tls:HOST:PORT"));
  if (tls || parts.is_loopback()) return Status::ok();
  return invalid_argument("listen ", address,
                          ": expected HOST:PORT on loopback (127.0.0.1, [::1], localhost): what is "
                          "shown there is plain text, for everybody. From elsewhere: ssh -L ",
                          parts.port, ":127.0.0.1:", parts.port,
                          ". For callers with a token: `tuner admin ca`, then tls:", address);
}

Result<std::unique_ptr<Server>> Server::start(Coordinator& coordinator,
                                              const std::vector<std::string>& addresses,
                                              const std::string& identity, Store* store) {
  auto server = std::make_unique<GrpcServer>(coordinator, identity, store);
  RETURN_IF_ERROR(server->listen(addresses));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace tuner
