// Which workers may run candidates, by whom they work for and by what this host offers.
#include "measure_server/worker/isolation_rule.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(IsolationRule, KnowsWhichDaemonsAreHere) {
  for (const char* here :
       {"unix:/run/tuner.sock", "localhost:7070", "127.0.0.1:7070", "127.8.9.1:1", "[::1]:7070"})
    EXPECT_TRUE(is_here(here)) << here;
  for (const char* elsewhere : {"tuner.example.org:7070", "10.0.0.1:7070", "[2001:db8::1]:7070",
                                "127.example.org:7070", "localhost.example.org:7070"})
    EXPECT_FALSE(is_here(elsewhere)) << elsewhere;
}

TEST(IsolationRule, RootWorksForOtherHostsOnlyWithStrict) {
  const auto verdict = [](Isolation reached, const char* daemon, bool root) {
    return may_run(reached, "net: refused", Isolation::kNone, daemon, root);
  };
  EXPECT_EQ(
      verdict(Isolation::kProcess, "farm:7070", true).message(),
      "root runs no candidates of farm:7070 with isolation process (net: refused); start this worker as "
      "another user");
  EXPECT_EQ(verdict(Isolation::kProcess, "farm:7070", true).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(verdict(Isolation::kStrict, "farm:7070", true).is_ok());
  EXPECT_TRUE(verdict(Isolation::kProcess, "farm:7070", false).is_ok());
  EXPECT_TRUE(verdict(Isolation::kNone, "unix:/run/tuner.sock", true).is_ok());
}

TEST(IsolationRule, LessThanAskedForIsRefusedWithTheReason) {
  EXPECT_EQ(
      may_run(Isolation::kProcess, "net: refused", Isolation::kStrict, "unix:/s", false).message(),
      "isolation strict is not to be had on this host, only process (net: refused); --isolation process "
      "accepts it");
  EXPECT_TRUE(may_run(Isolation::kStrict, "", Isolation::kStrict, "unix:/s", false).is_ok());
}

}  // namespace
}  // namespace tuner
