// Writer: the thread that owns the only writing connection. It commits in groups.
//
// Writes that arrive while a commit is under way share the next one, with a single fsync. A write that fails
// is undone alone; the others of its group are kept.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

class Writer {
 public:
  using Operation = std::function<Status(Connection&)>;

  explicit Writer(std::unique_ptr<Connection> connection);
  ~Writer();  // commits what is queued

  // Runs `operation` in a transaction on the writer's thread. Returns when it is on disk, or with the reason
  // why nothing of it is. After an I/O error every later write is refused, because only a restart can tell
  // what the disk holds.
  Status write(Operation operation);

 private:
  struct Pending {
    Operation operation;
    Status status;
    bool done = false;
  };
  void loop();
  // Runs one transaction for all of `group` and fills their status.
  void commit(std::deque<Pending*>& group);

  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  std::condition_variable work_, finished_;
  std::deque<Pending*> queue_;
  bool stopping_ = false;
  Status broken_;  // the I/O error that ended writing; only the thread uses it
  std::thread thread_;
};

}  // namespace tuner::db
