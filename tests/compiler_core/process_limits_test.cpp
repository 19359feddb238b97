// Limits of the process, set in a process of its own: told by name where they are too small, raised where
// they may be.
#include "compiler_core/base/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace tuner {
namespace {

// What is said under that limit; empty: all is well.
std::string said(int resource, rlim_t soft, rlim_t hard, const ProcessNeeds& needs) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{soft, hard};
    if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) ::_exit(2);
    const std::string text = check_process_limits("it", needs).message();
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t n = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) return "the child failed";
  text.resize(static_cast<size_t>(n > 0 ? n : 0));
  return text;
}

constexpr rlim_t kGib = rlim_t{1} << 30;

TEST(ProcessLimits, TooFewFilesAreToldWithTheNumberNeeded) {
  EXPECT_EQ(said(RLIMIT_NOFILE, 20, 20, {.files = 64}),
            "it: may open 20 files at once, and needs 64: raise the limit (ulimit -n 64)");
  EXPECT_EQ(said(RLIMIT_NOFILE, 63, 63, {.files = 64}),
            "it: may open 63 files at once, and needs 64: raise the limit (ulimit -n 64)");
}

TEST(ProcessLimits, TooFewAddressesAreToldInTheUnitOfTheShell) {
  EXPECT_EQ(said(RLIMIT_AS, kGib, kGib, {.address_space = int64_t{3} << 29}),
            "it: may use 1.00 GiB of addresses, and needs 1.50 GiB beside the operands: raise the limit "
            "(ulimit -v 1572864), "
            "or ask the batch system for more memory");
}

TEST(ProcessLimits, ASoftLimitIsRaisedWhereItMayBe) {
  EXPECT_EQ(said(RLIMIT_NOFILE, 20, 64, {.files = 64}), "");
  EXPECT_EQ(said(RLIMIT_AS, kGib, RLIM_INFINITY, {.address_space = int64_t{3} << 29}), "");
}

TEST(ProcessLimits, WhatIsEnoughOrNotAskedForIsFine) {
  EXPECT_EQ(said(RLIMIT_NOFILE, 64, 64, {.files = 64}), "");
  EXPECT_EQ(said(RLIMIT_NOFILE, 20, 20, {.address_space = 1}), "");
  EXPECT_EQ(said(RLIMIT_AS, kGib, kGib, kDaemonNeeds), "");
}

// process_limits.h: a daemon has been seen with 30 files, a worker to hang with 1.05 GiB of addresses.
TEST(ProcessLimits, DaemonsAndWorkersAskForWhatTheyHaveBeenSeenToNeed) {
  EXPECT_NE(said(RLIMIT_NOFILE, 32, 32, kDaemonNeeds), "");
  EXPECT_EQ(said(RLIMIT_NOFILE, 128, 128, kDaemonNeeds), "");
  EXPECT_NE(said(RLIMIT_NOFILE, 32, 32, kWorkerNeeds), "");
  EXPECT_NE(said(RLIMIT_AS, kGib + kGib / 4, kGib + kGib / 4, kWorkerNeeds), "");
  EXPECT_EQ(said(RLIMIT_AS, 2 * kGib, 2 * kGib, kWorkerNeeds), "");
}

}  // namespace
}  // namespace tuner
