// The look at the database in the background: it comes round, tells what it found, and ends when it is told.
#include "tuner/daemon/integrity_check.h"

#include <gtest/gtest.h>

#include "db/sqlite/sqlite.h"
#include "tests/db/store_fixture.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;

class IntegrityCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(store_->add_job(job_row("j1")));
    std::vector<std::string> configs;
    for (int i = 0; i < 2'000; ++i) configs.push_back("a=" + std::to_string(i));
    add_trials(*store_, "j1", configs);
  }
  // Of the first check after `checks`.
  static IntegrityCheck::Found next(const IntegrityCheck& check, int64_t checks) {
    wait_until(60s, [&] { return check.found().checks > checks; });
    return check.found();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("t.db");
  std::unique_ptr<Store> store_ = must_open(path_);
};

TEST_F(IntegrityCheckTest, ComesRoundAndTellsOfDamage) {
  const IntegrityCheck check(*store_, {.first = 0ms, .every = 10ms, .share = 1});
  const IntegrityCheck::Found sound = next(check, 0);
  EXPECT_GE(sound.checks, 1);
  EXPECT_GT(sound.rows, 2'000);
  EXPECT_EQ(sound.faults, 0);
  ASSERT_OK((*db::Connection::open(path_, db::Connection::Access::kReadWrite))
                ->exec("UPDATE trial SET fencing = 7 WHERE seq % 10 = 0"));
  const IntegrityCheck::Found damaged = next(check, check.found().checks + 1);
  EXPECT_EQ(damaged.faults, 200);
}

TEST_F(IntegrityCheckTest, EndsInTheMiddleOfARestOrBeforeItHasBegun) {
  const auto begun = std::chrono::steady_clock::now();
  { const IntegrityCheck waits(*store_, {.first = 24h, .every = 24h}); }
  {
    // After one page it rests for an hour or more.
    const IntegrityCheck rests(*store_, {.first = 0ms, .every = 24h, .share = 1e-8});
    let_pass(100ms);
    EXPECT_EQ(rests.found().checks, 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30min) << "else it would have waited for a rest to end";
}

}  // namespace
}  // namespace tuner
