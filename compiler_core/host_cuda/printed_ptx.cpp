#include "compiler_core/host_cuda/printed_ptx.h"

#include <regex>
#include <utility>
#include <vector>

namespace tuner {

std::string with_host_calls(std::string text) {
  const std::pair<const char*, const char*> kInstructions[] = {
      // asynchronous copies
      {R"(asm volatile\("cp\.async\.(?:cg|ca)\.shared\.global \[%0\], \[%1\], (\d+), %2;"[^;]*\);)",
       "host_cuda::copy_async(to, from, $1, read);"},
      {R"(asm volatile\("cp\.async\.commit_group;"\);)", "host_cuda::commit_copies();"},
      {R"(asm volatile\("cp\.async\.wait_group (\d+);" ::: "memory"\);)", "host_cuda::wait_copies($1);"},
      // what the compiler may not see through
      {R"(asm volatile\("" : "\+r"\(holds\), "\+l"\(from\)\);)", ""},
      {R"(asm volatile\("mov\.b32 %0, %0;" : "\+r"\([^;]*\)\);)", ""},
      // copies by TMA
      {R"(asm volatile\("prefetch\.tensormap \[%0\];"[^;]*\);)", ""},
      {R"(asm volatile\("mbarrier\.init\.shared::cta\.b64 \[%0\], %1;"[^;]*\);)",
       "host_cuda::begin_barrier(barriers + i, arrivals);"},
      {R"(asm volatile\("fence\.mbarrier_init\.release\.cluster;" ::: "memory"\);)",
       "host_cuda::show_barriers();"},
      {R"(asm volatile\("mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%0\], %1;"[^;]*\);)",
       "host_cuda::expect_bytes(barrier, bytes);"},
      {R"(asm volatile\("\{\\n  \.reg \.pred one;\\n  elect\.sync _\|one, 0xffffffff;\\n  selp\.u32 %0, 1, 0, one;\\n\}"[^;]*\);)",
       "chosen = host_cuda::elect();"},
      {R"(asm volatile\("\{\\n  \.reg \.pred over;\\n  mbarrier\.try_wait\.parity\.shared::cta\.b64 over, \[%1\], %2;\\n"\s*"  selp\.u32 %0, 1, 0, over;\\n\}"[^;]*\);)",
       "over = host_cuda::phase_is_over(barrier, parity);"},
      {R"(asm volatile\("cp\.async\.bulk\.tensor\.(\d)d\.shared::cluster\.global\.tile\.mbarrier::complete_tx::bytes [^;]*;"[^;]*\);)",
       "const int at[] = {HOST_COORDINATES_$1}; host_cuda::fetch(map, at, $1, to, barrier);"},
      {R"(asm volatile\("cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes [^;]*;"[^;]*\);)",
       "host_cuda::fetch_bytes(to, from, bytes, barrier);"},
      {R"(asm\("" : "\+l"\(\w+\)\);)", ""},
      // matrices
      {R"(asm volatile\("ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16 [^;]*;"[^;]*\);)",
       "host_cuda::load_matrices(r, row, false);"},
      {R"(asm volatile\("ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16 [^;]*;"[^;]*\);)",
       "host_cuda::load_matrices(r, row, true);"},
      {R"(asm\("mma\.sync\.aligned\.m16n8k\d+\.row\.col\.(?:f32|s32)\.(\w+)\.(\w+)\.(?:f32|s32) [^;]*;"[^;]*\);)",
       "host_cuda::multiply_tiles(c, ra, rb, host_cuda::Type::$1, host_cuda::Type::$2);"},
      // products of warpgroups
      {R"(asm volatile\("fence\.proxy\.async\.shared::cta;" ::: "memory"\);)", "host_cuda::fence_async();"},
      {R"(asm volatile\("wgmma\.fence\.sync\.aligned;" ::: "memory"\);)", "host_cuda::begin_products();"},
      {R"(asm volatile\("wgmma\.commit_group\.sync\.aligned;" ::: "memory"\);)",
       "host_cuda::commit_products();"},
      {R"(asm volatile\("wgmma\.wait_group\.sync\.aligned (\d+);" ::: "memory"\);)",
       "host_cuda::wait_products($1);"},
      {R"(asm volatile\(\s*"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(\w+)\.\w+ [^}]*\}, %\d+, %\d+, 1, 1, 1, (\d), (\d);"[^;]*"l"\(([^)]*)\), "l"\(([^)]*)\)\);)",
       "host_cuda::multiply_group(c, $1, $5, $6, host_cuda::Type::$2, $3, $4);"},
      // dot products of bytes
      {R"(asm\("dp4a\.(\w)32\.(\w)32 %0, %1, %2, %0;"[^;]*\);)",
       "sum = host_cuda::dot_bytes(sum, a, b, '$1' == 'u', '$2' == 'u');"},
      // a NaN stays one
      {R"(asm\("(max|min)\.NaN\.f32 %0, %1, %2;"[^;]*\);)", "y = host_cuda::ieee_$1(a, b);"},
      // numbers of 16 bits
      {R"(asm\("cvt\.f32\.f16 %0, %1;"[^;]*\);)", "y = host_cuda::float16_to_float(x);"},
      {R"(asm\("cvt\.rn\.bf16\.f32 %0, %1;"[^;]*\);)", "y = host_cuda::float_to_bfloat16(x);"},
      {R"(asm\("cvt\.rn\.f16\.f32 %0, %1;"[^;]*\);)", "y = host_cuda::float_to_float16(x);"},
  };
  static const std::vector<std::pair<std::regex, const char*>> known = [&] {
    std::vector<std::pair<std::regex, const char*>> made;
    for (const auto& [ptx, call] : kInstructions) made.emplace_back(std::regex(ptx), call);
    return made;
  }();
  for (const auto& [ptx, call] : known) text = std::regex_replace(text, ptx, call);
  return text;
}

bool has_host_calls(const std::string& text) { return text.find("host_cuda::") != std::string::npos; }

}  // namespace tuner
