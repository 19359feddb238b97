#include "tuner/daemon/door.h"

#include <spdlog/spdlog.h>

namespace tuner {
namespace {

// Sessions whose owner is known. A worker whose session is forgotten registers again; that many live workers
// are more than the gate lets in.
constexpr size_t kMostSessions = 65'536;
// As gRPC spells the peer's name in the abstract namespace.
constexpr std::string_view kScheme = "unix-abstract:";

std::string_view authorization_of(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

grpc::Status to_status(const identity::Refusal& refusal) {
  return {refusal.unknown ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::PERMISSION_DENIED,
          refusal.text()};
}

}  // namespace

grpc::Status Door::admit(const grpc::ServerContextBase& context, std::string_view method,
                         identity::Caller& caller) {
  const std::string name = context.peer();
  std::optional<transport::Peer> peer;
  if (name.starts_with(kScheme)) peer = find_peer_(std::string_view(name).substr(kScheme.size()));
  if (!peer) return {grpc::StatusCode::UNAVAILABLE, "the connection has ended"};
  identity::Refusal refusal;
  std::optional<identity::Caller> found = gatekeeper_.caller(*peer, authorization_of(context), refusal);
  if (!found || !identity::Gatekeeper::may(*found, method, refusal)) return to_status(refusal);
  caller = *std::move(found);
  return grpc::Status::OK;
}

grpc::Status Door::may_register(const identity::Caller& caller, const std::string& worker_id) {
  if (caller.may_be(worker_id)) return grpc::Status::OK;
  return {grpc::StatusCode::PERMISSION_DENIED,
          str(caller.name, " may register as ", caller.worker, " or ", caller.worker,
              ".NAME, found another name: "
              "leave --worker-id out, or begin it so")};
}

void Door::remember(const identity::Caller& caller, const std::string& session) {
  if (caller.worker.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!owners_.emplace(session, caller.worker).second) return;
  sessions_.push_back(session);
  if (sessions_.size() <= kMostSessions) return;
  owners_.erase(sessions_.front());
  sessions_.pop_front();
}

grpc::Status Door::may_use(const identity::Caller& caller, const std::string& session) {
  if (caller.worker.empty()) return grpc::Status::OK;
  const std::lock_guard lock(mutex_);
  const auto owner = owners_.find(session);
  if (owner == owners_.end())
    return {grpc::StatusCode::FAILED_PRECONDITION, "this session is unknown; register again"};
  if (owner->second == caller.worker) return grpc::Status::OK;
  spdlog::warn("{} used a session of another worker; it is not answered", caller.name);
  return {grpc::StatusCode::PERMISSION_DENIED, str("this session is not one of ", caller.name)};
}

}  // namespace tuner
