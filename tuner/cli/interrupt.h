// Interrupt: Ctrl-C (and SIGTERM) once asks a command to stop in order; a second time ends it at once.
#pragma once

namespace tuner::cli {

// Installs the handlers. Call before threads start.
void catch_interrupts();
// Whether the first one came. Any thread.
bool interrupted();

}  // namespace tuner::cli
