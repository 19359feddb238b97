// The runner's loop: answers one message at a time, one candidate at a time, until the other side closes the
// socket.
#pragma once

#include "measure_server/runner/isolation.h"

namespace tuner {

// Candidates get the highest level of isolation to be had here, but none above `at_most`. Returns the exit
// status: 0 if the peer closed the socket, 1 if the socket failed.
int serve(int socket, Isolation at_most);

}  // namespace tuner
