#include "compiler_core/codegen_cuda/describe.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

std::string listed(const std::set<std::string>& names) {
  std::string out;
  size_t i = 0;
  for (const std::string& name : names) {
    out += str(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", name);
    ++i;
  }
  return out;
}

const char* are(const std::set<std::string>& names) { return names.size() == 1 ? " is " : " are "; }

std::set<const BufferNode*> loaded_buffers(const Expr& value) {
  std::set<const BufferNode*> found;
  visit(value, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) found.insert(e->buffer.get());
  });
  return found;
}

bool has_select(const Expr& value) {
  bool found = false;
  visit(value, [&](const Expr& e) { found |= e->kind == ExprKind::kSelect; });
  return found;
}

// Nothing but one element moved: a load, perhaps under a select that gives a constant elsewhere.
bool is_copy(const Expr& value) {
  if (value->kind == ExprKind::kLoad) return true;
  return value->kind == ExprKind::kSelect && is_copy(value->operands[1]) &&
         value->operands[2]->operands.empty();
}

// Times that the innermost statement of a nest runs.
int64_t times_run(const Stmt& s) {
  int64_t times = 1;
  for (const StmtNode* at = s.get(); at->kind != StmtKind::kStore; at = at->body.get())
    if (at->kind == StmtKind::kFor) times *= at->extent;
  return times;
}

std::string amount(int64_t times, const char* unit) {
  return str(times == 1 ? "one" : std::to_string(times), " ", unit, times == 1 ? "" : "s", " a thread");
}

// "add the products of a_tile and b_tile to acc: 512 multiply-adds a thread", where value = old (op) more.
std::string describe_update(const StmtNode& store, const std::string& others, int64_t times) {
  const Expr& v = store.value;
  const std::string& name = store.buffer->name;
  if (v->kind == ExprKind::kBinary && v->binary_op == BinaryOp::kAdd) {
    const Expr& more = v->operands[1];
    if (more->kind == ExprKind::kBinary && more->binary_op == BinaryOp::kMul)
      return str("add the products of ", others, " to ", name, ": ", amount(times, "multiply-add"));
    return str("add ", others, " to ", name, ": ", amount(times, "addition"));
  }
  if (v->kind == ExprKind::kBinary && (v->binary_op == BinaryOp::kMax || v->binary_op == BinaryOp::kMin))
    return str(name, " becomes the ", v->binary_op == BinaryOp::kMax ? "largest" : "smallest",
               " of itself and ", others, ": ", amount(times, "comparison"));
  return str("update ", name, others.empty() ? "" : " with ", others, ": ", amount(times, "element"));
}

const char* place_of(MemoryScope scope) {
  return scope == MemoryScope::kShared   ? "shared memory"
         : scope == MemoryScope::kGlobal ? "global memory"
                                         : "registers";
}

std::string names_of(const std::set<const BufferNode*>& buffers) {
  std::set<std::string> names;
  for (const BufferNode* b : buffers) names.insert(b->name);
  return listed(names);
}

std::string describe_copy(const StmtNode& store, const std::set<const BufferNode*>& from, int64_t times) {
  const BufferNode& source = **from.begin();
  std::string text;
  if (store.buffer->scope == MemoryScope::kGlobal)
    text =
        str("write part of ", store.buffer->name, " from ", place_of(source.scope), " (", source.name, ")");
  else
    text = str("copy part of ", source.name, " into ", place_of(store.buffer->scope), " (",
               store.buffer->name, ")");
  if (has_select(store.value)) text += str(", ", to_text(store.value->operands[2]), " outside ", source.name);
  return str(text, ": ", amount(times, "element"));
}

// --- barriers ---

struct Accesses {
  std::set<std::string> read, written;
  std::set<std::string> fetched, awaited;  // tiles, by the copy engine; barriers that it arrives at
};

// The shared accesses between barriers, in the order they happen. A loop with a barrier inside runs twice, so
// that what happens around its end is seen.
class BarrierWalk {
 public:
  explicit BarrierWalk(const Stmt& body) : segments_(1) { walk(body); }

