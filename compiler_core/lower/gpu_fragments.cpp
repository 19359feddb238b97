// Fragments: a tile that the lanes of a warp, or of a warpgroup, hold together becomes registers of each
// lane.
//
//   fragment acc[..., R * 16, C * 8]   ->   register acc[..., R * C * 4]
//
// Intrinsics name their first register then. Which element of the tile a register is, their layouts say
// (ir/intrinsic.h): all intrinsics that meet in a buffer must spread it alike, one that takes several tiles
// at once as these side by side.
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

using Place = IntrinsicOperand::Place;
using Layout = decltype(IntrinsicOperand::layout);

constexpr int64_t kLanes = 32;

std::vector<int64_t> element_at(Layout layout, int64_t lane, int64_t reg) {
  std::vector<int64_t> at;
  for (const Expr& index : layout(Expr(lane), Expr(reg))) {
    int64_t value = 0;
    CHECK(is_const_int(simplify(index), &value)) << "a layout gives " << to_text(index);
    at.push_back(value);
  }
  return at;
}

// Tiles of `base` that `o` covers, in each dimension.
std::vector<int64_t> tiles_of(const IntrinsicOperand& o, const IntrinsicOperand& base) {
  std::vector<int64_t> tiles;
  for (size_t d = 0; d < o.shape.size(); ++d) tiles.push_back(o.shape[d] / base.shape[d]);
  return tiles;
}

bool compare_layouts(const IntrinsicOperand& o, const IntrinsicOperand& base, int64_t threads) {
  const std::vector<int64_t> tiles = tiles_of(o, base);
  for (int64_t lane = 0; lane < threads; ++lane)
    for (int64_t reg = 0; reg < o.registers; ++reg) {
      std::vector<int64_t> expected = element_at(base.layout, lane, reg % base.registers);
      int64_t tile = reg / base.registers;
      for (size_t d = expected.size(); d-- > 0;) {
        expected[d] += tile % tiles[d] * base.shape[d];
        tile /= tiles[d];
      }
      if (element_at(o.layout, lane, reg) != expected) return false;
    }
  return true;
}

// Whether the registers of `o` are those of tiles of `base`, one after the other. What was compared is
// remembered.
bool spreads_alike(const IntrinsicOperand& o, const IntrinsicOperand& base, int64_t threads) {
  if (o.layout == base.layout && o.shape == base.shape) return true;
  if (o.shape.size() != base.shape.size() || o.registers % base.registers != 0) return false;
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (o.shape[d] % base.shape[d] != 0) return false;
  static std::mutex mutex;
  static std::map<std::tuple<Layout, Layout, int64_t>, bool> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace({o.layout, base.layout, o.registers});
  if (is_new) found->second = compare_layouts(o, base, threads);
  return found->second;
}

// A use of a fragment by an intrinsic.
struct Use {
  const Intrinsic* intrinsic;
  const IntrinsicOperand* operand;
};

class Fragments {
 public:
  Status look(const Stmt& body) {
    visit(body, [&](const Stmt& s) { note(*s); });
    for (const auto& [buffer, uses] : uses_) decide(buffer, uses);
    return status_;
  }

  Stmt rebuild(const Stmt& s) const {
    Stmt mapped = map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return rebuild(child); });
    if (mapped == nullptr) return mapped;
    if (s->kind == StmtKind::kAllocate) {
      const auto found = registers_.find(s->buffer);
      return found == registers_.end() ? mapped : make_allocate(found->second.buffer, mapped->body);
    }
    if (s->kind != StmtKind::kIntrinsic) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    for (Expr& operand : node->operands)
      if (const auto found = registers_.find(operand->buffer); found != registers_.end())
        operand = first_register(operand, found->second);
    return node;
  }

 private:
  struct Registers {
    Buffer buffer;
    const IntrinsicOperand* base;  // the smallest tile
    std::vector<int64_t> grid;     // of tiles in the fragment
  };

  template <class... Words>
  void refuse(const Words&... words) {
    if (status_.is_ok()) status_ = invalid_config(words...);
  }

  void note(const StmtNode& s) {
    const auto plainly = [&](const Buffer& buffer) {
      if (buffer->scope == MemoryScope::kFragment)
        refuse(buffer->name,
               " is a fragment, which only intrinsics read and write: tensorize what touches it");
    };
    if (s.kind == StmtKind::kStore) plainly(s.buffer);
    const Intrinsic* const intrinsic = s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
    if (intrinsic == nullptr) {
      own_exprs(s, [&](const Expr& whole) {
        visit(whole, [&](const Expr& e) {
          if (e->kind == ExprKind::kLoad) plainly(e->buffer);
        });
      });
      return;
    }
    for (size_t o = 0; o < s.operands.size(); ++o)
      if (s.operands[o]->buffer->scope == MemoryScope::kFragment)
        uses_[s.operands[o]->buffer].push_back({intrinsic, &intrinsic->operands[o]});
  }

  void decide(const Buffer& buffer, const std::vector<Use>& uses) {
    const IntrinsicOperand* const base =
        std::ranges::min_element(uses, {}, [](const Use& u) { return u.operand->registers; })->operand;
    for (const Use& use : uses) {
      if (use.operand->layout == nullptr)
        return refuse(buffer->name, " is a tile of ", use.intrinsic->name, ", which is not of GPUs");
      if (!spreads_alike(*use.operand, *base, use.intrinsic->threads))
        return refuse(buffer->name, ": ", use.intrinsic->name,
                      " spreads it over the lanes in another way than others do");
    }
    auto node = std::make_shared<BufferNode>(*buffer);
    node->scope = MemoryScope::kRegister;
    const size_t lead = node->shape.size() - base->shape.size();
    std::vector<int64_t> grid(node->shape.begin() + static_cast<std::ptrdiff_t>(lead), node->shape.end());
    for (size_t d = 0; d < grid.size(); ++d) grid[d] /= base->shape[d];
    for (const Use& use : uses) {
      // Its tiles lie one after the other: all dimensions behind one that it takes several of are whole.
      const std::vector<int64_t> tiles = tiles_of(*use.operand, *base);
      for (size_t d = 0; d < tiles.size(); ++d)
        for (size_t behind = d + 1; tiles[d] > 1 && behind < tiles.size(); ++behind)
          if (tiles[behind] != grid[behind])
            return refuse(buffer->name, ": ", use.intrinsic->name, " takes ", tiles[d],
                          " tiles of dimension ", lead + d, " at once, between which others lie");
    }
    node->shape.resize(lead);
    node->shape.push_back(base->registers);
    for (const int64_t tiles : grid) node->shape.back() *= tiles;
    registers_[buffer] = {std::move(node), base, std::move(grid)};
  }

  static Expr first_register(const Expr& operand, const Registers& to) {
    std::vector<Expr> at = operand->operands;
    const size_t lead = at.size() - to.grid.size();
    Expr tile = 0;
    for (size_t d = 0; d < to.grid.size(); ++d)
      tile = tile * to.grid[d] + floor_div(at[lead + d], to.base->shape[d]);
    at.resize(lead);
    at.push_back(simplify(tile * to.base->registers));
    return load(to.buffer, std::move(at));
  }

  std::map<Buffer, std::vector<Use>> uses_;
  std::map<Buffer, Registers> registers_;
  Status status_;
};

