// A builder of the simulated farm: makes what the daemon orders, two at once, sends the bytes, and owes its
// answers until they are acknowledged. Nothing of it survives a kill.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/sim/member.h"

namespace tuner::sim {

// What a right compiler makes of it.
std::string made_of(const std::string& template_name, int version, const std::string& config);
std::string answer_of(const std::string& workload_key, uint64_t seed);

class Builder final : public Member {
 public:
  enum class Kind : uint8_t {
    kHonest,
    kFlawed,     // breaks, sends what it did not name, claims what it did not send, says what nobody says
    kOther,      // of another release, and says so
    kOtherMute,  // the same, but it finds out when it is to build
  };
  Builder(Farm& farm, int number, Kind kind) : Member(farm, str("b", number)), kind_(kind) {}

 protected:
  v1::RegisterRequest hello() const override;
  v1::SyncRequest what_to_say() override;
  void hear(const v1::SyncReply& reply) override;
  void forget() override;

 private:
  struct Held {
    v1::BuildOrder order;
    bool at_work = false;
    uint64_t place = 0;
  };
  void work();
  void finish(const std::string& id);
  void send(const std::string& id, const std::string& bytes, v1::BuildDone done, int refusals = 0);
  void owe(const std::string& id, v1::BuildDone done);
  bool has_flaw() const { return kind_ == Kind::kFlawed && farm_.dice.chance(0.3); }

  const Kind kind_;
  std::string toolchain_ = "llvm 22";
  int working_ = 0;
  uint64_t places_ = 0;
  std::map<std::string, Held> held_;
  std::map<std::string, v1::BuildDone> owed_;
  std::map<std::string, bool> returned_;  // told: until a reply
};

}  // namespace tuner::sim
