// Cross-thread reductions:
//
//   threadIdx.x reduce r: [serial reduce loops, guards] acc (op)= value
// becomes
//   part = init
//   threadIdx.x r: [serial reduce loops, guards] part (op)= value
//   warp_allreduce(part)
//   with several warps: their first lanes put part into shared memory, every thread sums up what is there
//   acc = part
#include <algorithm>
#include <limits>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

constexpr int64_t kWarp = 32;

bool is_cross_thread(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->axis == AxisKind::kReduce && thread_axis(s->loop) >= 0;
}

// The statements from below the loop down to its store: loops and guards.
struct Nest {
  std::vector<Stmt> around;
  Stmt store;
};

Result<Nest> nest_of(const Stmt& loop) {
  Nest nest;
  for (Stmt s = loop->body;; s = s->body) {
    if (s->kind == StmtKind::kStore) {
      nest.store = s;
      return nest;
    }
    const bool guard = s->kind == StmtKind::kIf && s->else_body == nullptr;
    if (s->kind == StmtKind::kFor && s->axis == AxisKind::kSpatial && s->extent > 1)
      return invalid_config("cross-thread reduction over ", loop->var->name, ": spatial axis ", s->var->name,
                            " stands inside; reorder it outside");
    if (!guard && s->kind != StmtKind::kFor)
      return invalid_config("cross-thread reduction over ", loop->var->name,
                            ": other statements are computed inside it");
    nest.around.push_back(s);
  }
}

Stmt rebuild(const std::vector<Stmt>& around, Stmt body) {
  for (auto s = around.rbegin(); s != around.rend(); ++s) body = with_body(*s, std::move(body));
  return body;
}

class CrossThread {
 public:
  explicit CrossThread(const Extents& threads) : threads_(threads) {}

