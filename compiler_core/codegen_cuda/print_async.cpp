// Asynchronous copies: cp.async, its groups, waits.
#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/async_copy.h"
#include "compiler_core/codegen_cuda/describe.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"

namespace tuner::cuda {

void KernelPrinter::async(const Stmt& s, const RangeMap& ranges) {
  if (!is_async(*s, "copy") && !is_async(*s, "commit") && !is_async(*s, "wait")) return engine(*s, ranges);
  if (is_async(*s, "commit"))
    return text_.line("asm volatile(\"cp.async.commit_group;\");  // the copies so far");
  if (is_async(*s, "wait")) {
    int64_t in_flight = 0;
    CHECK(is_const_int(s->operands[0], &in_flight)) << to_text(s);
    return text_.line(str("asm volatile(\"cp.async.wait_group ", in_flight, ";\" ::: \"memory\");  // ",
                          in_flight == 0 ? std::string("all copies of this thread are there")
                                         : str("all but the latest ", in_flight, " groups are there")));
  }
  text_.comment("asynchronously, what the block reads in a later step:");
  copies_ = true;
  stmt(s->body, ranges, false);
  copies_ = false;
}

void KernelPrinter::async_loop(const Stmt& s, const RangeMap& ranges) {
  RangeMap inside = ranges;
  inside.bind(s->var, s->extent);
  async_lanes(s->body, s->var, s->extent, inside);
}

void KernelPrinter::async_lanes(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  if (s->kind == StmtKind::kSeq) {
    for (const Stmt& child : s->stmts) async_lanes(child, lane, lanes, ranges);
    return;
  }
  if (s->kind == StmtKind::kStore) return async_store(*s, lane, lanes, ranges);
  CHECK(s->kind == StmtKind::kIf && s->else_body == nullptr) << to_text(s);
  const Expr condition = simplify(substitute(s->condition, {{lane, Expr(0)}}), ranges);
  open_guard(places_.value(condition, ranges), describe_guard(*s, kernel_, ranges));
  RangeMap inside = places_.assuming(ranges, condition);
  inside.assume(s->condition);
  async_lanes(s->body, lane, lanes, inside);
  text_.close();
}

void KernelPrinter::async_store(const StmtNode& s, const Var& lane, int64_t lanes, const RangeMap& ranges) {
  const Result<AsyncVector> vector = async_vector(s, lane, lanes, ranges);
  CHECK(vector.is_ok()) << vector.message();
  async_bytes_.insert(vector->bytes);
  std::vector<Expr> to;
  for (const Expr& index : s.indices)
    to.push_back(lane == nullptr ? index : simplify(substitute(index, {{lane, Expr(0)}}), ranges));
  const RangeMap inside = vector->condition.defined() ? places_.assuming(ranges, vector->condition) : ranges;
  const std::string bytes = std::to_string(vector->bytes);
  const std::string read = vector->condition.defined()
                               ? str("(", places_.value(vector->condition, ranges), ") ? ", bytes, " : 0")
                               : bytes;
  text_.line(str("copy_async_", bytes, "(&", places_.element(s.buffer, to, ranges), ", &",
                 places_.element(vector->load->buffer, vector->load->operands, inside), ", ", read, ");"));
}

std::string async_helper(int64_t bytes) {
  const char* const cached = bytes == 16 ? "cg" : "ca";  // of 16 bytes in L2 alone
  return str(
      "// Copies ", bytes,
      " bytes from global to shared memory without waiting; `read` = 0 writes zeros and reads nothing.\n",
      "static __device__ __forceinline__ void copy_async_", bytes,
      "(void* to, const void* from, int read) {\n"
      "  asm volatile(\"cp.async.",
      cached, ".shared.global [%0], [%1], ", bytes,
      ", %2;\" ::\"r\"((unsigned)__cvta_generic_to_shared(to)),\n"
      "               \"l\"(from), \"r\"(read));\n}\n");
}

}  // namespace tuner::cuda
