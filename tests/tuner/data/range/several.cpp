#include <cstdint>
/* Knobs of the histogram.
   %RANGE% TUNE_BINS bins 16:256:16
   %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1 */
namespace statistics {
void count(const uint8_t* in, int32_t* bins, size_t n) {
  for (size_t i = 0; i < n; ++i)
    ++bins[in[i] * TUNE_BINS / 256 * TUNE_ITEMS_PER_THREAD / TUNE_ITEMS_PER_THREAD];
}
}  // namespace statistics
