// The static filter before compiling. Stage A: what a thread will need, from the kernel's statements. Stage
// C: what fits a multiprocessor. README.md tells where the numbers come from.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMostThreads = 1024, kMaxRegisters = 255, kMaxGridX = INT32_MAX, kMaxGridYZ = 65535;
// Registers are given to warps in portions, and lie in four parts of a multiprocessor.
constexpr int64_t kRegisterPortion = 256, kParts = 4;
// What addresses, loop counters and the hardware's own take beside what stands in the statements.
constexpr int64_t kOverhead = 16;
// Multiply-adds written out in one kernel: beyond, compiling takes seconds and the code leaves the
// instruction cache.
constexpr int64_t kMaxUnrolledUpdates = 4096;

int64_t threads_of(const GpuKernel& k) { return k.block[0] * k.block[1] * k.block[2]; }

// 32-bit registers that so many elements take. Small ones lie together, as matrix units want them.
int64_t registers_of(int64_t elements, DType dtype) { return ceil_div(elements * dtype_bytes(dtype), 4); }
int64_t registers_of(const BufferNode& b) { return registers_of(b.elements(), b.dtype); }

// Calls f(operand of the statement, operand of the intrinsic) for tiles that a warp holds in registers.
template <class F>
void visit_fragments(const StmtNode& s, const F& f) {
  const Intrinsic* const i = s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
  for (size_t o = 0; i != nullptr && o < i->operands.size() && o < s.operands.size(); ++o)
    if (i->operands[o].place == IntrinsicOperand::Place::kFragment) f(s.operands[o], i->operands[o]);
}

// Register buffers whose elements must stay: sums that go on, and what is read in more than one place. A
// buffer that is filled in one place and read in one other, the compiler fills as late as it likes.
std::set<const BufferNode*> lasting_buffers(const Stmt& body) {
  std::map<const BufferNode*, std::set<const StmtNode*>> readers;
  std::set<const BufferNode*> lasting, tiles;
  visit(body, [&](const Stmt& s) {
    visit_fragments(*s, [&](const Expr& operand, const IntrinsicOperand& o) {
      tiles.insert(operand->buffer.get());
      if (o.access == IntrinsicOperand::Access::kAccumulate) lasting.insert(operand->buffer.get());
      if (o.access == IntrinsicOperand::Access::kRead) readers[operand->buffer.get()].insert(s.get());
    });
  });
  visit(body, [&](const Stmt& s) {
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind != ExprKind::kLoad || e->buffer->scope != MemoryScope::kRegister) return;
        if (tiles.contains(e->buffer.get())) return;
        readers[e->buffer.get()].insert(s.get());
        if (s->kind == StmtKind::kIntrinsic || e->buffer == s->buffer) lasting.insert(e->buffer.get());
      });
    });
  });
  for (const auto& [buffer, statements] : readers)
    if (statements.size() > 1) lasting.insert(buffer);
  return lasting;
}

// When each lasting buffer is in use, in statements counted in their order. What a loop uses of a buffer from
// outside it uses from its start to its end.
class Lifetimes {
 public:
  explicit Lifetimes(const std::set<const BufferNode*>& lasting) : lasting_(lasting) {}

  void walk(const Stmt& s) {
    if (s == nullptr) return;
    const int64_t begin = now_;
    if (s->kind == StmtKind::kStore) use(s->buffer.get());
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) use(e->buffer.get());
      });
    });
    if (s->kind == StmtKind::kStore || s->kind == StmtKind::kIntrinsic) ++now_;
    walk(s->body);
    walk(s->else_body);
    for (const Stmt& child : s->stmts) walk(child);
    if (s->kind == StmtKind::kAllocate) inside_.erase(s->buffer.get());
    if (s->kind == StmtKind::kFor && !cuda::prints_unrolled(*s))
      for (const BufferNode* buffer : inside_)
        if (uses_[buffer].last >= begin) stretch(uses_[buffer], begin, now_ - 1);
  }

  // Registers between two statements, at most. A buffer that a statement reads for the last time makes room
  // for the one it fills.
  int64_t most() const {
    int64_t most = 0;
    for (int64_t at = 0; at < now_; ++at) {
      int64_t registers = 0;
      for (const auto& [buffer, use] : uses_)
        if (use.first <= at && (at < use.last || use.first == use.last)) registers += registers_of(*buffer);
      most = std::max(most, registers);
    }
    return most;
  }

 private:
  struct Use {
    int64_t first = INT64_MAX, last = -1;
  };

  static void stretch(Use& use, int64_t first, int64_t last) {
    use.first = std::min(use.first, first);
    use.last = std::max(use.last, last);
  }
  void use(const BufferNode* buffer) {
    if (!lasting_.contains(buffer)) return;
    stretch(uses_[buffer], now_, now_);
    inside_.insert(buffer);
  }

  const std::set<const BufferNode*>& lasting_;
  std::map<const BufferNode*, Use> uses_;
  std::set<const BufferNode*> inside_;  // used so far and allocated further outside
  int64_t now_ = 0;
};

