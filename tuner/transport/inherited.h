// Listening sockets that a service manager has opened for this process (systemd's socket activation).
#pragma once

#include <sys/socket.h>

namespace tuner::transport {

// Returns the inherited TCP socket that listens on that address, and hands its ownership over; -1: there is
// none. It does not block and is not passed on to children.
int take_inherited(const sockaddr* address);

}  // namespace tuner::transport
