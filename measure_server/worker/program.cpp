// The `measure_server` executable.
#include "measure_server/worker/main.h"

int main(int argc, char** argv) { return tuner::measure_server_main(argc, argv); }
