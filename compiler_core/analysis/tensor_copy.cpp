// tensor_copy: the loops of a copy become the sides of a box.
//
//   for piece in 0..2: for row in 0..64: for column in 0..64
//     tile[piece, row, column] = select(m*128 + piece*64 + row < M && k*64 + column < K, a[m*128 + piece*64 + row, k*64 + column], 0)
//
// Loops are taken in the order in which elements lie in the tile: column, row, piece. Each is a side of the
// box, along one dimension of the array. `piece` goes on where `row` ends, in the tile and in the array, so
// both are one side, of 128 rows. A loop that goes over a dimension in jumps, whose gaps another one fills,
// makes two dimensions of that one, if the array has whole jumps of it. What is left over are rounds: a box
// for each iteration.
#include "compiler_core/analysis/tensor_copy.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr int64_t kMostBox = 256;  // elements of a side
constexpr size_t kMostDims = 5;
constexpr int64_t kL2Bytes = 256;  // rows are read on in the next step
constexpr int64_t kRepeat = 1024;  // bytes after which all layouts of copies begin anew

struct CopyLoops {
  std::vector<Stmt> loops;
  std::vector<Expr> conditions;
  Stmt store;
  Expr load;
};

Result<CopyLoops> copy_loops(const Stmt& copy) {
  CopyLoops found;
  for (Stmt s = copy; found.store == nullptr; s = s->body) {
    if (s != nullptr && s->kind == StmtKind::kFor)
      found.loops.push_back(s);
    else if (s != nullptr && s->kind == StmtKind::kIf && s->else_body == nullptr)
      for (Expr& e : conjuncts(s->condition)) found.conditions.push_back(std::move(e));
    else if (s != nullptr && s->kind == StmtKind::kStore && s->reduce == ReduceOp::kNone)
      found.store = s;
    else
      return invalid_config("it is no plain copy: loops, guards and one store");
  }
  Expr value = found.store->value;
  while (value->kind == ExprKind::kSelect && is_zero(value->operands[2])) {
    for (Expr& e : conjuncts(value->operands[0])) found.conditions.push_back(std::move(e));
    value = value->operands[1];
  }
  if (value->kind != ExprKind::kLoad || value->buffer->scope != MemoryScope::kGlobal ||
      value->dtype != found.store->buffer->dtype)
    return invalid_config("it computes ", to_text(found.store->value),
                          "; expected what lies in global memory, or zeros");
  found.load = value;
  return found;
}

// One loop, or several that go on where the one before ends.
struct Side {
  std::vector<Stmt> loops;  // innermost first
  int64_t extent = 1;
  int64_t place = 0;           // elements of the tile from one iteration to the next
  std::vector<int64_t> steps;  // of each dimension of the array
};

// A dimension of the map.
struct Dim {
  int64_t extent = 1, stride = 0, box = 1;  // stride in elements
  Expr coordinate;
};

class Boxes {
 public:
  Boxes(CopyLoops copy, RangeMap ranges) : copy_(std::move(copy)), ranges_(std::move(ranges)) {
    for (const Stmt& loop : copy_.loops) ranges_.bind(loop->var, loop->extent);
  }

  Result<TensorCopy> find() {
    RETURN_IF_ERROR(find_sides());
    if (!array()->layout.empty()) return in_a_row();
    RETURN_IF_ERROR(take_sides());
    RETURN_IF_ERROR(check_zeros());
    TensorCopy result;
    RETURN_IF_ERROR(describe(result));
    RETURN_IF_ERROR(check_places(result));
    return result;
  }

 private:
  const Buffer& tile() const { return copy_.store->buffer; }
  const Buffer& array() const { return copy_.load->buffer; }

