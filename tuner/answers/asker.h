// Asker: asks a database file, or a daemon, which config a task gets. With a lock file the file decides, and
// they only tell what was measured of its config.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "db/resolve/answer_lock.h"
#include "db/resolve/resolve.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

struct AskerOptions {
  std::string db, daemon;          // the daemon's address, as --daemon takes it; empty: the database
  std::string tune;                // the command that tunes, for notes
  bool database_may_miss = false;  // every answer is then a default; else NotFound
  const AnswerLock* lock = nullptr;
  std::string lock_fix;  // ResolverOptions::lock_fix
};

class Asker {
 public:
  static Result<std::unique_ptr<Asker>> open(const AskerOptions& options);
  // Errors as Resolver::resolve().
  Result<Answer> ask(const CliTask& task) const;
  bool has_database() const { return store_ != nullptr || client_.has_value(); }

 private:
  Result<Answer> ask_daemon(const CliTask& task) const;

  std::string tune_;
  std::optional<DaemonClient> client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Resolver> resolver_;  // null: the daemon alone answers
};

}  // namespace tuner
