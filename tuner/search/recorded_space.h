// RecordedSpace: a space in which every time is known, read from a file. A search is scored against it
// without a device.
//
// The file is CSV, plain or gzip; header names decide. One column per knob, then in any order:
//   time_ms     time of the config; ignored unless status is ok
//   status      ok, or how the config failed: a failure costs a trial
//   samples_ms  (optional) every sample, separated by ;
//   template    (optional) template of the row, else "recorded"; knobs that it lacks are empty
// A knob whose cells are all integers is ordered; any other is categorical, with its cells as labels. Configs
// that are absent violate a constraint: they are never proposed.
#pragma once

#include <string>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

struct RecordedSpace {
  struct Part {
    std::string template_name;
    ConfigSpace space;
    std::vector<double> time_ns;                  // by config index; infinity: the config fails
    std::vector<std::vector<double>> samples_ns;  // by config index; empty without the column
  };
  std::string name;  // the file's name without its folder
  std::vector<Part> parts;
  uint32_t crc = 0;  // checksum of the file's text: tells whether two files are the same

  uint64_t size() const;
  double best_ns() const;  // infinity if every config fails
  double median_ns() const;
  Observation measure(const Candidate& c) const;
  SearchSpace search_space() const;  // borrows from this
  // Makes a donor of `rows` configs, drawn uniformly without repetition, failed ones included.
  PriorTask drawn_rows(size_t rows, uint64_t seed) const;
};

// InvalidArgument names the line: an unreadable cell, a config given twice, no knob column, or no row.
Result<RecordedSpace> read_recorded_space(const std::string& path);
Result<std::vector<RecordedSpace>> read_recorded_spaces(const std::vector<std::string>& paths);

}  // namespace tuner
