#include "tuner/jobs/kernel_text.h"

#include <nlohmann/json.hpp>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

using Json = nlohmann::ordered_json;

// A value on one line, as people write it: a space behind commas and colons outside texts.
std::string on_one_line(const Json& value) {
  std::string out;
  bool quoted = false, escaped = false;
  for (const char c : value.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = quoted && c == '\\' && !escaped;
    out += c;
    if (!quoted && (c == ',' || c == ':')) out += ' ';
  }
  return out;
}

}  // namespace

std::string kernel_job_text(const Json& job) {
  std::string out = "{";
  for (const auto& [key, value] : job.items()) {
    out += str(out.size() == 1 ? "\n" : ",\n", "  ", on_one_line(Json(key)), ": ");
    const bool lines = (key == "arguments" || key == "knobs") && !value.empty();
    if (!lines) {
      out += on_one_line(value);
      continue;
    }
    std::string inside;
    for (const auto& [name, each] : value.items())
      inside += str(inside.empty() ? "\n    " : ",\n    ",
                    value.is_object() ? on_one_line(Json(name)) + ": " : "", on_one_line(each));
    out += str(value.is_object() ? "{" : "[", inside, "\n  ", value.is_object() ? "}" : "]");
  }
  return out + "\n}\n";
}

}  // namespace tuner
