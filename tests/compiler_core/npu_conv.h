// A convolution for the NPU, written by hand: int8, NHWC of one image, channels in multiples of 16. Buffers
// have words of their own and there are no tokens: allocate_scratchpad() and place_tokens() come
// afterwards.
//
//   for tile                     rows of the output, all columns
//     for group                  64 output channels, or fewer; two sets of accumulators in turn
//       for chunk                of input channels, so that two chunks of weights fit
//         load                   the next step's weights, and its tile's input with padding where that is new
//         for tap, ic, oc        weights of 16 x 16; the next ones are filled beside the rows of these
//           matmul               all pixels of the tile
//       store_sums
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler_core/npu/allocate.h"
#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu::testing {

struct ConvCase {
  int64_t side = 0, channels = 0, out_channels = 0, kernel = 1, stride = 1;

  int64_t pad() const { return kernel / 2; }
  int64_t out_side() const { return (side + 2 * pad() - kernel) / stride + 1; }
  int64_t macs() const { return out_side() * out_side() * out_channels * kernel * kernel * channels; }
  int64_t group() const { return std::min<int64_t>(64, out_channels); }  // output channels at a time
  // Input channels at a time: 32 KiB of weights at most.
  int64_t chunk() const {
    int64_t blocks = channels / 16;
    while (blocks > 1 &&
           (channels / 16 % blocks != 0 || kernel * kernel * 16 * blocks * group() > (32 << 10)))
      --blocks;
    return 16 * blocks;
  }
  // Places in DRAM, a burst apart at least. Weights: [group][chunk][tap][ic in chunk][oc in group].
  uint64_t weights() const { return static_cast<uint64_t>(side * side * channels + 63) / 64 * 64; }
  uint64_t tables() const {
    return weights() + static_cast<uint64_t>(kernel * kernel * channels * out_channels);
  }
  uint64_t out() const { return tables() + static_cast<uint64_t>(8 * out_channels); }
  uint64_t dram_bytes() const {
    return out() + static_cast<uint64_t>(out_side() * out_side() * out_channels);
  }
  int64_t weight_at(int64_t tap, int64_t ic, int64_t oc) const {
    const int64_t taps = kernel * kernel, g = oc / group(), k = ic / chunk();
    return ((g * (channels / chunk()) + k) * taps + tap) * chunk() * group() + ic % chunk() * group() +
           oc % group();
  }
};

class ConvWriter {
 public:
  ConvWriter(const Machine& machine, const ConvCase& c) : m_(machine), c_(c) {
    // Two sets of sums, two inputs and two chunks of weights, with room for gaps between buffers.
    const int64_t sets = 2 * c_.group() / 16, weights = c_.kernel * c_.kernel * c_.chunk() * c_.group();
    tile_rows_ = std::max<int64_t>(1, std::min(c_.out_side(), m_.accumulator_rows() / sets / c_.out_side()));
    const auto input = [&] { return ((tile_rows_ - 1) * c_.stride + c_.kernel) * padded() * c_.channels; };
    while (tile_rows_ > 1 && 2 * (input() + weights) + 8 * c_.out_channels > m_.scratchpad_bytes * 3 / 4)
      --tile_rows_;
  }

  Code code() {
    tables_ = fresh(8 * c_.out_channels);
    load({.op = Op::kLoad,
          .dram = u32(c_.tables()),
          .target = tables_,
          .rows = u32(c_.out_channels / 16),
          .bytes = 128},
         128, 8);
    code_.push_back({.op = Op::kSetStore, .dram_stride = u32(c_.out_channels)});
    std::vector<Step> steps;
    for (int64_t first = 0; first < c_.out_side(); first += tile_rows_)
      for (int64_t group = 0; group < c_.out_channels / c_.group(); ++group)
        for (int64_t chunk = 0; chunk < c_.channels / c_.chunk(); ++chunk)
          steps.push_back({first, std::min(tile_rows_, c_.out_side() - first), group, chunk});
    load_step(steps[0]);
    code_.push_back({.op = Op::kMatmul, .fill = true, .source2 = steps[0].weights, .stride2 = u32(blocks())});
    for (size_t n = 0; n < steps.size(); ++n) {
      if (n + 1 < steps.size()) load_step(steps[n + 1]);
      products(steps[n], n + 1 < steps.size() ? &steps[n + 1] : nullptr);
      if (steps[n].chunk + 1 == c_.channels / c_.chunk()) store(steps[n]);
    }
    return std::move(code_);
  }
  const std::vector<ScratchpadBuffer>& buffers() const { return buffers_; }

 private:
  struct Step {
    int64_t first, rows, group, chunk;  // the first row of the output, and how many
    uint32_t input = 0, weights = 0;
  };

