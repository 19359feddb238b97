// Converts between Status and grpc::Status, for the daemon and its clients.
#pragma once

#include <grpcpp/support/status.h>

#include "compiler_core/base/status.h"

namespace tuner {

// What a message says of a daemon that does not know a call.
inline constexpr std::string_view kOtherVersion = "is no tuner daemon of this version";

grpc::Status to_grpc(const Status& status);
// `peer` names who should have answered, for the message about a broken connection.
Status from_grpc(const grpc::Status& status, const std::string& peer);

}  // namespace tuner
