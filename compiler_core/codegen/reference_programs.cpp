#include "compiler_core/codegen/reference_programs.h"

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/one_by_one.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/runtime/tuner_kernel.h"

namespace tuner {
// The threads live as long as the programs: a network runs hundreds of them.
class ReferenceThreads {
 public:
  explicit ReferenceThreads(int threads) : pool(ThreadPool::at_most(threads)), shares(pool) {}
  ThreadPool pool;
  OneByOne shares;  // other processes of ours are busy, too
};

struct ReferencePrograms::Entry {
  Status status;
  std::unique_ptr<const Kernel> kernel;
  int threads = 1;
};

ReferencePrograms::ReferencePrograms(int threads)
    : threads_(threads), pool_(std::make_unique<ReferenceThreads>(threads)) {}
ReferencePrograms::~ReferencePrograms() = default;

std::shared_ptr<const ReferencePrograms::Entry> ReferencePrograms::entry_of(const Program& unscheduled) {
  constexpr size_t kMostKept = 1024;       // each has pages of its own
  constexpr double kMuchWork = 2'000'000;  // iterations: some milliseconds
  const std::string key = to_text(unscheduled);
  {
    std::unique_lock lock(mutex_);
    for (auto known = entries_.find(key); known != entries_.end(); known = entries_.find(key)) {
      if (known->second != nullptr) return known->second;
      compiled_.wait(lock);
    }
    if (entries_.size() >= kMostKept)
      std::erase_if(entries_, [](const auto& each) { return each.second != nullptr; });
    entries_[key] = nullptr;
  }
  auto made = std::make_shared<Entry>();
  made->threads = stores_in(unscheduled.body) < kMuchWork ? 1 : threads_;
  const Target target = host_target(made->threads);
  const Result<Artifact> artifact =
      compile(reference_program(unscheduled, reference_blocks(target), target), target);
  if (artifact) {
    Result<Kernel> kernel = Kernel::load(*artifact);
    if (kernel)
      made->kernel = std::make_unique<const Kernel>(*std::move(kernel));
    else
      made->status = kernel.status();
  } else {
    made->status = artifact.status();
  }
  const std::lock_guard lock(mutex_);
  entries_[key] = made;
  compiled_.notify_all();
  return made;
}

void ReferencePrograms::compile_ahead(const Program& unscheduled) { entry_of(unscheduled); }

Status ReferencePrograms::run(const Program& unscheduled, const std::vector<void*>& args) {
  const std::shared_ptr<const Entry> entry = entry_of(unscheduled);
  RETURN_IF_ERROR(entry->status);
  const AlignedBuffer workspace(entry->kernel->workspace_bytes(pool_->pool.threads()),
                                AlignedBuffer::Content::kAny);
  tuner_runtime runtime =
      entry->threads > 1 ? pool_->shares.runtime(workspace.data()) : tuner_serial_runtime(workspace.data());
  return entry->kernel->call(args.data(), runtime);
}

}  // namespace tuner
