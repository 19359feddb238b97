#include "tuner/daemon/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <utility>

#include "measure.grpc.pb.h"
#include "proto/grpc_status.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;
constexpr int kMaxThreads = 2048;  // waiting calls; beyond it callers get RESOURCE_EXHAUSTED
constexpr std::chrono::seconds kShutdownGrace{2};

class WorkersService final : public v1::Workers::Service {
 public:
  explicit WorkersService(Coordinator& coordinator) : coordinator_(coordinator) {}
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    return to_grpc(coordinator_.register_worker(*request, reply));
  }
  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    return to_grpc(coordinator_.sync(*request, reply, [context] { return context->IsCancelled(); }));
  }

 private:
  Coordinator& coordinator_;
};

class JobsService final : public v1::Jobs::Service {
 public:
  explicit JobsService(Coordinator& coordinator) : coordinator_(coordinator) {}
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitReply* reply) override {
    return to_grpc(coordinator_.submit(*request, reply));
  }
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::JobEvent>* writer) override {
    return to_grpc(coordinator_.watch(
        *request, [writer](const v1::JobEvent& event) { return writer->Write(event); },
        [context] { return context->IsCancelled(); }));
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListRequest*, v1::ListReply* reply) override {
    return to_grpc(coordinator_.list(reply));
  }
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                      v1::CancelReply* reply) override {
    return to_grpc(coordinator_.cancel(*request, reply));
  }
  grpc::Status Rerun(grpc::ServerContext* context, const v1::RerunRequest* request,
                     v1::MeasureRecord* reply) override {
    return to_grpc(coordinator_.rerun(*request, reply, [context] { return context->IsCancelled(); }));
  }
  grpc::Status Remeasure(grpc::ServerContext* context, const v1::RemeasureRequest* request,
                         v1::RaceResult* reply) override {
    return to_grpc(coordinator_.remeasure(*request, reply, [context] { return context->IsCancelled(); }));
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersReply* reply) override {
    return to_grpc(coordinator_.list_workers(reply));
  }
  grpc::Status Query(grpc::ServerContext*, const v1::QueryRequest* request, v1::QueryReply* reply) override {
    return to_grpc(coordinator_.query(*request, reply));
  }
  grpc::Status ReadJobFile(grpc::ServerContext*, const v1::ReadJobFileRequest* request,
                           v1::ReadJobFileReply* reply) override {
    return to_grpc(coordinator_.read_job_file(*request, reply));
  }

 private:
  Coordinator& coordinator_;
};

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(Coordinator& coordinator) : workers_(coordinator), jobs_(coordinator) {}
  ~GrpcServer() override { stop(); }

  Status listen(const std::vector<std::string>& addresses) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument("grpc.server_handshake_timeout_ms", 3000);  // a silent peer is dropped
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second daemon on the port must fail
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    grpc::ResourceQuota quota("daemon");
    quota.SetMaxThreads(kMaxThreads);
    builder.SetResourceQuota(quota);
    std::vector<int> ports(addresses.size(), 0);
    for (size_t i = 0; i < addresses.size(); ++i) {
      RETURN_IF_ERROR(check_listen_address(addresses[i]));
      builder.AddListeningPort(addresses[i], grpc::InsecureServerCredentials(), &ports[i]);
    }
    builder.RegisterService(&workers_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (server_ == nullptr || ports[i] == 0)
        return failed("listen ", addresses[i],
                      ": it could not be bound. Is another daemon there, or is the name wrong?");
      const bool is_unix = addresses[i].starts_with("unix:");
      addresses_.push_back(is_unix ? addresses[i]
                                   : str(addresses[i].substr(0, addresses[i].rfind(':') + 1), ports[i]));
    }
    return Status::ok();
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

  void stop() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
    server_.reset();
  }

 private:
  WorkersService workers_;
  JobsService jobs_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
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
