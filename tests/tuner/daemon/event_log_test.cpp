// Events of a job: in order, page by page, and named when one cannot be read.
#include "tuner/daemon/edge/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using testing::HasSubstr;

class Events : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(store->add_job({.id = "j1", .tasks = {{"v1 work", "cpu"}}, .search = "random"}).is_ok());
    ASSERT_TRUE(store->add_job({.id = "j2", .tasks = {{"v1 work", "cpu"}}, .search = "random"}).is_ok());
  }
  TemporaryFolder folder;
  std::unique_ptr<Store> store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  EventLog log{*store};
};

TEST_F(Events, AreReadBackInTheirOrderBehindWhatWasSeen) {
  v1::TunedConfig tuned;
  tuned.set_config("tile_m=8");
  log.add("j1", JobState::kRunning, "begins");
  log.add("j2", JobState::kRunning, "of another job");
  log.add("j1", JobState::kFinished, "is tuned", &tuned);
  const std::vector<v1::JobEvent> all = log.after("j1", 0).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].message(), "begins");
  EXPECT_EQ(all[0].state(), v1::JOB_RUNNING);
  EXPECT_FALSE(all[0].has_tuned());
  EXPECT_EQ(all[1].state(), v1::FINISHED);
  EXPECT_EQ(all[1].tuned().config(), "tile_m=8");
  EXPECT_GT(all[1].seq(), all[0].seq());
  const std::vector<v1::JobEvent> behind = log.after("j1", all[0].seq()).value();
  ASSERT_EQ(behind.size(), 1u);
  EXPECT_EQ(behind[0].message(), "is tuned");
}

TEST_F(Events, ComePageByPage) {
  for (int i = 0; i < 300; ++i) log.add("j1", JobState::kRunning, str("event ", i));
  const std::vector<v1::JobEvent> page = log.after("j1", 0).value();
  ASSERT_EQ(page.size(), 256u);
  const std::vector<v1::JobEvent> rest = log.after("j1", page.back().seq()).value();
  ASSERT_EQ(rest.size(), 44u);
  EXPECT_EQ(rest.front().message(), "event 256");
  EXPECT_EQ(rest.back().message(), "event 299");
}

TEST_F(Events, OneThatIsNoEventIsNamed) {
  const int64_t seq = store->add_event("j1", "not a message").value();
  EXPECT_THAT(log.after("j1", 0).status().message(),
              HasSubstr(str("event ", seq, " of job j1 cannot be read back")));
}

TEST_F(Events, OfAJobThatIsNotThereAreAnErrorNotSilence) {
  EXPECT_EQ(log.after("j9", 0).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tuner
