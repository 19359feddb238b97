#include "db/sqlite/writer.h"

#include <utility>

namespace tuner::db {

Writer::Writer(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)), thread_([this] { loop(); }) {}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

Status Writer::write(Operation operation) {
  Pending pending{.operation = std::move(operation)};
  std::unique_lock lock(mutex_);
  queue_.push_back(&pending);
  work_.notify_one();
  finished_.wait(lock, [&] { return pending.done; });
  return pending.status;
}

void Writer::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<Pending*> group;
    // Bounded, so that the WAL grows in steps a checkpoint can follow.
    constexpr size_t kMaxGroup = 512;
    while (!queue_.empty() && group.size() < kMaxGroup) {
      group.push_back(queue_.front());
      queue_.pop_front();
    }
    lock.unlock();
    commit(group);
    lock.lock();
    for (Pending* pending : group) pending->done = true;
    finished_.notify_all();
  }
}

void Writer::commit(std::deque<Pending*>& group) {
  const auto all_fail = [&](const Status& status) {
    if (connection_->in_transaction()) (void)connection_->exec("ROLLBACK");
    if (connection_->broken() && broken_.is_ok())
      broken_ = Status(status.code(),
                       status.message() + " (nothing is written any more; restart after the repair)");
    for (Pending* pending : group) pending->status = broken_.is_ok() ? status : broken_;
  };
  if (!broken_.is_ok()) return all_fail(broken_);
  if (const Status begun = connection_->exec("BEGIN IMMEDIATE"); !begun) return all_fail(begun);
  for (Pending* pending : group) {
    if (const Status saved = connection_->exec("SAVEPOINT one"); !saved) return all_fail(saved);
    pending->status = pending->operation(*connection_);
    // Some errors (disk full, I/O) end the whole transaction, and with it the writes before this one.
    if (!connection_->in_transaction() || connection_->broken()) return all_fail(Status(pending->status));
    const Status released =
        connection_->exec(pending->status ? "RELEASE one" : "ROLLBACK TO one; RELEASE one");
    if (!released) return all_fail(released);
  }
  if (const Status committed = connection_->exec("COMMIT"); !committed) all_fail(committed);
}

}  // namespace tuner::db
