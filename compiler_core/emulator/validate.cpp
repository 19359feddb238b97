#include "compiler_core/emulator/validate.h"

#include <algorithm>

#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

constexpr int64_t kMostThreads = 1024;       // of a block, on every GPU there is
constexpr int64_t kMostBlocks = 2147483647;  // x; of y and z 65535
constexpr int64_t kMostBlocksYZ = 65535;
constexpr int64_t kSharedAlignment = 16;  // bytes: the widest vector access

Status check_launch(const GpuKernel& k) {
  int64_t threads = 1;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t most = d == 0 ? kMostBlocks : kMostBlocksYZ;
    if (k.grid[d] < 1 || k.grid[d] > most)
      return invalid_config(k.name, ": grid dimension ", d, " is ", k.grid[d], ", expected 1..", most);
    if (k.block[d] < 1 || k.block[d] > kMostThreads)
      return invalid_config(k.name, ": block dimension ", d, " is ", k.block[d], ", expected 1..",
                            kMostThreads);
    threads *= k.block[d];
  }
  if (threads > kMostThreads)
    return invalid_config(k.name, ": a block of ", threads, " threads, at most ", kMostThreads,
                          " are possible");
  return Status::ok();
}

Status check_shared(const GpuKernel& k) {
  if (k.shared.size() != k.shared_offsets.size())
    return invalid_config(k.name, ": ", k.shared.size(), " shared buffers have ", k.shared_offsets.size(),
                          " places");
  const auto end = [&](size_t i) {
    return k.shared_offsets[i] + storage_elements(*k.shared[i]) * dtype_bytes(k.shared[i]->dtype);
  };
  for (size_t i = 0; i < k.shared.size(); ++i) {
    const BufferNode& b = *k.shared[i];
    if (b.scope != MemoryScope::kShared)
      return invalid_config(k.name, ": ", b.name, " is listed as shared but is in ",
                            memory_scope_name(b.scope), " memory");
    RETURN_IF_ERROR(check_layout(b.layout, b.shape).with_context(str(k.name, ": ", b.name, ": ")));
    if (k.shared_offsets[i] < 0 || k.shared_offsets[i] % kSharedAlignment != 0)
      return invalid_config(k.name, ": ", b.name, " starts at byte ", k.shared_offsets[i],
                            " of shared memory, expected a multiple of ", kSharedAlignment);
    if (end(i) > k.shared_bytes)
      return invalid_config(k.name, ": ", b.name, " takes bytes ", k.shared_offsets[i], "..", end(i),
                            " of shared memory, and the kernel asks for only ", k.shared_bytes);
    if (k.shared_nowhere >= 0 && k.shared_nowhere < end(i) &&
        k.shared_offsets[i] < k.shared_nowhere + kSharedAlignment)
      return invalid_config(k.name, ": ", b.name, " takes bytes ", k.shared_offsets[i], "..", end(i),
                            " of shared memory, and bytes from ", k.shared_nowhere, " on are nobody's");
  }
  if (k.shared_nowhere >= 0 && k.shared_nowhere + kSharedAlignment > k.shared_bytes)
    return invalid_config(k.name, ": stores that do not count go to byte ", k.shared_nowhere,
                          " of shared memory, and the kernel asks for only ", k.shared_bytes);
  return Status::ok();
}

