#include "measure_server/worker/talk.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace tuner {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kUntoldPhase{100};
// After an interruption: what follows a result, the next run above all, is then told in the same Sync.
constexpr milliseconds kSettle{2};
constexpr int kDrainWaitMs = 200;  // how long a draining worker's Sync waits
constexpr int kDrainTries = 3;     // failures in a row after which a draining worker leaves
constexpr milliseconds kDrainPause{500};
constexpr double kIdInUseMs = 1'000;
// While the daemon stores nothing. It must hear of the worker meanwhile: a lease lives for 8 s
// (tuner/daemon/tables/lease_table.h).
constexpr Backoff::Options kNothingTakenPauses{.start_ms = 100, .cap_ms = 2'000};

// Which results the daemon has stored. Leases that were given back are acknowledged, too.
void log_acknowledged(const v1::SyncRequest& request, const v1::SyncReply& reply) {
  if (!spdlog::should_log(spdlog::level::debug)) return;
  std::set<std::pair<std::string, int>> acknowledged;
  for (const v1::Ack& ack : reply.acks()) acknowledged.emplace(ack.trial_id(), ack.attempt());
  for (const v1::MeasureRecord& record : request.results())
    if (acknowledged.contains({record.trial_id(), record.attempt()}))
      spdlog::debug("acknowledged {} {}", record.trial_id(), record.attempt());
}

}  // namespace

Talk::Talk(WorkBook& core, Options options)
    : core_(core),
      options_(std::move(options)),
      backoff_({}, options_.random),
      nothing_taken_(kNothingTakenPauses, options_.random) {}

bool Talk::over() const { return stopped_ || (core_.draining() && core_.idle()); }

Status Talk::run(DaemonLink& link) {
  std::thread phases([this] { tell_phases(); });
  Status end;
  for (int failures = 0; !over();) {
    const bool registering = !registered_;
    Answer answer = Answer::kHeard;
    const Status status = registering ? enroll(link) : sync(link, answer);
    if (status.is_ok()) {
      if (registering || answer == Answer::kCutShort) continue;
      failures = 0;
      if (answer == Answer::kNothingTaken) {
        pause(nothing_taken_.next_ms());
        continue;
      }
      nothing_taken_.reset();
      // A daemon that takes registrations and refuses every Sync is not well yet: only a Sync resets this.
      backoff_.reset();
      if (std::exchange(said_trouble_, false)) spdlog::info("the daemon answers again");
      continue;
    }
    if (stopped_) break;
    if (registering && !ever_registered_ && status.code() == StatusCode::kInvalidArgument) {
      end = status;
      break;
    }
    const bool id_in_use = registering && status.code() == StatusCode::kAborted;
    if (!registering && status.code() == StatusCode::kAborted) registered_ = false;
    if (core_.draining() && ++failures >= kDrainTries) {
      // It does not wait for a daemon that may never come back.
      spdlog::warn("{}; leaving, unreported results are kept", status.message());
      break;
    }
    say_trouble(status, registering);
    int64_t pause_ms = backoff_.next_ms();
    if (id_in_use) pause_ms = static_cast<int64_t>((0.5 + options_.random()) * kIdInUseMs);
    pause(pause_ms);
  }
  if (registered_ && !stopped_ && core_.draining() && core_.idle()) say_goodbye(link);
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  phases.join();
  return end;
}

// Nothing hangs on it: a daemon that does not hear it finds out by itself.
void Talk::say_goodbye(DaemonLink& link) {
  v1::SyncRequest request = core_.make_request(0);
  request.set_leaves(true);
  v1::SyncReply reply;
  (void)link.sync(request, &reply, std::stop_token());
}

// Kinds of trouble have a limit each: none hides another.
void Talk::say_trouble(const Status& status, bool registering) {
  LineLimit* limit = &trouble_;
  const char* then = "held work goes on, trying again";
  if (status.code() == StatusCode::kInvalidArgument) limit = &refused_;
  if (status.code() == StatusCode::kAborted) {
    limit = registering ? &in_use_ : &lost_;
    then = registering ? "waiting until that worker is gone" : "registering again, held work goes on";
  }
  if (const auto more = limit->say()) {
    spdlog::warn("{}; {}{}", status.message(), then, *more);
    said_trouble_ = true;
  }
}

Status Talk::enroll(DaemonLink& link) {
  v1::RegisterReply reply;
  RETURN_IF_ERROR(link.register_worker(options_.hello, &reply));
  core_.set_session(reply.session());
  registered_ = ever_registered_ = true;
  if (entered_.say()) options_.registered();
  return Status::ok();
}

Status Talk::sync(DaemonLink& link, Answer& answer) {
  std::stop_token interrupt;
  {
    std::lock_guard lock(mutex_);
    wait_ = std::stop_source();
    interrupt = wait_.get_token();
  }
  const int wait_ms = core_.idle() ? options_.idle_poll_ms : options_.poll_ms;
  const v1::SyncRequest request = core_.make_request(core_.draining() ? kDrainWaitMs : wait_ms);
  if (stopped_) return Status::ok();
  v1::SyncReply reply;
  // With results in it the call is answered at once; cutting it short would only send them twice.
  const bool reports = request.results_size() + request.races_size() + request.built_size() > 0;
  const Status status = link.sync(request, &reply, reports ? std::stop_token() : interrupt);
  if (status.is_ok()) {
    const bool drained_before = core_.draining();
    core_.apply(reply);
    if (!drained_before && core_.draining())
      spdlog::info("the daemon drains this worker: finishing what is held, then leaving");
    log_acknowledged(request, reply);
    if (reports && reply.acks_size() + reply.build_acks_size() == 0) answer = Answer::kNothingTaken;
  } else if (!reports && interrupt.stop_requested()) {
    answer = Answer::kCutShort;
    std::this_thread::sleep_for(kSettle);
    return Status::ok();
  }
  return status;
}

void Talk::pause(int64_t pause_ms) {
  // A drain is not kept waiting, also one that begins meanwhile.
  const bool draining = core_.draining();
  const milliseconds limit =
      draining ? std::min(milliseconds(pause_ms), kDrainPause) : milliseconds(pause_ms);
  if (options_.pause) return options_.pause(limit);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return stopped_ || core_.draining() != draining; });
}

// Ends a wait during which a phase began, unless it was told by some other Sync soon.
void Talk::tell_phases() {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return ended_ || stopped_; };
  while (!over()) {
    changed_.wait(lock, [&] { return over() || !core_.phases_told(); });
    if (changed_.wait_for(lock, kUntoldPhase, over)) return;
    if (!core_.phases_told()) wait_.request_stop();
  }
}

void Talk::interrupt() {
  std::lock_guard lock(mutex_);
  wait_.request_stop();
  changed_.notify_all();
}

void Talk::phase_began() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Talk::stop() {
  stopped_ = true;
  interrupt();
}

}  // namespace tuner
