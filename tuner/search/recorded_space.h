// RecordedSpace: a space whose every time is known, read from a file: what a search is scored against without
// a device.
//
// CSV, gzip or plain; header names decide. Columns: one a knob, then in any order
//   time_ms     of the config; ignored unless status is ok
//   status      "ok", or how the config failed: it costs a trial
//   samples_ms  (optional) every sample, with ; between
//   template    (optional) of the row, else "recorded"; knobs a template or a config does not have are empty
// A knob whose cells are all integers is ordered; any other is categorical, with its cells as labels. Configs
// that are absent break a constraint: they are never proposed.
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
  std::string name;  // of the file, without its folder
  std::vector<Part> parts;
  uint32_t crc = 0;  // of the file's text: tells whether two files are the same

  uint64_t size() const;
  double best_ns() const;  // infinity when every config fails
  double median_ns() const;
  Observation measure(const Candidate& c) const;
  SearchSpace search_space() const;  // borrows from this
  // As a donor: `rows` of its configs, drawn uniformly without repetition; failed ones are among them.
  PriorTask drawn_rows(size_t rows, uint64_t seed) const;
};

// InvalidArgument: an unreadable cell, a config given twice, no knob column, no row; names the line.
Result<RecordedSpace> read_recorded_space(const std::string& path);

}  // namespace tuner
