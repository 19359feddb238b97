#include "templates/cuda/conv2d_cuda_tile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "templates/cuda/cuda_schedule.h"

namespace tuner::conv2d_cuda {

using cuda::kWarp;

std::vector<int64_t> sizes(int64_t extent, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t n = 1; n <= most; ++n)
    if (extent % n == 0 || ((n & (n - 1)) == 0 && n < 2 * extent)) found.push_back(n);
  return found;
}

std::vector<int64_t> kernel_parts(int64_t kernel, int64_t dilation) {
  std::vector<int64_t> found;
  for (int64_t n = 1; n <= kernel && reach(1, n, 1, dilation) <= kMaxReach; ++n)
    if (kernel % n == 0) found.push_back(n);
  return found;
}

InputBound input_bound(const Conv2dWorkload& w, int64_t room) {
  const int64_t kh = kernel_parts(w.kernel_height, w.dilation[0]).back();
  const int64_t kw = kernel_parts(w.kernel_width, w.dilation[1]).back();
  InputBound bound;
  for (bound.least = 32; bound.least >= 1; bound.least /= 2) {
    bound.factor = 1;
    for (int64_t y = 1; y <= std::min(2 * w.out_height(), kMaxBlock); ++y)
      for (int64_t x = 1; x <= std::min(2 * w.out_width(), kMaxBlock); ++x)
        bound.factor = std::max(bound.factor, ceil_div(reach(y, kh, w.stride[0], w.dilation[0]) *
                                                           reach(x, kw, w.stride[1], w.dilation[1]),
                                                       std::max(y * x, bound.least)));
    if (bound.factor * bound.least <= room) break;  // one channel fits
  }
  return bound;
}

int64_t thread_granule(const Conv2dWorkload& w) {
  int64_t threads = w.out_channels > 1 ? kWarp : 1;
  for (const int64_t extent : {w.out_height(), w.out_width()}) {
    int64_t most = 1;
    while (most < extent && most < 16) most *= 2;
    threads *= most;
  }
  if (threads >= kWarp * cuda::kSchedulers) return kWarp * cuda::kSchedulers;
  return threads >= kWarp ? kWarp : 1;
}

bool unrolls_kh(const Tile& tile) { return tile.kh > 1 && tile.accumulators() * tile.kh * tile.kw <= 512; }

// Rows pay when neighbouring kw read the same columns again.
bool keeps_rows(const Conv2dWorkload& w, const Tile& tile) {
  const int64_t row = reach(tile.inner[kY], 1, w.stride[0], w.dilation[0]) *
                      reach(tile.inner[kX], tile.kw, w.stride[1], w.dilation[1]) * tile.vthreads[kX];
  return w.stride[1] == 1 && w.dilation[1] == 1 && tile.kw > 1 && tile.inner[kX] > 1 && row <= kRowRegisters;
}

