// Numbers of few bits, as registers hold them. Conversions go to the nearest, ties to even.
#pragma once

namespace host_cuda {

float float16_to_float(unsigned short);
unsigned short float_to_float16(float);
unsigned short float_to_bfloat16(float);
float bits_to_float(unsigned);
inline float bfloat16_to_float(unsigned short hc_bits) { return bits_to_float((unsigned)hc_bits << 16); }
// A NaN stays one.
inline float ieee_max(float hc_a, float hc_b) { return hc_a > hc_b || hc_a != hc_a ? hc_a : hc_b; }
inline float ieee_min(float hc_a, float hc_b) { return hc_a < hc_b || hc_a != hc_a ? hc_a : hc_b; }
// sum + a[0] * b[0] + ... + a[3] * b[3] of bytes, with or without a sign each.
int dot_bytes(int hc_sum, unsigned hc_a, unsigned hc_b, bool hc_a_is_unsigned, bool hc_b_is_unsigned);

}  // namespace host_cuda
