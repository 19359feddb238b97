// The text of a GPU's pulse (device_pulse.h).
#pragma once

namespace tuner {

// PTX of the kernel `tuner_pulse(out, rounds, x)`; `out` is written only if x makes a sum be 1.
inline constexpr char kDevicePulsePtx[] = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry tuner_pulse(.param .u64 out, .param .u32 rounds, .param .f32 x)
{
  .reg .f32 %a<8>, %x;
  .reg .u32 %left;
  .reg .u64 %to;
  .reg .pred %again, %store;
  ld.param.u64 %to, [out];
  cvta.to.global.u64 %to, %to;
  ld.param.u32 %left, [rounds];
  ld.param.f32 %x, [x];
  add.f32 %a0, %x, 0f3F800000;
  add.f32 %a1, %a0, 0f3F800000;
  add.f32 %a2, %a1, 0f3F800000;
  add.f32 %a3, %a2, 0f3F800000;
  add.f32 %a4, %a3, 0f3F800000;
  add.f32 %a5, %a4, 0f3F800000;
  add.f32 %a6, %a5, 0f3F800000;
  add.f32 %a7, %a6, 0f3F800000;
round:
  fma.rn.f32 %a0, %a0, %x, %x;
  fma.rn.f32 %a1, %a1, %x, %x;
  fma.rn.f32 %a2, %a2, %x, %x;
  fma.rn.f32 %a3, %a3, %x, %x;
  fma.rn.f32 %a4, %a4, %x, %x;
  fma.rn.f32 %a5, %a5, %x, %x;
  fma.rn.f32 %a6, %a6, %x, %x;
  fma.rn.f32 %a7, %a7, %x, %x;
  fma.rn.f32 %a0, %a0, %x, %x;
  fma.rn.f32 %a1, %a1, %x, %x;
  fma.rn.f32 %a2, %a2, %x, %x;
  fma.rn.f32 %a3, %a3, %x, %x;
  fma.rn.f32 %a4, %a4, %x, %x;
  fma.rn.f32 %a5, %a5, %x, %x;
  fma.rn.f32 %a6, %a6, %x, %x;
  fma.rn.f32 %a7, %a7, %x, %x;
  fma.rn.f32 %a0, %a0, %x, %x;
  fma.rn.f32 %a1, %a1, %x, %x;
  fma.rn.f32 %a2, %a2, %x, %x;
  fma.rn.f32 %a3, %a3, %x, %x;
  fma.rn.f32 %a4, %a4, %x, %x;
  fma.rn.f32 %a5, %a5, %x, %x;
  fma.rn.f32 %a6, %a6, %x, %x;
  fma.rn.f32 %a7, %a7, %x, %x;
  fma.rn.f32 %a0, %a0, %x, %x;
  fma.rn.f32 %a1, %a1, %x, %x;
  fma.rn.f32 %a2, %a2, %x, %x;
  fma.rn.f32 %a3, %a3, %x, %x;
  fma.rn.f32 %a4, %a4, %x, %x;
  fma.rn.f32 %a5, %a5, %x, %x;
  fma.rn.f32 %a6, %a6, %x, %x;
  fma.rn.f32 %a7, %a7, %x, %x;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %again, %left, 0;
  @%again bra round;
  add.f32 %a0, %a0, %a1;
  add.f32 %a2, %a2, %a3;
  add.f32 %a4, %a4, %a5;
  add.f32 %a6, %a6, %a7;
  add.f32 %a0, %a0, %a2;
  add.f32 %a4, %a4, %a6;
  add.f32 %a0, %a0, %a4;
  setp.eq.f32 %store, %a0, 0f3F800000;
  @%store st.global.f32 [%to], %a0;
  ret;
}
)";

}  // namespace tuner
