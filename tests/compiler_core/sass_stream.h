// Machine code by hand, for tests of its reader: instructions as the compiler encodes them, for sm_90.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tuner::testing {

// A stream of instructions. Each call adds one and returns its index.
class SassStream {
 public:
  int ffma() { return add(0x223); }
  int hmma() { return add(0x23c); }
  int integer() { return add(0x210); }
  int lds128() { return add(0x984, kWidth128); }
  int barrier() { return add(0xb1d); }
  // A load from global memory that releases `scoreboard` when its result is there.
  int load(int scoreboard) {
    add(0x981, kWidth32);
    set(110, 3, static_cast<uint64_t>(scoreboard));
    return last();
  }
  // A store to shared memory that waits for `scoreboard`; -1: for none.
  int store(int scoreboard) {
    add(0x388, kWidth32);
    return waits_for(scoreboard);
  }
  // An FFMA that waits.
  int use(int scoreboard) {
    add(0x223);
    return waits_for(scoreboard);
  }
  // A jump to an instruction, under predicate 0 or always. Targets further on are set with aim().
  int branch(int to, bool always = false) {
    add(0x947);
    set(87, 4, 7);
    set(12, 4, always ? 7 : 0);
    aim(last(), to);
    return last();
  }
  void aim(int branch, int to) {
    auto& [low, high] = code_[static_cast<size_t>(branch)];
    const auto quads = static_cast<uint64_t>((to - branch - 1) * 4);
    low = (low & ~(uint64_t{0xff} << 16)) | (quads & 0xff) << 16;
    low = (low & 0x3ffffffff) | (quads >> 8) << 34;
    high = (high & ~uint64_t{0x3ffff}) | (quads >> 38 & 0x3ffff);
  }
  int exit() {
    add(0x94d);
    set(87, 4, 7);
    return last();
  }
  int of(int opcode) { return add(static_cast<uint64_t>(opcode)); }
  int next() const { return static_cast<int>(code_.size()); }

  std::string bytes() const {
    std::string text;
    for (const auto& [low, high] : code_)
      for (const uint64_t word : {low, high})
        for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(word >> shift & 0xff);
    return text;
  }

 private:
  static constexpr uint64_t kWidth32 = 4, kWidth128 = 6;

  int last() const { return next() - 1; }
  // No scoreboards, one clock of stall, always.
  int add(uint64_t opcode, uint64_t width = 0) {
    code_.emplace_back(opcode | uint64_t{7} << 12, width << 9);
    set(105, 4, 1);
    set(110, 3, 7);
    set(113, 3, 7);
    return last();
  }
  int waits_for(int scoreboard) {
    if (scoreboard >= 0) set(116 + scoreboard, 1, 1);
    return last();
  }
  void set(int bit, int count, uint64_t value) {
    auto& [low, high] = code_.back();
    uint64_t& word = bit < 64 ? low : high;
    const int shift = bit % 64;
    const uint64_t mask = ((uint64_t{1} << count) - 1) << shift;
    word = (word & ~mask) | value << shift;
  }

  std::vector<std::pair<uint64_t, uint64_t>> code_;
};

}  // namespace tuner::testing
