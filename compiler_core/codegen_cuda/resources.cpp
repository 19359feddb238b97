// The static filter before compiling. Stage A: what a thread will need, from the kernel's statements. Stage
// C: what fits a multiprocessor. README.md tells where the numbers come from.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/index_names.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMaxThreads = 1024, kMaxRegisters = 255, kMaxGridX = INT32_MAX, kMaxGridYZ = 65535;
// Registers are given to warps in portions, and lie in four parts of a multiprocessor.
constexpr int64_t kRegisterPortion = 256, kParts = 4;
// What addresses, loop counters and the hardware's own take beside what stands in the statements.
constexpr int64_t kOverhead = 16;
// Multiply-adds written out in one kernel: beyond, compiling takes seconds and the code leaves the
// instruction cache.
constexpr int64_t kMaxUnrolledUpdates = 4096;

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t threads_of(const GpuKernel& k) { return k.block[0] * k.block[1] * k.block[2]; }

// 32-bit registers that a buffer's elements take.
int64_t registers_of(const BufferNode& b) {
  return b.elements() * std::max<int64_t>(dtype_bytes(b.dtype), 4) / 4;
}

// Register buffers whose elements must stay: sums that go on, and what is read in more than one place. A
// buffer that is filled in one place and read in one other, the compiler fills as late as it likes.
std::set<const BufferNode*> lasting_buffers(const Stmt& body) {
  std::map<const BufferNode*, std::set<const StmtNode*>> readers;
  std::set<const BufferNode*> lasting;
  visit(body, [&](const Stmt& s) {
    own_exprs(*s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->kind != ExprKind::kLoad || e->buffer->scope != MemoryScope::kRegister) return;
        readers[e->buffer.get()].insert(s.get());
        if (s->kind == StmtKind::kIntrinsic || e->buffer == s->buffer) lasting.insert(e->buffer.get());
      });
    });
  });
  for (const auto& [buffer, statements] : readers)
    if (statements.size() > 1) lasting.insert(buffer);
  return lasting;
}

// Registers of lasting buffers that exist at once, at most.
int64_t held(const Stmt& s, const std::set<const BufferNode*>& lasting) {
  if (s == nullptr) return 0;
  int64_t most = std::max(held(s->body, lasting), held(s->else_body, lasting));
  for (const Stmt& child : s->stmts) most = std::max(most, held(child, lasting));
  const bool counts = s->kind == StmtKind::kAllocate && lasting.contains(s->buffer.get());
  return most + (counts ? registers_of(*s->buffer) : 0);
}

using Loops = std::vector<const StmtNode*>;  // around a statement, outermost first

// The unrolled loops right around a statement, spatial ones only: the iterations whose operands are alive
// together. An unrolled reduction goes on after another.
Loops together(const Loops& loops) {
  Loops result;
  for (auto l = loops.rbegin(); l != loops.rend() && cuda::prints_unrolled(**l); ++l)
    if ((*l)->axis == AxisKind::kSpatial) result.push_back(*l);
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
  int64_t lasting = 0;   // registers that must stay
  int64_t operands = 0;  // of the update that needs most: elements of its largest operand, the others pass by
  int64_t updates = 0;   // written out
};

// Adds what an update reads: the operands of one round of the unrolled loops around.
void look_at_store(const StmtNode& s, const Loops& loops, Needs& needs) {
  const Loops alive = together(loops);
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
  for (const StmtNode* loop : loops) copies *= cuda::prints_unrolled(*loop) ? loop->extent : 1;
  needs.updates += copies;
}

void look(const Stmt& s, Loops& loops, Needs& needs) {
  if (s == nullptr) return;
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
  needs.lasting = held(kernel.body, lasting_buffers(kernel.body));
  return needs;
}

// What launch bounds and the register file leave a thread: a multiple of 8. ptxas counts the warps of a block
// in fours, one in each part of the multiprocessor.
int64_t register_limit(const GpuKernel& kernel, const Target& target) {
  const int64_t warps = rounded_up(rounded_up(threads_of(kernel), kWarp) / kWarp, kParts);
  const int64_t threads = warps * kWarp * std::max(1, kernel.min_blocks);
  return threads == 0 ? kMaxRegisters : std::min(kMaxRegisters, target.registers_per_sm / threads / 8 * 8);
}

Status check_shape(const GpuKernel& k) {
  const int64_t threads = threads_of(k);
  if (std::min({k.block[0], k.block[1], k.block[2], k.grid[0], k.grid[1], k.grid[2]}) < 1)
    return invalid_config("stage A: ", k.name, ": a grid or block of no size");
  if (threads > kMaxThreads || k.block[2] > 64)
    return invalid_config("stage A: ", k.name, ": ", threads, " threads a block, at most ", kMaxThreads,
                          " (64 in z) there");
  if (k.grid[0] > kMaxGridX || k.grid[1] > kMaxGridYZ || k.grid[2] > kMaxGridYZ)
    return invalid_config("stage A: ", k.name, ": grid ", k.grid[0], " x ", k.grid[1], " x ", k.grid[2],
                          ", at most ", kMaxGridX, " x ", kMaxGridYZ, " x ", kMaxGridYZ, " there");
  return Status::ok();
}

}  // namespace

int blocks_per_multiprocessor(const Target& target, int64_t threads, int64_t registers,
                              int64_t shared_bytes) {
  if (threads < 1 || threads > kMaxThreads || registers > kMaxRegisters ||
      shared_bytes > target.shared_bytes_per_block)
    return 0;
  const int64_t warps = rounded_up(threads, kWarp) / kWarp;
  int64_t blocks = std::min(target.blocks_per_sm, target.threads_per_sm / kWarp / warps);
  if (registers > 0) {
    const int64_t of_warp = rounded_up(registers * kWarp, kRegisterPortion);
    // A launch is checked as if warps came in fours, one in each part.
    if (of_warp * rounded_up(warps, kParts) > target.registers_per_sm) return 0;
    blocks = std::min(blocks, target.registers_per_sm / kParts / of_warp * kParts / warps);
  }
  const int64_t portion = target.arch.starts_with("sm_7") ? 256 : 128;
  const int64_t shared = rounded_up(shared_bytes + target.shared_bytes_reserved, portion);
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
  if (e.blocks_per_sm < std::max(1, kernel.min_blocks))
    return invalid_config("stage C: ", kernel.name, ": ", e.blocks_per_sm, " blocks of ", e.threads,
                          " threads and ", e.shared_bytes,
                          " bytes of shared memory fit a multiprocessor, expected ",
                          std::max(1, kernel.min_blocks));
  return Status::ok();
}

}  // namespace tuner
