#include "tuner/study/space_export.h"

#include <cstdio>
#include <set>

namespace tuner {
namespace {

std::string ms_text(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", ns * 1e-6);
  return text;
}

}  // namespace

std::string space_csv(const TaskRecords& records) {
  std::set<std::string> templates, knobs;
  for (const TaskRecords::Row& row : records.rows) {
    templates.insert(row.template_name);
    for (const auto& [knob, value] : row.config.values()) knobs.insert(knob);
  }
  const bool several = templates.size() > 1;
  std::string text = several ? "template," : "";
  for (const std::string& knob : knobs) text += knob + ",";
  text += "time_ms,status,samples_ms\n";
  for (const TaskRecords::Row& row : records.rows) {
    if (row.outcome == Outcome::kOk && !row.is_timed()) continue;
    if (several) text += row.template_name + ",";
    for (const std::string& knob : knobs) {
      const auto value = row.config.values().find(knob);
      if (value != row.config.values().end()) text += std::to_string(value->second);
      text += ",";
    }
    if (row.is_timed()) text += ms_text(row.time_ns());
    text += str(",", outcome_name(row.outcome), ",");
    for (size_t i = 0; i < row.samples_ns.size(); ++i)
      text += (i > 0 ? ";" : "") + ms_text(row.samples_ns[i]);
    text += "\n";
  }
  return text;
}

}  // namespace tuner