  // Elements that `index` moves by with each iteration of the loop; none if not always as many.
  std::optional<int64_t> step_of(const Expr& index, const Var& var) const {
    int64_t step = 0;
    for (const auto& [term, coefficient] : linear_form(index, ranges_).terms) {
      if (term->kind == ExprKind::kVar && term->var == var)
        step = coefficient;
      else if (uses_var(term, var))
        return std::nullopt;
    }
    return step;
  }

  Status find_sides() {
    const Expr place = row_major(tile()->shape, copy_.store->indices);
    for (const Stmt& loop : copy_.loops) {
      if (loop->extent == 1) continue;
      Side side{.loops = {loop}, .extent = loop->extent};
      const std::optional<int64_t> step = step_of(place, loop->var);
      if (!step.has_value() || *step < 1)
        return invalid_config("loop ", loop->var->name, " does not go through ", tile()->name,
                              " in even steps");
      side.place = *step;
      for (const Expr& index : copy_.load->operands) {
        const std::optional<int64_t> of_array = step_of(index, loop->var);
        if (!of_array.has_value())
          return invalid_config("loop ", loop->var->name, " does not go through ", array()->name,
                                " in even steps: ", to_text(index));
        side.steps.push_back(*of_array);
      }
      sides_.push_back(std::move(side));
    }
    std::ranges::stable_sort(sides_, {}, &Side::place);
    return Status::ok();
  }

  // What lies in a row on both sides.
  Result<TensorCopy> in_a_row() {
    constexpr int64_t kMostBytes = (1 << 20) - 16;  // that a barrier counts
    const int64_t bytes = dtype_bytes(array()->dtype);
    int64_t count = 1;
    size_t next = 0;
    for (; next < sides_.size() && sides_[next].place == count; ++next) {
      int64_t step = 0;
      for (size_t d = 0; d < sides_[next].steps.size(); ++d) step += sides_[next].steps[d] * stride_of(d);
      if (step != count || count * sides_[next].extent * bytes > kMostBytes) break;
      count *= sides_[next].extent;
      first_[sides_[next].loops[0]->var] = Expr(0);
    }
    for (size_t i = sides_.size(); i-- > next;) rounds_.push_back(sides_[i].loops[0]);
    RETURN_IF_ERROR(check_zeros());
    TensorCopy result{.bytes = count * bytes, .from = array(), .rounds = rounds_};
    const auto at_first = [&](const std::vector<Expr>& indices) {
      std::vector<Expr> at;
      for (const Expr& index : indices) at.push_back(first(index));
      return at;
    };
    result.to = load(tile(), at_first(copy_.store->indices));
    result.first = load(array(), at_first(copy_.load->operands));
    if (result.bytes % 16 != 0)
      return invalid_config("it copies ", result.bytes, " bytes in a row, expected a multiple of 16");
    const auto of_tile = places(tile()), of_array = places(array());
    for (int64_t e = 0; e < count; ++e)
      if (of_tile(e) != of_array(e))
        return invalid_config(array()->name, " with layout \"", array()->layout, "\" does not lie as ",
                              tile()->name, " with layout \"", tile()->layout, "\": element ", e, " at byte ",
                              of_array(e), ", there ", of_tile(e));
    for (const Expr& begin :
         {row_major(tile()->shape, result.to->operands), row_major(array()->shape, result.first->operands)})
      if (!divisible(begin, kRepeat / bytes, ranges_))
        return invalid_config("a copy to ", tile()->name, " is not shown to begin at a multiple of ", kRepeat,
                              " bytes: element ", to_text(begin));
    return result;
  }

  // Returns where an element is, by its number in row-major order, in bytes. The buffer must live as long.
  static std::function<int64_t(int64_t)> places(const Buffer& b) {
    return [place = storage_offsets(*b), b](int64_t element) {
      std::vector<int64_t> indices(b->shape.size());
      for (size_t d = indices.size(); d-- > 0;) {
        indices[d] = element % b->shape[d];
        element /= b->shape[d];
      }
      return place(indices) * dtype_bytes(b->dtype);
    };
  }

