// Elements that change while a candidate is timed: what short runs know, and that nobody can foretell it.
#include "measure_server/runner/changing_inputs.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tuner {
namespace {

using Touch = ChangingInputs::Touch;
constexpr int64_t kBytes = 4096 * sizeof(float);
constexpr uint32_t kSeeds = 200;

class ChangingInputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<GuardedBuffer> made = GuardedBuffer::create(kBytes, GuardedBuffer::Sharing::kPrivate);
    ASSERT_TRUE(made.is_ok()) << made.message();
    buffer_ = *std::move(made);
    buffer_.make_read_only();
  }
  ChangingInputs inputs(ChangingInputs::Random& random) const {
    const std::vector<char> other(kBytes, 1);
    ChangingInputs made;
    made.add(buffer_, DType::kFloat32, other.data(), random);
    return made;
  }
  GuardedBuffer buffer_;
};

// What the shortest run takes: three steps of its warm-up and nine samples.
TEST_F(ChangingInputsTest, ADozenTouchesKnowBothKinds) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    ChangingInputs::Random random(seed);
    ChangingInputs changing = inputs(random);
    int changed = 0, touches = 0;
    for (; touches < 16 && !changing.is_known(); ++touches) {
      const Touch touch = changing.touch(random, /*by_turns=*/false);
      changed += touch == Touch::kChanged ? 1 : 0;
      changing.note(touch, touch == Touch::kChanged ? 70 : 50);
    }
    EXPECT_LE(touches, 14) << "seed " << seed;
    EXPECT_GE(changed, 6);
    EXPECT_EQ(changing.changed_ns(), 70);
    EXPECT_EQ(changing.same_ns(), 50);
    changing.restore();
  }
}

TEST_F(ChangingInputsTest, TheNextIsDrawn) {
  std::set<std::vector<Touch>> orders;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    ChangingInputs::Random random(seed);
    ChangingInputs changing = inputs(random);
    std::vector<Touch> order;
    for (int i = 0; i < 8; ++i) order.push_back(changing.touch(random, /*by_turns=*/false));
    orders.insert(order);
    changing.restore();
  }
  EXPECT_GE(orders.size(), 16u) << "kinds that take turns have two orders";
}

// An inout's answer is known for the first inputs alone: each change is taken back before the next.
TEST_F(ChangingInputsTest, ByTurnsAChangeIsTakenBackFirst) {
  ChangingInputs::Random random(3);
  ChangingInputs changing = inputs(random);
  for (int i = 0; i < 40; ++i) {
    const bool was_restored = changing.is_restored();
    const Touch touch = changing.touch(random, /*by_turns=*/true);
    EXPECT_EQ(touch == Touch::kRestored, !was_restored);
    EXPECT_EQ(changing.is_restored(), touch != Touch::kChanged);
    changing.note(touch, touch == Touch::kRestored ? 1 : 9);
  }
  EXPECT_TRUE(changing.is_known());
  EXPECT_EQ(changing.changed_ns(), 9);
  EXPECT_EQ(changing.same_ns(), 9) << "calls on inputs that were seen before do not count";
}

TEST_F(ChangingInputsTest, WhereNothingCanChangeNothingIsAwaited) {
  ChangingInputs::Random random(1);
  ChangingInputs changing;
  changing.add(buffer_, DType::kFloat32, std::vector<char>(kBytes, 0).data(), random);
  EXPECT_FALSE(changing.any());
  EXPECT_TRUE(changing.is_known());
  EXPECT_EQ(changing.touch(random, /*by_turns=*/false), Touch::kSame);
}

}  // namespace
}  // namespace tuner
