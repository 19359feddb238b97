// Numbers the runner says by name: what reaches a record and what does not.
#include "measure_server/worker/run_facts.h"

#include <gmock/gmock.h>

namespace tuner {
namespace {

TEST(RunFacts, ANumberMarkedAsOfTheRunIsSetByItsName) {
  v1::MeasureRecord record;
  EXPECT_THAT(add_facts({{"page_faults", 1700}}, record), testing::IsEmpty());
  EXPECT_EQ(record.page_faults(), 1700);
}

TEST(RunFacts, NothingElseOfARecordIsSetWhateverACandidateSays) {
  v1::MeasureRecord record;
  record.set_peak_gflops(80);
  const std::string before = record.SerializeAsString();
  EXPECT_THAT(
      add_facts({{"peak_gflops", 1e9}, {"outcome", 1}, {"message", 0}, {"", 1}, {"faults", 3}}, record),
      testing::UnorderedElementsAre("peak_gflops", "outcome", "message", "", "faults"));
  EXPECT_EQ(record.SerializeAsString(), before);
}

}  // namespace
}  // namespace tuner