namespace {

// Instructions of a multiprocessor for the whole workload: blocks come in waves; a copied element costs its
// address, load and store; parts cost a second pass.
double cost_of(const Conv2dWorkload& w, const Tile& tile) {
  constexpr double kCopy = 10, kBarrier = 600, kSecondKernel = 400'000, kPartial = 24;
  constexpr double kLanes = 128;  // multiply-adds of a multiprocessor in one clock
  const int64_t tiles = w.batch * ceil_div(w.out_channels, tile.block(kF)) *
                        ceil_div(w.out_height(), tile.block(kY)) * ceil_div(w.out_width(), tile.block(kX));
  const int64_t waves = ceil_div(tiles * tile.splits, cuda::kMultiprocessors);
  const int64_t steps = (tile.chunk / tile.ic) * (w.kernel_height / tile.kh) * (w.kernel_width / tile.kw);
  const auto terms = static_cast<double>(tile.ic * tile.kh * tile.kw);
  const auto threads = static_cast<double>(tile.all_threads());
  // Reads of shared memory for one (ic, kh, kw). A read keeps the memory busy as long as 4 multiply-adds keep
  // the multipliers; half of that is hidden.
  const bool rows = keeps_rows(w, tile);
  const int64_t columns = rows ? reach(tile.inner[kX], tile.kw, w.stride[1], w.dilation[1]) : tile.inner[kX];
  const double reads =
      static_cast<double>(tile.vthreads[kF] * tile.inner[kF]) +
      static_cast<double>(tile.inner[kY] * columns) / static_cast<double>(rows ? tile.kw : 1);
  const auto data = static_cast<double>(tile.ic * reach(tile.block(kY), tile.kh, w.stride[0], w.dilation[0]) *
                                        reach(tile.block(kX), tile.kw, w.stride[1], w.dilation[1]));
  const double weights = terms * static_cast<double>(tile.block(kF));
  // Strips of weights narrower than what global memory delivers at once: parts of the kernel, few channels.
  const bool whole = tile.kh == w.kernel_height && tile.kw == w.kernel_width;
  const int64_t narrower = kStrip / std::gcd(tile.ic * tile.kh * tile.kw, kStrip);
  const double strips = Workload(w).is_constant("weight")
                            ? 0.25  // vectors of four, packed ahead
                            : (whole ? 0.5 : 1.5) + 0.5 * static_cast<double>(narrower);
  const double step = terms * threads * (static_cast<double>(tile.accumulators()) + 2 * reads) +
                      kCopy * (data + weights * strips) + kBarrier * kLanes;
  // Few multiply-adds under way on a multiprocessor do not hide their own latency.
  const double warps = threads / kWarp * static_cast<double>(std::min<int64_t>(waves, 2));
  const double busy = std::min(1.0, 0.2 + warps * std::sqrt(static_cast<double>(tile.accumulators())) / 32);
  double cost = static_cast<double>(waves * steps) * step / busy;
  if (tile.splits > 1) {
    const int64_t elements = w.batch * w.out_channels * w.out_height() * w.out_width();
    cost += kSecondKernel +
            kPartial * static_cast<double>(elements * (2 * tile.splits + 1)) / cuda::kMultiprocessors;
  }
  return cost;
}

// As the constraints of the template want it, and no more than a default should take of shared memory.
bool fits(const Conv2dWorkload& w, const Target& t, const InputBound& bound, const Tile& tile) {
  const int64_t threads = tile.all_threads(), oc = w.out_channels, oh = w.out_height(), ow = w.out_width();
  if (threads % thread_granule(w) != 0 || threads > 512) return false;
  if (tile.block(kF) >= (oc == 1 ? 2 : std::clamp<int64_t>(2 * oc, kWarp + 1, 257))) return false;
  if (tile.block(kY) >= std::min(2 * oh, kMaxBlock + 1)) return false;
  if (tile.block(kX) >= std::min(2 * ow, kMaxBlock + 1)) return false;
  if (tile.vthreads[kF] > 1 && tile.threads[kF] * tile.inner[kF] >= oc) return false;
  if (oc * oh * ow > 1 && tile.inner[kF] >= oc && tile.inner[kY] >= oh && tile.inner[kX] >= ow) return false;
  const int64_t room = t.shared_bytes_per_block / 4 / 2;
  const int64_t input = tile.ic * std::max(tile.block(kY) * tile.block(kX), bound.least) * bound.factor;
  const int64_t weights = tile.ic * tile.kh * tile.kw * tile.block(kF);
  if (input > room || weights > std::min<int64_t>(room / 5 * 4, 12288)) return false;
  return tile.accumulators() + kOperandRegisters + cuda::kOtherRegisters <=
             std::min<int64_t>(t.vector_registers(), t.registers_per_sm / threads / 8 * 8) &&
         tile.accumulators() * tile.kw <= cuda::kMaxBody;
}

}  // namespace

Tile first_tile(const Conv2dWorkload& w, const Target& t) {
  const int64_t oh = w.out_height(), ow = w.out_width();
  const InputBound bound = input_bound(w, t.shared_bytes_per_block / 4 / 2);
  Tile best{}, tile{};
  double best_cost = 1e300;
  // A kernel too large for one step is done by rows, or by taps.
  const int64_t kh = kernel_parts(w.kernel_height, w.dilation[0]).back();
  const int64_t kw = kernel_parts(w.kernel_width, w.dilation[1]).back();
  const std::array<std::array<int64_t, 2>, 3> kernels = {{{kh, kw}, {1, kw}, {1, 1}}};
  const auto threads_and_elements = [&] {
    for (const int64_t threads_f : {1, 8, 16, 32, 64})
      for (const int64_t threads_y : sizes(oh, 16))
        for (const int64_t threads_x : sizes(ow, 16))
          for (const int64_t inner_f : {1, 4, 8})
            for (const int64_t inner_y : sizes(oh, 2))
              for (const int64_t inner_x : sizes(ow, 8)) {
                tile.threads = {threads_f, threads_y, threads_x};
                // Vectors of 4 channels of neighbouring threads side by side.
                tile.vthreads = {inner_f > 4 ? inner_f / 4 : 1, 1, 1};
                tile.inner = {std::min<int64_t>(inner_f, 4), inner_y, inner_x};
                if (!fits(w, t, bound, tile)) continue;
                if (const double cost = cost_of(w, tile); cost < best_cost) best = tile, best_cost = cost;
              }
  };
  for (const int64_t ic : {1, 4, 8, 16}) {
    if (ic > 1 && ic > 2 * w.in_channels - 1) continue;
    for (const int64_t splits : {1, 2, 4, 8, 16, 32}) {
      const int64_t steps = ceil_div(w.in_channels, ic), part = ceil_div(steps, splits);
      if (ceil_div(steps, part) != splits) continue;
      for (const auto& kernel : kernels) {
        tile.ic = ic, tile.kh = kernel[0], tile.kw = kernel[1], tile.splits = splits, tile.chunk = part * ic;
        threads_and_elements();
      }
    }
  }
  return best;
}

}  // namespace tuner::conv2d_cuda
