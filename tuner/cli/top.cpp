// tuner top: what a daemon does, live.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/top_json.h"
#include "tuner/client/top_view.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRefresh{1'000};
constexpr double kCallLimitS = 3;
constexpr int kLookForNewsMs = 100;

struct TopOptions {
  std::string db, daemon;
  bool once = false, json = false;
};

int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<TopLook> look_at(const DaemonClient& client, TrialRate& rate) {
  TopLook look{.daemon = client.name()};
  ASSIGN_OR_RETURN(look.list, client.known_jobs(kCallLimitS));
  ASSIGN_OR_RETURN(look.workers, client.workers(kCallLimitS));
  look.trials_per_second = rate.look(look.list, now_ms());
  return look;
}

// Looks at the daemon once a second in a thread of its own: keys are answered while a call hangs.
class Watcher {
 public:
  Watcher(const DaemonClient& client, TopLook first, TrialRate rate)
      : client_(client), look_(std::move(first)), rate_(std::move(rate)), thread_([this] { run(); }) {}
  ~Watcher() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }
  // The latest look, if there is one since the call before.
  std::optional<TopLook> news() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(fresh_, false)) return std::nullopt;
    return look_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, kRefresh, [&] { return stopping_; })) {
      lock.unlock();
      Result<TopLook> look = look_at(client_, rate_);
      lock.lock();
      fresh_ = true;
      if (look)
        look_ = *std::move(look);
      else
        look_.trouble = "no answer, trying on: " + look.message();
    }
  }

  const DaemonClient& client_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false, fresh_ = true;
  TopLook look_;
  TrialRate rate_;
  std::thread thread_;
};

void show_live(const DaemonClient& client, TopLook look, TrialRate rate) {
  using Key = Screen::Key;
  Watcher watcher(client, look, std::move(rate));
  Screen screen;  // ends before the watcher, which may have to wait for a call
  int scroll = 0;
  bool draw = true;
  while (true) {
    if (std::optional<TopLook> news = watcher.news()) {
      look = *std::move(news);
      draw = true;
    }
    const int height = screen.height();
    if (draw) screen.draw(top_frame(look, screen.width(), height, scroll));
    const Key key = screen.key(kLookForNewsMs);
    draw = key != Key::kNone;
    const int page = std::max(height - 5, 1);
    if (key == Key::kQuit) return;
    if (key == Key::kUp || key == Key::kDown) scroll += key == Key::kUp ? -1 : 1;
    if (key == Key::kPageUp || key == Key::kPageDown) scroll += key == Key::kPageUp ? -page : page;
    if (key == Key::kTop) scroll = 0;
    if (key == Key::kBottom) scroll = 1 << 20;
  }
}

int run(const TopOptions& options) {
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = options.daemon, .db = options.db});
  if (!client) return report(client.status());
  if (client->hosts())
    return report(not_found("no daemon runs on ", options.db,
                            ". Start one: tuner serve; of another machine: --daemon HOST:PORT"));
  TrialRate rate;
  const Result<TopLook> look = look_at(*client, rate);
  if (!look) return report(look.status());
  if (options.json) {
    std::printf("%s\n", top_json(*look).c_str());
  } else if (options.once || !Screen::possible()) {
    int scroll = 0;
    for (const ScreenLine& line : top_frame(*look, terminal_width(STDOUT_FILENO), 0, scroll))
      std::printf("%s\n", line.text.c_str());
  } else {
    try {
      show_live(*client, *look, rate);
    } catch (const std::exception& e) {  // caught here so that the screen is left on the way
      return report(failed("top: ", e.what()));
    }
  }
  return kExitDone;
}

}  // namespace

void add_top_command(Command app, CommandContext& context) {
  auto options = std::make_shared<TopOptions>();
  const Command command = add_command(app, context, "top",
                                      "Shows live what a daemon does: jobs, workers, what waits, trials a "
                                      "second. Keys: q quits; arrows, j, k and page keys scroll",
                                      [options] {
                                        log_to_stderr(spdlog::level::off);
                                        return run(*options);
                                      });
  add_db_option(command, options->db);
  add_json_option(command, options->json);
  command.add_flag("--once", options->once, "Print one frame and end, as when stdout is no terminal");
  add_daemon_option(command, options->daemon, "; else the one that runs on the database");
}

}  // namespace tuner::cli
