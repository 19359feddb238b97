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

bool is_distrusted(std::string_view words) {
  const auto has = [&](std::string_view part) { return words.find(part) != std::string_view::npos; };
  return has("certificate verify failed") || has("is not in peer certificate");
}

std::string tls_trouble(const DaemonAccess& access, std::string_view words) {
  const auto has = [&](std::string_view part) { return words.find(part) != std::string_view::npos; };
  // One that was made and broke says nothing of TLS.
  if (!has("failed to connect")) return "";
  // A daemon closes a connection that begins with what it does not speak; other servers answer, and TLS
  // cannot read it.
  const bool closed = has("Socket closed") || has("wrong version number") || has("packet length too long");
  if (!access.tls())
    return closed ? "who listens there may ask for TLS: give a credentials file, not an address" : "";
  if (is_distrusted(words)) return "who listens there is no daemon that this credentials file vouches for";
  return closed ? "who listens there ends the TLS handshake: it may not speak TLS" : "";
}

void add_token(const DaemonAccess& access, grpc::ClientContext& context) {
  if (!access.token.empty()) context.AddMetadata("authorization", "Bearer " + access.token);
}

}  // namespace tuner
