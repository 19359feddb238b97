// Turns between the runner and a candidate's process: two counters in the shared report, waited for by futex.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "measure_server/runner/candidate.h"

namespace tuner {
namespace {

// Returns when *word is not `value` any more, or after the limit; also early, for no reason.
void wait_while(uint32_t& word, uint32_t value, std::chrono::milliseconds limit) {
  const timespec t = {limit.count() / 1000, (limit.count() % 1000) * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &t, nullptr, 0);
}
void wake(uint32_t& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

uint32_t give_turn(CandidateReport& report) {
  const uint32_t turn = std::atomic_ref(report.turns_given).fetch_add(1) + 1;
  wake(report.turns_given);
  return turn;
}

bool turn_is_over(CandidateReport& report, uint32_t turn, std::chrono::milliseconds limit) {
  const uint32_t over = std::atomic_ref(report.turns_over).load();
  if (over == turn) return true;
  wait_while(report.turns_over, over, limit);
  return std::atomic_ref(report.turns_over).load() == turn;
}

void wait_for_turn(CandidateReport& report, uint32_t over) {
  while (std::atomic_ref(report.turns_given).load() == over)
    wait_while(report.turns_given, over, std::chrono::milliseconds(1000));
}

void end_turn(CandidateReport& report) {
  std::atomic_ref(report.turns_over).fetch_add(1);
  wake(report.turns_over);
}

}  // namespace tuner
