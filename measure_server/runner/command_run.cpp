#include "measure_server/runner/command_run.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/foreign/commands.h"
#include "compiler_core/foreign/confined_program.h"
#include "measure_server/runner/peer.h"
#include "measure_server/runner/sentinel.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The end of what it printed, where programs say what went wrong, in one line.
std::string last_words(const std::string& output) {
  constexpr size_t kMost = 300;
  std::string end = output.substr(output.size() - std::min(output.size(), kMost));
  while (end.ends_with('\n')) end.pop_back();
  return end.empty() ? "; it printed nothing" : "; it printed: " + printable(end);
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", number);
  return text;
}

}  // namespace

CommandRun::CommandRun(int socket, RunRequest request, Artifact artifact)
    : socket_(socket), r_(std::move(request)), artifact_(std::move(artifact)) {
  reply_.id = r_.id;
  reply_.isolation = "landlock";  // not one of the runner's levels: no filter of system calls holds it
}

bool CommandRun::end_with(Outcome outcome, const std::string& message) {
  reply_.outcome = outcome;
  reply_.message = message;
  return false;
}

bool CommandRun::in_trouble(const std::string& why, bool refused) {
  reply_.error = why;
  reply_.refused = refused;
  return false;
}

bool CommandRun::stop_asked() {
  pollfd waiting{socket_, POLLIN, 0};
  if (::poll(&waiting, 1, 0) <= 0) return cancelled_;
  const PeerWish wish = read_wish(socket_, r_.id);
  peer_gone_ = peer_gone_ || wish == PeerWish::kGone;
  cancelled_ = cancelled_ || wish != PeerWish::kNothing;
  return cancelled_;
}

bool CommandRun::begin() {
  begun_ = steady_clock::now();
  Result<CommandBundle> bundle = parse_command_bundle(artifact_.binary);
  if (!bundle) return in_trouble(bundle.message());
  bundle_ = *std::move(bundle);
  Result<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::make("tuner-command");
  if (!folder) return in_trouble(folder.message());
  folder_ = *std::move(folder);
  for (const CommandBundle::File& file : bundle_.files) {
    const std::string path = folder_->file(file.name);
    Status written = make_folders(fs::path(path).parent_path());
    if (written) written = replace_file(path, file.bytes, Durability::kCached);
    if (!written) return in_trouble(written.message());
    ::chmod(path.c_str(), file.executable ? 0755 : 0644);
  }
  Result<std::string> program = command_path(bundle_.run.front(), folder_->path());
  if (!program) return in_trouble(program.message(), /*refused=*/true);
  program_ = *std::move(program);
  if (bundle_.run.front().starts_with("./") && !fs::is_regular_file(program_))
    return end_with(Outcome::kBuildError, str("the build made no file ", printable(bundle_.run.front())));
  return true;
}

// One run of the program. False: the reply says why there is no time of it.
bool CommandRun::once(Sample& sample) {
  const auto limit =
      std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(r_.run_timeout_s));
  ConfinedProgram program{
      .path = program_,
      .words = bundle_.run,
      .folder = folder_->path(),
      .readable = {fs::path(program_).parent_path()},
      .deadline = limit - std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun_),
      .memory_bytes = r_.memory_limit_bytes,
      .environment = bundle_.environment,
      .untrusted = true,
      .cpus = r_.cpus,
      .stop = [this] { return stop_asked(); }};
  program.environment.push_back(str("OMP_NUM_THREADS=", artifact_.manifest.threads));
  const Result<ConfinedEnd> end = run_confined(program);
  if (!end) return in_trouble(end.message());
  if (end->stopped) return in_trouble(peer_gone_ ? "the peer is gone" : "cancelled");
  const std::string said = last_words(end->output);
  if (end->timed_out)
    return end_with(Outcome::kRunTimeout, str("still running after ", r_.run_timeout_s, " s", said));
  if (end->status != 0) return end_with(Outcome::kCrashed, ending_text(end->status) + said);
  double ns = end->wall_ns;
  if (!bundle_.result.pattern.empty()) {
    const Result<double> printed = printed_ns(end->output, bundle_.result);
    if (!printed) return end_with(Outcome::kWrongAnswer, printed.message() + said);
    // What all its threads took together may be so much; a millisecond is what clocks differ by.
    if (ns = *printed; !bundle_.result.is_rate && ns > artifact_.manifest.threads * 1.1 * end->wall_ns + 1e6)
      return end_with(Outcome::kWrongAnswer,
                      str("it printed ", number_text(ns / 1e6), " ms and ended within ",
                          number_text(end->wall_ns / 1e6), " ms: is the unit right?", said));
  }
  sample.run_ns = ns;
  sample.cpu_ns = end->cpu_ns;
  return true;
}

RunReply CommandRun::run() {
  if (!begin()) return reply_;
  reply_.sentinel_before_ns = recent_sentinel_on(r_.cpus);
  SamplingOptions options{.fill_ns = 0, .warm_up_ns = 0, .repeats = r_.repeats, .precision = r_.precision};
  options.stop_at_ns = monotonic_ns() + r_.run_timeout_s / 2 * 1e9;
  options.cut_above_ns = r_.cut_above_ns;
  options.slow_above_ns = r_.slow_above_ns;
  Samples samples;
  // The first run warms the caches of files. One that takes long enough for that not to matter counts.
  constexpr double kLongNs = 2e8;
  bool counts = false;
  Sample first;
  const auto take = [&, runs = 0](int64_t, Sample& sample) mutable {
    if (std::exchange(counts, false)) return sample = first, true;
    const auto began = steady_clock::now();
    if (!once(sample)) return false;
    counts = runs++ == 0 && seconds_since(began) * 1e9 > kLongNs;
    first = sample;
    return true;
  };
  if (take_samples(options, take, samples)) {
    end_with(Outcome::kOk, "");
    reply_.run_ns = std::move(samples.run_ns);
    reply_.cpu_ns = std::move(samples.cpu_ns);
    reply_.cut = samples.cut;
  }
  reply_.run_ms = ms_since(begun_);
  reply_.sentinel_after_ns = sentinel_on(r_.cpus);
  return reply_;
}

bool CommandRun::take_turn() {
  if (folder_ == nullptr) return begin();
  Sample sample;
  if (!once(sample)) return false;
  reply_.run_ns.push_back(sample.run_ns);
  reply_.cpu_ns.push_back(sample.cpu_ns);
  no_pulses_.push_back(0);
  return true;
}

RunReply CommandRun::finish() {
  if (!reply_.outcome && reply_.error.empty()) end_with(Outcome::kOk, "");
  return reply_;
}

RaceReply run_command_heat(int socket, const RaceRequest& request, bool& go_on) {
  RaceReply reply;
  reply.id = request.base.id;
  // One run is a sample, and a process of its own.
  RaceRequest turns = request;
  turns.samples = 1;
  turns.other_samples = 0;
  std::vector<std::unique_ptr<Contestant>> runs;
  for (const RaceRequest::Candidate& c : request.candidates) {
    Result<Artifact> artifact = load_artifact(request.base.artifact_dir, c.digest);
    if (!artifact) {
      reply.error = artifact.message();
      return reply;
    }
    runs.push_back(std::make_unique<CommandRun>(socket, request.base, *std::move(artifact)));
  }
  const auto sentinels = [&] { return Beside{.compute_ns = sentinel_on(request.base.cpus)}; };
  return run_heat(
      turns, runs, [] {}, sentinels, go_on);
}

}  // namespace tuner
