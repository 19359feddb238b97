// Where shared buffers lie. A buffer is needed from its first access to its last; of a loop, from its begin
// to its end. Of a product on tensor cores the tiles of the operands are needed before the sums, which go the
// same way out: they share their memory, and twice as many blocks fit.
#include <algorithm>
#include <limits>
#include <map>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"

namespace tuner::gpu {
namespace {

// Bytes: the widest vector access, if no unit that fetches tiles asks for more.
constexpr int64_t kAlignment = 16;
// A smaller buffer has bytes of its own: to lie on another one costs a barrier.
constexpr int64_t kLeastShared = 4096;

int64_t bytes_of(const Buffer& b) {
  return (storage_elements(*b) * dtype_bytes(b->dtype) + kAlignment - 1) / kAlignment * kAlignment;
}

struct Life {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  bool overlaps(const Life& o) const { return first <= o.last && o.first <= last; }
};

// Statements in the order they run, as numbers.
class Lives {
 public:
  explicit Lives(const Stmt& body) { walk(body); }
  Life of(const Buffer& b) const {
    const auto found = lives_.find(b.get());
    return found == lives_.end() ? Life{} : found->second;
  }

 private:
  void walk(const Stmt& s) {
    if (s == nullptr) return;
    const int64_t begin = ++now_;
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) touch(e->buffer);
      });
    });
    if (s->kind == StmtKind::kStore) touch(s->buffer);
    const std::map<const BufferNode*, Life> before = lives_;
    walk(s->body);
    walk(s->else_body);
    for (const Stmt& child : s->stmts) walk(child);
    // What is touched in an iteration is needed in all of them; and threads are in both branches at the same
    // time.
    const bool is_loop = s->kind == StmtKind::kFor && s->extent > 1;
    if (!is_loop && s->else_body == nullptr) return;
    ++now_;
    for (auto& [buffer, life] : lives_) {
      const auto known = before.find(buffer);
      if (known != before.end() && known->second.last == life.last) continue;
      life.first = std::min(life.first, begin);
      life.last = now_;
    }
  }
  void touch(const Buffer& b) {
    if (b->scope != MemoryScope::kShared) return;
    Life& life = lives_[b.get()];
    life.first = std::min(life.first, now_);
    life.last = std::max(life.last, now_);
  }

  int64_t now_ = 0;
  std::map<const BufferNode*, Life> lives_;
};

// Of buffers whose tiles a unit fetches or brings by itself: multiples of so many bytes at which they lie.
std::map<const BufferNode*, int64_t> unit_alignments(const Stmt& body, const GpuKernel& kernel) {
  std::map<const BufferNode*, int64_t> found;
  const auto ask = [&](const Buffer& buffer, int64_t bytes) {
    int64_t& asked = found[buffer.get()];
    asked = std::max(asked, bytes);
  };
  visit(body, [&](const Stmt& s) {
    const Intrinsic* const intrinsic = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    for (size_t o = 0; intrinsic != nullptr && o < intrinsic->operands.size(); ++o)
      if (intrinsic->operands[o].unit_place != nullptr)
        ask(s->operands[o]->buffer, intrinsic->operands[o].unit_alignment);
    constexpr int64_t kOfPlainFetch = 1024;  // whatever its layout
    if (is_async(*s, "fetch") && !s->value.defined()) {
      ask(s->operands[1]->buffer, kOfPlainFetch);
    } else if (is_async(*s, "fetch")) {
      int64_t map = 0;
      CHECK(is_const_int(s->value, &map)) << to_text(s);
      ask(s->operands[1]->buffer, box_alignment(kernel.tensor_maps[static_cast<size_t>(map)].map));
    }
  });
  return found;
}

// A store to shared memory of what registers hold, for some of the threads.
bool has_guarded_copy(const Stmt& s, const GpuKernel& kernel, bool guarded) {
  if (s == nullptr || s->kind == StmtKind::kAsync) return false;
  if (s->kind == StmtKind::kStore)
    return guarded && s->buffer->scope == MemoryScope::kShared && s->value->kind == ExprKind::kLoad &&
           s->value->buffer->scope == MemoryScope::kRegister;
  const bool inside = guarded || (s->kind == StmtKind::kIf && asks_for_thread(s->condition, kernel));
  return has_guarded_copy(s->body, kernel, inside) || has_guarded_copy(s->else_body, kernel, inside) ||
         std::ranges::any_of(s->stmts,
                             [&](const Stmt& child) { return has_guarded_copy(child, kernel, inside); });
}

}  // namespace

Stmt hoist_shared(const Stmt& s, GpuKernel& kernel) {
  if (s == nullptr) return s;
  Stmt result = map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return hoist_shared(child, kernel); });
  if (s->kind != StmtKind::kAllocate || s->buffer->scope != MemoryScope::kShared) return result;
  kernel.shared.insert(kernel.shared.begin(), s->buffer);  // the outermost is met last
  return result == nullptr ? nullptr : result->body;
}

void place_shared(const Stmt& body, GpuKernel& kernel) {
  const Lives lives(body);
  const std::map<const BufferNode*, int64_t> units = unit_alignments(body, kernel);
  for (size_t i = 0; i < kernel.shared.size(); ++i) {
    const Buffer& b = kernel.shared[i];
    const int64_t bytes = bytes_of(b);
    const auto is_in_the_way = [&](size_t j, int64_t at) {
      const Buffer& other = kernel.shared[j];
      const bool may_share =
          std::min(bytes, bytes_of(other)) >= kLeastShared && !lives.of(b).overlaps(lives.of(other));
      return !may_share && at < kernel.shared_offsets[j] + bytes_of(other) &&
             kernel.shared_offsets[j] < at + bytes;
    };
    // At the begin, or behind one of the others: the first place that is free.
    std::vector<int64_t> places = {0};
    for (size_t j = 0; j < i; ++j) places.push_back(kernel.shared_offsets[j] + bytes_of(kernel.shared[j]));
    const auto asked = units.find(b.get());
    for (int64_t& at : places)
      if (asked != units.end()) at = round_up(at, asked->second);
    std::ranges::sort(places);
    const auto free = std::ranges::find_if(places, [&](int64_t at) {
      for (size_t j = 0; j < i; ++j)
        if (is_in_the_way(j, at)) return false;
      return true;
    });
    kernel.shared_offsets.push_back(*free);
    kernel.shared_bytes = std::max(kernel.shared_bytes, *free + bytes);
  }
  if (!has_guarded_copy(body, kernel, false)) return;
  kernel.shared_nowhere = round_up(kernel.shared_bytes, kAlignment);
  kernel.shared_bytes = kernel.shared_nowhere + kAlignment;
}

}  // namespace tuner::gpu

namespace tuner {

bool lie_on_each_other(const GpuKernel& kernel, const Buffer& a, const Buffer& b) {
  const auto place = [&](const Buffer& of) {
    return std::ranges::find(kernel.shared, of) - kernel.shared.begin();
  };
  const auto i = static_cast<size_t>(place(a)), j = static_cast<size_t>(place(b));
  if (i == j || i >= kernel.shared.size() || j >= kernel.shared.size()) return false;
  return kernel.shared_offsets[i] < kernel.shared_offsets[j] + gpu::bytes_of(b) &&
         kernel.shared_offsets[j] < kernel.shared_offsets[i] + gpu::bytes_of(a);
}

}  // namespace tuner