using Loops = std::vector<const StmtNode*>;  // around a statement, outermost first

// The unrolled loops right around a store, those over its elements: the iterations whose operands are alive
// together. An unrolled reduction goes on after another.
Loops together(const StmtNode& store, const Loops& loops) {
  Loops result;
  for (auto l = loops.rbegin(); l != loops.rend() && cuda::prints_unrolled(**l); ++l)
    if (std::any_of(store.indices.begin(), store.indices.end(),
                    [&](const Expr& index) { return uses_var(index, (*l)->var); }))
      result.push_back(*l);
  return result;
}

int64_t distinct(const std::vector<Expr>& indices, const Loops& loops) {
  int64_t count = 1;
  for (const StmtNode* loop : loops)
    if (std::any_of(indices.begin(), indices.end(), [&](const Expr& i) { return uses_var(i, loop->var); }))
      count *= loop->extent;
  return count;
}

struct Needs {
  int64_t lasting = 0;  // registers that must stay
  int64_t operands =
      0;                // of the update that needs most: registers of its largest operand, the others pass by
  int64_t updates = 0;  // written out
};

// Adds what an update reads: the operands of one round of the unrolled loops around.
void look_at_store(const StmtNode& s, const Loops& loops, Needs& needs) {
  const Loops alive = together(s, loops);
  bool is_update = false;
  int64_t operands = 0;
  visit(s.value, [&](const Expr& e) {
    if (e->kind != ExprKind::kLoad) return;
    if (e->buffer == s.buffer)
      is_update = true;
    else
      operands = std::max(operands, distinct(e->operands, alive));
  });
  if (!is_update) return;
  needs.operands = std::max(needs.operands, operands);
  int64_t copies = 1;
  for (const StmtNode* loop : loops)
    copies *= cuda::prints_unrolled(*loop) && loop->loop != LoopKind::kDot ? loop->extent : 1;
  needs.updates += copies;
}

// Products of tiles: all of the smaller operand of a step are there, and one tile of the other at a time.
void look_at_tiles(const StmtNode& s, Needs& needs) {
  int64_t smaller = INT64_MAX, tile = 0;
  bool is_product = false;
  visit_fragments(s, [&](const Expr& operand, const IntrinsicOperand& o) {
    is_product |= o.access == IntrinsicOperand::Access::kAccumulate;
    if (o.access != IntrinsicOperand::Access::kRead) return;
    smaller = std::min(smaller, registers_of(*operand->buffer));
    tile = std::max(tile, registers_of(o.registers, o.dtype));
  });
  // A unit that fetches both operands by itself needs no registers for them.
  if (is_product && tile > 0) needs.operands = std::max(needs.operands, smaller + tile);
}

void look(const Stmt& s, Loops& loops, Needs& needs) {
  if (s == nullptr) return;
  if (s->kind == StmtKind::kIntrinsic) look_at_tiles(*s, needs);
  if (s->kind == StmtKind::kStore) look_at_store(*s, loops, needs);
  if (s->kind == StmtKind::kFor) loops.push_back(s.get());
  look(s->body, loops, needs);
  look(s->else_body, loops, needs);
  for (const Stmt& child : s->stmts) look(child, loops, needs);
  if (s->kind == StmtKind::kFor) loops.pop_back();
}

Needs needs_of(const GpuKernel& kernel) {
  Needs needs;
  Loops loops;
  look(kernel.body, loops, needs);
  const std::set<const BufferNode*> lasting = lasting_buffers(kernel.body);
  Lifetimes lifetimes(lasting);
  lifetimes.walk(kernel.body);
  needs.lasting = lifetimes.most();
  return needs;
}

