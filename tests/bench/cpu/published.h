// Are published times true? Each shape is tuned as a user would, the daemon is asked for its answer, and the
// answer's config is measured again and again by the same daemon, each time in fresh processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"
#include "tests/bench/cpu/shapes.h"

namespace tuner {

struct PublishedOptions {
  int times = 1;   // each answer is measured again so often
  int trials = 0;  // of the search before, a job a shape; 0: what the database has
  int threads = 1;
  std::optional<uint64_t> seed;  // of the searches; none: the command's
  std::string db, json;          // json: written after each shape; empty: nowhere
  double deadline_s = 3600;      // no shape is begun after this
};

struct PublishedShape {
  BenchShape shape;
  TunedConfig published;
  std::vector<RaceRow> again;
  std::string error;  // why there is no answer, or why fewer than asked for were measured
};

struct PublishedReport {
  std::string date, cpu, target, toolchain;
  PublishedOptions options;
  std::vector<PublishedShape> shapes;
  std::string stopped;  // why shapes are missing; empty when none is
};

// An answer without an interval (not certified, or none at all) is a miss each time.
struct PublishedSummary {
  int inside = 0, times = 0;  // of all that were to be measured
  int alone = 0;              // of these in the interval as published, not stretched by clock or memory
  int narrow = 0;             // shapes with a half-width of 5 % at most
  int uncertified = 0;        // shapes
};
PublishedSummary summarise(const PublishedReport& report);
// Of one measurement: "inside", "OUTSIDE", "cannot tell" or "not certified".
std::string verdict(const PublishedShape& shape, const RaceRow& now);
// Why it cannot be told, with a comma in front; empty: it can.
std::string why(const PublishedShape& shape, const RaceRow& now);
Status write_json(const PublishedReport& report, const std::string& path);

// Prints a table: a line each time. False: not everything was measured. However many lie outside is a figure,
// no failure.
Result<bool> run_published(const std::vector<BenchShape>& shapes, const PublishedOptions& options);

}  // namespace tuner
