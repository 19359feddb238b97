// runner: runs candidates that may do anything, and says what they did. See runner_protocol.h for what it is
// asked.
//
//   runner --serve       answers on descriptor 3 until it is closed (started by RunnerClient)
//   runner --probe       prints what this machine is, its FMA peak and its GPUs as JSON
//   runner --version
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "measure_server/runner/device_child.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/hardware.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/serve.h"

namespace {

bool is_socket(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

// What the runner starts of itself; not for people. -1: none of these.
int device_process(int argc, char** argv) {
  const std::string_view what = argc >= 2 ? argv[1] : "";
  if (what == "--device-list" && argc == 2 && is_socket(3)) return tuner::device_list(3);
  if (what == "--device-child" && argc == 3 && is_socket(3))
    return tuner::device_child(3, std::atoi(argv[2]));
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (const int status = device_process(argc, argv); status >= 0) return status;
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
    tuner::DeviceHost::list_devices(reply);
    std::printf("%s\n", tuner::to_json(reply).c_str());
    return 0;
  }
  if (what == "--serve") {
    if (is_socket(3)) return tuner::serve(3);
    std::fprintf(
        stderr,
        "runner: --serve: descriptor 3 is not a socket; this mode is for the worker and `tuner verify`\n");
    return 2;
  }
  const bool help = what == "--help";
  std::fprintf(help ? stdout : stderr,
               "usage: runner --serve | --probe | --version\n"
               "  --serve    run candidates asked for on descriptor 3 until it is closed\n"
               "  --probe    print this machine's fingerprint, FMA peak and GPUs as JSON\n");
  return help ? 0 : 2;
}
