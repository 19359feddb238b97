// Placement: where a process of a race has its operands, its code and its stack.
//
// The addresses of a fork are those of the runner, so that all processes of a race had the same, drawn once
// when the runner began. Caches and predictors that are indexed by addresses made a kernel slower by as much
// as half in each of them, and its rival in none: many processes that agree, on an accident. So each heat
// draws a placement. It is one for all of its contestants, as far as their code is alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace tuner {

class Placement {
 public:
  Placement() = default;  // as the system places
  // `number`: of the heat. `contestant`: from 0; addresses of two differ by a multiple of 1 TiB, because the
  // runner maps the outputs of all.
  Placement(uint64_t number, size_t contestant);

  // Where the next mapping of at most this size should be, for mmap without MAP_FIXED; null: anywhere. Begins
  // a page.
  void* next(int64_t bytes);
  // Takes a drawn part of where the system maps next, so that code that is loaded later moves by pages. Never
  // given back: for a process that ends with its candidate.
  void shift_what_is_loaded();
  // By how much a stack should begin deeper: a multiple of 16 bytes below a page; drawn anew each time.
  size_t stack_bytes();

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  bool drawn_ = false;
  std::mt19937_64 random_;
  uint64_t at_ = 0;  // the next mapping begins behind this address
};

}  // namespace tuner
