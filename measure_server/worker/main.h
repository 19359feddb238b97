// The whole `measure_server` command as a function, so that a program with its own templates can offer it too
// (examples/my_template).
#pragma once

namespace tuner {

// Runs the command line and returns the exit status. Call it once per process.
int measure_server_main(int argc, char** argv);

}  // namespace tuner
