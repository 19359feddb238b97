#include "tuner/cli/space_export.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

namespace tuner::cli {
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

Status write_text(const std::string& path, const std::string& text) {
  const auto refuse = [&](const char* why) { return invalid_argument(path, ": cannot be written: ", why); };
  errno = 0;
  if (path == "-") {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return written && std::fflush(stdout) == 0 ? Status::ok()
                                               : failed("standard output: ", std::strerror(errno));
  }
  if (path.ends_with(".gz")) {
    const gzFile file = gzopen(path.c_str(), "wb9");
    if (file == nullptr) return refuse(std::strerror(errno));
    // gzwrite counts in unsigned int; in pieces, so that no size is too large for it.
    constexpr size_t kPiece = size_t{1} << 20;
    bool written = true;
    for (size_t at = 0; at < text.size() && written; at += kPiece) {
      const auto n = static_cast<unsigned>(std::min(kPiece, text.size() - at));
      written = gzwrite(file, text.data() + at, n) == static_cast<int>(n);
    }
    return gzclose(file) == Z_OK && written ? Status::ok() : refuse("the disk did not take all of it");
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return refuse(std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? Status::ok() : refuse("the disk did not take all of it");
}

}  // namespace tuner::cli
