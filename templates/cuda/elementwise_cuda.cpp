// elementwise_cuda: a chain of elementwise operations in one pass, on any NVIDIA GPU.
//
//   out[i, j] = act(x[i, j] * scale[j] + bias[j] + residual[i, j])
//
//   all vectors of `vector` elements, in the order of memory:
//     block: `loads` rounds of `threads` vectors, each thread one a round, all rounds under way at once
//
// Declines types other than float32.
#include "templates/cuda/cuda_rows.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

struct ElementwiseKnobs {
  ChoiceKnob threads, vector, loads;
};

class ElementwiseCuda final : public ScheduleTemplate<ElementwiseWorkload, ElementwiseKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "elementwise_cuda"; }
  int version() const override { return 1; }

  Support supports(const ElementwiseWorkload& w, const Target& t) const override {
    return cuda::supports_rows(t, w.dtype);
  }

  ElementwiseKnobs declare(ConfigSpace& space, const ElementwiseWorkload& w, const Target&) const override {
    const int64_t vector = cuda::vector_width({w.columns}), vectors = w.rows * w.columns / vector;
    int64_t loads = 4;
    while (loads > 1 && vectors < 256 * loads * 2 * cuda::kMultiprocessors) loads /= 2;
    ElementwiseKnobs k{
        // Threads of a block.
        .threads = space.choice("threads", {32, 64, 128, 256, 512, 1024}).try_first(256),
        // Elements of one access.
        .vector = space.choice("vector", {1, 2, 4}).at_most(vector).try_first(vector),
        // Vectors of each operand a thread has under way at once: hides the latency of memory, takes
        // registers
        // and blocks.
        .loads = space.choice("loads", {1, 2, 4, 8}).try_first(loads),
    };
    constexpr int64_t kMaxGridX = (int64_t{1} << 31) - 1;
    space.require(ceil_div(w.rows * w.columns, k.threads * k.vector * k.loads) <= kMaxGridX);
    if (w.rows * w.columns >= cuda::kManyElements)
      space.require(k.threads % (cuda::kWarp * cuda::kSchedulers) == 0);
    // Rounds that all have work.
    space.require(k.loads == 1 || k.threads * k.vector * (k.loads - 1) < w.rows * w.columns);
    return k;
  }

  Program compute(const ElementwiseWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ElementwiseWorkload&, const Target&, const ElementwiseKnobs& k,
                const Config& c) const override {
    const auto [i, j] = s.axes<2>(s.tensor("out"));
    const auto [j_vector, lane] = s.split(j, c[k.vector]);
    const auto [block, in_block] = s.split(s.fuse({i, j_vector}), c[k.threads] * c[k.loads]);
    const auto [round, thread] = s.split(in_block, c[k.threads]);
    s.bind(block, LoopKind::kBlockX);
    s.bind(thread, LoopKind::kThreadX);
    s.unroll(round);
    if (c[k.vector] > 1) s.vectorize(lane);
  }
};

}  // namespace

const AnyTemplate& elementwise_cuda() {
  static const ElementwiseCuda instance;
  return instance;
}

}  // namespace tuner
