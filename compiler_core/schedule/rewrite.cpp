#include "compiler_core/schedule/rewrite.h"

#include <algorithm>
#include <limits>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/ir/prefetch.h"

namespace tuner::rewrite {

Path find_loop(const Stmt& root, const Var& var) {
  return find_path(root, [&](const StmtNode& s) { return s.kind == StmtKind::kFor && s.var == var; });
}

Path find_statement(const Stmt& root, const StmtNode* statement) {
  return find_path(root, [&](const StmtNode& s) { return &s == statement; });
}

Path prefix(const Path& path, size_t last) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(last) + 1};
}

Stmt replace_at(const Path& path, Stmt replacement) {
  for (size_t i = path.size() - 1; i-- > 0;) {
    const StmtNode* child = path[i + 1].get();
    replacement = map_children(
        path[i], [](const Expr& e) { return e; },
        [&](const Stmt& s) { return s.get() == child ? replacement : s; });
  }
  return replacement;
}

RangeMap ranges_at(const Path& path) {
  RangeMap ranges;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i]->kind == StmtKind::kFor) ranges.bind(path[i]->var, path[i]->extent);
    if (path[i]->kind == StmtKind::kIf && path[i]->body == path[i + 1]) ranges.assume(path[i]->condition);
  }
  return ranges;
}

bool stores_to(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  visit(s, [&](const Stmt& child) { found = found || written_buffer(*child) == buffer; });
  return found;
}

bool reads_from(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  visit_exprs(s, [&](const Expr& e) { found |= e->kind == ExprKind::kLoad && e->buffer == buffer; });
  return found;
}

Status check_no_step(const Stmt& loop) {
  if (loop->axis != AxisKind::kStep) return Status::ok();
  return invalid_config(loop->var->name, " counts steps, which run one after the other");
}

Status check_shared(const Buffer& buffer) {
  if (buffer == nullptr) return invalid_config("the tensor handle is empty");
  if (buffer->scope == MemoryScope::kShared) return Status::ok();
  return invalid_config(buffer->name, " is in ", memory_scope_name(buffer->scope),
                        " memory; set_scope(shared) first");
}

Status check_no_tiles(const Stmt& root, const Buffer& buffer) {
  std::string name;
  visit(root, [&](const Stmt& s) {
    if (!is_tile_intrinsic(*s)) return;
    for (const Expr& operand : s->operands)
      if (operand->buffer == buffer) name = s->name;
  });
  if (name.empty()) return Status::ok();
  return invalid_config(buffer->name, " is an operand of ", name, "; do that before tensorize");
}

Buffer owner(const Stmt& s) {
  Buffer last;
  visit(s, [&](const Stmt& child) {
    if (Buffer written = written_buffer(*child)) last = std::move(written);
  });
  return last;
}

std::vector<Stmt> Stage::loops() const {
  std::vector<Stmt> found;
  for (size_t i = own; i < path.size(); ++i)
    if (path[i]->kind == StmtKind::kFor) found.push_back(path[i]);
  return found;
}

std::optional<Stage> find_stage(const Stmt& root, const Buffer& buffer) {
  const auto computes = [&](const StmtNode& s) { return s.kind == StmtKind::kStore && s.buffer == buffer; };
  Stage stage{
      .path = find_path(root, [&](const StmtNode& s) { return computes(s) && s.reduce != ReduceOp::kNone; })};
  if (stage.path.empty()) stage.path = find_path(root, computes);
  if (stage.path.empty()) return std::nullopt;
  // Own are the statements from the end upwards below which only this buffer is stored.
  stage.own = stage.path.size() - 1;
  while (stage.own > 0) {
    const Stmt& above = stage.path[stage.own - 1];
    bool only = true;
    if (above->kind == StmtKind::kSeq) {
      visit(above, [&](const Stmt& child) {
        const bool writes = child->kind == StmtKind::kStore ||
                            (child->kind == StmtKind::kIntrinsic && !is_prefetch(*child)) ||
                            child->kind == StmtKind::kBarrier || child->kind == StmtKind::kAsync;
        only &= !writes || computes(*child);
      });
    }
    if (!only) break;
    --stage.own;
  }
  return stage;
}

