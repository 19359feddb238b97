// TokenBucket: so many events a second, and some more at once after a quiet time. No clock: time is an
// argument.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tuner::transport {

struct Rate {
  double per_s = 0;  // what is allowed for ever
  double burst = 0;  // what is allowed at once after a quiet time
};

class TokenBucket {
 public:
  TokenBucket(Rate rate, int64_t now_ms) : rate_(rate), tokens_(rate.burst), at_ms_(now_ms) {}

  // Takes one token and returns true, or returns false if there is none.
  bool take(int64_t now_ms) {
    refill(now_ms);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Takes tokens also where there are none: a debt, which wait_ms() tells. No debt is of more than a second.
  void spend(int64_t now_ms, double tokens = 1) {
    refill(now_ms);
    tokens_ = std::max(tokens_ - tokens, -rate_.per_s);
  }
  // Gives tokens back, up to a full bucket.
  void give(double tokens) { tokens_ = std::min(tokens_ + tokens, rate_.burst); }
  // Returns in how many milliseconds the bucket is out of debt; 0 if it is in none.
  int64_t wait_ms(int64_t now_ms) {
    refill(now_ms);
    return tokens_ >= 0 ? 0 : static_cast<int64_t>(std::ceil(-tokens_ * 1000 / rate_.per_s));
  }
  // Changes how much the bucket holds. What is in it stays.
  void set_burst(double burst) { rate_.burst = burst; }

 private:
  void refill(int64_t now_ms) {
    if (now_ms <= at_ms_) return;
    tokens_ = std::min(tokens_ + static_cast<double>(now_ms - at_ms_) * rate_.per_s / 1000, rate_.burst);
    at_ms_ = now_ms;
  }

  Rate rate_;
  double tokens_;
  int64_t at_ms_;
};

}  // namespace tuner::transport
