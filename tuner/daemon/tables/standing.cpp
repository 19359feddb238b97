#include "tuner/daemon/tables/standing.h"

#include <algorithm>
#include <vector>

#include "compiler_core/base/statistics.h"
#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr int64_t kStrikes = 3;
constexpr int64_t kFirstStrikeMs = 600'000, kLongestStrikeMs = 86'400'000, kOnlyWorkerMs = 30'000;
constexpr size_t kWindow = 16, kCalmWindow = 4;
constexpr double kSlower = 1.8, kCalm = 1.3;
constexpr int64_t kSlowerMs = 20'000, kNewPaceMs = 600'000;

double median_of_last(const std::deque<double>& values, size_t n) {
  std::vector<double> last(values.end() - static_cast<std::ptrdiff_t>(std::min(n, values.size())),
                           values.end());
  return median_in_place(last);
}

}  // namespace

int64_t Standing::strike(int64_t now_ms, const std::string& why) {
  last_strike_ = why;
  if (++strikes_ < kStrikes) return 0;
  const int64_t doublings = std::min<int64_t>(strikes_ - kStrikes, 10);
  const int64_t pause = std::min(kLongestStrikeMs, kFirstStrikeMs << doublings);
  struck_ms_ = now_ms;
  struck_until_ms_ = now_ms + pause;
  return pause;
}

bool Standing::enter(const std::string& hardware, double sentinel_ns, double peak_gflops, int64_t now_ms) {
  if (hardware != hardware_) {
    hardware_ = hardware;
    level_ns_ = peak_gflops_ = 0;
    latest_.clear();
    slower_since_ms_ = -1;
  }
  if (sentinel_ns > 0 && (level_ns_ <= 0 || sentinel_ns < level_ns_)) level_ns_ = sentinel_ns;
  peak_gflops_ = std::max(peak_gflops_, peak_gflops);
  // Only sentinels can show that it is calm again, so without a level it is not judged.
  if (slower() || peak_gflops <= 0 || level_ns_ <= 0 || peak_gflops * kSlower >= peak_gflops_) return false;
  pace_ = peak_gflops_ / peak_gflops;
  peak_gflops_ = peak_gflops;  // the next registration is held against this
  slower_since_ms_ = now_ms;
  slower_until_ms_ = now_ms + kSlowerMs;
  return true;
}

Standing::News Standing::observe(double sentinel_ns, int64_t now_ms) {
  if (!(sentinel_ns > 0)) return News::kNone;
  latest_.push_back(sentinel_ns);
  if (latest_.size() > kWindow) latest_.pop_front();
  if (slower()) {
    pace_ = median_of_last(latest_, kCalmWindow) / level_ns_;
    if (pace_ <= kCalm) {
      slower_since_ms_ = -1;
      latest_.clear();  // what was slow is over, and must not count again
      return News::kCalm;
    }
    if (now_ms - slower_since_ms_ >= kNewPaceMs) {
      level_ns_ = median_of_last(latest_, kCalmWindow);
      slower_since_ms_ = -1;
      latest_.clear();
      return News::kNewPace;
    }
    slower_until_ms_ = now_ms + kSlowerMs;
    return News::kNone;
  }
  if (latest_.size() < kWindow) return News::kNone;
  const double pace_ns = median_of_last(latest_, kWindow);
  if (level_ns_ <= 0 || pace_ns < level_ns_) level_ns_ = pace_ns;
  pace_ = pace_ns / level_ns_;
  if (pace_ <= kSlower) return News::kNone;
  slower_since_ms_ = now_ms;
  slower_until_ms_ = now_ms + kSlowerMs;
  return News::kSlower;
}

int64_t Standing::pause_ms(int64_t now_ms, bool others) const {
  const int64_t until = others ? struck_until_ms_ : std::min(struck_until_ms_, struck_ms_ + kOnlyWorkerMs);
  const int64_t struck = strikes_ < kStrikes ? 0 : until - now_ms,
                slow = slower() && others ? slower_until_ms_ - now_ms : 0;
  return std::max<int64_t>({struck, slow, 0});
}

bool Standing::on_trial(bool others) const { return strikes_ >= kStrikes || (slower() && others); }

std::string Standing::why(int64_t now_ms, bool others) const {
  if (struck_until_ms_ > now_ms)
    return str("it sent ", strikes_, " results that cannot be; the last: ", last_strike_);
  if (!slower() || !others) return "";
  return str("its machine has become slower: fixed work takes ", static_cast<int>(pace_ * 100),
             " % of its calm time");
}

}  // namespace tuner