  template <class T>
  static uint32_t u32(T value) {
    return static_cast<uint32_t>(value);
  }
  uint32_t fresh(int64_t bytes) {
    const uint32_t begin = buffers_.empty() ? 0 : buffers_.back().begin + buffers_.back().words;
    buffers_.push_back({begin, u32((bytes + 15) / 16)});
    return begin;
  }
  int64_t pixel_words() const { return c_.channels / 16; }
  int64_t padded() const { return c_.side + 2 * c_.pad(); }
  int64_t blocks() const { return c_.group() / 16; }
  void load(const Instruction& i, int64_t dram_stride, int64_t stride) {
    code_.push_back({.op = Op::kSetLoad, .dram_stride = u32(dram_stride), .stride = u32(stride)});
    code_.push_back(i);
  }

  void load_step(Step& step) {
    if (step.group == 0 && step.chunk == 0) input_ = load_input(step);
    step.input = input_;
    const int64_t tiles = c_.kernel * c_.kernel * c_.chunk() / 16, tile_bytes = 16 * c_.group();
    step.weights = fresh(tiles * tile_bytes);
    load({.op = Op::kLoad,
          .dram = u32(c_.weights()) + u32(c_.weight_at(0, step.chunk * c_.chunk(), step.group * c_.group())),
          .target = step.weights,
          .rows = u32(tiles),
          .bytes = u32(tile_bytes)},
         tile_bytes, blocks() * 16);
  }

  uint32_t load_input(const Step& step) {
    const int64_t top = step.first * c_.stride - c_.pad();  // of the input, padding included
    const int64_t bottom = top + (step.rows - 1) * c_.stride + c_.kernel;
    const int64_t from = std::max<int64_t>(top, 0), to = std::min(bottom, c_.side);
    const uint32_t target = fresh((bottom - top) * padded() * c_.channels);
    load({.op = Op::kLoad,
          .dram = u32(from * c_.side * c_.channels),
          .target = target,
          .rows = u32(to - from),
          .bytes = u32(c_.side * c_.channels),
          .left = u32(c_.pad() * c_.channels),
          .right = u32(c_.pad() * c_.channels),
          .top = u32(from - top),
          .bottom = u32(bottom - to)},
         c_.side * c_.channels, padded() * pixel_words());
    return target;
  }

  void products(const Step& step, const Step* next) {
    const int64_t chunk_blocks = c_.chunk() / 16, taps = c_.kernel * c_.kernel;
    const int64_t count = taps * chunk_blocks * blocks();
    const auto weights = [&](int64_t n) {
      return step.weights + u32(n / blocks() * blocks() * 16 + n % blocks());
    };
    for (int64_t n = 0; n < count; ++n) {
      const int64_t tap = n / blocks() / chunk_blocks, ic = n / blocks() % chunk_blocks, oc = n % blocks();
      Instruction i{
          .op = Op::kMatmul,
          .accumulate = step.chunk > 0 || n >= blocks(),
          .swap = true,
          .source = step.input + u32((tap / c_.kernel * padded() + tap % c_.kernel) * pixel_words() +
                                     step.chunk * chunk_blocks + ic),
          .sums = sums() + u32(oc * step.rows * c_.out_side()),
          .rows = u32(c_.out_side()),
          .outer = u32(step.rows),
          .stride = u32(c_.stride * pixel_words()),
          .outer_stride = u32(c_.stride * padded() * pixel_words())};
      i.fill = n + 1 < count || next != nullptr;
      if (i.fill) {
        i.source2 = n + 1 < count ? weights(n + 1) : next->weights;
        i.stride2 = u32(blocks());
      }
      code_.push_back(i);
    }
  }

  uint32_t sums() const { return set_ * u32(m_.accumulator_rows() / 2); }
  void store(const Step& step) {
    const uint32_t tables = tables_ + u32(step.group * c_.group() / 2);  // 8 bytes per channel, in words
    code_.push_back(
        {.op = Op::kStoreScales, .source = tables, .blocks = u32(blocks()), .low = -128, .high = 127});
    code_.push_back(
        {.op = Op::kStoreSums,
         .dram = u32(c_.out()) + u32(step.first * c_.out_side() * c_.out_channels + step.group * c_.group()),
         .sums = sums(),
         .rows = u32(step.rows * c_.out_side()),
         .bytes = u32(c_.group()),
         .outer_stride = u32(step.rows * c_.out_side())});
    set_ ^= 1;
  }

  const Machine m_;
  const ConvCase c_;
  int64_t tile_rows_ = 1;
  Code code_;
  std::vector<ScratchpadBuffer> buffers_;
  uint32_t tables_ = 0, input_ = 0, set_ = 0;
};

}  // namespace tuner::npu::testing
