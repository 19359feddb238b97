#include "tuner/answers/lock_offers.h"

#include <filesystem>
#include <map>

#include "tuner/answers/asker.h"
#include "tuner/answers/built_answers.h"
#include "tuner/answers/lock_update.h"
#include "tuner/text/hint.h"

namespace tuner {
namespace {

Status add_built(const std::string& folder, std::vector<LockOffer>& offers) {
  if (!is_built(folder))
    return invalid_argument(folder,
                            ": expected a folder that the command build or compile wrote, found neither "
                            "manifest.json nor plan.json in it");
  ASSIGN_OR_RETURN(std::vector<BuiltKernel> kernels, built_kernels(folder));
  for (BuiltKernel& k : kernels) {
    const bool chosen = is_choice(k.answer.kind);
    offers.push_back({std::move(k.task), std::move(k.answer), folder, chosen});
  }
  return Status::ok();
}

Result<std::unique_ptr<Asker>> open_asker(const LockRequest& request, std::string& notice) {
  ASSIGN_OR_RETURN(std::unique_ptr<Asker> asker,
                   Asker::open({.db = request.db,
                                .daemon = request.daemon,
                                .tune = tune_command(request.files),
                                .database_may_miss = request.defaults || request.database_may_miss}));
  if (!asker->has_database()) notice = request.db + ": there is no database yet, so no task counts as tuned";
  return asker;
}

Status add_asked(const LockRequest& request, const std::string& file, std::unique_ptr<Asker>& asker,
                 std::vector<LockOffer>& offers, std::string& notice) {
  // It would have to be given the options that the model is compiled with once more.
  if (file.ends_with(".onnx"))
    return invalid_argument(
        file,
        ": expected a job file or a compiled folder, found a model. To lock what was compiled: "
        "tuner lock DIR; to make a job file: tuner extract ",
        shell_quoted(file), " -o tasks.json");
  ASSIGN_OR_RETURN(std::vector<CliTask> tasks, read_tasks(file, request.target));
  if (asker == nullptr) {
    ASSIGN_OR_RETURN(asker, open_asker(request, notice));
  }
  for (CliTask& task : tasks) {
    task.constants = constants_from_name(request.constants).value_or(task.constants);
    ASSIGN_OR_RETURN(Answer answer, asker->ask(task));
    const bool chosen = is_choice(answer.kind);
    offers.push_back({std::move(task), std::move(answer), "the database", chosen});
  }
  return Status::ok();
}

// One offer of each task: one that was chosen before one that was not, else the first.
Result<std::vector<LockOffer>> one_each(std::vector<LockOffer> offers) {
  std::map<LockedTask, size_t> known;
  std::vector<LockOffer> out;
  for (LockOffer& offer : offers) {
    const LockedTask task = locked_task(offer.task);
    const auto [at, is_new] = known.try_emplace(task, out.size());
    if (is_new) {
      out.push_back(std::move(offer));
      continue;
    }
    LockOffer& before = out[at->second];
    if (before.chosen && offer.chosen && locked_choice(before.answer) != locked_choice(offer.answer))
      return invalid_argument(described(task), ": ", before.from, " has ",
                              described(locked_choice(before.answer)), ", and ", offer.from, " has ",
                              described(locked_choice(offer.answer)), ": expected one of the two");
    if (offer.chosen && !before.chosen) before = std::move(offer);
  }
  return out;
}

}  // namespace

std::string tune_command(const std::vector<std::string>& files) {
  std::string commands;
  std::error_code error;
  for (const std::string& file : files)
    if (!std::filesystem::is_directory(file, error))
      commands += str(commands.empty() ? "" : "; ", "tuner submit ", shell_quoted(file));
  return commands.empty() ? "tuner submit FILE" : commands;
}

Result<std::vector<LockOffer>> lock_offers(const LockRequest& request, std::string& notice) {
  std::vector<LockOffer> offers;
  std::unique_ptr<Asker> asker;
  std::error_code error;
  for (const std::string& file : request.files)
    RETURN_IF_ERROR(std::filesystem::is_directory(file, error)
                        ? add_built(file, offers)
                        : add_asked(request, file, asker, offers, notice));
  return one_each(std::move(offers));
}

}  // namespace tuner
