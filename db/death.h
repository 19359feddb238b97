// A line of the poison ledger, as it is stored: a worker was lost while it built or ran a config, or one has
// measured that config and lived. tuner/daemon/tables/poison_ledger.h decides from these lines what is
// poison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuner {

enum class DeathPhase : uint8_t {
  kBuilding = 1,
  kRunning,
  kSurvived,  // nobody died: a result of this config came, so what was held against it before is void
  kPoison,    // the verdict on the lines before: it is not sent to workers any more
};
std::string_view death_phase_name(DeathPhase phase);  // building, running, survived, poison
std::optional<DeathPhase> death_phase_from_name(std::string_view name);

struct DeathRow {
  int64_t id = 0;
  std::string workload_key, target, template_name, config;
  int template_version = 1;
  DeathPhase phase = DeathPhase::kRunning;
  std::string worker_id, worker_incarnation;
  bool alone = false;          // the worker had nothing else to do: no other config can have killed it
  int64_t happened_at_us = 0;  // Unix time, UTC, daemon's clock
};

}  // namespace tuner
