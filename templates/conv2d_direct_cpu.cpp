// conv2d_direct_cpu: direct float32 convolution on any CPU with vectors; input and output are plain NCHW.
//
//   out[n, oc, oh, ow] = act(sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                                   * weight[oc, ic, kh, kw] + bias[oc])
//
//   weight packed in panels of NR channels, [OC/NR][IC/c][KH][KW][c][NR], NR a tile or a vector of them:
//       by the packing entry when constant, else by a stage before
//   data padded, in blocks of c channels, [N][IC/c][H][W][c]: no copy when nothing is padded and c = 1
//   parallel n, oc_outer, oh_outer       (or pixels outside channels)
//     for ow_outer
//       for ic_outer, kh, kw, ic_inner   kw unrolled when `unroll_kw` is set, ic_inner by `unroll_ic`
//         unrolled oh_inner, ow_inner    one broadcast of data...
//           unrolled oc_vector           ...times each vector of the weights: one accumulator register each
//             vectorized lane
//       write the tile: bias, activation, back to NCHW
//
// Serves stride, padding, dilation; tiles need not divide the output. Declines grouped convolution and types
// other than float32.
#include <algorithm>

#include "templates/registry.h"

namespace tuner {
namespace {

struct Knobs {
  SplitKnob tile_oc, tile_oh, tile_ow, block_ic;
  FlagKnob narrow_panels;
  ChoiceKnob unroll_ic;
  FlagKnob unroll_kw;
  CategoryKnob order;
};

class Conv2dDirectCpu final : public ScheduleTemplate<Conv2dWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_direct_cpu"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return declined("needs a CPU target, got ", t.name());
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    return supported();
  }

  Knobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const int64_t lanes = lanes_of(w, t), registers = t.vector_registers();
    const int64_t pixels = (registers - 3) / 2;  // with two vectors of channels
    const auto [first_oh, first_ow] = first_tile(w.out_height(), w.out_width(), pixels);
    Knobs k{
        // Output channels of a tile: whole vectors. More use each broadcast of data more often.
        .tile_oc = space.split("tile_oc", w.out_channels)
                       .multiples_of(lanes)
                       .at_most(4 * lanes)
                       .try_first(2 * lanes),
        // Pixels of a tile, tile_oh x tile_ow. More use each vector of weights more often; too many spill to
        // the stack.
        .tile_oh = space.split("tile_oh", w.out_height()).at_most(7).try_first(first_oh),
        .tile_ow = space.split("tile_ow", w.out_width()).at_most(registers - 2).try_first(first_ow),
        // Input channels side by side in the copy of data: 1 is the plain layout, which needs no copy when
        // nothing is padded.
        .block_ic = space.split("block_ic", w.in_channels).divisors_only().at_most(16).try_first(1),
        // Weights packed a vector wide in place of a tile wide: as many streams as vectors, which the
        // prefetchers follow faster when the weights come from the outer caches.
        .narrow_panels = space.flag("narrow_panels").try_first(w.out_channels > lanes),
        // Both share the loop's own instructions; the code grows. Neighbouring taps read the same pixels:
        // with kw unrolled the compiler likes to keep those in registers that the accumulators need.
        .unroll_ic = space.choice("unroll_ic", {1, 2, 4}).try_first(1),
        .unroll_kw = space.flag("unroll_kw").try_first(false),
        // What stays in the cache between tiles: the weights of a channel block, or the pixels of a tile.
        .order = space.category("order", {"channels_outer", "pixels_outer"}).try_first("channels_outer"),
    };
    const IntExpr vectors = k.tile_oc.inner() / lanes;
    const IntExpr accumulators = k.tile_oh.inner() * k.tile_ow.inner() * vectors;
    // Accumulators, the weights and one broadcast must fit the registers.
    space.require(accumulators + vectors + 1 <= registers);
    // Longer bodies only compile longer.
    space.require(accumulators * k.unroll_ic * (k.unroll_kw * (w.kernel_width - 1) + 1) <= kMaxBody);
    if (w.kernel_width == 1) space.require(k.unroll_kw == 0);
    space.require(!k.narrow_panels || vectors >= 2);
    space.require(k.unroll_ic == 1 || k.block_ic.inner() % k.unroll_ic == 0 ||
                  (k.block_ic.inner() == 1 && k.unroll_ic <= w.in_channels));
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Knobs& k,
                const Config& c) const override {
    const int64_t channels = c[k.tile_oc].inner, block_ic = c[k.block_ic].inner, lanes = lanes_of(w, t);
    const bool parallel = t.threads > 1;
    lay_out_data(s, w, block_ic, t.f32_lanes(), parallel);
    lay_out_weight(s, w, block_ic, c[k.narrow_panels] ? lanes : channels, parallel);

    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    const auto [n, oc, oh, ow] = s.axes<4>(out);
    const auto [oc_outer, oc_inner] = s.split(oc, channels);
    const auto [oc_vector, oc_lane] = s.split(oc_inner, lanes);
    const auto [oh_outer, oh_inner] = s.split(oh, c[k.tile_oh].inner);
    const auto [ow_outer, ow_inner] = s.split(ow, c[k.tile_ow].inner);
    const bool channels_outer = c[k.order] == 0;
    if (channels_outer)
      s.reorder({oc_outer, oh_outer, ow_outer, oh_inner, ow_inner, oc_vector, oc_lane});
    else
      s.reorder({oh_outer, ow_outer, oc_outer, oh_inner, ow_inner, oc_vector, oc_lane});
    s.compute_at(acc, channels_outer ? ow_outer : oc_outer);
    s.unroll(oh_inner);
    s.unroll(ow_inner);
    s.unroll(oc_vector);
    if (lanes > 1) s.vectorize(oc_lane);
    accumulate(s, acc, block_ic, c[k.unroll_ic], c[k.unroll_kw], lanes);
    if (parallel && channels_outer) s.parallel(s.fuse({n, oc_outer, oh_outer}));
    if (parallel && !channels_outer) s.parallel(s.fuse({n, oh_outer, ow_outer}));
  }

 private:
  // A single channel has nothing to be a vector of.
  static int64_t lanes_of(const Conv2dWorkload& w, const Target& t) {
    return w.out_channels == 1 ? 1 : t.f32_lanes();
  }

  static constexpr int64_t kMaxBody = 200;

  // The tile that covers the output with least work; the last tiles of a row and of a column are smaller.
  static std::array<int64_t, 2> first_tile(int64_t height, int64_t width, int64_t pixels) {
    // What a tile costs, in pixels: one more for its own start and end; fewer than four leave the multipliers
    // waiting.
    const auto tile = [](int64_t n) { return n == 0 ? 0 : std::max<int64_t>(n, 4) + 1; };
    std::array<int64_t, 2> best{1, 1};
    int64_t best_cost = INT64_MAX;
    for (int64_t th = 1; th <= std::min<int64_t>(height, 7); ++th)
      for (int64_t tw = 1; tw <= std::min(width, pixels / th); ++tw) {
        const int64_t rest_h = height % th, rest_w = width % tw;
        const int64_t cost = (height / th) * ((width / tw) * tile(th * tw) + tile(th * rest_w)) +
                             (width / tw) * tile(rest_h * tw) + tile(rest_h * rest_w);
        if (cost < best_cost) {
          best_cost = cost;
          best = {th, tw};
        }
      }
    return best;
  }

  static void lay_out_data(Schedule& s, const Conv2dWorkload& w, int64_t block_ic, int64_t lanes,
                           bool parallel) {
    const bool pads = w.padding != std::array<int64_t, 4>{0, 0, 0, 0};
    if (!pads && block_ic == 1) return;
    Tensor data = s.tensor(pads ? "padded" : "data");
    if (block_ic > 1) {
      const Tensor blocked = s.pack(data, {{0}, {1, block_ic}, {2}, {3}, {1, block_ic, true}});
      if (pads)
        s.inline_compute(data);
      else if (Workload(w).is_constant("data"))
        return;
      data = blocked;
    }
    const std::vector<Axis> axes = s.axes(data);  // n, channel or block, row, column[, channel in block]
    if (s.refused()) return;
    if (block_ic == 1) s.vectorize(s.split(axes[3], lanes).inner);
    if (parallel) s.parallel(s.fuse({axes[0], axes[1]}));
  }

  static void lay_out_weight(Schedule& s, const Conv2dWorkload& w, int64_t block_ic, int64_t panel,
                             bool parallel) {
    std::vector<PackDim> dims = {{0, panel}, {1, block_ic}, {2}, {3}};
    if (block_ic > 1) dims.push_back({1, block_ic, true});
    dims.push_back({0, panel, true});
    const Tensor packed = s.pack(s.tensor("weight"), dims);
    if (s.refused() || Workload(w).is_constant("weight") || !parallel) return;
    s.parallel(s.axes(packed).front());
  }

  // The stage of the tile, inside its outer loops.
  static void accumulate(Schedule& s, const Tensor& acc, int64_t block_ic, int64_t unroll_ic, bool unroll_kw,
                         int64_t lanes) {
    const auto [n, oh, ow, oc] = s.inner_axes<4>(acc);
    const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
    const auto [vector, lane] = s.split(oc, lanes);
    Axis ic_outer, ic_unrolled;
    if (block_ic > 1) {
      const SplitAxes blocks = s.split(ic, block_ic);
      const SplitAxes inside = s.split(blocks.inner, unroll_ic);
      ic_outer = blocks.outer;
      ic_unrolled = inside.inner;
      s.reorder({ic_outer, kh, kw, inside.outer, ic_unrolled, oh, ow, vector, lane});
    } else {
      const SplitAxes inside = s.split(ic, unroll_ic);
      ic_outer = inside.outer;
      ic_unrolled = inside.inner;
      s.reorder({ic_outer, kh, kw, ic_unrolled, oh, ow, vector, lane});
    }
    s.decompose_reduction(acc, ic_outer);
    s.unroll(ic_unrolled);
    if (unroll_kw) s.unroll(kw);
    s.unroll(oh);
    s.unroll(ow);
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
  }
};

}  // namespace

const AnyTemplate& conv2d_direct_cpu() {
  static const Conv2dDirectCpu instance;
  return instance;
}

}  // namespace tuner