Result<PlainStage> plain_stage(const Stmt& root, const Buffer& buffer) {
  std::optional<Stage> stage = find_stage(root, buffer);
  if (!stage.has_value()) return invalid_config(buffer->name, " is not computed in this Program");
  PlainStage plain{.stage = *std::move(stage)};
  const Path& path = plain.stage.path;
  const StmtNode& store = *path.back();
  if (store.reduce != ReduceOp::kNone && !store.first.defined())
    return invalid_config("the initialisation of ", buffer->name, " is already decomposed; do that later");
  plain.top = plain.stage.own;
  while (path[plain.top]->kind == StmtKind::kAllocate) ++plain.top;
  for (size_t i = 0; i < plain.top; ++i)
    if (path[i]->kind == StmtKind::kFor && path[i]->axis == AxisKind::kReduce && owner(path[i]) == buffer)
      return invalid_config("other statements are computed inside reduce axis ", path[i]->var->name, " of ",
                            buffer->name, "; move them there later");
  for (size_t i = plain.top; i + 1 < path.size(); ++i) {
    if (path[i]->kind != StmtKind::kFor)
      return invalid_config(buffer->name,
                            path[i]->kind == StmtKind::kIf
                                ? " is guarded (an axis was split unevenly or moved); do that later"
                                : " is computed together with other statements");
    RETURN_IF_ERROR(check_no_step(path[i]));
    if (path[i]->loop != LoopKind::kSerial && path[i]->axis == AxisKind::kSpatial)
      return invalid_config("axis ", path[i]->var->name, " of ", buffer->name, " is ",
                            loop_kind_name(path[i]->loop), "; annotate it later");
    plain.loops.push_back(path[i]);
  }
  std::vector<const VarNode*> used;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const Expr& index = store.indices[d];
    int64_t value = 0;
    if (buffer->shape[d] == 1 && is_const_int(index, &value) && value == 0) {
      plain.dims.emplace_back();
      continue;
    }
    const auto loop = std::find_if(plain.loops.begin(), plain.loops.end(), [&](const Stmt& l) {
      return index->kind == ExprKind::kVar && l->var == index->var && l->extent == buffer->shape[d];
    });
    if (loop == plain.loops.end() || std::find(used.begin(), used.end(), index->var.get()) != used.end())
      return invalid_config("dimension ", d, " of ", buffer->name, " is indexed by ", to_text(index),
                            ", not by one axis of its stage; split, fuse or move it later");
    used.push_back(index->var.get());
    plain.dims.emplace_back(index->var);
  }
  for (const Stmt& loop : plain.loops) {
    if (loop->axis == AxisKind::kReduce || loop->extent == 1) continue;
    if (std::find(used.begin(), used.end(), loop->var.get()) == used.end())
      return invalid_config("axis ", loop->var->name, " is not a dimension of ", buffer->name);
  }
  return plain;
}

Status check_not_carried(const Stage& stage) {
  const StmtNode& store = stage.store();
  const auto loads = [](const Expr& whole, const Buffer& buffer) {
    bool found = false;
    visit(whole, [&](const Expr& e) { found |= e->kind == ExprKind::kLoad && e->buffer == buffer; });
    return found;
  };
  Status status;
  for (const Stmt& loop : stage.path) {
    if (loop->kind != StmtKind::kFor || loop->axis != AxisKind::kStep) continue;
    bool begun = false, stored = false;  // up to the stage, and behind it
    visit(loop->body, [&](const Stmt& s) {
      begun |= s.get() == &store;
      own_exprs(*s, [&](const Expr& e) {
        if (!stored && loads(e, store.buffer))
          status = invalid_config(store.buffer->name, " is read in the next step of ", loop->var->name);
      });
      const Buffer written = begun ? written_buffer(*s) : nullptr;
      if (written != nullptr && loads(store.value, written))
        status = invalid_config(store.buffer->name, " reads ", written->name, " of the last step of ",
                                loop->var->name);
      stored = begun;
    });
  }
  return status;
}

Stmt nest(const std::vector<Stmt>& loops, const std::vector<Expr>& guards, Stmt body) {
  std::vector<bool> placed(guards.size(), false);
  // Guards that need the variable of `loop` (or any, above all loops) and are not further inside already.
  const auto guarded = [&](Stmt inside, const Var& var) {
    std::vector<Expr> here;
    for (size_t g = 0; g < guards.size(); ++g) {
      if (placed[g] || (var != nullptr && !uses_var(guards[g], var))) continue;
      placed[g] = true;
      here.push_back(guards[g]);
    }
    return here.empty() ? inside : make_if(conjunction(here), std::move(inside));
  };
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = with_body(*loop, guarded(std::move(body), (*loop)->var));
  return guarded(std::move(body), nullptr);
}

namespace {
Expr with_leading_index(const Expr& e, const Buffer& from, const Buffer& to, const Expr& leading) {
  const Expr mapped =
      map_children(e, [&](const Expr& operand) { return with_leading_index(operand, from, to, leading); });
  if (e->kind != ExprKind::kLoad || e->buffer != from) return mapped;
  std::vector<Expr> indices = mapped->operands;
  indices.insert(indices.begin(), leading);
  return load(to, std::move(indices));
}
}  // namespace

Stmt with_leading_index(const Stmt& s, const Buffer& from, const Buffer& to, const Expr& leading) {
  return map_children(
      s, [&](const Expr& e) { return with_leading_index(e, from, to, leading); },
      [&](const Stmt& child) { return with_leading_index(child, from, to, leading); });
}

Stmt allocate_at_root(const Stmt& root, const Buffer& buffer) {
  // Below the allocations that are there, so that they read in the order they were made.
  if (root->kind == StmtKind::kAllocate) return with_body(root, allocate_at_root(root->body, buffer));
  return make_allocate(buffer, root);
}

Stmt drop_allocation(const Stmt& root, const Buffer& buffer) {
  const Path path =
      find_path(root, [&](const StmtNode& s) { return s.kind == StmtKind::kAllocate && s.buffer == buffer; });
  return path.empty() ? root : replace_at(path, path.back()->body);
}

