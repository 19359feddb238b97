// Writes answers into a lock file, and compares the two: `tuner lock`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/resolve/answer_lock.h"
#include "db/resolve/resolve.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// A config that may be locked for a task.
struct LockOffer {
  CliTask task;
  Answer answer;
  std::string from;  // who says so, for messages: "the database", "out"
  // True if the answer is a choice: the task was tuned, or it was built with this config. Another answer
  // (predicted, default) only fills a gap: it replaces no entry that can be built.
  bool chosen = false;
};

LockedTask locked_task(const CliTask& task);
LockedChoice locked_choice(const Answer& answer);

struct LockChanges {
  // One line each: "added    v1 matmul ...: matmul_cpu v7, block_k=0 ...", then changed, then removed ones.
  std::vector<std::string> lines;
  size_t added = 0, changed = 0, removed = 0, kept = 0;
  size_t kept_unchosen = 0;        // of those kept: the offer was no choice
  std::vector<std::string> notes;  // of answers that were taken and are not exact
};

struct LockOptions {
  bool defaults = false;  // default configs may be locked
  bool only = false;      // entries of tasks that are not offered are removed
  std::string tune;       // the command that tunes, for errors
};

// Takes the offers over. The lock is as it was if there is an error. NotFound: tasks without an entry whose
// answer is a default, and `defaults` is not set; it names the first and how many they are. NotFound also: a
// config that this program cannot build.
Result<LockChanges> update_lock(AnswerLock& lock, const std::vector<LockOffer>& offers,
                                const LockOptions& options);

// Returns one line for each offer whose entry is missing, cannot be built, or is another config than a chosen
// one. `fix`: the command that writes the entries anew.
std::vector<std::string> lock_faults(const AnswerLock& lock, const std::vector<LockOffer>& offers,
                                     const std::string& fix);

// "tuner lock job.json -o answers.lock --target cpu", the command that writes the entries of these files
// anew. `target` and `constants` are options of the command that asks; empty: it was given none.
std::string lock_command(const std::vector<std::string>& files, const std::string& lock,
                         const std::string& target, const std::string& constants);

}  // namespace tuner
