// Buffers of candidates: their guards, their slack, pages that move, and buffers that serve one candidate
// after the other.
#include "measure_server/runner/guarded_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "measure_server/runner/shared_buffers.h"

namespace tuner {
namespace {

using Sharing = GuardedBuffer::Sharing;

GuardedBuffer buffer_of(int64_t bytes, Sharing sharing = Sharing::kShared) {
  Result<GuardedBuffer> made = GuardedBuffer::create(bytes, sharing);
  if (!made.is_ok()) ADD_FAILURE() << made.message();
  return *std::move(made);
}

GuardedBuffer input_of(const std::string& text) {
  char path[] = "/tmp/guarded_memory_test_XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  const auto file = SealedFile::copy_of(path, SealedFile::Placement::kAtPageEnd);
  unlink(path);
  EXPECT_TRUE(file.is_ok()) << file.message();
  Result<GuardedBuffer> mapped = GuardedBuffer::map_sealed((*file)->fd(), (*file)->bytes());
  EXPECT_TRUE(mapped.is_ok()) << mapped.message();
  return *std::move(mapped);
}

std::string text_in(const GuardedBuffer& b) { return {b.data(), static_cast<size_t>(b.bytes())}; }

// What a child's end is when it does this.
template <typename Act>
int status_of_child(const Act& act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(GuardedMemory, InputsChangePlacesUnderOneAddress) {
  const std::string first(5000, 'a'), second(5000, 'b');
  const GuardedBuffer shown = input_of(first), other = input_of(second);
  const char* const address = shown.data();
  const Result<void*> aside = shown.set_aside();
  ASSERT_TRUE(aside.is_ok()) << aside.message();
  ASSERT_TRUE(shown.take_pages_of(other).is_ok());
  EXPECT_EQ(shown.data(), address);
  EXPECT_EQ(text_in(shown), second);
  EXPECT_NE(
      status_of_child([&] { [[maybe_unused]] const char seen = *static_cast<volatile char*>(other.data()); }),
      0);
  ASSERT_TRUE(shown.put_back(*aside).is_ok());
  EXPECT_EQ(text_in(shown), first);
}

TEST(GuardedMemory, PagesThatNobodyKeepsAreGone) {
  const GuardedBuffer shown = input_of("first"), other = input_of("later");
  ASSERT_TRUE(shown.take_pages_of(other).is_ok());
  EXPECT_EQ(text_in(shown), "later");
}

TEST(GuardedMemory, AWriteBehindTheEndIsSeenOrEndsTheProcess) {
  const GuardedBuffer b = buffer_of(100);
  EXPECT_TRUE(b.intact());
  EXPECT_NE(status_of_child([&] { std::memset(b.data() + 128, 1, 1); }), 0);
  EXPECT_EQ(status_of_child([&] { std::memset(b.data() + 100, 1, 1); }), 0);
  EXPECT_FALSE(b.intact());
}

// Large private memory begins its pages at 2 MiB; guards and slack are as of all others.
TEST(GuardedMemory, LargeBuffersEndAtTheirGuard) {
  for (const int64_t bytes : {int64_t{2} << 20, (int64_t{2} << 20) + 4, int64_t{5'000'000}}) {
    const GuardedBuffer b = buffer_of(bytes, Sharing::kPrivate);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % kOperandAlignment, 0u);
    const int64_t whole = (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data() + whole) % (2 << 20), 0u);
    EXPECT_TRUE(b.intact());
    EXPECT_EQ(status_of_child([&] { b.fill(1); }), 0);
    EXPECT_NE(status_of_child([&] { std::memset(b.data() + whole, 1, 1); }), 0);
    const auto in_front = [&] { std::memset(b.data() - 1, 1, 1); };
    if (whole % (2 << 20) == 0) {
      EXPECT_NE(status_of_child(in_front), 0) << "there is the other guard";
    } else {
      in_front();
      EXPECT_FALSE(b.intact()) << "there is slack";
    }
  }
}

TEST(SharedBuffers, TheNextOneGetsTheSamePages) {
  SharedBuffers buffers(1 << 20);
  Result<GuardedBuffer> first = buffers.take(100);
  ASSERT_TRUE(first.is_ok());
  const char* const address = first->data();
  first->hide_from_children();
  std::memset(first->data(), 7, 101);  // one byte too many
  EXPECT_FALSE(first->intact());
  buffers.give_back(*std::move(first));
  const Result<GuardedBuffer> other = buffers.take(101);
  ASSERT_TRUE(other.is_ok());
  EXPECT_NE(other->data(), address) << "of another size";
  const Result<GuardedBuffer> second = buffers.take(100);
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(second->data(), address);
  EXPECT_TRUE(second->intact());
  EXPECT_EQ(status_of_child([&] { second->fill(9); }), 0) << "children have it again";
  EXPECT_EQ(text_in(*second), std::string(100, 9)) << "and their parent sees what they write";
  const Result<GuardedBuffer> third = buffers.take(100);
  ASSERT_TRUE(third.is_ok());
  EXPECT_NE(third->data(), address) << "it is in use";
}

TEST(SharedBuffers, KeepNoMoreThanTheyMay) {
  SharedBuffers buffers(10'000), none(0);
  for (SharedBuffers* b : {&buffers, &none}) {
    Result<GuardedBuffer> large = b->take(9000), small = b->take(2000);
    ASSERT_TRUE(large.is_ok() && small.is_ok());
    std::memset(large->data(), 1, 9000);
    std::memset(small->data(), 1, 2000);
    b->give_back(*std::move(large));
    b->give_back(*std::move(small));
    const Result<GuardedBuffer> large_again = b->take(9000), small_again = b->take(2000);
    ASSERT_TRUE(large_again.is_ok() && small_again.is_ok());
    EXPECT_EQ(large_again->data()[0], b == &buffers ? 1 : 0);
    EXPECT_EQ(small_again->data()[0], 0) << "fresh memory is zero";
  }
}

}  // namespace
}  // namespace tuner