// What launch bounds and the register file leave a thread: a multiple of 8. ptxas counts the warps that are
// to fit in fours, one in each part of the multiprocessor.
int64_t register_limit(const GpuKernel& kernel, const Target& target) {
  const int64_t warps_of_block = round_up(threads_of(kernel), kWarp) / kWarp;
  const int64_t threads = round_up(warps_of_block * std::max(1, kernel.min_blocks), kParts) * kWarp;
  return threads == 0 ? kMaxRegisters : std::min(kMaxRegisters, target.registers_per_sm / threads / 8 * 8);
}

Status check_shape(const GpuKernel& k) {
  const int64_t threads = threads_of(k);
  if (std::min({k.block[0], k.block[1], k.block[2], k.grid[0], k.grid[1], k.grid[2]}) < 1)
    return invalid_config("stage A: ", k.name, ": a grid or block of no size");
  if (threads > kMostThreads || k.block[2] > 64)
    return invalid_config("stage A: ", k.name, ": ", threads, " threads a block, at most ", kMostThreads,
                          " (64 in z) there");
  if (k.grid[0] > kMaxGridX || k.grid[1] > kMaxGridYZ || k.grid[2] > kMaxGridYZ)
    return invalid_config("stage A: ", k.name, ": grid ", k.grid[0], " x ", k.grid[1], " x ", k.grid[2],
                          ", at most ", kMaxGridX, " x ", kMaxGridYZ, " x ", kMaxGridYZ, " there");
  return Status::ok();
}

}  // namespace

int blocks_per_multiprocessor(const Target& target, int64_t threads, int64_t registers,
                              int64_t shared_bytes) {
  if (threads < 1 || threads > kMostThreads || registers > kMaxRegisters ||
      shared_bytes > target.shared_bytes_per_block)
    return 0;
  const int64_t warps = round_up(threads, kWarp) / kWarp;
  int64_t blocks = std::min(target.blocks_per_sm, target.threads_per_sm / kWarp / warps);
  if (registers > 0) {
    const int64_t of_warp = round_up(registers * kWarp, kRegisterPortion);
    // A launch is checked as if warps came in fours, one in each part.
    if (of_warp * round_up(warps, kParts) > target.registers_per_sm) return 0;
    blocks = std::min(blocks, target.registers_per_sm / kParts / of_warp * kParts / warps);
  }
  const int64_t portion = target.arch.starts_with("sm_7") ? 256 : 128;
  const int64_t shared = round_up(shared_bytes + target.shared_bytes_reserved, portion);
  if (shared > 0) blocks = std::min(blocks, target.shared_bytes_per_sm / shared);
  return static_cast<int>(blocks);
}

ResourceEstimate estimate_resources(const GpuKernel& kernel, const Target& target) {
  const Needs needs = needs_of(kernel);
  ResourceEstimate e;
  e.threads = threads_of(kernel);
  e.shared_bytes = kernel.shared_bytes;
  e.registers = needs.lasting + needs.operands + kOverhead;
  e.register_limit = register_limit(kernel, target);
  e.blocks_per_sm =
      blocks_per_multiprocessor(target, e.threads, std::min(e.registers, e.register_limit), e.shared_bytes);
  return e;
}

Status check_resources(const GpuKernel& kernel, const Target& target) {
  RETURN_IF_ERROR(check_shape(kernel));
  if (kernel.shared_bytes > target.shared_bytes_per_block)
    return invalid_config("stage A: ", kernel.name, ": needs ", kernel.shared_bytes,
                          " bytes of shared memory, ", target.shared_bytes_per_block, " there");
  const Needs needs = needs_of(kernel);
  if (needs.updates > kMaxUnrolledUpdates)
    return invalid_config("stage A: ", kernel.name, ": ", needs.updates,
                          " multiply-adds written out, at most ", kMaxUnrolledUpdates, "; unroll less");
  const ResourceEstimate e = estimate_resources(kernel, target);
  if (e.registers > e.register_limit)
    return invalid_config("stage A: ", kernel.name, ": needs about ", e.registers, " registers, ",
                          e.register_limit, " there");
  // Fewer blocks than launch bounds wish for is slow, not wrong.
  if (e.blocks_per_sm < 1)
    return invalid_config("stage C: ", kernel.name, ": no block of ", e.threads, " threads and ",
                          e.shared_bytes, " bytes of shared memory fits a multiprocessor");
  return Status::ok();
}

}  // namespace tuner
