#include "tuner/daemon/integrity_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "compiler_core/base/clock.h"

namespace tuner {

using std::chrono::steady_clock;

IntegrityCheck::IntegrityCheck(const Store& store, Pace pace)
    : store_(store), pace_(pace), thread_([this](const std::stop_token& stop) { run(stop); }) {}

IntegrityCheck::~IntegrityCheck() {
  thread_.request_stop();
  thread_.join();
}

IntegrityCheck::Found IntegrityCheck::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

void IntegrityCheck::wait(const std::stop_token& stop, steady_clock::duration time) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, stop, time, [] { return false; });
}

void IntegrityCheck::run(const std::stop_token& stop) {
  for (wait(stop, pace_.first); !stop.stop_requested(); wait(stop, pace_.every)) check(stop);
}

void IntegrityCheck::check(const std::stop_token& stop) {
  const SteadyTime begun = steady_clock::now();
  SteadyTime page_begun = begun;
  // After each page it rests so long that it has had its share.
  const auto rest = [&](int64_t) {
    const auto worked = steady_clock::now() - page_begun;
    wait(stop, std::chrono::duration_cast<steady_clock::duration>(worked * (1 / pace_.share - 1)));
    page_begun = steady_clock::now();
  };
  const Result<IntegrityReport> report = store_.check_integrity(stop, rest);
  if (!report) return spdlog::error("the database could not be checked: {}", report.message());
  if (!report->complete) return;
  {
    const std::lock_guard lock(mutex_);
    found_ = {found_.checks + 1, report->rows, report->faults};
  }
  if (report->faults == 0)
    return spdlog::info("the database is checked: {} rows in {:.0f} s, all as they were written",
                        report->rows, seconds_since(begun));
  for (const std::string& line : report->damage) spdlog::error("the database is damaged: {}", line);
  spdlog::error("the database is damaged: {} faults in {} rows; tuner records check lists the first",
                report->faults, report->rows);
}

}  // namespace tuner
