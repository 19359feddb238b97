#include "tuner/answers/lock_update.h"

#include "db/resolve/locked.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner {
LockedTask locked_task(const CliTask& task) {
  return locked_task(task.workload, task.target, task.algorithms, task.constants);
}

LockedChoice locked_choice(const Answer& answer) {
  return {answer.template_name, answer.template_version, answer.config};
}

namespace {

Result<Answer> entry_of(const AnswerLock& lock, const CliTask& task, const std::string& fix) {
  return locked_answer(lock, task.workload, task.target, task.algorithms, task.constants, fix);
}

// Whether the offer becomes the task's entry.
bool is_taken(const AnswerLock& lock, const LockOffer& offer) {
  return offer.chosen || !entry_of(lock, offer.task, "");
}

Status refuse_defaults(const AnswerLock& lock, const std::vector<LockOffer>& offers,
                       const LockOptions& options) {
  if (options.defaults) return Status::ok();
  const LockOffer* first = nullptr;
  size_t count = 0;
  for (const LockOffer& offer : offers) {
    if (offer.answer.kind != AnswerKind::kDefault || !is_taken(lock, offer)) continue;
    if (count++ == 0) first = &offer;
  }
  if (count == 0) return Status::ok();
  return not_found(count, " of ", offers.size(), offers.size() == 1 ? " task" : " tasks",
                   " not tuned, so nothing is written. The first: ", described(locked_task(first->task)),
                   ". To tune: ", options.tune, "; to lock default configs: --defaults");
}

// That the config can be built as the entry of its task.
Status check_offer(const LockOffer& offer) {
  AnswerLock alone(offer.from);
  alone.put({.task = locked_task(offer.task), .choice = locked_choice(offer.answer)});
  return entry_of(alone, offer.task, "build it or tune it with this program").status();
}

// What a comparison says of the time of a config; empty if it is not known.
std::string with_time(const Answer& answer) {
  return answer.tuned ? str(" (", format_time(answer.tuned->time_ns), ")") : std::string();
}

}  // namespace

Result<LockChanges> update_lock(AnswerLock& lock, const std::vector<LockOffer>& offers,
                                const LockOptions& options) {
  RETURN_IF_ERROR(refuse_defaults(lock, offers, options));
  AnswerLock updated = lock;
  LockChanges out;
  std::vector<LockedTask> tasks;
  std::vector<std::string> changed;
  for (const LockOffer& offer : offers) {
    const LockedTask task = locked_task(offer.task);
    if (std::ranges::find(tasks, task) != tasks.end()) continue;  // the file has it twice
    tasks.push_back(task);
    const LockEntry* const before = updated.find(task);
    const LockedChoice choice = locked_choice(offer.answer);
    const bool taken = is_taken(lock, offer);
    if (before == nullptr && !taken) {  // an entry for any device of the target serves it
      tasks.push_back(task);
      tasks.back().target = offer.task.target.family->any_device(offer.task.target);
      ++out.kept;
      ++out.kept_unchosen;
      continue;
    }
    if (before != nullptr && (!taken || before->choice == choice)) {
      ++out.kept;
      out.kept_unchosen += taken ? 0 : 1;
      continue;
    }
    RETURN_IF_ERROR(check_offer(offer));
    if (before == nullptr) {
      out.lines.push_back(str("added    ", described(task), ": ", described(choice)));
      ++out.added;
    } else {
      changed.push_back(
          str("changed  ", described(task), ": ", described(before->choice), " -> ", described(choice)));
    }
    if (!offer.answer.note.empty()) out.notes.push_back(offer.answer.note);
    updated.put({.task = task, .choice = choice});
  }
  out.changed = changed.size();
  std::ranges::move(changed, std::back_inserter(out.lines));
  if (options.only)
    for (const LockEntry& entry : updated.keep_only(tasks)) {
      out.lines.push_back(str("removed  ", described(entry.task), ": ", described(entry.choice)));
      ++out.removed;
    }
  lock = std::move(updated);
  return out;
}

std::vector<std::string> lock_faults(const AnswerLock& lock, const std::vector<LockOffer>& offers,
                                     const std::string& fix) {
  std::vector<std::string> faults;
  for (const LockOffer& offer : offers) {
    const Result<Answer> locked = entry_of(lock, offer.task, fix);
    if (!locked)
      faults.push_back(locked.message());
    else if (offer.chosen && !is_config_of(*locked, offer.answer))
      faults.push_back(str(locked->locked_at, ": ", described(locked_task(offer.task)), " is locked to ",
                           described(locked_choice(*locked)), "; ", offer.from, " has ",
                           described(locked_choice(offer.answer)), with_time(offer.answer),
                           ". To take it: ", fix));
  }
  return faults;
}

std::string lock_command(const std::vector<std::string>& files, const std::string& lock,
                         const std::string& target, const std::string& constants) {
  std::string command = "tuner lock";
  for (const std::string& file : files) command += " " + shell_quoted(file);
  command += " -o " + shell_quoted(lock);
  if (!target.empty()) command += " --target " + shell_quoted(target);
  if (!constants.empty()) command += " --constants " + constants;
  return command;
}

}  // namespace tuner
