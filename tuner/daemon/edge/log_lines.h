// Log lines: what a line is about travels beside its words, as fields with fixed names, so that one id can be
// followed from submit to record. Control characters of any text, a peer's or ours, end here.
//
//   const LogAbout about({.job = job.id(), .worker = id});
//   spdlog::warn("{}", text);
//
//   kText   2026-11-23 08:01:02.345 W t7: worker w1 was lost
//   kJson   {"time":"2026-11-23T08:01:02.345Z","level":"warning","message":"t7:
//           ...","job":"j1","worker":"w1"}
#pragma once

#include <spdlog/formatter.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuner {

// What a line may be about. Empty and 0: not said.
struct LogFields {
  std::string_view job, trial, worker, request, race;
  int attempt = 0;
};

// While it lives, the lines that this thread logs have these fields too. The texts must live as long. It
// needs a logger that formats on the calling thread (not spdlog's async one).
class LogAbout {
 public:
  explicit LogAbout(const LogFields& fields);
  ~LogAbout();
  LogAbout(const LogAbout&) = delete;
  LogAbout& operator=(const LogAbout&) = delete;

  const LogFields& fields() const { return fields_; }
  const LogAbout* outer() const { return outer_; }

 private:
  LogFields fields_;
  const LogAbout* outer_;
};

enum class LogLines : uint8_t { kText, kJson };
std::unique_ptr<spdlog::formatter> log_formatter(LogLines lines);

// The text without control characters (C0, DEL and, in UTF-8, C1), each a blank. Of any length.
std::string without_controls(std::string_view text);

}  // namespace tuner
