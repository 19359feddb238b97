// How often each value of 8 bits occurs. Several tables keep equal neighbours from waiting for each other: see histogram.json.
#include <cstdint>
#include <cstring>

#ifndef TABLES
#define TABLES 4
#define BLOCK 1024
#define UNROLL 4
#define WORDS 0
#endif

#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(times) PRAGMA(GCC unroll times)

namespace statistics {

// Adds to `counts`.
void histogram(const std::uint8_t* data, std::int32_t* counts, std::int64_t n) {
  static thread_local std::int32_t table[TABLES][256];
  std::memset(table, 0, sizeof table);
  for (std::int64_t begin = 0; begin < n; begin += BLOCK) {
    const std::int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
#if WORDS
    std::int64_t i = begin;
    UNROLLED(UNROLL)
    for (; i + 8 <= end; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, data + i, 8);
      for (int byte = 0; byte < 8; ++byte) ++table[byte % TABLES][word >> (8 * byte) & 255];
    }
    for (; i < end; ++i) ++table[0][data[i]];
#else
    UNROLLED(UNROLL)
    for (std::int64_t i = begin; i < end; ++i) ++table[i % TABLES][data[i]];
#endif
  }
  for (int t = 0; t < TABLES; ++t)
    for (int v = 0; v < 256; ++v) counts[v] += table[t][v];
}

void histogram_plain(const std::uint8_t* data, std::int32_t* counts, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) ++counts[data[i]];
}

}  // namespace statistics