  Stmt visit(const Stmt& s) {
    if (s == nullptr || !status_.is_ok()) return s;
    if (is_cross_thread(s)) {
      Result<Stmt> lowered = lower(s);
      if (!lowered) status_ = lowered.status();
      return lowered ? *lowered : s;
    }
    const bool thread_loop = s->kind == StmtKind::kFor && thread_axis(s->loop) >= 0;
    if (thread_loop) around_.push_back(s);
    Stmt result = map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return visit(child); });
    if (thread_loop) around_.pop_back();
    return result;
  }
  const Status& status() const { return status_; }

 private:
  Status check(const Stmt& loop, const Nest& nest) const {
    const StmtNode& store = *nest.store;
    if (loop->extent != threads_[0])
      return invalid_config("cross-thread reduction over ", loop->var->name, ": its extent is ", loop->extent,
                            ", the block has ", threads_[0], " threads in x; they must be equal");
    if (store.reduce == ReduceOp::kNone || store.buffer->dtype != DType::kFloat32)
      return invalid_config("cross-thread reduction over ", loop->var->name, ": ", store.buffer->name,
                            " is not a float32 reduction");
    if (store.first.defined()) {
      Expr own = store.first;
      tuner::visit(store.first, [&](const Expr& e) {
        if (e->kind != ExprKind::kVar) return;
        const auto is = [&](const Stmt& s) { return s->kind == StmtKind::kFor && s->var == e->var; };
        if (!is(loop) && std::none_of(nest.around.begin(), nest.around.end(), is)) own = e;
      });
      if (!own.same_as(store.first))
        return invalid_config("cross-thread reduction over ", loop->var->name, ": reduce axis ", to_text(own),
                              " stands outside; reorder it inside, so that each thread sums its share first");
    }
    for (const Stmt& outer : around_)
      if (thread_axis(outer->loop) == 0 &&
          std::any_of(store.indices.begin(), store.indices.end(),
                      [&](const Expr& index) { return uses_var(index, outer->var); }))
        return invalid_config("cross-thread reduction over ", loop->var->name, ": ", store.buffer->name,
                              " is a sum of its own for each thread of ", outer->var->name);
    return Status::ok();
  }

  Result<Stmt> lower(const Stmt& loop) {
    ASSIGN_OR_RETURN(const Nest nest, nest_of(loop));
    RETURN_IF_ERROR(check(loop, nest));
    const StmtNode& store = *nest.store;
    const Buffer part =
        make_buffer(store.buffer->name + ".part", DType::kFloat32, {1}, MemoryScope::kRegister);
    const Expr identity = store.init.defined() ? store.init : identity_of(store.reduce);
    Stmt share = make_for(loop->var, loop->extent,
                          rebuild(nest.around, make_reduce(part, {0}, store.reduce, {}, store.value, {})),
                          AxisKind::kSpatial, loop->loop);
    std::vector<Stmt> steps{make_store(part, {0}, identity), std::move(share)};
    const int64_t width = std::min(loop->extent, kWarp);
    if (width > 1) {
      auto combine = std::make_shared<StmtNode>();
      combine->kind = StmtKind::kIntrinsic;
      combine->name = warp_allreduce_name(store.reduce, width);
      combine->operands = {load(part, {0})};
      steps.push_back(std::move(combine));
    }
    Buffer scratch;
    if (loop->extent > kWarp) scratch = over_warps(loop, store, part, steps);
    auto result = std::make_shared<StmtNode>(store);
    result->value = load(part, {0});
    if (store.first.defined()) {  // nothing was there before
      result->reduce = ReduceOp::kNone;
      result->init = result->first = {};
    }
    steps.push_back(std::move(result));
    Stmt whole = make_allocate(part, make_seq(std::move(steps)));
    return scratch == nullptr ? whole : make_allocate(scratch, std::move(whole));
  }

  // One element a warp, for each combination of the other thread axes around.
  Buffer over_warps(const Stmt& loop, const StmtNode& store, const Buffer& part, std::vector<Stmt>& steps) {
    std::vector<int64_t> shape;
    std::vector<Expr> row;
    for (const Stmt& outer : around_) {
      if (thread_axis(outer->loop) < 1) continue;
      shape.push_back(outer->extent);
      row.emplace_back(outer->var);
    }
    const int64_t warps = loop->extent / kWarp;
    shape.push_back(warps);
    const Buffer scratch =
        make_buffer(store.buffer->name + ".warps", DType::kFloat32, std::move(shape), MemoryScope::kShared);
    const auto at = [&](const Expr& warp) {
      std::vector<Expr> indices = row;
      indices.push_back(warp);
      return indices;
    };
    const Var thread = make_var(loop->var->name), warp = make_var("warp");
    steps.push_back(make_for(thread, loop->extent,
                             make_if(binary(BinaryOp::kEq, floor_mod(thread, kWarp), 0),
                                     make_store(scratch, at(floor_div(thread, kWarp)), load(part, {0}))),
                             AxisKind::kSpatial, loop->loop));
    steps.push_back(make_store(part, {0}, load(scratch, at(0))));
    steps.push_back(make_for(warp, warps - 1,
                             make_reduce(part, {0}, store.reduce, {}, load(scratch, at(Expr(warp) + 1)), {}),
                             AxisKind::kSpatial, LoopKind::kUnrolled));
    return scratch;
  }

  static Expr identity_of(ReduceOp op) {
    const double infinity = std::numeric_limits<double>::infinity();
    return float_imm(op == ReduceOp::kSum ? 0 : op == ReduceOp::kMax ? -infinity : infinity);
  }

  const Extents threads_;
  std::vector<Stmt> around_;  // thread loops
  Status status_;
};

}  // namespace

Result<Stmt> lower_cross_thread(const Stmt& body) {
  CrossThread pass(thread_extents(body));
  Stmt result = pass.visit(body);
  RETURN_IF_ERROR(pass.status());
  return result;
}

}  // namespace tuner::gpu
