// DaemonAccess on the wire of gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "proto/daemon_access.h"

namespace tuner {

// Adds to the arguments what a channel to the daemon needs, and returns its credentials: plain, or TLS by
// which both sides know each other. Over TLS the daemon is known by its certificate, whatever name or address
// it is dialled by.
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const DaemonAccess& access,
                                                              grpc::ChannelArguments& arguments);
// gRPC writes a line to stderr for each handshake that fails. For programs of ours, whose own messages say
// it: no more lines of gRPC in this process, unless GRPC_VERBOSITY in the environment asks for them.
void quieten_grpc();
// What gRPC's words for a connection that cannot be made tell of TLS; empty: nothing.
std::string tls_trouble(const DaemonAccess& access, std::string_view words);
// True if gRPC's words say that who listens showed a certificate that the caller's authority does not vouch
// for, or that has ended. gRPC has the same code for it as for a closed port.
bool is_distrusted(std::string_view words);
// Puts the token, if there is one, into a call.
void add_token(const DaemonAccess& access, grpc::ClientContext& context);

}  // namespace tuner
