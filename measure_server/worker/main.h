// The whole `measure_server` command as a function, so that a program with templates of its own can be it
// (examples/my_template).
#pragma once

namespace tuner {

// Runs the command line and returns the exit code. Once a process.
int measure_server_main(int argc, char** argv);

}  // namespace tuner
