#include "proto/health_check.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "proto/grpc_access.h"
#include "proto/grpc_status.h"

namespace tuner {
namespace {

// HealthCheckResponse has one field, an enumeration: 1, `status`, of which 1 is SERVING.
constexpr int kStatusField = 1;
constexpr uint64_t kServing = 1;

Result<bool> is_serving(const grpc::ByteBuffer& reply, const std::string& address) {
  grpc::Slice bytes;
  google::protobuf::UnknownFieldSet fields;
  if (!reply.DumpToSingleSlice(&bytes).ok() ||
      !fields.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())))
    return failed(address, ": expected an answer of the health service, found other bytes");
  uint64_t status = 0;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == kStatusField &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
      status = fields.field(i).varint();
  return status == kServing;
}

}  // namespace

Result<bool> check_health(const DaemonAccess& daemon, int64_t limit_ms) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new connection
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const std::shared_ptr<grpc::ChannelCredentials> credentials = channel_credentials(daemon, arguments);
  grpc::GenericStub stub(grpc::CreateCustomChannel(daemon.address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(limit_ms));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;  // a HealthCheckRequest without a service: the whole daemon
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // within the deadline
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (daemon.tls() && is_distrusted(status.error_message()))
    return invalid_argument(daemon.address, ": ", status.error_message());
  RETURN_IF_ERROR(from_grpc(status, daemon.address));
  return is_serving(reply, daemon.address);
}

}  // namespace tuner
