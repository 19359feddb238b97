#include "tuner/daemon/edge/log_lines.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace tuner {
namespace {

thread_local const LogAbout* innermost = nullptr;

std::string utc(spdlog::log_clock::time_point time) {
  using namespace std::chrono;
  const auto ms = duration_cast<milliseconds>(time.time_since_epoch()).count();
  const std::time_t s = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&s, &parts);
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

// The inner of two that say the same field counts: it is nearer to the line.
void add_fields(nlohmann::ordered_json& line) {
  const auto add = [&](const char* name, std::string_view value) {
    if (!value.empty() && !line.contains(name)) line[name] = without_controls(value);
  };
  for (const LogAbout* about = innermost; about != nullptr; about = about->outer()) {
    const LogFields& f = about->fields();
    add("job", f.job);
    add("trial", f.trial);
    if (f.attempt > 0 && !line.contains("attempt")) line["attempt"] = f.attempt;
    add("race", f.race);
    add("worker", f.worker);
    add("request", f.request);
  }
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(msg.level);
    nlohmann::ordered_json line = {{"time", utc(msg.time)},
                                   {"level", std::string(level.data(), level.size())},
                                   {"message", without_controls({msg.payload.data(), msg.payload.size()})}};
    add_fields(line);
    // ASCII only: bytes that are no UTF-8 are replaced, everything else beyond it is escaped.
    const std::string text =
        line.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string clean = without_controls({msg.payload.data(), msg.payload.size()});
    spdlog::details::log_msg copy = msg;
    copy.payload = clean;
    pattern_.format(copy, out);
    msg.color_range_start = copy.color_range_start;
    msg.color_range_end = copy.color_range_end;
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }

 private:
  spdlog::pattern_formatter pattern_{"%Y-%m-%d %H:%M:%S.%e %L %v"};
};

}  // namespace

LogAbout::LogAbout(const LogFields& fields) : fields_(fields), outer_(std::exchange(innermost, this)) {}
LogAbout::~LogAbout() { innermost = outer_; }

std::unique_ptr<spdlog::formatter> log_formatter(LogLines lines) {
  if (lines == LogLines::kJson) return std::make_unique<JsonFormatter>();
  return std::make_unique<TextFormatter>();
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool c1 = !out.empty() && out.back() == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (c1)
      out.back() = ' ';
    else
      out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return out;
}

}  // namespace tuner
