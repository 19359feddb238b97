#include "tuner/jobs/job_text.h"

#include "templates/workload/workload_json.h"

namespace tuner {
namespace {

using Json = nlohmann::ordered_json;

// On one line, with a space behind each comma: dump() puts none. Texts in it have no quotes within.
std::string spaced(const Json& value) {
  std::string out;
  bool quoted = false;
  for (const char c : value.dump()) {
    quoted = quoted != (c == '"');
    out += c;
    if (c == ',' && !quoted) out += ' ';
  }
  return out;
}

}  // namespace

std::string job_text(const std::vector<JobTextEntry>& entries) {
  std::string text = "[";
  for (const JobTextEntry& e : entries) {
    Json j = workload_json(e.workload);
    j["target"] = e.target;
    if (e.uses != 1) j["uses"] = e.uses;
    if (e.trials != 0) j["trials"] = e.trials;
    if (e.constants != Constants::kWarm) j["measure"] = {{"constants", constants_name(e.constants)}};
    std::string keys;
    for (const auto& [key, value] : j.items())
      keys += str(keys.empty() ? "" : ", ", '"', key, "\": ", spaced(value));
    text += str(text.size() == 1 ? "" : ",", "\n  {", keys, "}");
  }
  return text + "\n]\n";
}

}  // namespace tuner
