// Member: a process that dials the daemon: it registers, Syncs for ever, is killed, paused and started again.
// What it says and hears is its kind's: worker.h, builder.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "measure.pb.h"
#include "tests/sim/farm.h"

namespace tuner::sim {

class Member {
 public:
  Member(Farm& farm, std::string id) : farm_(farm), id_(std::move(id)) {}
  virtual ~Member() = default;
  Member(const Member&) = delete;
  void start();
  void kill();
  void pause(int64_t ms);

 protected:
  virtual v1::RegisterRequest hello() const = 0;
  virtual v1::SyncRequest what_to_say() = 0;  // without the session
  virtual void hear(const v1::SyncReply& reply) = 0;
  virtual void forget() = 0;  // what a killed process has in memory

  // Runs `f` on this member `ms` from now, if it is still in the same life; later if it is stopped then.
  void after(int64_t ms, std::function<void()> f);
  // A Sync that waits ends, and another one says what is new.
  void interrupt();
  // A call that is made again until somebody answers: `ask` is the daemon's part, `hear_answer` ours.
  void insist(std::function<Status()> ask, std::function<void(const Status&)> hear_answer);
  const std::string& session() const { return session_; }
  std::string life() const { return str(life_); }

  Farm& farm_;
  const std::string id_;

 private:
  void enter();
  void talk();

  int life_ = 0;
  bool alive_ = false, talking_ = false;
  int64_t stopped_until_ = 0;
  uint64_t call_ = 0;  // the latest: answers to others are ignored
  std::string session_;
};

// As a process at its registration.
v1::RegisterRequest registration(const std::string& id, const std::string& life);
void add_templates(v1::RegisterRequest& request, bool newest);

}  // namespace tuner::sim
