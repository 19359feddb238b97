#include "templates/workload/task_memory.h"

#include <algorithm>

#include "compiler_core/base/room.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// Elements of the buffers that the unscheduled math keeps between its stages.
int64_t intermediate_elements(const Stmt& stmt) {
  int64_t elements = 0;
  visit(stmt, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) elements += s->buffer->elements();
  });
  return elements;
}

Status refuse(const Workload& workload, std::string_view what, int64_t needed, std::string_view there_is,
              int64_t room, std::string_view advice) {
  return invalid_argument(workload.key(), ": ", what, " ", bytes_text(needed), ", ", there_is, " ",
                          bytes_text(room), "; ", advice);
}

}  // namespace

TaskMemory task_memory(const Workload& workload) {
  constexpr int64_t kFloat = 4, kDouble = 8;
  constexpr int64_t kCompiler = 64 << 20;  // that compiles the reference
  const Program program = workload.compute();
  TaskMemory memory;
  int64_t in = 0, out = 0;
  for (const Buffer& arg : program.args) {
    memory.operand_bytes += arg->bytes();
    if (is_given(arg->role)) {
      in += arg->elements();
      memory.disk_bytes += arg->bytes();
    }
    if (is_result(arg->role)) {
      out += arg->elements();
      memory.disk_bytes += kDouble * arg->elements();
    }
  }
  // Inputs as numbers stay while the reference is computed from a copy in doubles; then its outputs, a copy
  // of them, and the file they become.
  memory.making_bytes = kCompiler + (kFloat + kDouble) * in + 2 * kDouble * out +
                        kDouble * std::max(out, intermediate_elements(program.body));
  return memory;
}

Status fits(const Workload& workload, const Room& room) {
  const TaskMemory memory = task_memory(workload);
  constexpr std::string_view kRaise = "take a smaller shape, or raise \"memory_limit_gib\" in \"measure\"";
  if (memory.operand_bytes > room.candidate_bytes)
    return refuse(workload, "its operands take", memory.operand_bytes, "a candidate may take",
                  room.candidate_bytes, kRaise);
  if (memory.operand_bytes > room.candidate_bytes - room.program_bytes)
    return refuse(workload, "its operands and the process that holds them take",
                  memory.operand_bytes + room.program_bytes, "a candidate may take", room.candidate_bytes,
                  kRaise);
  if (memory.making_bytes > room.memory_bytes)
    return refuse(workload, "its reference answer takes about", memory.making_bytes,
                  "this machine has available", room.memory_bytes,
                  "take a smaller shape, or a worker on a larger machine (--daemon)");
  if (memory.disk_bytes > room.disk_bytes)
    return refuse(workload, "its inputs and reference answer take about", memory.disk_bytes,
                  "the cache's disk has free", room.disk_bytes,
                  "free some, or set XDG_CACHE_HOME to a folder on a larger disk");
  return Status::ok();
}

}  // namespace tuner
