// Names of enumerators, as stored and printed; and the figures that records and finalists are ranked by.
#include <algorithm>
#include <array>
#include <cmath>

#include "compiler_core/base/statistics.h"
#include "compiler_core/base/status.h"
#include "db/death.h"
#include "db/raced_time.h"
#include "db/records.h"

namespace tuner {

namespace {

// Names in the order of their enumerators, which count from 1.
constexpr std::array<std::string_view, 5> kJobStates = {"queued", "running", "finished", "cancelled",
                                                        "failed"};
constexpr std::array<std::string_view, 4> kDeathPhases = {"building", "running", "survived", "poison"};
constexpr std::array<std::string_view, 5> kWonBy = {"fastest", "stored", "default", "smallest", "order"};
constexpr std::array<std::string_view, 2> kConstants = {"warm", "cold"};
constexpr std::array<std::string_view, 4> kTrialStates = {"queued", "leased", "done", "cancelled"};

template <class E, size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, E value) {
  const size_t i = static_cast<size_t>(value) - 1;
  CHECK(i < N) << "enumerator " << static_cast<int>(value);
  return names[i];
}
template <class E, size_t N>
std::optional<E> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<E>(i + 1);
  return std::nullopt;
}

}  // namespace

std::string_view job_state_name(JobState state) { return name_of(kJobStates, state); }
std::optional<JobState> job_state_from_name(std::string_view name) {
  return from_name<JobState>(kJobStates, name);
}
std::string_view trial_state_name(TrialState state) { return name_of(kTrialStates, state); }
std::optional<TrialState> trial_state_from_name(std::string_view name) {
  return from_name<TrialState>(kTrialStates, name);
}

std::string_view won_by_name(WonBy won_by) { return name_of(kWonBy, won_by); }
std::optional<WonBy> won_by_from_name(std::string_view name) { return from_name<WonBy>(kWonBy, name); }

std::string_view constants_name(Constants constants) { return name_of(kConstants, constants); }
std::optional<Constants> constants_from_name(std::string_view name) {
  return from_name<Constants>(kConstants, name);
}

std::string_view death_phase_name(DeathPhase phase) { return name_of(kDeathPhases, phase); }
std::optional<DeathPhase> death_phase_from_name(std::string_view name) {
  return from_name<DeathPhase>(kDeathPhases, name);
}

double record_time_ns(const MeasureRecord& record) {
  return record.outcome == Outcome::kOk ? median(record.run_ns) : 0;
}

namespace {

std::vector<ProcessTime> times_of(const RaceFinalist& f) {
  return process_times({.times_ns = f.samples_ns,
                        .pulses_ns = f.sentinel_ns,
                        .memory_ns = f.memory_ns,
                        .process = f.process,
                        .exact_clock = f.exact_clock});
}

}  // namespace

double raced_time_ns(const RaceFinalist& finalist) { return raced_time(finalist).value; }

Spread raced_time(const RaceFinalist& finalist) { return time_spread(times_of(finalist)); }

double raced_memory_ns(const RaceFinalist& finalist) {
  return memory_level_ns(beside_calm_memory(times_of(finalist)));
}

bool was_granted(const std::vector<Grant>& grants, int attempt, std::string_view worker_id,
                 std::string_view incarnation) {
  return std::ranges::any_of(grants, [&](const Grant& g) {
    return g.attempt == attempt && g.worker_id == worker_id &&
           (g.incarnation == incarnation || g.incarnation.empty());
  });
}

}  // namespace tuner
