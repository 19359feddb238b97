// Interrupt: the first Ctrl-C (or SIGTERM) asks a command to stop in order; the second ends it at once.
#pragma once

namespace tuner {

// Installs the handlers. Call before threads start.
void catch_interrupts();
// Returns true after the first signal. Any thread may call it.
bool interrupted();

}  // namespace tuner
