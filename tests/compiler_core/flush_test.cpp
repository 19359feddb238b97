// Flushing lines: bytes keep their values, nothing beside the lines is touched, and no line is left out.
#include "compiler_core/runtime/flush.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace tuner {
namespace {

std::vector<uint8_t> pattern(size_t bytes) {
  std::vector<uint8_t> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<uint8_t>(31 * i + 7);
  return made;
}

// Which lines of 64 bytes, counted from address 0, a flush goes through.
std::vector<uintptr_t> lines(uintptr_t data, int64_t bytes) {
  std::vector<uintptr_t> found;
  const LineRange range = lines_of(data, bytes, 64);
  for (uintptr_t at = range.first; at < range.end; at += 64) found.push_back(at / 64);
  return found;
}

TEST(FlushLines, BytesKeepTheirValuesWhereverTheyBegin) {
  const std::vector<uint8_t> expected = pattern(4096 + 200);
  std::vector<uint8_t> data = expected;
  for (size_t offset = 0; offset < 130; ++offset)
    for (const int64_t bytes : {1, 2, 63, 64, 65, 127, 128, 1000, 4096}) {
      data[offset] = static_cast<uint8_t>(offset);  // a line just written is written back, not lost
      flush_lines(data.data() + offset, bytes);
      ASSERT_EQ(data[offset], static_cast<uint8_t>(offset));
      data[offset] = expected[offset];
    }
  EXPECT_EQ(data, expected);
}

TEST(FlushLines, TheLinesOfBothEndsAreAmongThem) {
  using Lines = std::vector<uintptr_t>;
  EXPECT_EQ(lines(640, 64), (Lines{10}));
  EXPECT_EQ(lines(640, 65), (Lines{10, 11}));
  EXPECT_EQ(lines(703, 1), (Lines{10}));
  EXPECT_EQ(lines(703, 2), (Lines{10, 11}));  // two bytes in two lines
  EXPECT_EQ(lines(641, 64), (Lines{10, 11}));
  EXPECT_EQ(lines(641, 128), (Lines{10, 11, 12}));
  EXPECT_EQ(lines(640, 0), (Lines{}));
}

TEST(FlushLines, NothingBesideTheirPagesIsTouched) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* map = ::mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  uint8_t* middle = static_cast<uint8_t*>(map) + page;
  ASSERT_EQ(::mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
  middle[0] = 1;
  middle[page - 1] = 2;
  ASSERT_EQ(::mprotect(middle, page, PROT_READ), 0);  // constants are mapped so
  flush_lines(middle, static_cast<int64_t>(page));
  flush_lines(middle + page - 1, 1);
  flush_lines(middle + page, 0);  // no byte: the guard is not touched
  EXPECT_EQ(middle[0], 1);
  EXPECT_EQ(middle[page - 1], 2);
  ::munmap(map, 3 * page);
}

TEST(FlushLines, NoBytesAreNothing) {
  flush_lines(nullptr, 0);
  SUCCEED();
}

}  // namespace
}  // namespace tuner