  // Sides of the box from the innermost on; from the first that is none on, rounds.
  Status take_sides() {
    owners_.assign(array()->shape.size(), -1);
    int64_t place = 1;
    std::vector<Side> box;
    size_t next = 0;
    for (; next < sides_.size(); ++next) {
      const Side& side = sides_[next];
      if (side.place != place || side.extent > kMostBox) break;
      // The innermost side is a row of the tile, as its layout counts.
      const bool inner = box.size() == 1 && box[0].extent * side.extent > tile()->shape.back();
      if (!box.empty() && !inner && goes_on(box.back(), side)) {
        box.back().loops.push_back(side.loops[0]);
        box.back().extent *= side.extent;
      } else if (!add_dim(side)) {
        break;
      } else {
        box.push_back(side);
      }
      dims_.back().box = box.back().extent;
      place *= side.extent;
    }
    if (box.empty() || box[0].place != 1)
      return invalid_config("no loop goes along the rows of both ", tile()->name, " and ", array()->name);
    for (size_t i = sides_.size(); i-- > next;) rounds_.push_back(sides_[i].loops[0]);
    for (const Side& side : box)
      for (const Stmt& loop : side.loops) first_[loop->var] = Expr(0);
    return add_others();
  }

  static bool goes_on(const Side& before, const Side& side) {
    for (size_t d = 0; d < side.steps.size(); ++d)
      if (side.steps[d] != before.steps[d] * before.extent) return false;
    return before.extent * side.extent <= kMostBox;
  }

  int64_t stride_of(size_t dim) const {
    return std::accumulate(array()->shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1,
                           array()->shape.end(), int64_t{1}, std::multiplies<>());
  }

  // The dimension of the map that a side goes along. False: there is none.
  bool add_dim(const Side& side) {
    std::optional<size_t> along;
    for (size_t d = 0; d < side.steps.size(); ++d) {
      if (side.steps[d] == 0) continue;
      if (along.has_value()) return false;
      along = d;
    }
    if (!along.has_value() || dims_.size() == kMostDims) return false;
    const Expr index = copy_.load->operands[*along];
    const int64_t step = side.steps[*along], extent = array()->shape[*along], stride = stride_of(*along);
    if (dims_.empty() && stride != 1) return false;
    if (owners_[*along] < 0) {
      if (step != 1) return false;
      owners_[*along] = static_cast<int>(dims_.size());
      dims_.push_back({.extent = extent, .stride = stride, .coordinate = index});
      return true;
    }
    Dim& inner = dims_[static_cast<size_t>(owners_[*along])];
    if (inner.extent != extent || step != inner.box || extent % step != 0) return false;
    const Expr origin = at_origin(index);
    if (!divisible(origin, step, ranges_)) return false;
    inner.extent = step;
    inner.coordinate = Expr(0);
    dims_.push_back(
        {.extent = extent / step, .stride = stride * step, .coordinate = floor_div(origin, step)});
    return true;
  }

  // An index where all loops of the copy begin.
  Expr at_origin(const Expr& index) const {
    VarMap origin;
    for (const Stmt& loop : copy_.loops) origin[loop->var] = Expr(0);
    return simplify(substitute(index, origin), ranges_);
  }

  // Dimensions that no side goes along.
  Status add_others() {
    for (size_t d = array()->shape.size(); d-- > 0;) {
      if (owners_[d] >= 0 || array()->shape[d] == 1) continue;
      if (dims_.size() == kMostDims)
        return invalid_config("more than ", kMostDims, " dimensions of ", array()->name,
                              " would be in its map");
      dims_.push_back(
          {.extent = array()->shape[d], .stride = stride_of(d), .coordinate = copy_.load->operands[d]});
    }
    return Status::ok();
  }

