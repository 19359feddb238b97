// Copies by TMA: what a scheduled Program has as loops becomes boxes of tensor maps, which one thread asks
// for.
//
//   before   async fetch full[s]                          after   if tx == 0 && ty == 0
//              for i in 0..128: for j in 0..64                      async fetch full[s], t[s, 0, 0] = map 0
//                                                                   of x at [k*64, bx*128]
//                t[s, i, j] = select(inside, x[..], 0)
//
// Barriers that they arrive at are begun and told of bytes by the same thread.
#include <algorithm>

#include "compiler_core/analysis/tensor_copy.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

class Fetches {
 public:
  explicit Fetches(GpuKernel& kernel) : kernel_(kernel) {
    Expr one = bool_imm(true);
    for (size_t d = 0; d < 3; ++d)
      if (kernel.block[d] > 1) one = one && binary(BinaryOp::kEq, Expr(kernel.thread_vars[d]), 0);
    by_one_ = simplify(one);
  }

  Stmt rewrite(const Stmt& s, const RangeMap& ranges) {
    if (s == nullptr || !status_.is_ok()) return s;
    if (is_async(*s, "init") || is_async(*s, "expect")) return by_one_thread(s);
    if (is_async(*s, "fetch")) return by_one_thread(fetch(s, ranges));
    RangeMap inside = ranges;
    if (s->kind == StmtKind::kFor) inside.bind(s->var, s->extent);
    if (s->kind == StmtKind::kIf && s->else_body == nullptr) inside.assume(s->condition);
    return map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return rewrite(child, inside); });
  }
  const Status& status() const { return status_; }

 private:
  Stmt by_one_thread(const Stmt& s) const {
    const bool all = by_one_->kind == ExprKind::kIntImm;  // the block has one thread
    return all || s == nullptr ? s : make_if(by_one_, s);
  }

  Stmt fetch(const Stmt& s, const RangeMap& ranges) {
    std::string what;
    visit(s->body, [&](const Stmt& store) {
      if (store->kind == StmtKind::kStore)
        what = str("kernel ", kernel_.name, ": the copy of ", store->buffer->name, " by TMA: ");
    });
    if (s->operands.empty()) return refuse(what, "nothing waits for it; pipeline() it");
    const Result<TensorCopy> copy = tensor_copy(without_thread(s->body), ranges);
    if (!copy) return refuse(what, copy.message());
    Stmt result = copy->bytes > 0 ? make_async_fetch(s->operands[0], copy->to, copy->first, copy->bytes)
                                  : make_async_fetch(s->operands[0], copy->to, number_of(*copy), copy->from,
                                                     copy->coordinates);
    for (size_t i = copy->rounds.size(); i-- > 0;) {
      const StmtNode& round = *copy->rounds[i];
      result = make_for(round.var, round.extent, std::move(result), round.axis, LoopKind::kUnrolled);
    }
    return result;
  }

  // One thread stores what all would store alike (gpu_threads.cpp); here that is true of the whole statement.
  Stmt without_thread(const Stmt& s) const {
    Stmt result = map_children(
        s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return without_thread(child); });
    if (result->kind != StmtKind::kIf) return result;
    std::vector<Expr> others = conjuncts(result->condition);
    std::erase_if(others, [&](const Expr& e) {
      const std::vector<Expr> own = conjuncts(by_one_);
      return std::ranges::any_of(own, [&](const Expr& part) { return equal(part, e); });
    });
    return others.empty() ? result->body : make_if(conjunction(others), result->body);
  }

  // The number of its map; what is the same is one.
  int64_t number_of(const TensorCopy& copy) {
    std::vector<KernelTensorMap>& maps = kernel_.tensor_maps;
    const auto known = std::ranges::find_if(
        maps, [&](const KernelTensorMap& m) { return m.buffer == copy.from && m.map == copy.map; });
    const auto number = known - maps.begin();
    if (known == maps.end()) maps.push_back({copy.map, copy.from});
    return number;
  }

  template <class... Words>
  Stmt refuse(const Words&... words) {
    if (status_.is_ok()) status_ = invalid_config(words...);
    return nullptr;
  }

  GpuKernel& kernel_;
  Expr by_one_;
  Status status_;
};

}  // namespace

Result<Stmt> lower_fetches(const Stmt& body, GpuKernel& kernel) {
  Fetches pass(kernel);
  Stmt result = pass.rewrite(body, kernel_ranges(kernel));
  RETURN_IF_ERROR(pass.status());
  return merge_equal_guards(result);
}

}  // namespace tuner::gpu
