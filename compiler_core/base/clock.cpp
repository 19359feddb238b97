#include "compiler_core/base/clock.h"

#include <cstdio>
#include <ctime>

namespace tuner {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

// Takes a text apart from its begin.
struct Scanner {
  std::string_view rest;

  bool is_digit() const { return !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; }
  bool one_of(std::string_view choice) {
    if (rest.empty() || choice.find(rest[0]) == std::string_view::npos) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool digits(int n, int& out) {
    out = 0;
    for (; n > 0; --n) {
      if (!is_digit()) return false;
      out = out * 10 + (rest[0] - '0');
      rest.remove_prefix(1);
    }
    return true;
  }
  // Behind a point; nothing when there is no digit.
  std::optional<int64_t> microseconds() {
    if (!is_digit()) return std::nullopt;
    int64_t us = 0;
    for (int64_t unit = 100'000; is_digit(); unit /= 10, rest.remove_prefix(1)) us += (rest[0] - '0') * unit;
    return us;
  }
};

// Hours, minutes and seconds, from "T21:10[:08]"; false when it is none.
bool read_time_of_day(Scanner& in, std::tm& t) {
  if (!in.digits(2, t.tm_hour) || !in.one_of(":") || !in.digits(2, t.tm_min)) return false;
  if (in.one_of(":") && !in.digits(2, t.tm_sec)) return false;
  return t.tm_hour <= 23 && t.tm_min <= 59 && t.tm_sec <= 60;
}

// "+01:00", "-0130", "Z" or nothing, in seconds.
bool read_offset(Scanner& in, int64_t& offset_s) {
  const bool east = in.one_of("+");
  if (!east && !in.one_of("-")) {
    (void)in.one_of("Z");
    return true;
  }
  int hours = 0, minutes = 0;
  if (!in.digits(2, hours)) return false;
  (void)in.one_of(":");
  if (!in.digits(2, minutes)) return false;
  offset_s = (east ? 1 : -1) * (int64_t{hours} * 3600 + int64_t{minutes} * 60);
  return true;
}

}  // namespace

int64_t wall_time_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

std::string time_text(int64_t us) {
  if (us == 0) return "";
  int64_t seconds = us / 1'000'000, rest = us % 1'000'000;
  if (rest < 0) --seconds, rest += 1'000'000;
  const std::time_t time = seconds;
  std::tm utc{};
  if (::gmtime_r(&time, &utc) == nullptr) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(rest));
  return text;
}

std::optional<int64_t> time_from_text(std::string_view text) {
  if (text.empty()) return 0;
  Scanner in{text};
  std::tm t{};
  if (!in.digits(4, t.tm_year) || !in.one_of("-") || !in.digits(2, t.tm_mon) || !in.one_of("-") ||
      !in.digits(2, t.tm_mday))
    return std::nullopt;
  if (t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31)
    return std::nullopt;
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  int64_t us = 0, offset_s = 0;
  if (in.one_of("T ")) {
    if (!read_time_of_day(in, t)) return std::nullopt;
    if (in.one_of(".")) {
      const std::optional<int64_t> fraction = in.microseconds();
      if (!fraction) return std::nullopt;
      us = *fraction;
    }
    if (!read_offset(in, offset_s)) return std::nullopt;
  }
  if (!in.rest.empty()) return std::nullopt;
  // timegm() makes March of the 31st of February.
  const std::tm wanted = t;
  const int64_t seconds = ::timegm(&t);
  const bool leap_second = wanted.tm_sec == 60;
  if (!leap_second && (t.tm_mday != wanted.tm_mday || t.tm_mon != wanted.tm_mon)) return std::nullopt;
  us += (seconds - offset_s) * 1'000'000;
  return us < 0 ? std::nullopt : std::optional<int64_t>(us);
}

double seconds_since(SteadyTime begin) { return duration<double>(steady_clock::now() - begin).count(); }

double ms_since(SteadyTime begin) { return 1000 * seconds_since(begin); }

SteadyTime seconds_from_now(double seconds) {
  return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(duration<double>(seconds));
}

}  // namespace tuner
