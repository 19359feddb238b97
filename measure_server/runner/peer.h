// What the other side of the runner's socket may want while a candidate runs.
#pragma once

#include <cstdint>

namespace tuner {

enum class PeerWish { kNothing, kCancel, kGone };

// Reads the message waiting on `socket`. Only a cancel of run `id` is valid. A peer that is gone or sends
// anything else counts as gone.
PeerWish read_wish(int socket, uint64_t id);

}  // namespace tuner
