#include "tests/sim/member.h"

#include <memory>
#include <utility>

namespace tuner::sim {

v1::RegisterRequest registration(const std::string& id, const std::string& life) {
  v1::RegisterRequest request;
  request.set_worker_id(id);
  request.set_incarnation(life);
  request.set_protocol(1);
  return request;
}

void add_templates(v1::RegisterRequest& request, bool newest) {
  for (const TemplateVersion& own : kTemplates) {
    v1::TemplateVersion* const has = request.add_templates();
    has->set_name(own.name);
    has->set_version(!newest && own.name == kNewer ? own.version - 1 : own.version);
  }
}

void Member::after(int64_t ms, std::function<void()> f) {
  farm_.at(ms, [this, life = life_, f = std::move(f)] {
    if (!alive_ || life != life_) return;
    if (farm_.clock.now < stopped_until_)
      after(stopped_until_ - farm_.clock.now, f);
    else
      f();
  });
}

void Member::start() {
  if (alive_) return;
  alive_ = true;
  ++life_;
  talking_ = false;
  session_.clear();
  enter();
}

void Member::kill() {
  if (!alive_) return;
  alive_ = false;
  forget();
  ++farm_.outcome.worker_kills;
  farm_.at(farm_.dice.between(100, 20'000), [this] { start(); });
}

void Member::pause(int64_t ms) {
  stopped_until_ = farm_.clock.now + ms;
  ++farm_.outcome.pauses;
}

void Member::enter() {
  const uint64_t call = ++call_;
  talking_ = true;
  auto request = std::make_shared<v1::RegisterRequest>(hello());
  auto reply = std::make_shared<v1::RegisterReply>();
  farm_.call(
      [this, request, reply](const Farm::Answer& answer) {
        answer(farm_.daemon()->register_worker(*request, reply.get()));
      },
      [this, call, life = life_, reply](const Status& status) {
        if (!alive_ || life != life_ || call != call_) return;
        ++call_;  // a repeated message is answered twice; we hear the first
        talking_ = false;
        if (!status) return after(farm_.dice.between(100, 2'000), [this] { enter(); });
        session_ = reply->session();
        talk();
      });
  after(10'000, [this, call] {
    if (call == call_ && talking_ && session_.empty()) enter();  // nobody answered
  });
}

void Member::talk() {
  if (talking_ || session_.empty()) return;
  talking_ = true;
  const uint64_t call = ++call_;
  auto request = std::make_shared<v1::SyncRequest>(what_to_say());
  request->set_session(session_);
  auto reply = std::make_shared<v1::SyncReply>();
  farm_.call(
      [this, request, reply](const Farm::Answer& answer) {
        // The messages live as long as the daemon may fill them.
        farm_.daemon()->sync(*request, reply.get(), [request, reply, answer](const Status& s) { answer(s); });
      },
      [this, call, life = life_, reply](const Status& status) {
        if (!alive_ || life != life_ || call != call_) return;
        ++call_;  // a repeated message is answered twice; we hear the first
        talking_ = false;
        if (status.code() == StatusCode::kAborted) {
          session_.clear();
          return enter();
        }
        if (status) hear(*reply);
        after(status ? 1 : farm_.dice.between(100, 1'000), [this] { talk(); });
      });
  after(12'000, [this, call] {
    if (call != call_ || !talking_) return;
    talking_ = false;  // its deadline
    talk();
  });
}

void Member::interrupt() {
  if (!talking_ || session_.empty()) return;
  talking_ = false;
  after(1, [this] { talk(); });
}

void Member::insist(std::function<Status()> ask, std::function<void(const Status&)> hear_answer) {
  constexpr int64_t kDeadlineMs = 2'000;
  const auto answered = std::make_shared<bool>(false);
  farm_.call([ask](const Farm::Answer& answer) { answer(ask()); },
             [this, life = life_, answered, ask, hear_answer](const Status& status) {
               if (!alive_ || life != life_ || *answered) return;
               *answered = true;
               // The daemon is away, or knows the session no more.
               const bool again =
                   status.code() == StatusCode::kAborted || status.message() == "connection refused";
               if (again)
                 return after(farm_.dice.between(100, 1'000), [=, this] { insist(ask, hear_answer); });
               hear_answer(status);
             });
  after(kDeadlineMs, [=, this] {
    if (std::exchange(*answered, true)) return;
    insist(ask, hear_answer);
  });
}

}  // namespace tuner::sim