namespace {
Status check_allocated(const Stmt& s, std::vector<Buffer>& there) {
  if (s == nullptr) return Status::ok();
  const auto missing = [&](const Buffer& b) {
    return std::find(there.begin(), there.end(), b) == there.end();
  };
  Status status;
  own_exprs(*s, [&](const Expr& whole) {
    visit(whole, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad && missing(e->buffer))
        status = invalid_config(e->buffer->name, " would be read outside the block it is allocated in");
    });
  });
  if (const Buffer written = written_buffer(*s); written != nullptr && missing(written))
    status = invalid_config(written->name, " would be stored outside the block it is allocated in");
  RETURN_IF_ERROR(status);
  if (s->kind == StmtKind::kAllocate) there.push_back(s->buffer);
  RETURN_IF_ERROR(check_allocated(s->body, there));
  if (s->kind == StmtKind::kAllocate) there.pop_back();
  RETURN_IF_ERROR(check_allocated(s->else_body, there));
  for (const Stmt& child : s->stmts) RETURN_IF_ERROR(check_allocated(child, there));
  return Status::ok();
}
}  // namespace

Status check_allocated(const Program& program, const Stmt& root) {
  std::vector<Buffer> there = program.args;
  return check_allocated(root, there);
}

Buffer derived_buffer(const Buffer& like, std::string name, std::vector<int64_t> shape, MemoryScope scope) {
  auto node = std::make_shared<BufferNode>(*like);
  node->name = std::move(name);
  node->shape = std::move(shape);
  node->scope = scope;
  node->role = BufferRole::kIntermediate;
  return node;
}

int64_t bounded_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return kMostIterations + 1;
  return std::min(product, kMostIterations + 1);
}

int64_t nest_iterations(const Stmt& s) {
  if (s == nullptr) return 1;
  int64_t most = std::max(nest_iterations(s->body), nest_iterations(s->else_body));
  for (const Stmt& child : s->stmts) most = std::max(most, nest_iterations(child));
  return s->kind == StmtKind::kFor ? bounded_product(s->extent, most) : most;
}

int64_t iterations_around(const Path& path) {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (path[i]->kind == StmtKind::kFor) n = bounded_product(n, path[i]->extent);
  return n;
}

int64_t exact_bytes(const Buffer& buffer) {
  int64_t n = dtype_bytes(buffer->dtype);
  for (const int64_t d : buffer->shape)
    if (__builtin_mul_overflow(n, d, &n)) return std::numeric_limits<int64_t>::max();
  return n;
}

Status check_size(const Buffer& buffer) {
  if (exact_bytes(buffer) <= kMostBytes) return Status::ok();
  std::string shape;
  for (const int64_t d : buffer->shape) shape += str(shape.empty() ? "" : ", ", d);
  return invalid_config(buffer->name, "[", shape,
                        "] would take more than 2^47 bytes, which no process can address");
}

bool mostly_padding(const Buffer& padded, const Buffer& buffer) {
  const int64_t bytes = exact_bytes(buffer), padding = exact_bytes(padded) - bytes;
  return padding > kMostPaddingBytes && padding > bytes;
}

std::string free_name(const Program& program, const std::string& wanted) {
  const auto taken = [&](const std::string& name) {
    bool found = false;
    for (const Buffer& b : program.args) found |= b->name == name;
    visit(program.body, [&](const Stmt& s) { found |= s->buffer != nullptr && s->buffer->name == name; });
    return found;
  };
  std::string name = wanted;
  for (int i = 2; taken(name); ++i) name = str(wanted, ".", i);
  return name;
}

namespace {

std::vector<Stmt> loops_named(const Stmt& root, std::string_view name) {
  std::vector<Stmt> found;
  visit(root, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor && s->var->name == name) found.push_back(s);
  });
  return found;
}

}  // namespace

std::string label(const Stmt& root, const Var& var) {
  if (var == nullptr) return "(none)";
  const std::vector<Stmt> same = loops_named(root, var->name);
  if (same.size() <= 1) return var->name;
  for (const Stmt& loop : same)
    if (loop->var == var)  // loops around a prefetch compute nothing
      if (const Buffer computed = owner(loop)) return computed->name + ":" + var->name;
  return var->name;
}

std::string labels(const Stmt& root, std::span<const Axis> axes) {
  std::string text;
  for (const Axis& axis : axes) text += (text.empty() ? "" : ", ") + label(root, axis.var);
  return text;
}

Var loop_by_label(const Stmt& root, std::string_view label) {
  const size_t colon = label.rfind(':');
  if (colon == std::string_view::npos) {
    const std::vector<Stmt> found = loops_named(root, label);
    return found.size() == 1 ? found[0]->var : nullptr;
  }
  for (const Stmt& loop : loops_named(root, label.substr(colon + 1)))
    if (const Buffer computed = owner(loop); computed != nullptr && computed->name == label.substr(0, colon))
      return loop->var;
  return nullptr;
}

}  // namespace tuner::rewrite
