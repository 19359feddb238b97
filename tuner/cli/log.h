// Logging for commands that host a daemon. It goes to stderr, since stdout is for facts.
#pragma once

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "tuner/daemon/edge/log_lines.h"

namespace tuner::cli {

inline void log_to_stderr(spdlog::level::level_enum level, LogLines lines = LogLines::kText) {
  auto logger =
      std::make_shared<spdlog::logger>("tuner", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(level);
  logger->set_formatter(log_formatter(lines));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tuner::cli
