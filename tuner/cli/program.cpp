// The `tuner` executable.
#include "tuner/cli/main.h"

int main(int argc, char** argv) { return tuner::cli::tuner_main(argc, argv); }
