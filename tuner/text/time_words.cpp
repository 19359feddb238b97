#include "tuner/text/time_words.h"

#include <cstdio>

#include "compiler_core/base/percent.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/status.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

std::string gain_words(const TunedConfig& t) {
  if (const double gain = claimed_gain(t); gain > 0) {
    char times[32];
    std::snprintf(times, sizeof times, "%.2f", gain);
    return str(times, " times as fast as the default config (", format_time(t.default_time_ns),
               ", in the same race)");
  }
  if (t.certified) return "not known: the default config was not in the race";
  return str("not claimed, because the time is not certified",
             t.default_time_ns > 0
                 ? str(" (default config: ", format_time(t.default_time_ns), " in one trial)")
                 : "");
}

}  // namespace

double half_width(const TunedConfig& t) {
  return t.time_ns > 0 ? (t.time_high_ns - t.time_low_ns) / 2 / t.time_ns : 0;
}

double claimed_gain(const TunedConfig& t) {
  return t.certified && t.race_id != 0 && t.default_time_ns > 0 && t.time_ns > 0
             ? t.default_time_ns / t.time_ns
             : 0;
}

TimeWords time_words(const TunedConfig& t) {
  TimeWords words{.gain = gain_words(t)};
  if (t.certified) {
    words.time = format_time(t.time_ns, t.time_low_ns, t.time_high_ns);
    words.certainty = half_width(t) > 0
                          ? str("certified to +- ", percent_beside(half_width(t), kCertifiedHalfWidth))
                          : "certified: the device's clock is exact";
  } else {
    words.time = format_time(t.time_ns) + " in one trial";
    words.certainty = str("not certified: ", printable(t.uncertified_why));
  }
  if (t.other_time_ns > 0)
    words.other = str(format_time(t.other_time_ns), " with constants ",
                      constants_name(t.constants == Constants::kWarm ? Constants::kCold : Constants::kWarm));
  return words;
}

}  // namespace tuner
