// News: looks for something new while somebody follows, and tells all followers at once. So any number of
// open pages costs one look.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tuner/dashboard/fact_source.h"
#include "tuner/http/http_server.h"

namespace tuner::dashboard {

class News {
 public:
  struct Pace {
    std::chrono::milliseconds look{500};      // between looks
    std::chrono::milliseconds alive{10'000};  // a line says so if nothing is new for so long
  };
  // `server` outlives this.
  News(http::HttpServer& server, std::shared_ptr<const FactSource> facts, Pace pace);
  News(http::HttpServer& server, std::shared_ptr<const FactSource> facts)
      : News(server, std::move(facts), Pace()) {}
  ~News();

 private:
  void run();
  http::HttpServer& server_;
  const std::shared_ptr<const FactSource> facts_;
  const Pace pace_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tuner::dashboard