  std::map<const StmtNode*, std::string> comments() const {
    std::map<const StmtNode*, std::set<std::string>> written, reused, begun, free;
    for (size_t i = 0; i < barriers_.size(); ++i) {
      const Accesses &before = segments_[i], &after = segments_[i + 1];
      for (const std::string& b : before.written)
        if (after.read.contains(b)) written[barriers_[i]].insert(b);
      for (const std::string& b : before.read)
        if (after.written.contains(b)) reused[barriers_[i]].insert(b);
      for (const std::string& b : before.written)
        if (after.written.contains(b) && !after.read.contains(b)) reused[barriers_[i]].insert(b);
      for (const std::string& b : before.written)
        if (after.awaited.contains(b)) begun[barriers_[i]].insert(b);
      for (const std::string& b : before.read)
        if (after.fetched.contains(b)) free[barriers_[i]].insert(b);
    }
    std::map<const StmtNode*, std::string> result;
    for (const StmtNode* barrier : barriers_) {
      std::string& text = result[barrier];
      if (!text.empty()) continue;  // met before: it stands in a loop
      if (!written[barrier].empty())
        text =
            str(listed(written[barrier]), are(written[barrier]), "written by all threads: reads may begin");
      if (!reused[barrier].empty())
        text += str(text.empty() ? "" : "; ", listed(reused[barrier]), are(reused[barrier]),
                    "read by all threads: writes may begin");
      const auto add = [&](const std::set<std::string>& names, const char* what) {
        if (!names.empty()) text += str(text.empty() ? "" : "; ", listed(names), are(names), what);
      };
      add(begun[barrier], "begun: copies may be waited for");
      add(free[barrier], "read by all threads: copies may go on");
      if (text.empty()) text = "keeps the threads together";
    }
    return result;
  }

 private:
  void walk(const Stmt& s) {
    if (s == nullptr) return;
    if (s->kind == StmtKind::kBarrier) {
      barriers_.push_back(s.get());
      segments_.emplace_back();
      return;
    }
    if (is_async(*s, "init")) segments_.back().written.insert(s->operands[0]->buffer->name);
    if (is_async(*s, "fetch")) segments_.back().fetched.insert(s->operands[1]->buffer->name);
    const bool at_barrier = s->kind == StmtKind::kAsync && s->body == nullptr && !is_async(*s, "init");
    own_exprs(*s, [&](const Expr& e) {
      visit(e, [&](const Expr& part) {
        const bool fetched = is_async(*s, "fetch") && part.same_as(s->operands[1]);
        if (part->kind == ExprKind::kLoad && part->buffer->scope == MemoryScope::kShared && !fetched &&
            !is_async(*s, "init"))
          (at_barrier ? segments_.back().awaited : segments_.back().read).insert(part->buffer->name);
      });
    });
    if (s->kind == StmtKind::kStore && s->buffer->scope == MemoryScope::kShared)
      segments_.back().written.insert(s->buffer->name);
    const size_t barriers_before = barriers_.size();
    walk(s->body);
    walk(s->else_body);
    for (const Stmt& child : s->stmts) walk(child);
    if (s->kind == StmtKind::kFor && s->extent > 1 && barriers_.size() > barriers_before) walk(s->body);
  }

  std::vector<const StmtNode*> barriers_;  // a barrier may stand here several times
  std::vector<Accesses> segments_;         // one more than barriers
};

// --- what a block computes ---

bool is_block_var(const GpuKernel& kernel, const Expr& e) {
  return e->kind == ExprKind::kVar && std::any_of(kernel.block_vars.begin(), kernel.block_vars.end(),
                                                  [&](const Var& v) { return v == e->var; });
}
bool only_block_vars(const GpuKernel& kernel, const Expr& e) {
  bool only = true;
  visit(e, [&](const Expr& part) {
    only &= part->kind != ExprKind::kLoad && (part->kind != ExprKind::kVar || is_block_var(kernel, part));
  });
  return only;
}

// "m_outer*128 + 0..127": the block's part, and the range of what threads and loops add.
std::string block_span(const GpuKernel& kernel, const Expr& index, int64_t extent, const RangeMap& ranges) {
  const LinearForm form = linear_form(index, ranges);
  LinearForm block, rest{.constant = form.constant};
  for (const auto& term : form.terms)
    (only_block_vars(kernel, term.first) ? block : rest).terms.push_back(term);
  const auto bounds = const_bounds(to_expr(rest), ranges);
  if (!bounds.has_value()) return str("0..", extent - 1);
  std::string start = to_text(to_expr(block));
  for (size_t at = start.find("//"); at != std::string::npos; at = start.find("//"))
    start.erase(at, 1);  // as in C
  const bool is_point = bounds->first == bounds->second;
  const std::string span =
      is_point ? str(bounds->first) : str(bounds->first, "..", std::min(bounds->second, extent - 1));
  if (block.terms.empty()) return span;
  return is_point && bounds->first == 0 ? start : str(start, " + ", span);
}

