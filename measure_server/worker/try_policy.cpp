#include "measure_server/worker/try_policy.h"

#include <algorithm>

#include "measure_server/runner/device_lock.h"
#include "measure_server/worker/run_request.h"
#include "measure_server/worker/worker_parts.h"

namespace tuner {
namespace {

constexpr int kDisturbedTries = 1;   // more, of a run that stayed disturbed for all its patience
constexpr int kAlwaysDisturbed = 6;  // disturbed runs in a row: this machine will not be calm soon
constexpr double kResignedMs = 10;   // how patient a run then still is

// A GPU that fails its check is asked again after 2, 4 and 8 s: a warm child may have died of something else.
constexpr int kDeviceTries = 4;

// Timed while something else slowed the machine down, for longer than the run's patience.
bool was_slowed(const RunReply& reply, bool memory_disturbed) {
  return reply.outcome == Outcome::kOk &&
         (2 * static_cast<size_t>(reply.disturbed) > reply.run_ns.size() || memory_disturbed);
}

}  // namespace

bool stands(const Status& error) {
  return error.code() == StatusCode::kAborted || error.code() == StatusCode::kInvalidArgument ||
         is_device_busy(error);
}

bool TryPolicy::may_try() const { return failures_ < (on_device_ ? kDeviceTries : kInfrastructureTries); }

std::chrono::seconds TryPolicy::wait() const {
  return std::chrono::seconds(device_sick_ ? 1 << std::min(failures_, 4) : 0);
}

double TryPolicy::patience_ms(double asked) const {
  return disturbed_in_a_row_ > kAlwaysDisturbed ? std::min(asked, kResignedMs) : asked;
}

TryPolicy::Verdict TryPolicy::after(const Result<RunReply>& reply, bool memory_disturbed, double best_ns) {
  const bool slowed = reply.is_ok() && !on_device_ && was_slowed(*reply, memory_disturbed);
  disturbed_in_a_row_ = slowed ? disturbed_in_a_row_ + 1 : 0;
  // After that it stands as it is, and its sentinels say so.
  if (slowed && !surely_slower(*reply, best_ns) && discarded_ < kDisturbedTries &&
      disturbed_in_a_row_ <= kAlwaysDisturbed) {
    ++discarded_;
    return Verdict::kDisturbed;
  }
  if (reply.is_ok() || stands(reply.status())) return Verdict::kStands;
  ++failures_;
  device_sick_ = on_device_ && reply.status().code() == StatusCode::kUnavailable;
  return Verdict::kFailed;
}

}  // namespace tuner
