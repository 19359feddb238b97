// The whole `tuner` command as a function, so that a program with templates of its own can be it
// (examples/my_template).
#pragma once

namespace tuner::cli {

// Runs the command line and returns the exit code: 0 done, 1 failed or nothing found, 2 wrong use. Once a
// process.
int tuner_main(int argc, char** argv);

}  // namespace tuner::cli
