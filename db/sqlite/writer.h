// Writer: the thread that owns the one writing connection, with group commit.
//
// Writes of many threads that arrive while a commit is under way share the next one: one fsync for all of
// them. A write that fails is undone alone; the others of its group are kept.
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

  // Runs `operation` in a transaction on the writer's thread; returns when it is on disk, or why it is not
  // (then nothing of it is). After an I/O error every later write is refused: what the disk holds is then
  // known only after a restart.
  Status write(Operation operation);

 private:
  struct Pending {
    Operation operation;
    Status status;
    bool done = false;
  };
  void loop();
  // One transaction for all of `group`; fills their status.
  void commit(std::deque<Pending*>& group);

  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  std::condition_variable work_, finished_;
  std::deque<Pending*> queue_;
  bool stopping_ = false;
  Status broken_;  // the I/O error that ended writing; used by the thread only
  std::thread thread_;
};

}  // namespace tuner::db
