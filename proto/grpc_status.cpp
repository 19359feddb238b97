#include "proto/grpc_status.h"

namespace tuner {

grpc::Status to_grpc(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return grpc::Status::OK;
    case StatusCode::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, status.message()};
    case StatusCode::kInvalidConfig:
      return {grpc::StatusCode::INVALID_ARGUMENT, status.message()};
    case StatusCode::kNotFound:
      return {grpc::StatusCode::NOT_FOUND, status.message()};
    case StatusCode::kUnavailable:
      return {grpc::StatusCode::UNAVAILABLE, status.message()};
    case StatusCode::kDeadlineExceeded:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, status.message()};
    case StatusCode::kAborted:
      return {grpc::StatusCode::FAILED_PRECONDITION, status.message()};
    case StatusCode::kFailed:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, status.message()};
    case StatusCode::kInternal:
      return {grpc::StatusCode::INTERNAL, status.message()};
  }
  return {grpc::StatusCode::INTERNAL, status.message()};
}

Status from_grpc(const grpc::Status& status, const std::string& peer) {
  const std::string& text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return Status::ok();
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {StatusCode::kInvalidArgument, text};
    case grpc::StatusCode::NOT_FOUND:
      return {StatusCode::kNotFound, text};
    case grpc::StatusCode::UNAVAILABLE:
      return {StatusCode::kUnavailable, str(peer, ": ", text)};
    case grpc::StatusCode::CANCELLED:
      return {StatusCode::kAborted, text};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {StatusCode::kDeadlineExceeded, str(peer, ": ", text)};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {StatusCode::kAborted, text};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {StatusCode::kFailed, str(peer, ": ", kOtherVersion, ": ", text)};
    default:
      return {StatusCode::kFailed, str(peer, ": ", text)};
  }
}

}  // namespace tuner
