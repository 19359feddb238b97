// BuilderCore: what a builder-only worker holds and owes. Orders come in by apply(). As many threads as there
// are compilers make them, others send what was made, and answers are owed until the daemon has acknowledged
// them. Nothing is on disk: an answer that is lost is given again soon, as what was made is in the cache.
//
// It uses no gRPC and no processes. Any thread may call any method.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "measure_server/worker/work_book.h"

namespace tuner {

class BuilderCore final : public WorkBook {
 public:
  // `slots`: orders held at once that are not made yet.
  explicit BuilderCore(int slots) : slots_(slots) {}

  // --- the daemon's side ---
  void set_session(std::string session) override;
  std::string session() const override;
  v1::SyncRequest make_request(int wait_ms) override;
  void apply(const v1::SyncReply& reply) override;
  bool phases_told() const override;
  bool idle() const override;
  bool draining() const override;
  // Callbacks, called without locks: something that the daemon should hear at once; an order that began to be
  // made.
  void on_news(std::function<void()> f) { news_ = std::move(f); }
  void on_phase(std::function<void()> f) { phase_began_ = std::move(f); }

  // --- the makers' side ---
  // Waits for the next order, in order of arrival; empty after stop().
  std::optional<v1::BuildOrder> next();
  // It is made, and being sent: there is room for another.
  void sends(const std::string& id);
  // What became of it. No effect if it was stopped meanwhile.
  void done(v1::BuildDone answer);
  // Gives it back as it is: nobody is to blame.
  void give_back(const std::string& id);
  bool holds(const std::string& id) const;

  void set_unfit(const std::string& why) override;
  void set_fit() override;
  void drain();
  void stop();

 private:
  struct Held {
    v1::BuildOrder order;
    bool at_work = false, sends = false;
    uint64_t place = 0;
  };
  void return_waiting_locked();
  void tell_news() const {
    if (news_) news_();
  }

  const int slots_;
  std::function<void()> news_, phase_began_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string session_, unfit_;
  std::map<std::string, Held> held_;
  std::map<std::string, v1::BuildDone> owed_;
  std::map<std::string, bool> returned_;  // id -> told by a request
  uint64_t places_ = 0, phases_ = 0, told_phases_ = 0;
  bool draining_ = false, stopped_ = false;
};

}  // namespace tuner
