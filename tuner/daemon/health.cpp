#include "tuner/daemon/health.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <utility>

#include "proto/health_check.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kJudgeEvery{1'000};

// A new process listens anew. Of a certificate that has ended, or files that cannot be read, it has the same.
bool restart_helps(const Status& probe) {
  return probe.code() == StatusCode::kUnavailable || probe.code() == StatusCode::kDeadlineExceeded;
}

Status probe_own_socket(Server& server, int64_t limit_ms) {
  ASSIGN_OR_RETURN(const DaemonAccess own, server.own_access());
  return check_health(own, limit_ms).status();
}

}  // namespace

Readiness judge_health(const HealthFacts& f, const HealthOptions& options) {
  const auto late = [&](int64_t turned_ms) { return f.now_ms - turned_ms > options.turn_limit_ms; };
  const auto seconds = [&](int64_t since_ms) { return (f.now_ms - since_ms) / 1000; };
  if (late(f.desk_turned_ms))
    return {false,
            str("the desk has not turned for ", seconds(f.desk_turned_ms), " s: no worker is answered"),
            false};
  if (late(f.search_turned_ms))
    return {false, str("no search has turned for ", seconds(f.search_turned_ms), " s: nothing is proposed"),
            false};
  if (f.commit_failed) return {false, "the database cannot be written: the last commit failed"};
  if (f.now_ms - f.probed_ms > options.probed_limit_ms)
    return {false,
            str("its own socket has not answered for ", seconds(f.probed_ms), " s: ", f.probe.message()),
            !restart_helps(f.probe)};
  if (!f.probed_once && !f.probe) return {false, "its own socket does not answer: " + f.probe.message()};
  if (!f.probed_once) return {false, "it has just begun: its own socket has not been tried yet"};
  return {true, ""};
}

Health::Health(const Coordinator& coordinator, const Clock& clock, Server& server, HealthOptions options)
    : coordinator_(coordinator),
      clock_(clock),
      server_(server),
      options_(options),
      probed_ms_(clock.now_ms()),
      thread_([this] { watch(); }) {}

Health::~Health() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

Readiness Health::ready() const {
  const DaemonMetrics& metrics = coordinator_.metrics();
  HealthFacts facts{.now_ms = clock_.now_ms(),
                    .desk_turned_ms = metrics.desk_turned_ms,
                    .search_turned_ms = metrics.search_turned_ms,
                    .commit_failed = metrics.commit_failed};
  const std::lock_guard lock(mutex_);
  if (stopping_) return {false, "the daemon is stopping"};
  facts.probed_ms = probed_ms_;
  facts.probe = probe_;
  facts.probed_once = probed_once_;
  return judge_health(facts, options_);
}

void Health::watch() {
  std::optional<bool> told;
  std::optional<int64_t> tried_ms;
  while (true) {
    if (!tried_ms || clock_.now_ms() - *tried_ms >= options_.probe_every_ms) {
      tried_ms = clock_.now_ms();
      Status probe = probe_own_socket(server_, options_.probe_limit_ms);
      const std::lock_guard lock(mutex_);
      if (probe) {
        probed_ms_ = clock_.now_ms();
        probed_once_ = true;
      }
      probe_ = std::move(probe);
    }
    const Readiness now = ready();
    if (told != now.ready) {
      server_.set_serving(now.ready);
      if (!now.ready)
        spdlog::error("not ready: {}", now.reason);
      else if (told)
        spdlog::info("ready again");
      told = now.ready;
    }
    std::unique_lock lock(mutex_);
    const milliseconds pause = std::min(kJudgeEvery, milliseconds(options_.probe_every_ms));
    if (stop_.wait_for(lock, pause, [&] { return stopping_; })) return;
  }
}

}  // namespace tuner
