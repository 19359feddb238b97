// Units that work by themselves (wgmma): what they ask for that no element-wise reading of a kernel shows.
//
//   places   a tile that the unit fetches as a whole, given one address, lies where the unit looks for its
//            elements
//   order    sums of products that go on behind their statement are nobody's before they have landed
#include <set>
#include <tuple>
#include <utility>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

using Way = Intrinsic::Way;

const Intrinsic* intrinsic_of(const StmtNode& s) {
  return s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
}

// Goes on to the next place within `shape`, the last dimension first; false behind the last one.
bool next(std::vector<int64_t>& at, const std::vector<int64_t>& step, const std::vector<int64_t>& shape) {
  for (size_t d = at.size(); d-- > 0;) {
    at[d] += step[d];
    if (at[d] < shape[d]) return true;
    at[d] = 0;
  }
  return false;
}

class Places {
 public:
  explicit Places(const GpuKernel& kernel) : kernel_(kernel) {}

  void look(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr) return;
    RangeMap inside = ranges;
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
    const Intrinsic* const intrinsic = intrinsic_of(*s);
    for (size_t o = 0; intrinsic != nullptr && o < intrinsic->operands.size(); ++o)
      if (intrinsic->operands[o].unit_place != nullptr)
        check(*s, intrinsic->operands[o], s->operands[o], ranges);
    look(s->body, inside);
    look(s->else_body, inside);
    for (const Stmt& child : s->stmts) look(child, inside);
  }
  const Status& status() const { return status_; }

 private:
  // The tile may begin anywhere in the buffer: at multiples of itself in its own dimensions.
  void check(const StmtNode& s, const IntrinsicOperand& o, const Expr& operand, const RangeMap& ranges) {
    const BufferNode& buffer = *operand->buffer;
    const size_t lead = buffer.shape.size() - o.shape.size();
    std::vector<int64_t> step(buffer.shape.size(), 1);
    for (size_t d = 0; d < o.shape.size(); ++d) {
      step[lead + d] = o.shape[d];
      if (!divisible(operand->operands[lead + d], o.shape[d], ranges) ||
          buffer.shape[lead + d] % o.shape[d] != 0)
        return refuse("kernel ", kernel_.name, ": ", s.name, " fetches ", o.name, " by itself, and ",
                      to_text(operand), " is not shown to begin at a multiple of the tile in dimension ",
                      lead + d);
    }
    if (!checked_.emplace(&buffer, o.unit_place, o.shape).second) return;
    const auto offset = storage_offsets(buffer);
    const int64_t bytes = dtype_bytes(buffer.dtype);
    const std::vector<int64_t> one(o.shape.size(), 1);
    std::vector<int64_t> origin(buffer.shape.size(), 0);
    do {
      const int64_t first = offset(origin) * bytes;
      std::vector<int64_t> in_tile(o.shape.size(), 0), at = origin;
      do {
        for (size_t d = 0; d < in_tile.size(); ++d) at[lead + d] = origin[lead + d] + in_tile[d];
        const int64_t found = offset(at) * bytes - first, expected = o.unit_place(in_tile);
        if (found != expected || first % o.unit_alignment != 0)
          return refuse("kernel ", kernel_.name, ": ", s.name, " fetches ", o.name, " by itself, and ",
                        buffer.name, " with layout \"", buffer.layout,
                        "\" lies in another way: its tile at byte ", first, " (expected a multiple of ",
                        o.unit_alignment, ") has an element ", found, " bytes from its start, expected ",
                        expected);
      } while (next(in_tile, one, o.shape));
    } while (next(origin, step, buffer.shape));
  }

  template <class... Words>
  void refuse(const Words&... words) {
    if (status_.is_ok()) status_ = invalid_config(words...);
  }

  const GpuKernel& kernel_;
  std::set<std::tuple<const BufferNode*, decltype(IntrinsicOperand::unit_place), std::vector<int64_t>>>
      checked_;
  Status status_;
};

class Order {
 public:
  explicit Order(const GpuKernel& kernel) : kernel_(kernel) {}

  void look(const Stmt& s) {
    if (s == nullptr) return;
    const Intrinsic* const intrinsic = intrinsic_of(*s);
    const Way way = intrinsic == nullptr ? Way::kWhole : intrinsic->way;
    if (way == Way::kWhole) {
      if (s->kind == StmtKind::kStore) touch(*s, s->buffer);
      own_exprs(*s, [&](const Expr& whole) {
        visit(whole, [&](const Expr& e) {
          if (e->kind == ExprKind::kLoad) touch(*s, e->buffer);
        });
      });
    } else if (way == Way::kStarts) {
      under_way_.insert(s->operands[0]->buffer.get());
    } else if (way == Way::kLands) {
      under_way_.clear();
    }
    const std::set<const BufferNode*> before = under_way_;
    // What an iteration leaves under way the next one meets.
    for (int turn = 0; turn < (s->kind == StmtKind::kFor && s->extent > 1 ? 2 : 1); ++turn) look(s->body);
    if (s->kind == StmtKind::kIf) {  // either branch may be taken
      std::set<const BufferNode*> after = std::exchange(under_way_, before);
      look(s->else_body);
      under_way_.merge(after);
    }
    for (const Stmt& child : s->stmts) look(child);
  }
  Status finish() {
    if (status_.is_ok() && !under_way_.empty())
      status_ = invalid_config("kernel ", kernel_.name, ": products of ", (*under_way_.begin())->name,
                               " are started and never land");
    return status_;
  }

 private:
  void touch(const StmtNode& s, const Buffer& buffer) {
    if (status_.is_ok() && under_way_.contains(buffer.get()))
      status_ = invalid_config(
          "kernel ", kernel_.name, ": ", buffer->name,
          " is touched before its products have landed: ", to_text(std::make_shared<const StmtNode>(s)));
  }

  const GpuKernel& kernel_;
  std::set<const BufferNode*> under_way_;  // sums
  Status status_;
};

}  // namespace

Status check_units(const Stmt& body, const GpuKernel& kernel) {
  Places places(kernel);
  places.look(body, kernel_ranges(kernel));
  RETURN_IF_ERROR(places.status());
  Order order(kernel);
  order.look(body);
  return order.finish();
}

}  // namespace tuner::gpu
