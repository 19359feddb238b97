// What the other side of the runner's socket wants while a candidate runs.
#pragma once

#include <cstdint>

namespace tuner {

enum class PeerWish { kNothing, kCancel, kGone };

// Reads the message that is waiting on `socket`. Only the cancel of run `id` makes sense; a peer that is gone
// or talks nonsense ends everything.
PeerWish read_wish(int socket, uint64_t id);

}  // namespace tuner
