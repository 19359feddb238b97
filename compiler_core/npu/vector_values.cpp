// What the vector unit computes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler_core/base/int_math.h"
#include "compiler_core/npu/out_stage.h"
#include "compiler_core/npu/values.h"

namespace tuner::npu {
namespace {

int32_t widened(int8_t value, bool is_unsigned) {
  return is_unsigned ? int32_t{static_cast<uint8_t>(value)} : int32_t{0} + value;
}

}  // namespace

void Values::add(const Instruction& i) {
  const Instruction& v = vector_;
  for (uint32_t k = 0; k < i.rows; ++k) {
    const int8_t *a = word(i.source + k), *b = word(i.source2 + k);
    int8_t* target = word(i.target + k);
    for (int64_t c = 0; c < m_.bank_bytes; ++c) {
      const float scaled_a = static_cast<float>(widened(a[c], v.is_unsigned) - v.zero_a) * v.scale_a;
      const float scaled_b = static_cast<float>(widened(b[c], v.is_unsigned) - v.zero_b) * v.scale_b;
      target[c] = to_int8(scaled_a + scaled_b, v.zero, v.low, v.high);
    }
  }
}

void Values::pool(const Instruction& i) {
  for (uint32_t p = 0; p < i.rows; ++p) {
    int8_t most[64];
    std::fill_n(most, m_.bank_bytes, i.is_unsigned ? int8_t{0} : int8_t{-128});
    for (uint32_t y = 0; y < i.taps_y; ++y)
      for (uint32_t x = 0; x < i.taps_x; ++x) {
        const int8_t* source = word(i.source + p * i.stride + y * i.step_y + x * i.step_x);
        for (int64_t c = 0; c < m_.bank_bytes; ++c)
          if (widened(source[c], i.is_unsigned) > widened(most[c], i.is_unsigned)) most[c] = source[c];
      }
    std::memcpy(word(i.target + p * i.stride2), most, m_.bank_bytes);
  }
}

void Values::macc(const Instruction& i) {
  const uint32_t words = static_cast<uint32_t>(m_.column_words());
  for (uint32_t p = 0; p < i.rows; ++p) {
    int32_t* sums = row(i.sums + p);
    if (!i.accumulate) std::fill_n(sums, m_.array_columns, 0);
    for (uint32_t y = 0; y < i.taps_y; ++y)
      for (uint32_t x = 0; x < i.taps_x; ++x) {
        const int8_t* source = word(i.source + p * i.stride + y * i.step_y + x * i.step_x);
        const int8_t* weights = word(i.source2 + (y * i.taps_x + x) * words);
        for (int64_t c = 0; c < m_.array_columns; ++c) {
          const int32_t value = widened(source[c], i.is_unsigned);
          sums[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[c]) +
                                         static_cast<uint32_t>(value * weights[c]));
        }
      }
  }
}

void Values::table(const Instruction& i) {
  std::vector<int8_t> held(256);
  std::memcpy(held.data(), word(i.source2), held.size());
  for (uint32_t k = 0; k < i.rows; ++k) {
    const int8_t* source = word(i.source + k);
    int8_t* target = word(i.target + k);
    for (int64_t c = 0; c < m_.bank_bytes; ++c) target[c] = held[static_cast<uint8_t>(source[c])];
  }
}

void Values::softmax(const Instruction& i) {
  std::vector<int32_t> held(256);
  std::memcpy(held.data(), word(i.source2), held.size() * sizeof(int32_t));
  const int64_t width = round_up(i.bytes, m_.bank_bytes);
  for (uint32_t r = 0; r < i.rows; ++r) {
    const int8_t* source = word(i.source + r * i.stride);
    int8_t* target = word(i.target + r * i.stride);
    const auto value = [&](int64_t c) { return widened(source[c], vector_.is_unsigned); };
    int32_t most = value(0);
    for (uint32_t c = 1; c < i.bytes; ++c) most = std::max(most, value(c));
    int64_t sum = 0;
    for (uint32_t c = 0; c < i.bytes; ++c) sum += held[static_cast<uint8_t>(most - value(c))];
    const float factor = vector_.scale_a / static_cast<float>(sum);
    // The byte of a difference: where the results overwrite what is still to be read, it may be below 0.
    for (int64_t c = 0; c < width; ++c) {
      const float exponential = static_cast<float>(held[static_cast<uint8_t>(most - value(c))]);
      target[c] =
          c < i.bytes ? to_int8(exponential * factor, vector_.zero, vector_.low, vector_.high) : int8_t{0};
    }
  }
}

// Sums are exact; what follows them is float32. A step reads its words before it writes one.
void Values::norm(const Instruction& i) {
  const int64_t width = m_.bank_bytes, count = i.bytes;
  for (uint32_t r = 0; r < i.rows; ++r) {
    const int8_t* source = word(i.source + r * i.stride);
    int64_t sum = 0, squares = 0;
    for (int64_t c = 0; c < count; ++c) {
      const int64_t value = widened(source[c], vector_.is_unsigned);
      sum += value, squares += value * value;
    }
    const float mean = static_cast<float>(sum) / static_cast<float>(count);
    const float variance =
        static_cast<float>(count * squares - sum * sum) / static_cast<float>(count * count);
    const float factor = 1.0f / std::sqrt(variance + vector_.scale_b);
    for (int64_t k = 0; k * width < count; ++k) {
      float gains[64], offsets[64];
      int8_t results[64];
      std::memcpy(gains, word(i.source2 + static_cast<uint32_t>(8 * k)), 4 * width);
      std::memcpy(offsets, word(i.source2 + static_cast<uint32_t>(8 * k + 4)), 4 * width);
      for (int64_t c = 0; c < width; ++c) {
        const float value = (static_cast<float>(widened(source[k * width + c], vector_.is_unsigned)) - mean) *
                                factor * gains[c] +
                            offsets[c];
        const bool inside = k * width + c < count;
        results[c] = inside ? to_int8(value, vector_.zero, vector_.low, vector_.high) : int8_t{0};
      }
      std::memcpy(word(i.target + r * i.stride + static_cast<uint32_t>(k)), results, width);
    }
  }
}

}  // namespace tuner::npu
