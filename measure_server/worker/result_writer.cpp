#include "measure_server/worker/result_writer.h"

#include <utility>

namespace tuner {
namespace {

constexpr size_t kMostWaiting = 64;

}  // namespace

ResultWriter::ResultWriter(Write write) : write_(std::move(write)), thread_([this] { run(); }) {}

ResultWriter::~ResultWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ResultWriter::put(WorkerCore::Finished result) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
    waiting_.push_back(std::move(result));
  }
  changed_.notify_all();
}

void ResultWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !waiting_.empty() || ends_; });
    if (waiting_.empty()) return;
    const std::vector<WorkerCore::Finished> batch = std::exchange(waiting_, {});
    lock.unlock();
    changed_.notify_all();
    write_(batch);
    lock.lock();
  }
}

}  // namespace tuner