// Checks that runs of elements in shared memory are aligned, so that one access takes each.
class Runs {
 public:
  explicit Runs(const GpuKernel& kernel) : kernel_(kernel) {}

  void look(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr) return;
    RangeMap inside = ranges;
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
    if (s->kind == StmtKind::kIntrinsic) check(*s, ranges);
    look(s->body, inside);
    look(s->else_body, inside);
    for (const Stmt& child : s->stmts) look(child, inside);
  }
  const Status& status() const { return status_; }

 private:
  void check(const StmtNode& s, const RangeMap& ranges) {
    const Intrinsic* const intrinsic = find_intrinsic(s.name);
    for (size_t n = 0; intrinsic != nullptr && n < intrinsic->operands.size(); ++n) {
      const IntrinsicOperand& o = intrinsic->operands[n];
      if (o.place != Place::kShared || o.run == 1) continue;
      const Expr& operand = s.operands[n];
      const int64_t whole = contiguous_elements(*operand->buffer);
      for (int64_t reg = 0; reg < o.registers; reg += o.run) {
        std::vector<Expr> at =
            in_buffer(operand->operands, o.layout(Expr(kernel_.thread_vars[0]), Expr(reg)));
        for (Expr& index : at) index = simplify(index, ranges);
        const Expr offset = simplify(storage_offset(*operand->buffer, at), ranges);
        if (whole % o.run == 0 && divisible(at.back(), o.run, ranges) && divisible(offset, o.run, ranges))
          continue;
        if (status_.is_ok())
          status_ = invalid_config("kernel ", kernel_.name, ": ", s.name, " takes ", o.run, " elements of ",
                                   operand->buffer->name, " at a time, and ", to_text(operand),
                                   " is not shown to lie at multiples of that; pad rows by a multiple");
      }
    }
  }

  const GpuKernel& kernel_;
  Status status_;
};

bool is_of_warp(const StmtNode& s) {
  const Intrinsic* const intrinsic = s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
  return intrinsic != nullptr && std::ranges::any_of(intrinsic->operands, [](const IntrinsicOperand& o) {
           return o.place == Place::kFragment || o.place == Place::kShared;
         });
}

}  // namespace

Result<Stmt> lower_fragments(const Stmt& body) {
  Fragments pass;
  RETURN_IF_ERROR(pass.look(body));
  return pass.rebuild(body);
}

bool has_warp_tiles(const Stmt& body) {
  bool found = false;
  visit(body, [&](const Stmt& s) { found |= is_of_warp(*s); });
  return found;
}

Status check_warp_tiles(const Stmt& body, const GpuKernel& kernel) {
  Status lanes;
  visit(body, [&](const Stmt& s) {
    const int64_t threads = is_of_warp(*s) ? find_intrinsic(s->name)->threads : kernel.block[0];
    if (lanes.is_ok() && threads != kernel.block[0])
      lanes = invalid_config("kernel ", kernel.name, ": tiles of a ", threads > kLanes ? "warpgroup" : "warp",
                             " need threadIdx.x to be its lanes; found ", kernel.block[0],
                             " threads along x, expected ", threads);
  });
  RETURN_IF_ERROR(lanes);
  if (!has_warp_tiles(body)) return Status::ok();
  Runs runs(kernel);
  runs.look(body, kernel_ranges(kernel));
  return runs.status();
}

}  // namespace tuner::gpu
