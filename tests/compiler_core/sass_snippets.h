// Snippets of CUDA whose content is known, to learn opcodes from: a construct is written a few times and many
// times; the opcodes that grow with it are its.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/codegen_cuda/nvrtc.h"
#include "compiler_core/codegen_cuda/sass/sass.h"

namespace tuner::testing {

struct SassSnippet {
  std::string name;
  sass::Op op;       // what each copy of it has, once or more
  std::string text;  // of one copy; $n is its number
};

// Text with every `from` replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// y[..] = one PTX instruction of loaded values: $f floats a, b, c; integers i, j; predicates p.
inline std::string of_floats(const std::string& ptx) {
  return "{ float r, a = x[$n * 96 + t], b = x[$n * 96 + t + 32], c = x[$n * 96 + t + 64]; asm "
         "volatile(\"{.reg .pred p, q; " +
         ptx + "}\" : \"=f\"(r) : \"f\"(a), \"f\"(b), \"f\"(c)); y[$n * 32 + t] = r; }";
}
inline std::string of_integers(const std::string& ptx) {
  return "{ int r, i = xi[$n * 96 + t], j = xi[$n * 96 + t + 32], k = xi[$n * 96 + t + 64]; asm "
         "volatile(\"{.reg .pred p, q; " +
         ptx + "}\" : \"=r\"(r) : \"r\"(i), \"r\"(j), \"r\"(k)); yi[$n * 32 + t] = r; }";
}
inline std::string of_doubles(const std::string& ptx) {
  return "{ double r, a = xd[$n * 96 + t], b = xd[$n * 96 + t + 32]; asm volatile(\"{.reg .pred p; " + ptx +
         "}\" : \"=d\"(r) : \"d\"(a), \"d\"(b)); yd[$n * 32 + t] = r; }";
}

// What only sm_90a has.
inline std::vector<SassSnippet> hopper_snippets() {
  using sass::Op;
  return {
      {"fence of the asynchronous proxy", Op::kOther,
       "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); y[$n * 32 + t] = 1;"},
      {"fence of a warpgroup", Op::kOther,
       "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); y[$n * 32 + t] = 1;"},
      {"products of a warpgroup", Op::kMma,
       "{ float c0 = x[$n * 32 + t], c1 = x[$n + t], c2 = c0 + c1, c3 = c0 - c1; unsigned long long d = "
       "((const unsigned long long*)xd)[n + $n]; asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); "
       "\n#pragma unroll\nfor (int k = 0; k < 3; ++k) asm "
       "volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, "
       "0;\" : "
       "\"+f\"(c0), \"+f\"(c1), \"+f\"(c2), \"+f\"(c3) : \"l\"(d + k * 2)); asm "
       "volatile(\"wgmma.commit_group.sync."
       "aligned; wgmma.wait_group.sync.aligned 0;\" ::: \"memory\"); y[$n * 32 + t] = c0 + c1 + c2 + c3; }"},
      {"begin of a barrier for copies", Op::kOther,
       "asm volatile(\"mbarrier.init.shared::cta.b64 [%0 + $n * 8], 1;\" :: "
       "\"r\"((unsigned)__cvta_generic_to_shared(s)) : \"memory\");"},
      {"bytes announced", Op::kOther,
       "asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0 + $n * 8], 128;\" :: "
       "\"r\"((unsigned)__cvta_generic_to_shared(s)) : \"memory\");"},
      {"wait for a phase", Op::kOther,
       "{ unsigned over; asm volatile(\"{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1 + $n "
       "* 8], 1; "
       "selp.u32 %0, 1, 0, p;}\" : \"=r\"(over) : \"r\"((unsigned)__cvta_generic_to_shared(s)) : "
       "\"memory\"); "
       "yi[$n * 32 + t] = over; }"},
      {"tensor map ahead", Op::kOther,
       "asm volatile(\"prefetch.tensormap [%0];\" :: \"l\"(xd + $n * 16) : \"memory\");"},
      {"box of a tensor map", Op::kOther,
       "asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0 "
       "+ $n * "
       "128], [%1, {%2, %3}], [%0];\" :: \"r\"((unsigned)__cvta_generic_to_shared(s)), \"l\"(xd + $n * 16), "
       "\"r\"(n), \"r\"(m) : \"memory\");"}};
}

inline std::vector<SassSnippet> sass_snippets(std::string_view arch) {
  using sass::Op;
  std::vector<SassSnippet> all = {
      {"multiply-add", Op::kFfma, of_floats("fma.rn.f32 %0, %1, %2, %3;")},
      {"sum", Op::kFloat, of_floats("add.rn.f32 %0, %1, %2;")},
      {"product", Op::kFloat, of_floats("mul.rn.f32 %0, %1, %2;")},
      {"maximum", Op::kFloat, of_floats("max.f32 %0, %1, %2;")},
      {"2^x", Op::kFloat, of_floats("ex2.approx.ftz.f32 %0, %1;")},
      {"1/x", Op::kFloat, of_floats("rcp.approx.ftz.f32 %0, %1;")},
      {"round", Op::kFloat, of_floats("cvt.rmi.f32.f32 %0, %1;")},
      {"half and back", Op::kFloat, of_floats("{.reg .f16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}")},
      {"half2 multiply-add", Op::kFloat, of_integers("fma.rn.f16x2 %0, %1, %2, %3;")},
      {"half2 sum", Op::kFloat, of_integers("add.rn.f16x2 %0, %1, %2;")},
      {"integer to float", Op::kFloat, "y[$n * 32 + t] = (float)xi[$n * 32 + t];"},
      {"byte to float", Op::kFloat, "y[$n * 32 + t] = (float)((unsigned char*)xi)[$n * 32 + t];"},
      {"float to integer", Op::kFloat, "yi[$n * 32 + t] = (int)x[$n * 32 + t];"},
      {"double multiply-add", Op::kFloat, of_doubles("fma.rn.f64 %0, %1, %2, %1;")},
      {"double sum", Op::kFloat, of_doubles("add.rn.f64 %0, %1, %2;")},
      {"double product", Op::kFloat, of_doubles("mul.rn.f64 %0, %1, %2;")},
      {"double compare", Op::kPredicate, of_doubles("setp.lt.f64 p, %1, %2; selp.f64 %0, %1, %2, p;")},
      {"double to float", Op::kFloat, "y[$n * 32 + t] = (float)xd[$n * 32 + t];"},
      {"double to integer", Op::kFloat, "yi[$n * 32 + t] = (int)xd[$n * 32 + t];"},
      {"integer to double", Op::kFloat, "yd[$n * 32 + t] = (double)xi[$n * 32 + t];"},
      {"float compare", Op::kPredicate, of_floats("setp.lt.f32 p, %1, %2; selp.f32 %0, %2, %3, p;")},
      {"integer compare", Op::kPredicate, of_integers("setp.lt.s32 p, %1, %2; selp.s32 %0, %2, %3, p;")},
      {"two predicates", Op::kPredicate,
       of_integers("setp.lt.s32 p, %1, %2; setp.gt.s32 q, %1, %3; xor.pred p, p, q; selp.s32 %0, %2, 7, p;")},
      {"integer sum", Op::kInteger, of_integers("add.s32 %0, %1, %2;")},
      {"sum of three", Op::kInteger,
       "yi[$n * 32 + t] = xi[$n * 96 + t] + xi[$n * 96 + 32 + t] - xi[$n * 96 + 64 + t];"},
      {"constant added", Op::kInteger, "yi[$n * 32 + t] = (xi[$n * 32 + t] ^ 3) + 0x1234$n;"},
      {"integer product", Op::kInteger, of_integers("mad.lo.s32 %0, %1, %2, %3;")},
      {"high product", Op::kInteger, of_integers("mul.hi.s32 %0, %1, %2;")},
      {"wide product", Op::kInteger,
       "((long long*)yd)[$n * 32 + t] = (long long)xi[$n * 64 + t] * xi[$n * 64 + 32 + t];"},
      {"dot product of bytes", Op::kDot, of_integers("dp4a.s32.s32 %0, %1, %2, %3;")},
      {"scaled sum", Op::kInteger, "yi[$n * 32 + t] = xi[$n * 64 + t] * 8 + xi[$n * 64 + 32 + t];"},
      {"and, xor", Op::kInteger, of_integers("lop3.b32 %0, %1, %2, %3, 0x6a;")},
      {"shift", Op::kInteger, of_integers("shr.s32 %0, %1, %2;")},
      {"bytes", Op::kInteger, of_integers("prmt.b32 %0, %1, %2, %3;")},
      {"minimum", Op::kInteger, of_integers("min.s32 %0, %1, %2;")},
      {"minimum of three", Op::kInteger, of_integers("min.s32 %0, %1, %2; min.s32 %0, %0, %3;")},
      {"absolute", Op::kInteger, of_integers("abs.s32 %0, %1;")},
      {"bits", Op::kInteger, of_integers("popc.b32 %0, %1;")},
      {"highest bit", Op::kInteger, of_integers("bfind.u32 %0, %1;")},
      {"reversed", Op::kInteger, of_integers("brev.b32 %0, %1;")},
      {"sign of bits", Op::kInteger, of_integers("szext.clamp.s32 %0, %1, %2;")},
      {"mask", Op::kInteger, of_integers("bmsk.clamp.b32 %0, %1, %2;")},
      {"division", Op::kFloat, "y[$n * 32 + t] = x[$n * 64 + t] / x[$n * 64 + 32 + t];"},
      {"integer division", Op::kInteger, "yi[$n * 32 + t] = xi[$n * 64 + t] / xi[$n * 64 + 32 + t];"},
      {"arithmetic of blocks", Op::kInteger,
       "{ int b = blockIdx.x + $n * n; y[(b / 48 * 24 + b % 8 * 3) * 32 + t] = x[b / 6 % 8 * 48 + t + (b >> "
       "3) * m]; }"},
      {"conditions of blocks", Op::kPredicate,
       "{ int b = blockIdx.x * n + $n; if (b / 48 * 8 + b % 8 < m && (b & 5) != m) y[b * 32 + t] = b > $n ? "
       "m : b; __syncthreads(); }"},
      {"load", Op::kLdg32, "y[$n * 32 + t] = x[$n * 77 + t];"},
      {"load of 64 bits", Op::kLdg64, "((float2*)y)[$n * 32 + t] = ((float2*)x)[$n * 77 + t];"},
      {"load of 128 bits", Op::kLdg128, "((float4*)y)[$n * 32 + t] = ((float4*)x)[$n * 77 + t];"},
      {"store", Op::kStg, "y[$n * 77 + t] = 1.5f;"},
      {"load from shared", Op::kLds32, "y[$n * 32 + t] = s[$n * 33 + t * t];"},
      {"of 64 bits", Op::kLds64, "((float2*)y)[$n * 32 + t] = ((float2*)s)[$n * 33 + t * t];"},
      {"of 128 bits", Op::kLds128, "((float4*)y)[$n * 32 + t] = ((float4*)s)[$n * 33 + t * t];"},
      {"store to shared", Op::kSts32, "s[$n * 33 + t * t] = x[$n * 32 + t]; __syncthreads();"},
      {"of 64 bits", Op::kSts64,
       "((float2*)s)[$n * 33 + t * t] = ((float2*)x)[$n * 32 + t]; __syncthreads();"},
      {"of 128 bits", Op::kSts128,
       "((float4*)s)[$n * 33 + t * t] = ((float4*)x)[$n * 32 + t]; __syncthreads();"},
      {"load from local", Op::kLocalLoad,
       "{ float a[9]; for (int i = 0; i < 9; ++i) a[i] = x[$n * 9 + i]; y[$n * 32 + t] = a[xi[$n]]; }"},
      {"store to local", Op::kLocalStore,
       "{ float a[9]; for (int i = 0; i < 9; ++i) a[i] = x[$n * 9 + i]; y[$n * 32 + t] = a[xi[$n]]; }"},
      {"generic load and store", Op::kOther,
       "{ float* g = xi[$n] > 3 ? s + t : y + t; *g += x[$n * 32 + t]; __syncthreads(); atomicAdd(y + $n, "
       "*g); }"},
      {"asynchronous copy", Op::kLdgsts,
       "asm volatile(\"cp.async.cg.shared.global [%0 + $n * 16], [%1 + $n * 16], 16;\" :: "
       "\"r\"((unsigned)__cvta_generic_to_shared(s) + t * 16), \"l\"(x + t * 4));"},
      {"its group", Op::kOther,
       "asm volatile(\"cp.async.commit_group; cp.async.wait_group 0;\" ::: \"memory\");"},
      {"barrier", Op::kBarrier, "__syncthreads();"},
      {"shuffle", Op::kShuffle, "y[$n * 32 + t] = __shfl_xor_sync(~0u, x[$n * 32 + t], 3);"},
      {"product of tiles", Op::kMma,
       "{ float c0 = x[$n * 32 + t], c1 = x[$n + t], c2 = c0 + c1, c3 = c0 - c1; int a = xi[t + $n], b = "
       "xi[t + 32 + $n]; asm "
       "volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, "
       "{%5,%4}, {%0,%1,%2,%3};\" : \"+f\"(c0), \"+f\"(c1), \"+f\"(c2), \"+f\"(c3) : \"r\"(a), \"r\"(b)); "
       "y[$n * 32 + t] = c0 + c1 + c2 + c3; }"},
      {"product of float16 tiles", Op::kMma,
       "{ float c0 = x[$n * 32 + t], c1 = x[$n + t]; int a = xi[t + $n]; asm "
       "volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%0,%1}, {%2,%2,%2,%2}, "
       "{%2,%2}, {%0,%1,%0,%1};\" : \"+f\"(c0), \"+f\"(c1) : \"r\"(a)); y[$n * 32 + t] = c0 + c1; }"},
      {"product of tf32 tiles", Op::kMma,
       "{ float c0 = x[$n * 32 + t], c1 = x[$n + t]; int a = xi[t + $n]; asm "
       "volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%0,%1}, {%2,%2,%2,%2}, "
       "{%2,%2}, {%0,%1,%0,%1};\" : \"+f\"(c0), \"+f\"(c1) : \"r\"(a)); y[$n * 32 + t] = c0 + c1; }"},
      {"product of tiles of bytes", Op::kMma,
       "{ int c0 = xi[$n * 32 + t], c1 = xi[$n + t]; int a = xi[t + $n]; asm "
       "volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%0,%1}, {%2,%2,%2,%2}, "
       "{%2,%2}, {%0,%1,%0,%1};\" : \"+r\"(c0), \"+r\"(c1) : \"r\"(a)); yi[$n * 32 + t] = c0 + c1; }"},
      {"matrices of shared memory", Op::kLdsm,
       "{ int a, b, c, d; asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\" : "
       "\"=r\"(a), "
       "\"=r\"(b), \"=r\"(c), \"=r\"(d) : \"r\"((unsigned)__cvta_generic_to_shared(s) + t * 16 + $n * 512)); "
       "yi[$n * 32 + t] = a + b + c + d; }"},
      {"vote", Op::kOther, "yi[$n * 32 + t] = __ballot_sync(~0u, xi[$n * 32 + t] > 3);"},
      {"fence", Op::kOther, "y[$n * 32 + t] = 1; __threadfence(); y[$n * 32 + t + 1] = 2;"},
      {"atomic", Op::kOther, "y[$n * 32 + t] = atomicAdd(y + $n * 77, 1.5f);"},
      {"atomic of integers", Op::kOther, "yi[$n * 32 + t] = atomicMax(yi + $n * 77, t);"},
      {"reduction", Op::kOther, "atomicAdd(y + $n * 77 + t, 1.5f);"},
      {"reduction of integers", Op::kOther, "atomicMax(yi + $n * 77 + t, t);"},
      {"special register", Op::kOther,
       "{ int r; asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(r)); yi[$n * 32 + t] = r; }"},
      {"loop", Op::kBranch, "for (int i = 0; i < xi[$n]; ++i) { y[i * 7 + t] = x[i] * 3; __syncthreads(); }"},
      {"jump table", Op::kBranch,
       "switch (xi[$n * 32 + t]) { case 0: y[t] = 1; break; case 1: y[t] = s[t] + xi[t + 9]; break; case 2: "
       "s[t] = 2; break;"
       " case 3: y[t + 3] = x[t]; break; case 4: atomicAdd(y, 1.0f); break; case 5: s[t + 1] = 7; break;"
       " case 6: yi[t] = 3; break; case 7: __threadfence(); break; case 8: y[t * 9] = exp2f(x[t]); break;"
       " case 9: y[t * 3] = s[t]; break; case 10: y[t] = x[t] / x[t + 1]; break; case 11: yi[2 * t] = 1; }"},
      {"sums from zero", Op::kFfma,
       "{ float a[8] = {}; for (int i = 0; i < n; ++i) for (int j = 0; j < 8; ++j) a[j] += x[i * 37 + t] * "
       "s[i * 16 + j];"
       " for (int j = 0; j < 8; ++j) y[t * 16 + j + $n * 999] = a[j]; __syncthreads(); }"},
      {"ways out of a loop", Op::kBranch,
       "while (true) { float v = x[t + (int)y[t]]; if (v > 3) { y[t] = 2; break; }"
       " if (v < 1) { for (int i = 0; i < n; ++i) y[i * t] = v; if (y[t] > 2) break; } y[t] += $n; } y[t + "
       "64] = 1;"},
      {"one of a warp", Op::kOther, "atomicAdd(y + n + $n, 1.0f); atomicAdd(yi + n + $n, 1);"},
      {"choice of a block", Op::kInteger,
       "for (int i = 0; i < n; ++i) { int u = i < m ? i * 3 : m; u = max(u, i - $n); y[u * 32 + t] = x[(u > "
       "5 && i < m - 1 ? u : 7) * 32 + t]; __syncthreads(); }"},
      {"branches of a warp", Op::kOther,
       "if (xi[$n + t] > t) { for (int i = 0; i < xi[$n * 3 + t]; ++i) { if (x[i] > 5) break; y[i] = x[i + "
       "$n]; } s[t] = 3; } __syncthreads();"},
      {"constants of all threads", Op::kConstant,
       "\n  #pragma unroll 1\n  for (int i = 0; i < 12; ++i) y[$n * 512 + t + i * 32] = x[t + i * 64] + "
       "table[i * 5 + $n];"},
      {"constants", Op::kConstant,
       "((float4*)y)[$n * 32 + t] = make_float4(table[xi[$n] & 7], table[(xi[$n] & 7) + $n], 1, 2);"},
      {"predicates in a register", Op::kPredicate,
       "{ bool p[7]; for (int i = 0; i < 7; ++i) p[i] = xi[i * 32 + t + $n] > i; __syncthreads(); for (int k "
       "= 0; k < n; ++k) for (int i = 0; i < 7; ++i) { if (p[i]) s[t + i * 40] += y[k]; p[i] ^= s[t + 9 * i] "
       "> 2; } }"},
  };
  if (arch == "sm_90a")
    for (SassSnippet& snippet : hopper_snippets()) all.push_back(std::move(snippet));
  return all;
}

// Constructs that only many live values at once bring about: of `$count` of them, one copy.
struct SassCrowd {
  std::string name, arch;
  int opcode;  // its lower nine bits; one more of them for each value
  int few, many;
  std::string text;
};
inline std::vector<SassCrowd> sass_crowds() {
  // More predicates that are the same for all threads than there are: they are packed into a uniform
  // register.
  const std::string predicates =
      "{ bool p[$count];\n#pragma unroll\nfor (int i = 0; i < $count; ++i) p[i] = m * i > n;\n"
      "for (int k = 0; k < n; ++k) {\n#pragma unroll\nfor (int i = 0; i < $count; ++i) s[t + i * 40] += "
      "y[p[i] ? k : m]; } }";
  // Divisions have no uniform form: what comes of them moves from registers to uniform ones.
  const std::string remainders =
      "{ int c[$count];\n#pragma unroll\nfor (int i = 0; i < $count; ++i) c[i] = blockIdx.x * (i + 3) % (n + "
      "i);\nfor (int k = 0; k < n; ++k) {\n#pragma unroll\nfor (int i = 0; i < $count; ++i) { s[t + i * 40] "
      "+= "
      "x[k * m * c[i] + t + i]; c[i] = c[i] * m + k; if (c[i] > i * m) c[i] -= n; } __syncthreads(); } }";
  return {{"uniform predicates", "sm_90a", 0x083, 12, 16, predicates},
          {"uniform remainders", "sm_90a", 0x0ca, 10, 16, remainders}};
}

// A kernel with `copies` copies of a construct.
inline std::string sass_snippet_source(const SassSnippet& snippet, int copies) {
  std::string text =
      "__constant__ float table[64];\n"
      "extern \"C\" __global__ void kernel(const float* __restrict__ x, const int* __restrict__ xi, const "
      "double* __restrict__ xd,\n"
      "    float* y, int* yi, double* yd, int n, int m) {\n"
      "  __shared__ __align__(16) float s[8192];\n  const int t = threadIdx.x;\n";
  for (int i = 0; i < copies; ++i) text += "  " + replaced(snippet.text, "$n", std::to_string(i)) + "\n";
  // What was stored to shared memory is used.
  return text + "  __syncthreads();\n  y[m] += s[n];\n}\n";
}

inline Result<sass::KernelCode> compile_snippet(const SassSnippet& snippet, int copies,
                                                const std::string& arch) {
  ASSIGN_OR_RETURN(const cuda::Compiled compiled,
                   cuda::compile_source(sass_snippet_source(snippet, copies), "snippet.cu",
                                        {"--gpu-architecture=" + arch, "--std=c++17"}));
  ASSIGN_OR_RETURN(std::vector<sass::KernelCode> codes, sass::read_kernel_code(compiled.cubin));
  for (sass::KernelCode& code : codes)
    if (code.name == "kernel") return std::move(code);
  return failed(snippet.name, ": no kernel in the cubin");
}

}  // namespace tuner::testing
