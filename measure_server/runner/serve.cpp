#include "measure_server/runner/serve.h"

#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>

#include <memory>

#include "measure_server/runner/candidate_run.h"
#include "measure_server/runner/command_run.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/frame.h"
#include "measure_server/runner/hardware.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/race.h"

namespace tuner {

namespace {

using std::chrono::steady_clock;

// Copies of data files kept in memory: several workloads' inputs and references.
constexpr int64_t kCacheBytes = int64_t{2} << 30;
// Outputs of earlier candidates whose pages the next ones get.
constexpr int64_t kKeptBytes = 64 << 20;

Deadline answer_deadline() { return steady_clock::now() + std::chrono::seconds(10); }

ProbeReply probe(const Jail& jail, const ProbeRequest& request) {
  ProbeReply reply;
  reply.version = TUNER_VERSION;
  reply.hardware = hardware_fingerprint();
  reply.isolation = isolation_name(jail.level());
  reply.isolation_missing = jail.found().why_not_more();
  if (request.max_threads < 0) return reply;
  if (!request.devices_only) {
    reply.peaks = measure_peaks(request.max_threads);
    reply.bandwidths = measure_bandwidths(request.max_threads);
  }
  DeviceHost::list_devices(reply);
  return reply;
}

// Runs the candidate where its binary belongs. False in `go_on` when the peer is gone.
RunReply run(const CandidateRun::Host& host, DeviceHost& device, const RunRequest& request, bool& go_on) {
  Result<Artifact> artifact = load_artifact(request.artifact_dir, request.digest);
  RunReply reply;
  bool peer_gone = false;
  if (!artifact.is_ok()) {
    reply.id = request.id;
    reply.error = artifact.message();
  } else if (DeviceHost::takes(artifact->manifest)) {
    reply = device.run(request, peer_gone);
  } else if (CommandRun::takes(artifact->manifest)) {
    CommandRun command(host.socket, request, *artifact);
    reply = command.run();
    peer_gone = command.peer_gone();
    kill_orphans({device.child(), host.jail.keeper()});
  } else {
    // Times that do not add up, and a signal from elsewhere, may be an accident of this machine once, not in
    // one fresh process after the other.
    const int tries = artifact->manifest.threads > 1 ? 6 : 3;
    bool in_doubt = true;
    for (int i = 0; in_doubt && i < tries; ++i) {
      if (const Status mended = host.jail.mend(); !mended.is_ok()) {
        reply = {};
        reply.id = request.id;
        reply.error = mended.message();
        break;
      }
      const std::vector<pid_t> spared = {device.child(), host.jail.keeper()};
      CandidateRun candidate(host, request, *artifact, spared);
      reply = candidate.run();
      in_doubt = candidate.in_doubt();
      peer_gone = candidate.peer_gone();
    }
  }
  go_on = !peer_gone;
  return reply;
}

}  // namespace

int serve(int socket, Isolation at_most) {
  signal(SIGPIPE, SIG_IGN);
  // Heard of and nothing more: whoever waits for a turn to be over wakes when the candidate has ended.
  struct sigaction child_ended {};
  child_ended.sa_handler = [](int) {};
  child_ended.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &child_ended, nullptr);
  // Memory that is given back between two candidates is asked for again at once, page by page.
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
  // A candidate opens no file: what it may be linked with, besides libc and libm, has to be here already.
  (void)dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_GLOBAL);
  const std::unique_ptr<Jail> jail = Jail::make(at_most);
  SealedFiles files(kCacheBytes);
  SharedBuffers buffers(kKeptBytes);
  const CandidateRun::Host host{socket, files, buffers, *jail};
  DeviceHost device(socket);
  for (;;) {
    const Result<std::string> text = read_frame(socket, steady_clock::now() + std::chrono::hours(24 * 365));
    if (!text.is_ok()) return text.status().code() == StatusCode::kUnavailable ? 0 : 1;
    const Result<RunnerMessage> message = parse_runner_message(*text);
    std::string answer;
    if (!message.is_ok()) {
      RunReply reply;
      reply.error = message.message();
      reply.refused = true;
      answer = to_json(reply);
    } else if (const auto* p = std::get_if<ProbeRequest>(&*message)) {
      answer = to_json(probe(*jail, *p));
    } else if (const auto* r = std::get_if<RunRequest>(&*message)) {
      bool go_on = true;
      answer = to_json(run(host, device, *r, go_on));
      if (!go_on) return 0;
    } else if (const auto* race = std::get_if<RaceRequest>(&*message)) {
      bool go_on = true;
      answer = to_json(run_race(host, device, *race, go_on));
      if (!go_on) return 0;
    } else {
      continue;  // cancel of a run that is over
    }
    if (!write_frame(socket, answer, answer_deadline()).is_ok()) return 1;
  }
}

}  // namespace tuner
