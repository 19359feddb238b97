#include "measure_server/runner/peer.h"

#include "measure_server/runner/frame.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

PeerWish read_wish(int socket, uint64_t id) {
  const Result<std::string> text =
      read_frame(socket, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  const Result<RunnerMessage> message =
      text.is_ok() ? parse_runner_message(*text) : Result<RunnerMessage>(text.status());
  if (!message.is_ok() || !std::holds_alternative<CancelRequest>(*message)) return PeerWish::kGone;
  return std::get<CancelRequest>(*message).id == id ? PeerWish::kCancel : PeerWish::kNothing;
}

}  // namespace tuner
