// AnswerLock: configs that were chosen once and written to a text file that people commit. Whoever is given
// the file (`--lock`, tuner_options.lock) uses these configs, whatever its database says, so that every rank,
// build and machine of a kind runs the same kernels.
//
//   tuner-lock 1
//   # lines of comment stay where they are
//
//   llvm -mcpu=haswell -threads=1 | v1 softmax rows=8 columns=64 dtype=float32 | warm | any | softmax_cpu v1
//   | unroll=2
//
// The first line is the version. Then one line per task: target, workload, constants (warm or cold),
// algorithms ("any", or names joined by commas), template and its version, config. Lines are sorted, and
// text() gives the same bytes for the same choices: there are no times, hosts or paths in it.
//
// A task is found by its first four fields. The target is the canonical name, not the word of the job file:
// each machine of a kind gives `cpu` the same name, and a machine of another kind finds no entry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

// A task, as an entry names it.
struct LockedTask {
  std::string target, workload_key;  // canonical
  Constants constants = Constants::kWarm;
  std::string algorithms;                               // canonical, as in JobRow::Task; empty: any
  auto operator<=>(const LockedTask&) const = default;  // NOLINT(modernize-use-nullptr)
};
// Constants are warm where the workload has none: there is only one kind of time then.
LockedTask locked_task(const Workload& workload, const Target& target, std::string_view algorithms,
                       Constants constants);
// "v1 matmul ... on "llvm -mcpu=haswell -threads=1", constants cold", for messages.
std::string described(const LockedTask& task);

struct LockedChoice {
  std::string template_name;
  int template_version = 1;
  std::string config;  // canonical
  bool operator==(const LockedChoice&) const = default;
};
// "matmul_cpu v7, block_k=0 block_m=4 ..."
std::string described(const LockedChoice& choice);

struct LockEntry {
  LockedTask task;
  LockedChoice choice;
  int line = 0;         // of the file it was read from; 0: it was put in since
  std::string comment;  // lines directly above it, each with its newline; they go where the entry goes
};

class AnswerLock {
 public:
  // An empty one. `path` is for messages.
  explicit AnswerLock(std::string path) : path_(std::move(path)) {}
  // InvalidArgument, "PATH:LINE: ...": the text is no lock file, or of a newer format; a line is damaged; or
  // two lines are about one task.
  static Result<AnswerLock> parse(std::string_view text, const std::string& path);
  // The same of a file. InvalidArgument also: it cannot be read, or is larger than kMostBytes.
  static Result<AnswerLock> read(const std::string& path);
  static constexpr size_t kMostBytes = 64 << 20;

  const std::string& path() const { return path_; }
  const std::vector<LockEntry>& entries() const { return entries_; }  // sorted by task
  std::string text() const;

  const LockEntry* find(const LockedTask& task) const;  // null: none
  // Adds the entry, or gives that of its task another choice and line; comments stay.
  void put(LockEntry entry);
  // Removes the entries of all other tasks, and returns them.
  std::vector<LockEntry> keep_only(const std::vector<LockedTask>& tasks);

  // "answers.lock:7", the place of an entry.
  std::string place(const LockEntry& entry) const;
  // NotFound: no entry for the task; which others the file has for this workload; and `fix`, the command that
  // adds it.
  Status missing(const LockedTask& task, std::string_view fix) const;

 private:
  std::string path_;
  std::string head_;  // comments that belong to no entry
  std::vector<LockEntry> entries_;
};

}  // namespace tuner
