#include "tuner/answers/asker.h"

#include "proto/convert.h"
#include "tuner/answers/imported_note.h"
#include "tuner/study/present.h"

namespace tuner {

Result<std::unique_ptr<Asker>> Asker::open(const AskerOptions& options) {
  auto asker = std::make_unique<Asker>();
  asker->tune_ = options.tune;
  if (!options.daemon.empty()) {
    ASSIGN_OR_RETURN(asker->client_, DaemonClient::connect({.daemon = options.daemon}));
    if (options.lock == nullptr) return asker;
  } else {
    ASSIGN_OR_RETURN(asker->store_, open_if_there(options.db));
    if (asker->store_ == nullptr && !options.database_may_miss)
      return not_found(options.db, ": there is no database yet. To tune: ", options.tune);
  }
  asker->resolver_ = std::make_unique<Resolver>(
      asker->store_.get(), ResolverOptions{.fix = options.tune,
                                           .present = [](const Target& t) { return present_here(t); },
                                           .learn_if_missing = true,
                                           .count_outcomes = true,
                                           .lock = options.lock,
                                           .lock_fix = options.lock_fix});
  return asker;
}

Result<Answer> Asker::ask_daemon(const CliTask& task) const {
  ASSIGN_OR_RETURN(const v1::QueryReply reply,
                   client_->query({task.key, task.target_name, task.algorithms, 1, task.constants}));
  return from_proto(reply.answer());
}

Result<Answer> Asker::ask(const CliTask& task) const {
  if (resolver_ == nullptr) {
    Result<Answer> told = ask_daemon(task);
    if (told.status().code() != StatusCode::kNotFound) return told;
    // Nobody has brought it the source that the key names: nothing is known of this task.
    return Resolver(nullptr, {.fix = tune_})
        .resolve(task.workload, task.target, task.algorithms, task.constants);
  }
  ASSIGN_OR_RETURN(Answer answer,
                   resolver_->resolve(task.workload, task.target, task.algorithms, task.constants));
  if (store_ != nullptr && !is_choice(answer.kind)) {
    ASSIGN_OR_RETURN(const std::string imported, imported_note(*store_, task.key, task.target_name));
    if (!imported.empty()) answer.note += (answer.note.empty() ? "" : "; ") + imported;
  }
  if (!client_) return answer;
  Result<Answer> known = ask_daemon(task);
  if (!known) answer.note = str("what the daemon knows of it cannot be read: ", known.message());
  if (!known || known->kind != AnswerKind::kExact || !is_config_of(*known, answer)) return answer;
  known->kind = AnswerKind::kLocked;
  known->locked_at = answer.locked_at;
  return known;
}

}  // namespace tuner
