// Names of formats, and times of day as text.
#include <array>
#include <cstdio>
#include <ctime>

#include "db/exchange/formats.h"

namespace tuner::exchange {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"jsonl", "autotvm", "t4", "csv"};

}  // namespace

std::string_view format_name(Format format) { return kNames.at(static_cast<size_t>(format)); }

std::optional<Format> format_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Format>(i);
  return std::nullopt;
}

std::string time_text(int64_t us) {
  if (us == 0) return "";
  int64_t seconds = us / 1'000'000, rest = us % 1'000'000;
  if (rest < 0) --seconds, rest += 1'000'000;
  const std::time_t time = seconds;
  std::tm utc{};
  if (gmtime_r(&time, &utc) == nullptr) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(rest));
  return text;
}

std::optional<int64_t> time_from_text(std::string_view text) {
  if (text.empty()) return 0;
  size_t at = 0;
  const auto digits = [&](size_t n, int& out) {
    out = 0;
    for (size_t end = at + n; at < end; ++at) {
      if (at >= text.size() || text[at] < '0' || text[at] > '9') return false;
      out = out * 10 + (text[at] - '0');
    }
    return true;
  };
  const auto one_of = [&](std::string_view choice) {
    return at < text.size() && choice.find(text[at]) != std::string_view::npos ? (++at, true) : false;
  };
  std::tm t{};
  if (!digits(4, t.tm_year) || !one_of("-") || !digits(2, t.tm_mon) || !one_of("-") ||
      !digits(2, t.tm_mday) || !one_of("T ") || !digits(2, t.tm_hour) || !one_of(":") ||
      !digits(2, t.tm_min) || !one_of(":") || !digits(2, t.tm_sec))
    return std::nullopt;
  if (t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 ||
      t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60)
    return std::nullopt;
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  int64_t us = 0;
  if (one_of(".")) {
    int64_t unit = 100'000;
    const size_t from = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      us += (text[at] - '0') * unit;
    if (at == from) return std::nullopt;
  }
  int64_t offset_s = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const int sign = text[at++] == '+' ? 1 : -1;
    int hours = 0, minutes = 0;
    if (!digits(2, hours)) return std::nullopt;
    (void)one_of(":");
    if (!digits(2, minutes)) return std::nullopt;
    offset_s = sign * (hours * 3600 + minutes * 60);
  } else {
    (void)one_of("Z");
  }
  if (at != text.size()) return std::nullopt;
  us += (static_cast<int64_t>(timegm(&t)) - offset_s) * 1'000'000;
  if (us < 0) return std::nullopt;
  return us;
}

}  // namespace tuner::exchange
