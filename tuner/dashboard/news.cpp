#include "tuner/dashboard/news.h"

#include <utility>

#include "tuner/text/facts.h"

namespace tuner::dashboard {

using Steady = std::chrono::steady_clock;

News::News(http::HttpServer& server, std::shared_ptr<const FactSource> facts, Pace pace)
    : server_(server), facts_(std::move(facts)), pace_(pace), thread_([this] { run(); }) {}

News::~News() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void News::run() {
  std::string told;
  Steady::time_point told_at = Steady::now();
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, pace_.look, [&] { return stopping_; })) {
    if (server_.followers() == 0) continue;
    lock.unlock();
    const Result<std::string> mark = facts_->mark();
    const std::string now = mark ? *mark : "trouble: " + mark.message();
    if (now != told || Steady::now() - told_at > pace_.alive) {
      // Whoever has just come asks for everything himself, so what was told before he came is no loss.
      const nlohmann::ordered_json news =
          mark ? nlohmann::ordered_json{{"mark", now}} : nlohmann::ordered_json{{"trouble", mark.message()}};
      server_.publish(now != told ? str("event: news\ndata: ", one_line(news), "\n\n") : ": alive\n\n");
      told = now;
      told_at = Steady::now();
    }
    lock.lock();
  }
}

}  // namespace tuner::dashboard
