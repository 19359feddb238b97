// Seeds of random tests: fixed, so that every run draws the same cases, unless the environment says
// otherwise.
//
//   TUNER_TEST_SEED=123        the first seed of each random test
//   TUNER_TEST_SEED=random     a fresh one for each random test
//   TUNER_TEST_ROUNDS=5000     how many cases a test draws that has a seed for each
//
// A random test prints its seeds when it begins and, when it fails, the command that repeats the failure.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace tuner {

// A number from the environment; one that cannot be read ends the test program, as it would test something
// else.
inline uint32_t number_from_environment(const char* name, std::string_view text, uint32_t least) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
  std::fprintf(stderr, "%s: expected a number from %u to 4294967295, found \"%s\"\n", name, least,
               text.data());
  std::exit(2);
}

inline uint32_t first_seed(uint32_t fixed) {
  const char* text = std::getenv("TUNER_TEST_SEED");
  if (text == nullptr) return fixed;
  if (std::string_view(text) == "random") return std::random_device{}();
  return number_from_environment("TUNER_TEST_SEED", text, 0);
}

inline uint32_t wanted_rounds(uint32_t otherwise) {
  const char* text = std::getenv("TUNER_TEST_ROUNDS");
  return text == nullptr ? otherwise : number_from_environment("TUNER_TEST_ROUNDS", text, 1);
}

// The command line that runs only the test that is running now, from these seeds.
inline std::string repeat_command(uint32_t seed, uint32_t rounds) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string command = "TUNER_TEST_SEED=" + std::to_string(seed);
  if (rounds > 0) command += " TUNER_TEST_ROUNDS=" + std::to_string(rounds);
  command += " " + (error ? "TEST_PROGRAM" : program);
  if (test != nullptr)
    command += std::string(" --gtest_filter=") + test->test_suite_name() + "." + test->name();
  return command;
}

// Prints that command when the test failed, or threw, while this lived.
class RepeatOnFailure {
 public:
  explicit RepeatOnFailure(uint32_t seed, uint32_t rounds = 0) : command_(repeat_command(seed, rounds)) {}
  RepeatOnFailure(const RepeatOnFailure&) = delete;
  RepeatOnFailure& operator=(const RepeatOnFailure&) = delete;
  ~RepeatOnFailure() {
    if (failed_before_) return;
    if (!::testing::Test::HasFailure() && std::uncaught_exceptions() == exceptions_before_) return;
    std::printf("again: %s\n", command_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string command_;
  bool failed_before_ = ::testing::Test::HasFailure();
  int exceptions_before_ = std::uncaught_exceptions();
};

// The seed of a test that draws everything from one generator. Lives as long as the drawing does.
//   const RandomSeed seed(7);
//   std::mt19937_64 random(seed);
class RandomSeed {
 public:
  explicit RandomSeed(uint32_t fixed) : seed_(first_seed(fixed)), repeat_(seed_) {
    std::printf("seed %u\n", seed_);
    std::fflush(stdout);
  }
  operator uint32_t() const { return seed_; }

 private:
  uint32_t seed_;
  RepeatOnFailure repeat_;
};

// The seeds of a test that draws each case from a seed of its own: `rounds` in turn, until one fails.
//   for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/200)) { std::mt19937_64 random(seed); ... }
class Seeds {
 public:
  Seeds(uint32_t fixed, uint32_t rounds)
      : first_(first_seed(fixed)), rounds_(wanted_rounds(rounds)), all_(rounds_ >= rounds) {
    std::printf("seeds %u..%u\n", first_, first_ + rounds_ - 1);
    std::fflush(stdout);
  }
  // False when fewer were asked for: what is expected of all cases together then says nothing.
  bool all() const { return all_; }

  class Iterator {
   public:
    explicit Iterator(Seeds& seeds) : seeds_(&seeds) {}
    uint32_t operator*() const { return seeds_->first_ + seeds_->done_; }
    Iterator& operator++() {
      seeds_->leave();
      ++seeds_->done_;
      seeds_->enter();
      return *this;
    }
    bool operator!=(const Iterator&) const {
      return seeds_->done_ < seeds_->rounds_ && !::testing::Test::HasFailure();
    }

   private:
    Seeds* seeds_;
  };
  Iterator begin() {
    enter();
    return Iterator(*this);
  }
  Iterator end() { return Iterator(*this); }

 private:
  void enter() {
    if (done_ == rounds_) return;
    const uint32_t seed = first_ + done_;
    repeat_.emplace(seed, 1);
    trace_.emplace(__FILE__, __LINE__, "seed " + std::to_string(seed));
  }
  void leave() {
    trace_.reset();
    repeat_.reset();
  }

  uint32_t first_, rounds_, done_ = 0;
  bool all_;
  std::optional<RepeatOnFailure> repeat_;
  std::optional<::testing::ScopedTrace> trace_;
};

}  // namespace tuner
