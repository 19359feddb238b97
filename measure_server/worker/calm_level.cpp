#include "measure_server/worker/calm_level.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "compiler_core/base/output_file.h"

namespace tuner {
namespace {

constexpr size_t kWindow = 8;
constexpr double kRiseOfMinute = 0.01;
constexpr double kSeenAgain = 1.05;  // times the level
constexpr std::chrono::seconds kKeepEvery{10};
constexpr double kLongestGapMinutes = 1.0 / 6;  // between two sentinels: longer, and nobody was measuring

}  // namespace

CalmLevel::CalmLevel(std::string path, std::string hardware, double disturbed)
    : path_(std::move(path)), hardware_(std::move(hardware)), disturbed_(disturbed) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path_, error);
  if (error || std::filesystem::file_time_type::clock::now() - written > kNews) return;
  std::ifstream file(path_);
  std::string of;
  double ns = 0;
  if (std::getline(file, of) && of == hardware_ && file >> ns && std::isfinite(ns) && ns > 0)
    level_ns_ = kept_ns_ = ns;
}

void CalmLevel::keep(Clock::time_point now) {
  const bool moved = std::fabs(level_ns_ - kept_ns_) > 0.01 * kept_ns_;
  if (path_.empty() || (!moved && now - kept_at_ < kKeepEvery)) return;
  // When it cannot be kept, eight sentinels find the level again.
  (void)replace_file(path_, str(hardware_, "\n", level_ns_, "\n"));
  kept_ns_ = level_ns_;
  kept_at_ = now;
}

void CalmLevel::observe(double sentinel_ns, Clock::time_point now) {
  if (!(sentinel_ns > 0) || !std::isfinite(sentinel_ns)) return;
  const double minutes =
      std::chrono::duration<double, std::ratio<60>>(now - latest_at_.value_or(now)).count();
  level_ns_ *= 1 + kRiseOfMinute * std::clamp(minutes, 0.0, kLongestGapMinutes);
  latest_at_ = now;
  latest_.push_back(sentinel_ns);
  if (latest_.size() < kWindow) return;
  if (latest_.size() > kWindow) latest_.pop_front();
  std::vector<double> window(latest_.begin(), latest_.end());
  std::nth_element(window.begin(), window.begin() + kWindow / 2, window.end());
  const double median = window[kWindow / 2];  // the upper of the two in the middle
  if (level_ns_ <= 0 || median < level_ns_) level_ns_ = median;
  if (median < kSeenAgain * level_ns_) keep(now);
}

}  // namespace tuner