  // Zeros are where the array has no element, and there alone.
  Status check_zeros() const {
    RangeMap inside = ranges_, conditions = ranges_;
    std::vector<Expr> in_array;
    for (size_t d = 0; d < array()->shape.size(); ++d)
      for (const Expr& e : {copy_.load->operands[d] >= 0, copy_.load->operands[d] < array()->shape[d]}) {
        in_array.push_back(simplify(e, ranges_));
        inside.assume(in_array.back());
      }
    for (const Expr& c : copy_.conditions) conditions.assume(c);
    for (const Expr& e : in_array)
      if (!always_true(e, conditions))
        return invalid_config("it is not shown to read inside of ", array()->name, ": ", to_text(e));
    for (const Expr& c : copy_.conditions)
      if (!always_true(c, inside))
        return invalid_config("it has zeros inside of ", array()->name, ", beyond ", to_text(c));
    return Status::ok();
  }

  Expr first(const Expr& e) const { return simplify(substitute(e, first_), ranges_); }

  Status describe(TensorCopy& result) const {
    TensorMap& map = result.map;
    map.dtype = array()->dtype;
    map.l2_bytes = kL2Bytes;
    for (const Dim& dim : dims_) {
      map.extents.push_back(dim.extent);
      map.box.push_back(dim.box);
      if (map.extents.size() > 1) map.strides.push_back(dim.stride * dtype_bytes(map.dtype));
      result.coordinates.push_back(first(dim.coordinate));
    }
    for (const int64_t stride : map.strides)
      if (stride % 16 != 0)
        return invalid_config("the rows of ", array()->name, " are ", stride,
                              " bytes apart, expected a multiple of 16");
    std::vector<Expr> at;
    for (const Expr& index : copy_.store->indices) at.push_back(first(index));
    result.to = load(tile(), std::move(at));
    result.from = array();
    result.rounds = rounds_;
    return Status::ok();
  }

  // The layout of the tile is one of those that the engine writes.
  Status check_places(TensorCopy& result) const {
    TensorMap& map = result.map;
    const int64_t bytes = dtype_bytes(map.dtype), row = map.box[0] * bytes, count = map.box_elements();
    const bool is_span = row == 32 || row == 64 || row == 128;
    map.swizzle_bytes = reorders_rows(*tile()) && is_span ? row : 0;
    if (const Status valid = check_tensor_map(map); !valid.is_ok()) return invalid_config(valid.message());
    const auto at = places(tile());
    for (int64_t e = 0; e < count; ++e)
      if (const int64_t found = at(e), expected = swizzled_byte(e * bytes, map.swizzle_bytes);
          found != expected)
        return invalid_config(tile()->name, " with layout \"", tile()->layout, "\" has element ", e,
                              " of a box at byte ", found, ", where the engine leaves it at ", expected);
    const Expr origin = row_major(tile()->shape, result.to->operands);
    if (!divisible(origin, box_alignment(map) / bytes, ranges_))
      return invalid_config("a box in ", tile()->name, " is not shown to begin at a multiple of ",
                            box_alignment(map), " bytes: element ", to_text(origin));
    return Status::ok();
  }

  static Expr row_major(const std::vector<int64_t>& shape, const std::vector<Expr>& indices) {
    Expr place = 0;
    for (size_t d = 0; d < indices.size(); ++d) place = place * shape[d] + indices[d];
    return place;
  }

  const CopyLoops copy_;
  RangeMap ranges_;
  std::vector<Side> sides_;  // in the order of the tile
  std::vector<Dim> dims_;    // of the map
  // Of each dimension of the array: the first dimension of the map that goes along it; -1: none.
  std::vector<int> owners_;
  std::vector<Stmt> rounds_;  // outermost first
  VarMap first_;              // the loops of the box at their begin
};

}  // namespace

Result<TensorCopy> tensor_copy(const Stmt& copy, const RangeMap& ranges) {
  ASSIGN_OR_RETURN(CopyLoops loops, copy_loops(copy));
  return Boxes(std::move(loops), ranges).find();
}

}  // namespace tuner
