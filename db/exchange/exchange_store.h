// The rows that travel between databases and other programs' files, under names that mean the same
// everywhere.
//
// Inside one file, jobs and trials have numbers that only this file knows. Between files a job is named by
// its uid, and a trial by its job's uid and the number it had in the database that made it (its home). So a
// row that comes again, by whatever way, is recognised. Store::exchange() reads and writes these rows;
// formats.h turns them into lines of text.
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
  std::string format;  // jsonl | csv | autotvm | t4 | kernel-tuner | database
  // What the file states once for all its foreign records. t4, kernel-tuner: a T4 document without its
  // results; csv: the first line; other formats: empty.
  std::string header;
  int64_t imported_at_us = 0;
  bool operator==(const Origin&) const = default;
};

struct ExchangedJob {
  std::string uid;
  JobRow job;  // `id` is the id at home
};

// A trial and one of its records. A trial without a record stands alone.
struct ExchangedTrial {
  std::string job_uid;
  int64_t home_seq = 0;
  TrialRow trial;  // `id` and `seq` are those of this database, `job_id` that of home; an import reads none
                   // of them
  JobRow::Task task;
  bool terminal = true;  // true: this record closed the trial; false: an extra sample
  std::optional<MeasureRecord> record;
};

struct ExchangedRace {
  std::string job_uid;
  // Its trial ids are "t" and the home_seq, of the trials in its own file. Refused: two have that number.
  RaceRow race;
  JobRow::Task task;
};

// A record of another tuner. We read what is needed to find and rank it, and keep its text as it was written.
struct ForeignRecord {
  int64_t id = 0;  // id in this database; 0: not stored yet
  std::string format;
  std::string task, target;  // as the file spells them
  Outcome outcome = Outcome::kOk;
  double time_ns = 0;  // median of its times; 0 unless ok
  int64_t finished_at_us = 0;
  std::string document;
  Origin origin;
};

// A KernelRow stands before all else. Its `id` is that of this database; an import does not read it.
using ExchangeRow = std::variant<ExchangedJob, ExchangedTrial, ExchangedRace, ForeignRecord, KernelRow>;

// Says what happened to an imported row.
struct ImportedRow {
  enum class Fate : uint8_t {
    kNew,      // stored
    kKnown,    // it was there already; a job may have been brought up to date
    kRefused,  // not stored; `why` tells the reason
  };
  Fate fate = Fate::kNew;
  std::string why;
};

// Stores rows from elsewhere. A row that is already there changes nothing, in whatever order and from
// whatever file it comes (identity.h says when two rows are the same).
//
// A job that was open at home is cancelled here, with its trials that have no record: nobody works on them. A
// job whose id is taken here gets a new id. If the row of a job is missing, a job is made from what its
// trials tell.
//
// A store has at most one importer at a time, and one thread uses it.
class Importer {
 public:
  virtual ~Importer() = default;
  // Stores all rows of a call in one transaction, on disk when it returns. Returns one fate per row, in
  // order. An error (of the disk) means that nothing of this call was stored and that the importer can no
  // longer be used. A race must come after its trials, in this call or an earlier one.
  virtual Result<std::vector<ImportedRow>> add(const std::vector<ExchangeRow>& rows) = 0;
};

// Selects rows. A row must pass every part; an empty part passes all rows.
struct ExchangeFilter {
  std::string job;       // id in this database
  int64_t since_us = 0;  // only records that finished at this time or later
  std::function<bool(const JobRow::Task&)> task;
  std::function<bool(const ForeignRecord&)> foreign_task;  // is given only format, task and target
  bool own = true, foreign = true;
  // Called for each row that is left out because it, or a row it needs, is damaged. If empty, the first such
  // row is an error.
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

  // Hands rows to `f` until it returns false: first the kernels that tasks of the jobs name, then jobs, then
  // trials in the order of seq (a trial with several records once for each), then races, then foreign
  // records. Reads page by page, so memory does not grow with the database and a writer is not blocked.
  // NotFound: no such job.
  virtual Status for_each_row(const ExchangeFilter& filter,
                              const std::function<bool(const ExchangeRow&)>& f) const = 0;
  // The store must be open for writing and must outlive the importer.
  virtual std::unique_ptr<Importer> importer(Origin origin) = 0;

  // The tasks of other tuners' records, which may warm a search.
  virtual Result<std::vector<ForeignTask>> foreign_tasks() const = 0;  // oldest first
  // Returns the largest id of a foreign record; 0: there is none. Foreign and own records share one counter,
  // so one number bounds both.
  virtual Result<int64_t> last_foreign_id() const = 0;
  // Returns at most `most` records of a task with ids up to `until`, chosen by donor_sample.h.
  virtual Result<std::vector<ForeignRecord>> sample_foreign(const ForeignTask& task, int64_t until,
                                                            int most) const = 0;
};

}  // namespace tuner
