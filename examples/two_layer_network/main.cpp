// A network 1x784 -> 128 -> ReLU -> 10. Its first linear layer starts as the plain function below; once a
// tuned one is linked, it takes that place, between a ReLU of our own and a second layer that is a library's
// (CBLAS, where there is one) or our own. Prints what each takes and whether all agree.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif
#ifdef HAVE_TUNED_FIRST_LAYER
#include "first_layer.h"
#endif

namespace {

constexpr int kInputs = 784, kHidden = 128, kOutputs = 10;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

// Aligned to 64 bytes, as tuned kernels ask.
Floats make(int64_t count) {
  void* p = std::aligned_alloc(64, static_cast<size_t>(count * 4 + 127) / 64 * 64);
  if (p == nullptr) throw std::bad_alloc();
  return Floats(static_cast<float*>(p));
}

Floats make_random(int64_t count, uint32_t seed, float scale) {
  Floats p = make(count);
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = scale * (static_cast<float>(seed >> 8) / (1 << 24) - 0.5f);
  }
  return p;
}

struct Network {
  Floats weight1 = make_random(kInputs * kHidden, 1, 0.1f), bias1 = make_random(kHidden, 2, 0.1f);
  Floats weight2 = make_random(kHidden * kOutputs, 3, 0.5f), bias2 = make_random(kOutputs, 4, 0.5f);
};

// out[j] = sum over k of x[k] * weight[k, j] + bias[j], row by row of the weights so that they are read in
// order: what one writes first.
void plain_linear(const float* x, const float* weight, const float* bias, float* out, int inputs,
                  int outputs) {
  std::copy(bias, bias + outputs, out);
  for (int k = 0; k < inputs; ++k)
    for (int j = 0; j < outputs; ++j) out[j] += x[k] * weight[k * outputs + j];
}

void relu(float* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = std::max(x[i], 0.0f);
}

#ifdef HAVE_CBLAS
void library_linear(const float* x, const float* weight, const float* bias, float* out, int inputs,
                    int outputs) {
  std::copy(bias, bias + outputs, out);
  cblas_sgemv(CblasRowMajor, CblasTrans, inputs, outputs, 1, weight, outputs, x, 1, 1, out, 1);
}
constexpr char kLibrary[] = "CBLAS";
#else
constexpr auto library_linear = plain_linear;
constexpr char kLibrary[] = "own (no CBLAS found)";
#endif

#ifdef HAVE_TUNED_FIRST_LAYER
// The tuned layer with what it needs: weights packed once, and scratch memory.
class TunedFirstLayer {
 public:
  explicit TunedFirstLayer(const Network& network)
      : bias_(network.bias1.get()),
        packed_(make(FIRST_LAYER_B_PACKED_BYTES / 4)),
        workspace_(make(FIRST_LAYER_WORKSPACE_BYTES / 4)) {
    if (first_layer_prepack(network.weight1.get(), packed_.get()) != 0) std::abort();
  }
  void operator()(const float* x, float* out) const {
    if (first_layer(x, packed_.get(), bias_, out, workspace_.get()) != 0) std::abort();
  }

 private:
  const float* bias_;
  Floats packed_, workspace_;
};
#endif

using FirstLayer = std::function<void(const float* x, float* out)>;

std::vector<float> infer(const Network& network, const FirstLayer& first, const float* x) {
  static const Floats hidden = make(kHidden), out = make(kOutputs);
  first(x, hidden.get());
  relu(hidden.get(), kHidden);
  library_linear(hidden.get(), network.weight2.get(), network.bias2.get(), out.get(), kHidden, kOutputs);
  return {out.get(), out.get() + kOutputs};
}

// Microseconds of one call: the best of many rounds, because whatever else runs here only adds.
double time_us(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 50, kCalls = 100;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls);
  }
  return best;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, double{std::fabs(a[i] - b[i])});
  return largest;
}

struct Times {
  double first, network;
};
Times measure(const char* name, const Network& network, const FirstLayer& first, const float* x) {
  const Floats hidden = make(kHidden);
  const Times t{time_us([&] { first(x, hidden.get()); }), time_us([&] { infer(network, first, x); })};
  std::printf("  %-34s %8.2f us   %8.2f us\n", name, t.first, t.network);
  return t;
}

}  // namespace

int main() {
  const Network network;
  const Floats image = make_random(kInputs, 7, 1);
  const FirstLayer plain = [&](const float* x, float* out) {
    plain_linear(x, network.weight1.get(), network.bias1.get(), out, kInputs, kHidden);
  };
  std::printf("1x%d -> %d -> ReLU -> %d; second layer: %s\n", kInputs, kHidden, kOutputs, kLibrary);
  std::printf("  %-34s %11s   %11s\n", "first layer", "alone", "network");
  const Times before = measure("a plain function", network, plain, image.get());
#ifdef HAVE_CBLAS
  const FirstLayer library = [&](const float* x, float* out) {
    library_linear(x, network.weight1.get(), network.bias1.get(), out, kInputs, kHidden);
  };
  measure("CBLAS", network, library, image.get());
#endif
#ifdef HAVE_TUNED_FIRST_LAYER
  const TunedFirstLayer tuned(network);
  const Times after = measure("tuned", network, std::cref(tuned), image.get());
  std::printf(
      "before %.2f us, after %.2f us: the first layer takes %.2f and the network %.2f times as long before\n",
      before.network, after.network, before.first / after.first, before.network / after.network);
  // Sums of 784 products in another order: they differ in the last bits.
  const double difference =
      largest_difference(infer(network, plain, image.get()), infer(network, std::cref(tuned), image.get()));
  std::printf("results %s: largest difference %.2g\n", difference < 1e-4 ? "equal" : "DIFFER", difference);
  return difference < 1e-4 ? 0 : 1;
#else
  std::printf("before %.2f us; no tuned first layer is linked yet\n", before.network);
  return 0;
#endif
}
