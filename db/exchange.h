// What passes between databases and other programs' files: rows with names that mean the same everywhere.
//
// Inside one file jobs and trials go by numbers of its own. Between files a job goes by its uid, a trial by
// its job's uid and the number it had in the database that made it (its home). So the same rows can come
// again, by any way, and are recognised. store.h reads and writes these; formats.h turns them into lines of
// text.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "db/store.h"

namespace tuner {

// A file or database that rows came from.
struct Origin {
  std::string source;  // as the user named it
  std::string format;  // jsonl | csv | autotvm | t4 | database
  std::string header;  // schema.sql, origin.header
  int64_t imported_at_us = 0;
  bool operator==(const Origin&) const = default;
};

// Names a job in every database it gets to: its id, when it was submitted, and a checksum of what was asked.
std::string job_uid(const JobRow& job);

struct ExchangedJob {
  std::string uid;
  JobRow job;  // id: at home
};

// A trial and one of its records; a trial that has none yet stands alone.
struct ExchangedTrial {
  std::string job_uid;
  int64_t home_seq = 0;
  TrialRow trial;  // id, seq: here; job_id: at home. Not read when imported: a file tells others
  JobRow::Task task;
  bool terminal = true;  // the record that closed the trial; else an extra sample
  std::optional<MeasureRecord> record;
};

struct ExchangedRace {
  std::string job_uid;
  RaceRow race;  // its trial ids: "t" and the home_seq
  JobRow::Task task;
};

// A record of another tuner: read as far as needed to find and rank it, and kept as it was written.
struct ForeignRecord {
  int64_t id = 0;  // here; 0: not stored yet
  std::string format;
  std::string task, target;  // in the words of the file
  Outcome outcome = Outcome::kOk;
  double time_ns = 0;  // median of its times; 0 unless ok
  int64_t finished_at_us = 0;
  std::string document;
  Origin origin;
};

using ExchangeRow = std::variant<ExchangedJob, ExchangedTrial, ExchangedRace, ForeignRecord>;

// What became of a row that was imported.
struct ImportedRow {
  enum class Fate : uint8_t {
    kNew,      // stored
    kKnown,    // there already; of a job: perhaps brought up to date
    kRefused,  // not stored, `why` tells
  };
  Fate fate = Fate::kNew;
  std::string why;
};

// Which rows are asked for; empty fields ask for all. They are joined by "and".
struct ExchangeFilter {
  std::string job;       // id here
  std::string op;        // operator of the workload; of foreign records: part of the task's text
  std::string target;    // exactly
  int64_t since_us = 0;  // records that finished then or later
  bool own = true, foreign = true;
};

}  // namespace tuner
