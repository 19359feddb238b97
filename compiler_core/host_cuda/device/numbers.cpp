#include "numbers.h"

#include <math.h>
#include <string.h>

namespace host_cuda {

float bits_to_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static unsigned float_to_bits(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
float float16_to_float(unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? ldexpf((float)fraction, -24)
                     : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                      : ldexpf((float)(fraction + 1024), exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
unsigned short float_to_bfloat16(float value) {
  const unsigned bits = float_to_bits(value);
  if (value != value) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
unsigned short float_to_float16(float value) {
  const unsigned short sign = float_to_bits(value) >> 31 << 15;
  const float size = fabsf(value);
  if (value != value) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  if (size < ldexpf(1, -14)) return sign | (unsigned short)nearbyintf(ldexpf(size, 24));
  int exponent;
  const float fraction = frexpf(size, &exponent);                       // in [0.5, 1)
  const unsigned rounded = (unsigned)nearbyintf(ldexpf(fraction, 11));  // 1024 .. 2048
  return sign | (unsigned short)((exponent + 13) * 1024 + rounded);     // 2048 carries into the exponent
}
int dot_bytes(int sum, unsigned a, unsigned b, bool a_is_unsigned, bool b_is_unsigned) {
  for (int i = 0; i < 4; ++i) {
    const unsigned char x = a >> 8 * i, y = b >> 8 * i;
    sum += (a_is_unsigned ? x : (int)(signed char)x) * (b_is_unsigned ? y : (int)(signed char)y);
  }
  return sum;
}

}  // namespace host_cuda
