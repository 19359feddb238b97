#include "compiler_core/arith/meaning.h"

#include <algorithm>
#include <set>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

const Intrinsic* tile_intrinsic(const StmtNode& s) {
  const Intrinsic* found = s.kind == StmtKind::kIntrinsic ? find_intrinsic(s.name) : nullptr;
  return found != nullptr && takes_tiles(*found) ? found : nullptr;
}

// For each argument of the meaning, by name: the element that the statement names.
using Origins = std::map<std::string, Expr, std::less<>>;

Expr at_origins(const Expr& e, const Origins& origins) {
  const Expr mapped = map_children(e, [&](const Expr& child) { return at_origins(child, origins); });
  if (mapped->kind != ExprKind::kLoad) return mapped;
  const Expr& origin = origins.at(mapped->buffer->name);
  return load(origin->buffer, in_buffer(origin->operands, mapped->operands));
}

Stmt at_origins(const Stmt& s, const Origins& origins) {
  if (s->kind == StmtKind::kFor) {
    const Var fresh = make_var(s->var->name);
    Stmt body = substitute(at_origins(s->body, origins), {{s->var, Expr(fresh)}});
    return make_for(fresh, s->extent, std::move(body), s->axis, s->loop);
  }
  auto store = std::make_shared<StmtNode>(*s);  // by what a meaning is: one nest around one store
  const Expr& origin = origins.at(s->buffer->name);
  store->buffer = origin->buffer;
  store->indices = in_buffer(origin->operands, s->indices);
  store->value = at_origins(s->value, origins);
  return store;
}

bool contains_tile_intrinsic(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& child) { found = found || is_tile_intrinsic(*child); });
  return found;
}

using Keeps = std::function<bool(const StmtNode&)>;

Stmt expanded(const Stmt& s, const Keeps& keep) {
  if (is_tile_intrinsic(*s)) return keep(*s) ? s : meaning_of(*s);
  return map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return expanded(child, keep); });
}

// Fragments that some statement uses whose intrinsic is declined, or that meet such a fragment in a
// statement: a fragment is tile registers for everybody, or for nobody.
std::set<Buffer> declined_fragments(const Stmt& body, const std::function<bool(const Intrinsic&)>& keep) {
  std::set<Buffer> declined;
  size_t before = 0;
  do {
    before = declined.size();
    visit(body, [&](const Stmt& s) {
      const Intrinsic* i = tile_intrinsic(*s);
      if (i == nullptr) return;
      std::vector<Buffer> fragments;
      for (const Expr& operand : s->operands)
        if (operand->buffer->scope == MemoryScope::kFragment) fragments.push_back(operand->buffer);
      const bool meets =
          std::ranges::any_of(fragments, [&](const Buffer& b) { return declined.contains(b); });
      if (meets || !keep(*i)) declined.insert(fragments.begin(), fragments.end());
    });
  } while (declined.size() != before);
  return declined;
}

}  // namespace

bool takes_tiles(const Intrinsic& intrinsic) {
  return std::ranges::none_of(intrinsic.operands, [](const IntrinsicOperand& o) {
    return o.place == IntrinsicOperand::Place::kLanes;
  });
}

std::vector<Expr> in_buffer(std::vector<Expr> origin, const std::vector<Expr>& in_tile) {
  for (size_t d = 0; d < in_tile.size(); ++d) {
    Expr& index = origin[origin.size() - in_tile.size() + d];
    index = index + in_tile[d];
  }
  return origin;
}

bool is_tile_intrinsic(const StmtNode& s) { return tile_intrinsic(s) != nullptr; }

Buffer written_buffer(const StmtNode& s) {
  if (s.kind == StmtKind::kStore) return s.buffer;
  const Intrinsic* i = tile_intrinsic(s);
  for (size_t o = 0; i != nullptr && o < i->operands.size(); ++o)
    if (i->operands[o].access != IntrinsicOperand::Access::kRead) return s.operands[o]->buffer;
  return nullptr;
}

Stmt meaning_of(const StmtNode& s) {
  const Intrinsic& i = *tile_intrinsic(s);
  Origins origins;
  for (size_t o = 0; o < i.operands.size(); ++o) origins.emplace(i.operands[o].name, s.operands[o]);
  return at_origins(i.meaning.body, origins);
}

Stmt with_meanings(const Stmt& s) {
  if (s == nullptr || !contains_tile_intrinsic(s)) return s;
  return expanded(s, [](const StmtNode&) { return false; });
}

Program with_meanings(const Program& program, const std::function<bool(const Intrinsic&)>& keep) {
  if (program.body == nullptr || !contains_tile_intrinsic(program.body)) return program;
  Program result = program;
  const std::set<Buffer> declined = declined_fragments(program.body, keep);
  result.body = expanded(program.body, [&](const StmtNode& s) {
    return keep(*tile_intrinsic(s)) && std::ranges::none_of(s.operands, [&](const Expr& operand) {
             return declined.contains(operand->buffer);
           });
  });
  std::set<Buffer> used;
  visit(result.body, [&](const Stmt& s) {
    if (is_tile_intrinsic(*s))
      for (const Expr& operand : s->operands) used.insert(operand->buffer);
  });
  BufferMap plain;
  visit(result.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate || s->buffer->scope != MemoryScope::kFragment ||
        used.contains(s->buffer))
      return;
    auto node = std::make_shared<BufferNode>(*s->buffer);
    node->scope = MemoryScope::kGlobal;
    plain[s->buffer] = std::move(node);
  });
  if (!plain.empty()) result.body = replace_buffers(result.body, plain);
  return result;
}

}  // namespace tuner
