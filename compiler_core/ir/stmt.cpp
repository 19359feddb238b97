#include "compiler_core/ir/stmt.h"

#include "compiler_core/base/status.h"

namespace tuner {

std::string_view loop_kind_name(LoopKind kind) {
  constexpr std::string_view kNames[] = {"serial",     "parallel",    "vectorized",  "vector_rows",
                                         "dot",        "unrolled",    "blockIdx.x",  "blockIdx.y",
                                         "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
                                         "vthread",    "cluster.x",   "cluster.y"};
  return kNames[static_cast<int>(kind)];
}

Stmt make_for(Var var, int64_t extent, Stmt body, AxisKind axis, LoopKind loop) {
  CHECK(extent >= 1) << "loop " << var->name << " of " << extent << " iterations";
  CHECK(body != nullptr) << "loop " << var->name << " has no body";
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kFor,
                                                   .var = std::move(var),
                                                   .extent = extent,
                                                   .loop = loop,
                                                   .axis = axis,
                                                   .body = std::move(body)});
}

Stmt make_seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt& s : stmts) {
    if (s == nullptr) continue;
    if (s->kind == StmtKind::kSeq)
      flat.insert(flat.end(), s->stmts.begin(), s->stmts.end());
    else
      flat.push_back(std::move(s));
  }
  if (flat.empty()) return nullptr;
  if (flat.size() == 1) return flat[0];
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kSeq, .stmts = std::move(flat)});
}

Stmt make_if(Expr condition, Stmt body, Stmt else_body) {
  CHECK(body != nullptr) << "a guard of nothing";
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kIf,
                                                   .condition = std::move(condition),
                                                   .body = std::move(body),
                                                   .else_body = std::move(else_body)});
}

Stmt make_store(const Buffer& buffer, std::vector<Expr> indices, Expr value) {
  return make_reduce(buffer, std::move(indices), ReduceOp::kNone, {}, std::move(value), {});
}

Stmt make_reduce(const Buffer& buffer, std::vector<Expr> indices, ReduceOp op, Expr init, Expr value,
                 Expr first) {
  CHECK(indices.size() == buffer->shape.size())
      << buffer->name << " has " << buffer->shape.size() << " dimensions, stored with " << indices.size();
  CHECK(value.defined() && value->dtype == buffer->dtype)
      << buffer->name << " is " << buffer->dtype << "; the value stored is "
      << (value.defined() ? value->dtype : DType::kBool);
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kStore,
                                                   .buffer = buffer,
                                                   .indices = std::move(indices),
                                                   .value = std::move(value),
                                                   .reduce = op,
                                                   .init = std::move(init),
                                                   .first = std::move(first)});
}

Stmt make_allocate(const Buffer& buffer, Stmt body) {
  CHECK(body != nullptr) << "allocation of " << buffer->name << " has no body";
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAllocate, .buffer = buffer, .body = std::move(body)});
}

Stmt make_barrier(MemoryScope scope) {
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kBarrier, .scope = scope});
}

Stmt make_async_copy(Stmt body) {
  if (body == nullptr) return nullptr;
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .body = std::move(body), .name = "copy"});
}
Stmt make_async_commit() {
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kAsync, .name = "commit"});
}
Stmt make_async_wait(int64_t in_flight) {
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .name = "wait", .operands = {Expr(in_flight)}});
}
Stmt make_async_init(const Expr& barriers, int64_t arrivals) {
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .name = "init", .operands = {barriers, Expr(arrivals)}});
}
Stmt make_async_expect(const Expr& barrier, int64_t bytes) {
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .name = "expect", .operands = {barrier, Expr(bytes)}});
}
Stmt make_async_fetch(const Expr& barrier, Stmt body) {
  if (body == nullptr) return nullptr;
  StmtNode node{.kind = StmtKind::kAsync, .body = std::move(body), .name = "fetch"};
  if (barrier.defined()) node.operands = {barrier};
  return std::make_shared<const StmtNode>(std::move(node));
}
Stmt make_async_fetch(const Expr& barrier, const Expr& to, int64_t map, const Buffer& from,
                      std::vector<Expr> coordinates) {
  return std::make_shared<const StmtNode>(StmtNode{.kind = StmtKind::kAsync,
                                                   .buffer = from,
                                                   .indices = std::move(coordinates),
                                                   .value = Expr(map),
                                                   .name = "fetch",
                                                   .operands = {barrier, to}});
}
Stmt make_async_fetch(const Expr& barrier, const Expr& to, const Expr& from, int64_t bytes) {
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .name = "fetch", .operands = {barrier, to, from, Expr(bytes)}});
}
Stmt make_async_await(const Expr& barrier, const Expr& parity) {
  return std::make_shared<const StmtNode>(
      StmtNode{.kind = StmtKind::kAsync, .name = "await", .operands = {barrier, parity}});
}
bool is_async(const StmtNode& s, std::string_view what) {
  return s.kind == StmtKind::kAsync && s.name == what;
}

Stmt with_body(const Stmt& stmt, Stmt body) {
  if (stmt->body == body) return stmt;
  auto node = std::make_shared<StmtNode>(*stmt);
  node->body = std::move(body);
  return node;
}

}  // namespace tuner
