// Kernels of the CUDA driver for tests that compute something: products, convolutions, and those of
// check_kernels.h. What a kernel can do wrong stands in fake_cuda.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace fake_cuda {

class SourceModule;

struct Kernel {
  std::string name, behaviour;
  int64_t b = 1, m = 0, n = 0, k = 0, ta = 0, tb = 0, bias = 0, relu = 0, ns = 5000, beyond_l2_ns = 0,
          after = 0, shared = 0, waits = 0, at = 5, c = 1, h = 1, w = 1, s = 1, p = 0, g = 1, type = 0,
          narrow = 0, last = 0, maps = 0;
  int64_t allowed_shared = 48 << 10, launches = 0;
  // Of one that runs by its source: with which parameters it ran, and the memory's version then.
  std::shared_ptr<SourceModule> source{};
  std::string ran{};
  int64_t ran_at = -1;
  int refusal = 0;  // what a lazy driver says at the launch
};

void multiply(const Kernel& kernel, const void* a, const void* b, const void* bias, void* out);
void convolve(const Kernel& q, const void* data, const void* weight, const void* bias, void* out);
// "check_sums" of "tuner_check_sums_f32", a name of check_kernels.h; empty: it is none of those that check.
std::string check_behaviour(const std::string& name);
// Those of check_kernels.h, on elements of the type that ends the kernel's name, or float32; each thread's
// part is done at once. Returns what cuLaunchKernel answers.
int run_check(const Kernel& kernel, void** params);

template <class T>
T parameter(void** params, int i) {
  return *static_cast<T*>(params[i]);
}

}  // namespace fake_cuda
