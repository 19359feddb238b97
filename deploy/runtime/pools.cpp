#include "deploy/runtime/pools.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace tuner::runtime {

namespace {

std::atomic<unsigned> fork_count{0};

void serial_for(void*, int32_t extent, tuner_task task, void* closure) {
  if (extent > 0) task(closure, 0, extent, 0);
}

}  // namespace

unsigned forks() {
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
  static_cast<void>(watched);
  return fork_count.load();
}

Pool::Pool(int threads)
    : threads_(threads),
      forks_(forks()),
      pool_(threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr) {}

Pool::~Pool() {
  // In a child of fork() the threads are not there to be joined.
  if (forks() != forks_) static_cast<void>(pool_.release());
}

AlignedBuffer Pool::take_workspace(int64_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto fits =
      std::ranges::find_if(workspaces_, [&](const AlignedBuffer& b) { return b.bytes() >= bytes; });
  if (fits == workspaces_.end()) return AlignedBuffer(bytes);
  AlignedBuffer found = std::move(*fits);
  *fits = std::move(workspaces_.back());
  workspaces_.pop_back();
  return found;
}

void Pool::give_workspace(AlignedBuffer buffer) {
  if (buffer.bytes() == 0) return;
  constexpr size_t kMost = 64;  // as many calls at once as keep theirs
  const std::lock_guard lock(mutex_);
  if (workspaces_.size() < kMost) return workspaces_.push_back(std::move(buffer));
  const auto smallest = std::ranges::min_element(workspaces_, {}, &AlignedBuffer::bytes);
  if (smallest->bytes() < buffer.bytes()) *smallest = std::move(buffer);
}

Status Pool::call_with(const Kernel& kernel, bool packing, void* const* args, int threads, tuner_runtime rt) {
  AlignedBuffer workspace = take_workspace(kernel.workspace_bytes(threads));
  rt.workspace = workspace.data();
  const Status status = packing ? kernel.pack(args, rt) : kernel.call(args, rt);
  give_workspace(std::move(workspace));
  return status;
}

Status Pool::call(const Kernel& kernel, bool packing, void* const* args) {
  if (pool_ != nullptr && forks() == forks_) {
    const std::unique_lock lock(running_, std::try_to_lock);
    if (lock.owns_lock()) return call_with(kernel, packing, args, threads_, pool_->runtime(nullptr));
  }
  return call_with(kernel, packing, args, 1, {TUNER_ABI_VERSION, 1, serial_for, nullptr, nullptr});
}

std::shared_ptr<Pool> Pools::of(int threads) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Pool>& pool = pools_[threads];
  if (pool == nullptr) pool = std::make_shared<Pool>(threads);
  return pool;
}

}  // namespace tuner::runtime
