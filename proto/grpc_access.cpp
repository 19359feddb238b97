#include "proto/grpc_access.h"

#include <grpc/support/log.h>

#include <cstdlib>

namespace tuner {
void quieten_grpc() {
  static const bool once = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  (void)once;
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const DaemonAccess& access,
                                                              grpc::ChannelArguments& arguments) {
  if (!access.tls()) return grpc::InsecureChannelCredentials();
  arguments.SetSslTargetNameOverride(kDaemonName);
  return grpc::SslCredentials({access.authority, access.key, access.certificate});
}

void add_token(const DaemonAccess& access, grpc::ClientContext& context) {
  if (!access.token.empty()) context.AddMetadata("authorization", "Bearer " + access.token);
}

}  // namespace tuner
