// A daemon with an identity: a real server on TLS, on plain loopback and on a Unix socket, and clients of
// every kind.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "proto/grpc_access.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"
#include "tuner/identity/identity_folder.h"

namespace tuner::testing {

class GuardedDaemon {
 public:
  static constexpr int kTls = 0, kPlain = 1, kUnix = 2;

  GuardedDaemon() {
    store_ = Store::open(temporary_.file("farm.db"), Store::Mode::kWrite).value();
    CoordinatorOptions options;
    options.make_space = [](const JobRow::Task&) { return analytic_space(6); };
    options.check_task = [](const JobRow::Task& task) {
      return task.target == kAnalyticTarget ? Status::ok() : not_found("no template serves it");
    };
    coordinator_ = std::make_unique<Coordinator>(*store_, clock_, options);
    EXPECT_TRUE(coordinator_->start().is_ok());
    auto started =
        Server::start(*coordinator_, {"tls:127.0.0.1:0", "127.0.0.1:0", "unix:" + temporary_.file("socket")},
                      folder.path());
    EXPECT_TRUE(started.is_ok()) << started.message();
    server_ = std::move(started).value();
  }
  ~GuardedDaemon() {
    coordinator_->stop("test is over");
    server_->stop();
  }

  std::string address(int which = kTls) const {
    const std::string& listening = server_->addresses()[static_cast<size_t>(which)];
    return listening.starts_with("tls:") ? listening.substr(4) : listening;
  }
  // What was let in, as its credentials file says.
  static DaemonAccess access_of(const Result<identity::IdentityFolder::LetIn>& in) {
    EXPECT_TRUE(in.is_ok()) << in.message();
    return parse_credentials(in->credentials, "credentials").value();
  }
  DaemonAccess person(const std::string& name, identity::Roles roles, int days = 1) const {
    return access_of(folder.let_in_person(name, roles, "", address(), days));
  }
  DaemonAccess worker(const std::string& name, int days = 1) const {
    return access_of(folder.let_in_worker(name, address(), days));
  }
  // Who has the farm's authority and nothing else.
  DaemonAccess nobody() const { return {.address = address(), .authority = folder.authority().value()}; }

 private:
  const TemporaryFolder temporary_;

 public:
  const identity::IdentityFolder folder =
      identity::IdentityFolder::create(temporary_.file("farm.db.identity"), 30, 20).value();

 private:
  SteadyClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Server> server_;
};

inline std::shared_ptr<grpc::Channel> dial(const DaemonAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  const auto credentials = channel_credentials(access, arguments);
  return grpc::CreateCustomChannel(access.address, credentials, arguments);
}

// A call by its name, with this message.
inline grpc::Status call(const DaemonAccess& access, const std::shared_ptr<grpc::Channel>& channel,
                         const std::string& method, const google::protobuf::MessageLite* request = nullptr,
                         google::protobuf::MessageLite* reply = nullptr) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  add_token(access, context);
  const grpc::Slice bytes(request == nullptr ? "" : request->SerializeAsString());
  const grpc::ByteBuffer message(&bytes, 1);
  grpc::ByteBuffer answer;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto running = stub.PrepareUnaryCall(&context, method, message, &queue);
  running->StartCall();
  grpc::Status status;
  running->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice whole;
  if (status.ok() && reply != nullptr && answer.DumpToSingleSlice(&whole).ok()) {
    EXPECT_TRUE(reply->ParseFromArray(whole.begin(), static_cast<int>(whole.size())));
  }
  return status;
}

}  // namespace tuner::testing
