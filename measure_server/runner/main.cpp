// runner: runs candidates that may do anything, and says what they did. See runner_protocol.h for what it is
// asked.
//
//   runner --serve [--isolation LEVEL]
//                        answers on descriptor 3 until it is closed (started by RunnerClient); candidates get
//                        at most this level of isolation
//   runner --probe       prints what this machine is, its peaks, its GPUs and its isolation as JSON
//   runner run-pack FILE -o RESULTS [--deadline S]
//                        measures the candidates of a pack; exit status 0 done, 1 nothing measured, 2 wrong
//                        use
//   runner --version
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/standard_streams.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "measure_server/runner/device_child.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/function_trial.h"
#include "measure_server/runner/hardware.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/run_pack.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/serve.h"

namespace {

bool is_socket(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

// What programs of ours start; not for people. -1: none of these.
int inner_process(int argc, char** argv) {
  const std::string_view what = argc >= 2 ? argv[1] : "";
  if (what == "--device-list" && argc == 2 && is_socket(3)) return tuner::device_list(3);
  if (what == "--device-child" && argc == 3 && is_socket(3))
    return tuner::device_child(3, std::atoi(argv[2]));
  if (what == "--try-function" && argc == 3) return tuner::try_functions_here(argv[2]);
  return -1;
}

// run-pack FILE -o RESULTS [--deadline S]
int run_pack_command(int argc, char** argv) {
  tuner::RunPackOptions options;
  const auto wrong = [](const std::string& why) {
    std::fprintf(stderr,
                 "runner: run-pack: %s\nusage: runner run-pack FILE -o results.jsonl [--deadline S]\n",
                 why.c_str());
    return 2;
  };
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "-o" || word == "--deadline";
    if (takes_value && i + 1 == argc) return wrong(word + " needs a value");
    if (word == "-o") {
      options.output = argv[++i];
    } else if (word == "--deadline") {
      char* end = nullptr;
      options.deadline_s = std::strtod(argv[++i], &end);
      if (*end != '\0' || !(options.deadline_s > 0))
        return wrong(std::string("--deadline: expected seconds > 0, found \"") + argv[i] + "\"");
    } else if (word.starts_with("-") || !options.pack.empty()) {
      return wrong("unexpected \"" + word + "\"");
    } else {
      options.pack = word;
    }
  }
  if (options.pack.empty() || options.output.empty()) return wrong("expected a pack and -o");
  return tuner::run_pack(options);
}

}  // namespace

int main(int argc, char** argv) {
  tuner::prepare_standard_streams();
  // Asks for tile registers (AMX) before candidates are forked: they inherit them, and may not ask in the
  // jail.
  static_cast<void>(tuner_tiles());
  if (const int status = inner_process(argc, argv); status >= 0) return status;
  if (argc >= 2 && std::string_view(argv[1]) == "run-pack") return run_pack_command(argc, argv);
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "--version") {
    std::printf("runner %s, harness ABI %d\n", TUNER_VERSION, tuner::kHarnessAbi);
    return 0;
  }
  if (what == "--probe") {
    tuner::ProbeReply reply;
    reply.version = TUNER_VERSION;
    reply.hardware = tuner::hardware_fingerprint();
    const std::unique_ptr<tuner::Jail> jail = tuner::Jail::make();
    reply.isolation = tuner::isolation_name(jail->level());
    reply.isolation_missing = jail->found().why_not_more();
    reply.peaks = tuner::measure_peaks(0);
    reply.bandwidths = tuner::measure_bandwidths(0);
    tuner::DeviceHost::list_devices(reply);
    std::printf("%s\n", tuner::to_json(reply).c_str());
    return 0;
  }
  if (argc >= 2 && std::string_view(argv[1]) == "--serve") {
    std::optional<tuner::Isolation> at_most = tuner::Isolation::kStrict;
    if (argc == 4 && std::string_view(argv[2]) == "--isolation")
      at_most = tuner::isolation_from_name(argv[3]);
    if (!at_most || (argc != 2 && argc != 4)) {
      std::fprintf(stderr, "runner: --serve: expected --isolation none, process or strict\n");
      return 2;
    }
    if (is_socket(3)) return tuner::serve(3, *at_most);
    std::fprintf(
        stderr,
        "runner: --serve: descriptor 3 is not a socket; this mode is for the worker and `tuner verify`\n");
    return 2;
  }
  const bool help = what == "--help";
  std::fprintf(
      help ? stdout : stderr,
      "Runs candidates that may do anything, each in a process of its own, and says what they did.\n"
      "usage: runner --serve [--isolation LEVEL] | --probe | run-pack FILE -o RESULTS [--deadline S] | "
      "--version\n"
      "  --serve    run candidates asked for on descriptor 3 until it is closed; LEVEL: none, process or "
      "strict,\n"
      "             the most they are kept apart from this machine (default: as well as can be)\n"
      "  --probe    print this machine's fingerprint, peaks, GPUs and isolation as JSON\n"
      "  run-pack   measure the candidates of a pack (tuner pack) and write what was found, a line of "
      "JSON each;\n             an output that exists is gone on with\n");
  return help ? 0 : 2;
}
