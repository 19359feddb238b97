// tensorize: a nest of loops becomes the intrinsic that means the same.
#include <algorithm>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

using Access = IntrinsicOperand::Access;
using Place = IntrinsicOperand::Place;

std::vector<Stmt> loops_of(const Stmt& nest) {
  std::vector<Stmt> loops;
  for (Stmt s = nest; s->kind == StmtKind::kFor; s = s->body) loops.push_back(s);
  return loops;
}

// "i 16, reduce g 16, j 16, reduce e 2"
std::string loops_text(const std::vector<Stmt>& loops) {
  std::string text;
  for (const Stmt& l : loops)
    text += str(text.empty() ? "" : ", ", l->axis == AxisKind::kReduce ? "reduce " : "", l->var->name, " ",
                l->extent);
  return text;
}

MemoryScope scope_of(Place place) {
  return place == Place::kFragment ? MemoryScope::kFragment
         : place == Place::kShared ? MemoryScope::kShared
         : place == Place::kLanes  ? MemoryScope::kRegister
                                   : MemoryScope::kGlobal;
}

// Holds the nest at path.back() against the meaning of one intrinsic.
class Matcher {
 public:
  Matcher(const Intrinsic& intrinsic, const Path& path)
      : intrinsic_(intrinsic), path_(path), ranges_(ranges_at(path)), origins_(intrinsic.operands.size()) {}

  // The statement that stands for the nest.
  Result<Stmt> match() {
    ASSIGN_OR_RETURN(const Stmt store, match_loops());
    const Stmt meant = loops_of(intrinsic_.meaning.body).back()->body;
    if (store->reduce != meant->reduce || !same(meant->value, store->value))
      return status_.is_ok() ? invalid_config(intrinsic_.name, " does ", to_text_line(meant), "; found ",
                                              to_text_line(store))
                             : status_;
    if (store->first.defined())
      return invalid_config("the sums of ", store->buffer->name,
                            " may start here; decompose_reduction first");
    if (!operand(meant->buffer, meant->indices, store->buffer, store->indices)) return status_;
    auto node = std::make_shared<StmtNode>();
    node->kind = StmtKind::kIntrinsic;
    node->name = intrinsic_.name;
    node->operands = origins_;
    return Stmt(std::move(node));
  }

 private:
  static std::string to_text_line(const Stmt& store) {
    std::string text = to_text(store);
    text.pop_back();
    return text;
  }

  // Loops of the meaning and of the nest, one by one; the store inside.
  Result<Stmt> match_loops() {
    const std::vector<Stmt> meant = loops_of(intrinsic_.meaning.body), found = loops_of(path_.back());
    for (size_t l = 0; l < std::min(meant.size(), found.size()); ++l) {
      const StmtNode &want = *meant[l], &have = *found[l];
      if (have.loop != LoopKind::kSerial)
        return invalid_config("loop ", have.var->name, " is ", loop_kind_name(have.loop), " already");
      if (have.axis != want.axis) break;  // told as a whole, below
      if (have.extent != want.extent)
        return invalid_config("loop ", have.var->name, " has ", have.extent, " iterations, ", intrinsic_.name,
                              " takes ", want.extent,
                              have.extent > want.extent ? str(": split it by ", want.extent)
                                                        : str(": pad it to a multiple of ", want.extent),
                              " first");
      vars_[want.var] = have.extent == 1 ? Expr(0) : Expr(have.var);
      if (have.extent == 1)
        single_[have.var] = Expr(0);
      else
        inside_.push_back(have.var);
      ranges_.bind(have.var, have.extent);
    }
    const Stmt& inner = found.back()->body;
    if (inner->kind == StmtKind::kIf)
      return invalid_config("guard ", to_text(inner->condition),
                            " stands inside; pack the operands in blocks, so that every tile is full");
    const bool same_loops = std::ranges::equal(
        meant, found, {}, [](const Stmt& l) { return l->axis; }, [](const Stmt& l) { return l->axis; });
    if (!same_loops)
      return invalid_config(intrinsic_.name, " takes loops ", loops_text(meant), "; found ",
                            loops_text(found), ": split and reorder them first");
    if (inner->kind != StmtKind::kStore)
      return invalid_config("more than one store stands inside loop ", found.back()->var->name);
    return inner;
  }

  // An expression of the meaning and one of the nest; loads become operands.
  bool same(const Expr& want, const Expr& have) {
    if (want->kind != have->kind || (want->kind != ExprKind::kLoad && want->dtype != have->dtype))
      return false;
    switch (want->kind) {
      case ExprKind::kLoad:
        return operand(want->buffer, want->operands, have->buffer, have->operands);
      case ExprKind::kIntImm:
        return want->int_value == have->int_value;
      case ExprKind::kFloatImm:
        return want->float_value == have->float_value;
      case ExprKind::kBinary:
        if (want->binary_op != have->binary_op) return false;
        break;
      case ExprKind::kUnary:
        if (want->unary_op != have->unary_op) return false;
        break;
      case ExprKind::kVar:
        return false;
      case ExprKind::kSelect:
      case ExprKind::kCast:
        break;
    }
    return std::ranges::equal(want->operands, have->operands,
                              [&](const Expr& a, const Expr& b) { return same(a, b); });
  }

