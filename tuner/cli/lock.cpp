// tuner lock FILE... -o answers.lock: the configs that these tasks get now, as a file that people commit and
// that query, build, compile and the runtime library obey. --check holds such a file against them.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "tuner/answers/lock_offers.h"
#include "tuner/answers/lock_update.h"
#include "tuner/cli/command.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct LockCommand {
  LockRequest request;
  std::string output, check;
  bool only = false;
};

void tell(const std::string& notice) {
  if (!notice.empty()) std::fprintf(stderr, "tuner: %s\n", notice.c_str());
}

Status write_lock(const LockCommand& options) {
  RETURN_IF_ERROR(check_output(options.output, options.request.files));
  // The tasks first: they bring the sources that entries of users' kernels name.
  std::string notice;
  ASSIGN_OR_RETURN(const std::vector<LockOffer> offers, lock_offers(options.request, notice));
  AnswerLock lock(options.output);
  std::error_code error;
  if (options.output != "-" && std::filesystem::is_regular_file(options.output, error)) {
    ASSIGN_OR_RETURN(lock, AnswerLock::read(options.output));
  }
  tell(notice);
  const std::string tune = tune_command(options.request.files);
  ASSIGN_OR_RETURN(
      const LockChanges changes,
      update_lock(lock, offers, {.defaults = options.request.defaults, .only = options.only, .tune = tune}));
  RETURN_IF_ERROR(write_file(options.output, lock.text()));
  std::FILE* const to = options.output == "-" ? stderr : stdout;
  std::fprintf(to, "%s: %zu added, %zu changed, %zu kept%s\n", options.output.c_str(), changes.added,
               changes.changed, changes.kept,
               changes.removed > 0 ? str(", ", changes.removed, " removed").c_str() : "");
  const int width = terminal_width(options.output == "-" ? STDERR_FILENO : STDOUT_FILENO);
  for (const std::string& line : changes.lines)
    std::fprintf(to, "%s\n", wrapped("  " + line, width, 4).c_str());
  for (const std::string& note : changes.notes)
    std::fprintf(stderr, "tuner: %s\n", with_commands(note).c_str());
  if (changes.kept_unchosen > 0)
    std::fprintf(stderr, "tuner: %zu kept %s not tuned here. To choose anew: %s\n", changes.kept_unchosen,
                 changes.kept_unchosen == 1 ? "entry is" : "entries are", with_commands(tune).c_str());
  return Status::ok();
}

int compare_lock(const LockCommand& options) {
  LockRequest request = options.request;
  request.database_may_miss = true;
  std::string notice;
  const Result<std::vector<LockOffer>> offers = lock_offers(request, notice);
  if (!offers) return report(offers.status());
  const Result<AnswerLock> lock = AnswerLock::read(options.check);
  if (!lock) return report(lock.status());
  tell(notice);
  const std::string fix =
      lock_command(options.request.files, options.check, options.request.target, options.request.constants);
  const std::vector<std::string> faults = lock_faults(*lock, *offers, fix);
  for (const std::string& fault : faults) std::printf("%s\n", with_commands(fault).c_str());
  std::printf("%s: %zu of %zu tasks are locked as they should be\n", options.check.c_str(),
              offers->size() - faults.size(), offers->size());
  return faults.empty() ? kExitDone : kExitFailed;
}

int run_lock(const LockCommand& options) {
  if (options.output.empty() == options.check.empty())
    return report(
        invalid_argument("expected -o FILE, to write a lock file, or --check FILE, to compare one; found ",
                         options.output.empty() ? "neither" : "both"));
  if (options.check.empty()) return report(write_lock(options));
  if (options.only || options.request.defaults)
    return report(
        invalid_argument("--check writes nothing: expected no ", options.only ? "--only" : "--defaults"));
  return compare_lock(options);
}

}  // namespace

void add_lock_command(Command app, CommandContext& context) {
  auto options = std::make_shared<LockCommand>();
  const Command command = add_command(app, context, "lock",
                                      "Write the configs that tasks get now to a file for version control; "
                                      "query, build, compile and the runtime "
                                      "library obey it (--lock)",
                                      [options] { return run_lock(*options); });
  command
      .add_option("FILE", options->request.files,
                  "Job files, - for standard input; folders of bundles and of compiled models")
      .required();
  command
      .add_option("-o,--output", options->output,
                  "Lock file to write or update; - prints it. Entries of other tasks stay")
      .type_name("FILE");
  command
      .add_option("--check", options->check,
                  "Compare this lock file instead: exit 1, with a line each, if an entry is missing, cannot "
                  "be built, "
                  "or is not what was tuned")
      .type_name("FILE");
  command.add_flag("--only", options->only, "Remove entries of other tasks");
  command.add_flag("--defaults", options->request.defaults,
                   "Lock default configs of tasks that are not tuned");
  command
      .add_option(
          "--constants", options->request.constants,
          "The times that decide: constants warm in the caches, or cold in memory (else what the file asks "
          "for, warm by default)")
      .one_of({"warm", "cold"});
  add_db_option(command, options->request.db);
  add_daemon_option(command, options->request.daemon, ": asks that daemon instead of a file");
  add_target_option(command, options->request.target);
}

}  // namespace tuner::cli
