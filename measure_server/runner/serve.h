// The runner's loop: a message in, an answer out, one candidate at a time, until the other side closes the
// socket.
#pragma once

namespace tuner {

// Exit status: 0 when the peer closed, 1 when the socket failed.
int serve(int socket);

}  // namespace tuner
