#include "templates/cuda_schedule.h"

#include <algorithm>

namespace tuner::cuda {

int64_t vector_width(std::initializer_list<int64_t> lengths) {
  for (const int64_t width : {4, 2})
    if (std::all_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n % width == 0; })) return width;
  return 1;
}

IntExpr register_limit(const Target& t, const IntExpr& threads, const IntExpr& min_blocks) {
  // The register file is dealt in portions of 8 a thread; an instruction names at most 255.
  return min(IntExpr(t.vector_registers()), t.registers_per_sm / (threads * min_blocks) / 8 * 8);
}

void share_copy(Schedule& s, const std::vector<Axis>& axes, int64_t threads, int64_t vector) {
  constexpr int64_t kMaxRounds = 16;
  const Axis all = axes.size() > 1 ? s.fuse(axes) : axes.front();
  const auto [vectors, lane] = s.split(all, vector);
  const auto [round, thread] = s.split(vectors, threads);
  if (s.refused()) return;
  if (s.extent(round) <= kMaxRounds) s.unroll(round);
  s.bind(thread, LoopKind::kThreadX);
  if (vector > 1) s.vectorize(lane);
  s.rename(round, "round");
  s.rename(lane, "lane");
}

void bind_grid(Schedule& s, Axis batch, Axis splits, Axis tiles) {
  std::vector<Axis> x;
  const auto place = [&](Axis axis, LoopKind kind) {
    if (axis.var == nullptr || s.refused()) return;
    if (s.extent(axis) > kMaxGridYZ || !x.empty())
      x.push_back(axis);
    else
      s.bind(axis, kind);
  };
  place(batch, LoopKind::kBlockZ);
  place(splits, LoopKind::kBlockY);
  x.push_back(tiles);
  s.bind(x.size() > 1 ? s.fuse(x) : tiles, LoopKind::kBlockX);
}

void vectorize_by(Schedule& s, Axis axis, int64_t lanes) {
  const auto [vector, lane] = s.split(axis, lanes);
  s.unroll(vector);
  if (lanes > 1) s.vectorize(lane);
  s.rename(vector, "vector");
  s.rename(lane, "lane");
}

}  // namespace tuner::cuda
