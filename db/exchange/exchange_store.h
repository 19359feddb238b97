// What passes between databases and other programs' files: rows with names that mean the same everywhere.
//
// Inside one file jobs and trials go by numbers of its own. Between files a job goes by its uid, a trial by
// its job's uid and the number it had in the database that made it (its home). So the same rows can come
// again, by any way, and are recognised. Store::exchange() reads and writes these; formats.h turns them into
// lines of text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

// A file or database that rows came from.
struct Origin {
  std::string source;  // as the user named it
  std::string format;  // jsonl | csv | autotvm | t4 | database
  // What stood there once for all its foreign records: of t4 the document without its results, of csv the
  // first line; empty else.
  std::string header;
  int64_t imported_at_us = 0;
  bool operator==(const Origin&) const = default;
};

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

// Stores rows that come from elsewhere. Rows that are there already, in whatever order and from whatever file
// they came, change nothing (identity.h tells what makes them the same).
//
// A job that was open at home is cancelled here, and so are its trials without a record: nobody works on
// them. A job whose id is taken here gets another. Where the row of a job is missing, its trials make one
// that knows no more than they tell.
//
// One importer of a store at a time, used by one thread.
class Importer {
 public:
  virtual ~Importer() = default;
  // All rows of a call in one transaction: on disk when it returns; one fate a row, in order. An error (the
  // disk) means that nothing of this call was stored; then the importer can no longer be used. A race must
  // come after the trials it is about, in this call or an earlier one.
  virtual Result<std::vector<ImportedRow>> add(const std::vector<ExchangeRow>& rows) = 0;
};

// Which rows are asked for. The parts are joined by "and"; what is empty asks for all.
struct ExchangeFilter {
  std::string job;       // id here
  int64_t since_us = 0;  // records that finished then or later
  std::function<bool(const JobRow::Task&)> task;
  std::function<bool(const ForeignRecord&)> foreign_task;  // sees format, task and target only
  bool own = true, foreign = true;
  // Told of each row that is left out because it, or a row that it needs, is damaged. Without it the first
  // such row is an error.
  std::function<void(const std::string& why)> damaged;
};

// A task of another tuner's records.
struct ForeignTask {
  int64_t id = 0;
  std::string format, task, target;
};

// The part of a Store that exchanges rows; an engine implements it.
class ExchangeStore {
 public:
  virtual ~ExchangeStore() = default;

  // Hands rows to `f`: jobs before their trials, a trial with several records once for each, in the order of
  // seq, then races, then foreign records. Reads in pages, so memory does not grow with the database and a
  // writer is not held up. `f` returns false to stop. NotFound: no such job.
  virtual Status for_each_row(const ExchangeFilter& filter,
                              const std::function<bool(const ExchangeRow&)>& f) const = 0;
  // The store is open for writing and outlives what is returned.
  virtual std::unique_ptr<Importer> importer(Origin origin) = 0;

  // Records of other tuners, for a search that they may warm.
  virtual Result<std::vector<ForeignTask>> foreign_tasks() const = 0;  // oldest first
  // The largest id there is; 0: none. Their ids and those of our records count together, so one number bounds
  // both.
  virtual Result<int64_t> last_foreign_id() const = 0;
  // At most `most` records of a task with ids up to `until`, chosen by donor_sample.h.
  virtual Result<std::vector<ForeignRecord>> sample_foreign(const ForeignTask& task, int64_t until,
                                                            int most) const = 0;
};

}  // namespace tuner
