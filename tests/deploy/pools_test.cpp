// Pools of the runtime library: who gets threads and workspace when several call at once. Kernels are played
// by a function.
#include "deploy/runtime/pools.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace tuner::runtime {
namespace {

// What a call saw, and when it may end.
struct Call {
  std::atomic<int> threads{0};
  std::atomic<void*> workspace{nullptr};
  std::atomic<bool> may_end{true};
};
int32_t played(void* const* args, const tuner_runtime* rt) {
  Call& call = *static_cast<Call*>(args[0]);
  call.workspace = rt->workspace;
  call.threads = rt->num_threads;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!call.may_end && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return rt->abi_version == TUNER_ABI_VERSION ? 0 : -1;
}

class PlayedLoader final : public KernelLoader {
 public:
  std::string_view kind() const override { return "played"; }
  Result<LoadedKernel> load(const std::string&, const Manifest&) const override {
    return LoadedKernel{.entry = played};
  }
};
const PlayedLoader kLoader;
const RegisterKernelLoader kRegistered(kLoader);

Kernel kernel() {
  auto loaded = Kernel::load_file(
      "none",
      {.kind = "played", .entry = "played", .workspace_bytes = 100, .workspace_bytes_per_thread = 1000});
  CHECK(loaded.is_ok()) << loaded.message();
  return *std::move(loaded);
}
Status call(Pool& pool, const Kernel& kernel, Call& call) {
  void* args[] = {&call};
  return pool.call(kernel, /*packing=*/false, args);
}

TEST(Pools, AKernelGetsTheThreadsOfItsPool) {
  const Kernel k = kernel();
  for (const int threads : {1, 3}) {
    Pool pool(threads);
    Call one;
    ASSERT_TRUE(call(pool, k, one));
    EXPECT_EQ(one.threads, threads);
    EXPECT_EQ(k.workspace_bytes(threads), 100 + threads * 1000);
  }
}

TEST(Pools, ACallThatFindsItsPoolBusyWorksAlone) {
  const Kernel k = kernel();
  Pool pool(2);
  Call first, second;
  first.may_end = false;
  std::thread other([&] { EXPECT_TRUE(call(pool, k, first)); });
  while (first.threads == 0) std::this_thread::yield();
  ASSERT_TRUE(call(pool, k, second));
  EXPECT_FALSE(first.may_end) << "nobody waited for it";
  EXPECT_EQ(first.threads, 2);
  EXPECT_EQ(second.threads, 1);
  EXPECT_NE(first.workspace, second.workspace);
  first.may_end = true;
  other.join();
  Call third;
  ASSERT_TRUE(call(pool, k, third));
  EXPECT_EQ(third.threads, 2) << "the pool is free again";
}

// Also as an idle buffer that is larger: nothing is allocated anew for each call.
TEST(Pools, WorkspacesAreUsedAgainAndAligned) {
  const Kernel k = kernel();
  Pool pool(2);
  std::set<void*> seen;
  for (int n = 0; n < 20; ++n) {
    Call one;
    ASSERT_TRUE(call(pool, k, one));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one.workspace.load()) % 64, 0U);
    seen.insert(one.workspace);
  }
  EXPECT_EQ(seen.size(), 1U);
}

TEST(Pools, EachNumberOfThreadsHasOnePool) {
  Pools pools;
  EXPECT_EQ(pools.of(2), pools.of(2));
  EXPECT_NE(pools.of(2), pools.of(1));
}

}  // namespace
}  // namespace tuner::runtime
