// The whole `tuner` command as a function, so that a program with its own templates can offer it too
// (examples/my_template).
#pragma once

namespace tuner::cli {

// Runs the command line and returns the exit status: 0 done, 1 failed or nothing found, 2 wrong use. Call it
// once per process.
int tuner_main(int argc, const char* const* argv);

}  // namespace tuner::cli
