#include "tuner/command_line/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "tuner/text/progress_line.h"

namespace tuner {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void on_signal(int) {
  if (!asked.exchange(true)) return;
  leave_progress_now();
  _exit(1);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return asked.load(); }

}  // namespace tuner
