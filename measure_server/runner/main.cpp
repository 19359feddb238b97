// runner: runs candidates that may do anything, and says what they did. See runner_protocol.h for what it is
// asked.
//
//   runner --serve       answers on descriptor 3 until it is closed (started by RunnerClient)
//   runner --probe       prints what this machine is and its FMA peak as JSON
//   runner --version
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "measure_server/runner/hardware.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/serve.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "--version") {
    std::printf("runner %s, harness ABI %d\n", TUNER_VERSION, tuner::kHarnessAbi);
    return 0;
  }
  if (what == "--probe") {
    tuner::ProbeReply reply;
    reply.version = TUNER_VERSION;
    reply.hardware = tuner::hardware_fingerprint();
    reply.isolation = tuner::seccomp_available() ? "seccomp" : "process";
    reply.peak_gflops = tuner::measure_peak_gflops(0);
    std::printf("%s\n", tuner::to_json(reply).c_str());
    return 0;
  }
  if (what == "--serve") {
    struct stat st;
    if (fstat(3, &st) == 0 && S_ISSOCK(st.st_mode)) return tuner::serve(3);
    std::fprintf(
        stderr,
        "runner: --serve: descriptor 3 is not a socket; this mode is for the worker and `tuner verify`\n");
    return 2;
  }
  const bool help = what == "--help";
  std::fprintf(help ? stdout : stderr,
               "usage: runner --serve | --probe | --version\n"
               "  --serve    run candidates asked for on descriptor 3 until it is closed\n"
               "  --probe    print this machine's fingerprint and FMA peak as JSON\n");
  return help ? 0 : 2;
}