  // The access of the meaning's argument and that of the nest; sets the operand's origin.
  bool operand(const Buffer& argument, const std::vector<Expr>& in_tile, const Buffer& buffer,
               const std::vector<Expr>& indices) {
    const auto at = std::ranges::find(intrinsic_.operands, argument->name, &IntrinsicOperand::name);
    const IntrinsicOperand& o = *at;
    const auto miss = [&](const auto&... words) {
      if (status_.is_ok()) status_ = invalid_config(words...);
      return false;
    };
    if (indices.size() < in_tile.size()) return false;
    if (buffer->dtype != o.dtype)
      return miss(buffer->name, " is ", buffer->dtype, ", ", intrinsic_.name, " takes ", o.name, " of ",
                  o.dtype);
    if (buffer->scope != scope_of(o.place))
      return miss(buffer->name, " is in ", memory_scope_name(buffer->scope), " memory, ", intrinsic_.name,
                  " takes ", o.name, " from ", memory_scope_name(scope_of(o.place)),
                  " memory: cache_read, cache_write or set_scope first");
    const size_t first = indices.size() - in_tile.size();
    std::vector<Expr> origin;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr moves = d < first ? Expr(0) : substitute(in_tile[d - first], vars_);
      origin.push_back(simplify(substitute(indices[d], single_) - moves, ranges_));
    }
    for (size_t d = 0; d < origin.size(); ++d)
      if (std::ranges::any_of(inside_, [&](const Var& v) { return uses_var(origin[d], v); }))
        return miss(to_text(load(buffer, indices)), " is not a tile of ", intrinsic_.name, ": dimension ", d,
                    " moves with its loops");
    if (!whole_rows(o, *buffer, origin))
      return miss(to_text(load(buffer, origin)), " does not begin a tile ", o.name, " of ", intrinsic_.name,
                  ": tiles of a fragment are cut from its start, rows of memory lie without gaps");
    origins_[static_cast<size_t>(at - intrinsic_.operands.begin())] = load(buffer, std::move(origin));
    return true;
  }

  // A fragment consists of tiles; in memory all but the first two dimensions of a tile are whole.
  bool whole_rows(const IntrinsicOperand& o, const BufferNode& buffer,
                  const std::vector<Expr>& origin) const {
    const size_t first = origin.size() - o.shape.size();
    for (size_t d = 0; d < o.shape.size(); ++d) {
      const int64_t extent = buffer.shape[first + d], tile = o.shape[d];
      if (o.place == Place::kFragment) {
        if (extent % tile != 0 || !divisible(origin[first + d], tile, ranges_)) return false;
      } else if (d >= 2 && extent != tile) {
        return false;
      }
    }
    return true;
  }

  const Intrinsic& intrinsic_;
  const Path& path_;
  RangeMap ranges_;
  VarMap vars_;              // loops of the meaning, as those of the nest
  VarMap single_;            // loops of the nest of one iteration: 0
  std::vector<Var> inside_;  // its other loops
  std::vector<Expr> origins_;
  Status status_;
};

}  // namespace

Status Schedule::tensorize_nest(const Var& var, const Intrinsic& intrinsic) {
  const Path path = find_loop(program_.body, var);
  if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
  ASSIGN_OR_RETURN(Stmt statement, Matcher(intrinsic, path).match());
  program_.body = replace_at(path, std::move(statement));
  return Status::ok();
}

void Schedule::tensorize(Axis axis, std::string_view name) {
  if (refused()) return;
  const std::string call = str("tensorize(", label(program_.body, axis.var), ", ", name, ")");
  apply(call, [&]() -> Status {
    if (axis.var == nullptr) return invalid_config("the axis handle is empty");
    const Intrinsic* intrinsic = find_intrinsic(name);
    if (intrinsic == nullptr) return invalid_config("there is no such intrinsic (ir/intrinsic.h lists them)");
    if (!takes_tiles(*intrinsic))
      return invalid_config("takes registers of ", intrinsic->threads, " threads; only tiles are matched");
    RETURN_IF_ERROR(tensorize_nest(axis.var, *intrinsic));
    if (const Var* init = twin(axis.var); init != nullptr && !intrinsic->zero.empty())
      RETURN_IF_ERROR(
          tensorize_nest(*init, *find_intrinsic(intrinsic->zero)).with_context("its initialisation: "));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
