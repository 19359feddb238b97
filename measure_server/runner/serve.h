// The runner's loop: answers one message at a time, one candidate at a time, until the other side closes the
// socket.
#pragma once

namespace tuner {

// Returns the exit status: 0 if the peer closed the socket, 1 if the socket failed.
int serve(int socket);

}  // namespace tuner