void collect_outputs(const GpuKernel& kernel, const Stmt& s, RangeMap ranges,
                     std::vector<std::string>& lines) {
  if (s == nullptr) return;
  if (s->kind == StmtKind::kFor) ranges.bind(s->var, s->extent);
  if (s->kind == StmtKind::kStore && s->buffer->scope == MemoryScope::kGlobal) {
    std::string line = s->buffer->name + "[";
    for (size_t d = 0; d < s->indices.size(); ++d)
      line += str(d == 0 ? "" : ", ", block_span(kernel, s->indices[d], s->buffer->shape[d], ranges));
    line += "]";
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  collect_outputs(kernel, s->body, ranges, lines);
  collect_outputs(kernel, s->else_body, ranges, lines);
  for (const Stmt& child : s->stmts) collect_outputs(kernel, child, ranges, lines);
}

// --- guards ---

// "dimension 0 of out, which has 30", of an access below s whose index the condition keeps below the shape.
std::string guarded_dimension(const StmtNode& guard, const Expr& condition, const RangeMap& ranges) {
  std::string found;
  const auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size() && found.empty(); ++d) {
      const Expr inside = simplify(indices[d] < Expr(buffer->shape[d]), ranges);
      if (equal(inside, condition))
        found = str("dimension ", d, " of ", buffer->name, " ends at ", buffer->shape[d]);
    }
  };
  for (const Stmt& branch : {guard.body, guard.else_body})
    visit(branch, [&](const Stmt& s) {
      if (s->kind == StmtKind::kStore) look(s->buffer, s->indices);
      own_exprs(*s, [&](const Expr& e) {
        visit(e, [&](const Expr& part) {
          if (part->kind == ExprKind::kLoad) look(part->buffer, part->operands);
        });
      });
    });
  return found;
}

bool only_threads(const Expr& condition, const GpuKernel& kernel) {
  bool only = true;
  visit(condition, [&](const Expr& e) {
    if (e->kind == ExprKind::kVar)
      only &=
          std::find(kernel.thread_vars.begin(), kernel.thread_vars.end(), e->var) != kernel.thread_vars.end();
  });
  return only;
}

// k < steps - 1: of a loop, neither of blocks nor threads.
bool is_step_guard(const Expr& e, const GpuKernel& kernel) {
  return e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kLt &&
         e->operands[0]->kind == ExprKind::kVar && is_const_int(e->operands[1]) && !only_threads(e, kernel) &&
         !is_block_var(kernel, e->operands[0]);
}

}  // namespace

const StmtNode* only_store(const Stmt& s) {
  const StmtNode* at = s.get();
  while (at != nullptr && at->kind != StmtKind::kStore) {
    const bool passes = at->kind == StmtKind::kFor || (at->kind == StmtKind::kIf && at->else_body == nullptr);
    if (!passes) return nullptr;
    at = at->body.get();
  }
  return at;
}

std::string describe_nest(const Stmt& s) {
  const StmtNode* store = only_store(s);
  if (store == nullptr) return {};
  const std::set<const BufferNode*> from = loaded_buffers(store->value);
  const int64_t times = times_run(s);
  const bool accumulates = from.contains(store->buffer.get());
  if (from.empty()) return str(store->buffer->name, " starts at ", to_text(store->value));
  if (accumulates) {
    std::set<const BufferNode*> others = from;
    others.erase(store->buffer.get());
    return describe_update(*store, names_of(others), times);
  }
  if (is_copy(store->value) && from.size() == 1) return describe_copy(*store, from, times);
  return str(store->buffer->scope == MemoryScope::kGlobal ? "write " : "compute ", store->buffer->name,
             " from ", names_of(from), ": ", amount(times, "element"));
}

std::string describe_loop(const StmtNode& loop) {
  return str(loop.var->name, ": ", loop.extent,
             loop.axis == AxisKind::kReduce ? " steps of the reduction" : " steps");
}

std::string describe_guard(const StmtNode& guard, const GpuKernel& kernel, const RangeMap& ranges) {
  std::string why;
  for (const Expr& condition : conjuncts(guard.condition)) {
    std::string part = guarded_dimension(guard, condition, ranges);
    if (part.empty() && is_step_guard(condition, kernel)) part = "not in the last step";
    if (part.empty() && only_threads(condition, kernel)) part = "only some of the threads take part";
    if (part.empty()) part = "the last tile is not whole";
    if (why.find(part) == std::string::npos) why += str(why.empty() ? "" : "; ", part);
  }
  return why;
}

std::map<const StmtNode*, std::string> describe_barriers(const Stmt& body) {
  return BarrierWalk(body).comments();
}

std::vector<std::string> describe_block_output(const GpuKernel& kernel, const Stmt& body) {
  RangeMap ranges;
  for (int d = 0; d < 3; ++d) {
    if (kernel.block_vars[d] != nullptr) ranges.bind(kernel.block_vars[d], kernel.grid[d]);
    if (kernel.thread_vars[d] != nullptr) ranges.bind(kernel.thread_vars[d], kernel.block[d]);
  }
  std::vector<std::string> lines;
  collect_outputs(kernel, body, ranges, lines);
  return lines;
}

std::string with_c_names(std::string text) {
  for (size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == '.' && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 &&
        std::isalpha(static_cast<unsigned char>(text[i + 1])) != 0)
      text[i] = '_';
  return text;
}

std::string describe_shape(const BufferNode& buffer) {
  std::string shape;
  for (const int64_t d : buffer.shape) shape += str(shape.empty() ? "" : ", ", d);
  return str("[", shape, "] of ", buffer.dtype);
}

}  // namespace tuner::cuda