bool among(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

// Registers are checked where they are used: they must be allocated around.
Status check_access(const GpuKernel& k, const Buffer& buffer, const std::vector<Expr>& indices) {
  if (indices.size() != buffer->shape.size())
    return invalid_config(k.name, ": ", buffer->name, " has ", buffer->shape.size(),
                          " dimensions, accessed with ", indices.size());
  const bool known = buffer->scope == MemoryScope::kRegister ||
                     (buffer->scope == MemoryScope::kShared && among(k.shared, buffer)) ||
                     (buffer->scope == MemoryScope::kGlobal && among(k.params, buffer));
  if (known) return Status::ok();
  return invalid_config(k.name, ": ", buffer->name, " (", memory_scope_name(buffer->scope),
                        ") is neither a parameter nor a shared buffer of the kernel");
}

Status check_barrier(const GpuKernel& k, const StmtNode& s) {
  constexpr int64_t kMostArrivals = (1 << 20) - 1;
  const bool right = s.operands.size() >= 2 && s.operands[0]->kind == ExprKind::kLoad &&
                     s.operands[0]->buffer->dtype == DType::kInt64 &&
                     s.operands[0]->buffer->shape.size() == 1 && among(k.shared, s.operands[0]->buffer);
  if (!right)
    return invalid_config(k.name, ": async ", s.name,
                          " is not at a barrier, an int64 element of shared memory");
  int64_t number = 0;
  if (s.name == "init" && !(is_const_int(s.operands[1], &number) && number >= 1 && number <= kMostArrivals))
    return invalid_config(k.name, ": a barrier for ", to_text(s.operands[1]), " arrivals, expected 1..",
                          kMostArrivals);
  if (s.name == "expect" && !(is_const_int(s.operands[1], &number) && number >= 1 && number <= kMostArrivals))
    return invalid_config(k.name, ": a barrier for ", to_text(s.operands[1]), " bytes, expected 1..",
                          kMostArrivals);
  return Status::ok();
}

// What lies in a row.
Status check_plain_fetch(const GpuKernel& k, const StmtNode& s) {
  constexpr int64_t kUnit = 16, kMostBytes = (1 << 20) - 16;
  int64_t bytes = 0;
  const bool right = s.operands.size() == 4 && is_const_int(s.operands[3], &bytes) && bytes > 0 &&
                     bytes <= kMostBytes && bytes % kUnit == 0 && s.operands[1]->kind == ExprKind::kLoad &&
                     among(k.shared, s.operands[1]->buffer) && s.operands[2]->kind == ExprKind::kLoad &&
                     among(k.params, s.operands[2]->buffer) && s.operands[1]->dtype == s.operands[2]->dtype;
  if (right) return Status::ok();
  return invalid_config(k.name, ": a fetch without a map is not one of whole 16 bytes, at most ", kMostBytes,
                        ", from an argument to shared memory");
}

Status check_fetch(const GpuKernel& k, const StmtNode& s) {
  RETURN_IF_ERROR(check_barrier(k, s));
  if (!s.value.defined()) return check_plain_fetch(k, s);
  int64_t number = -1;
  if (s.buffer == nullptr || !is_const_int(s.value, &number) || number < 0 ||
      number >= static_cast<int64_t>(k.tensor_maps.size()))
    return invalid_config(k.name, ": a fetch of no map of the kernel; expected a lowered one");
  const KernelTensorMap& m = k.tensor_maps[static_cast<size_t>(number)];
  const Expr& to = s.operands[1];
  if (m.buffer != s.buffer || m.map.dtype != s.buffer->dtype || s.indices.size() != m.map.rank())
    return invalid_config(k.name, ": map ", number, " is not one of ", s.buffer->name, " with ",
                          s.indices.size(), " coordinates");
  if (m.map.kind != TensorMap::Kind::kTiled)
    return invalid_config(k.name, ": map ", number, " is one of im2col, which kernels do not fetch yet");
  RETURN_IF_ERROR(
      check_tensor_map(m.map).with_context(str(k.name, ": map ", number, " of ", s.buffer->name, ": ")));
  if (to->kind != ExprKind::kLoad || !among(k.shared, to->buffer) || to->dtype != m.map.dtype)
    return invalid_config(k.name, ": a fetch to ", to_text(to), ", expected a tile of ", m.map.dtype,
                          " in shared memory");
  const auto place = std::find(k.shared.begin(), k.shared.end(), to->buffer) - k.shared.begin();
  if (const int64_t at = k.shared_offsets[static_cast<size_t>(place)]; at % box_alignment(m.map) != 0)
    return invalid_config(k.name, ": ", to->buffer->name, " starts at byte ", at,
                          " of shared memory, and boxes of map ", number, " need a multiple of ",
                          box_alignment(m.map));
  return Status::ok();
}

Status check_async(const GpuKernel& k, const StmtNode& s) {
  if (is_async(s, "fetch")) return check_fetch(k, s);
  if (is_async(s, "init") || is_async(s, "expect") || is_async(s, "await")) return check_barrier(k, s);
  if (is_async(s, "commit")) return Status::ok();
  int64_t in_flight = 0;
  if (is_async(s, "wait") && s.operands.size() == 1 && is_const_int(s.operands[0], &in_flight) &&
      in_flight >= 0)
    return Status::ok();
  if (!is_async(s, "copy") || s.body == nullptr)
    return invalid_config(k.name, ": async ", s.name,
                          " is neither a copy, nor a commit, nor a wait for a number");
  Status status;
  visit(s.body, [&](const Stmt& store) {
    const bool is_store = store->kind == StmtKind::kStore && store->buffer->scope == MemoryScope::kShared;
    if (status.is_ok() && !is_store && store->kind != StmtKind::kFor && store->kind != StmtKind::kIf &&
        store->kind != StmtKind::kSeq)
      status = invalid_config(
          k.name, ": an asynchronous copy does more than store to shared memory: ", to_text(store));
  });
  return status;
}

Status check_statement(const GpuKernel& k, const StmtNode& s) {
  switch (s.kind) {
    case StmtKind::kAsync:
      return check_async(k, s);
    case StmtKind::kFor:
      if (s.loop == LoopKind::kSerial || s.loop == LoopKind::kUnrolled || s.loop == LoopKind::kVectorized ||
          s.loop == LoopKind::kDot)
        return Status::ok();
      return invalid_config(k.name, ": loop ", s.var->name, " is still bound to ", loop_kind_name(s.loop),
                            "; expected a lowered kernel");
    case StmtKind::kStore:
      if (s.reduce != ReduceOp::kNone)
        return invalid_config(k.name, ": the store to ", s.buffer->name,
                              " is a reduction; expected a lowered kernel");
      if (s.buffer->role == BufferRole::kInput || s.buffer->role == BufferRole::kConstant)
        return invalid_config(k.name, ": stores to ", s.buffer->name, ", which is an input");
      return check_access(k, s.buffer, s.indices);
    default:
      return Status::ok();
  }
}

}  // namespace

Status validate(const GpuKernel& k) {
  RETURN_IF_ERROR(check_launch(k));
  RETURN_IF_ERROR(check_shared(k));
  if (k.body == nullptr) return invalid_config(k.name, ": nothing to run");
  Status status;
  const auto note = [&](const Status& found) {
    if (status.is_ok()) status = found;
  };
  visit(k.body, [&](const Stmt& s) { note(check_statement(k, *s)); });
  visit_exprs(k.body, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) note(check_access(k, e->buffer, e->operands));
  });
  return status;
}

}  // namespace tuner::emulation
