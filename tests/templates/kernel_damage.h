// Damage to lowered kernels, kind by kind: one statement becomes another that is wrong, at one place after
// the other. Whatever place it is, a test or check that is worth its name sees it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::testing {

// Replaces the `which`-th statement for which `damage` returns another one; false when there is none.
using Damage = std::function<Stmt(const Stmt&)>;
inline bool damage_one(Stmt& body, int& which, const Damage& damage) {
  bool done = false;
  const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    if (s == nullptr || done) return s;
    if (Stmt damaged = damage(s); damaged != s && which-- == 0) {
      done = true;
      return damaged;
    }
    return map_children(
        s, [](const Expr& e) { return e; }, walk);
  };
  body = walk(body);
  return done;
}

// Every program with one place damaged.
inline std::vector<GpuProgram> damaged(const GpuProgram& program, const Damage& damage) {
  std::vector<GpuProgram> result;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    for (int place = 0;; ++place) {
      GpuProgram copy = program;
      int which = place;
      if (!damage_one(copy.kernels[k].body, which, damage) || copy.kernels[k].body == nullptr) break;
      result.push_back(std::move(copy));
    }
  if (program.packing != nullptr)
    for (GpuProgram& packing : damaged(*program.packing, damage)) {
      result.push_back(program);
      result.back().packing = std::make_shared<const GpuProgram>(std::move(packing));
    }
  return result;
}

// Every program with one statement for which `moves` holds behind the one that follows it.
inline std::vector<GpuProgram> moved_late(const GpuProgram& program,
                                          const std::function<bool(const Stmt&)>& moves) {
  std::vector<GpuProgram> result;
  for (int place = 0;; ++place) {
    int which = place;
    bool done = false;
    const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
      if (s == nullptr || done) return s;
      if (s->kind == StmtKind::kSeq)
        for (size_t i = 0; i + 1 < s->stmts.size(); ++i)
          if (moves(s->stmts[i]) && which-- == 0) {
            std::vector<Stmt> all = s->stmts;
            std::swap(all[i], all[i + 1]);
            done = true;
            return make_seq(std::move(all));
          }
      return map_children(
          s, [](const Expr& e) { return e; }, walk);
    };
    GpuProgram copy = program;
    for (GpuKernel& kernel : copy.kernels) kernel.body = walk(kernel.body);
    if (!done) return result;
    result.push_back(std::move(copy));
  }
}

inline bool stores(const Stmt& s, MemoryScope scope) {
  return s->kind == StmtKind::kStore && s->buffer->scope == scope;
}

inline Stmt drop_barrier(const Stmt& s) { return s->kind == StmtKind::kBarrier ? nullptr : s; }
inline Stmt drop_intrinsic(const Stmt& s) { return s->kind == StmtKind::kIntrinsic ? nullptr : s; }
inline Stmt drop_output_store(const Stmt& s) { return stores(s, MemoryScope::kGlobal) ? nullptr : s; }
inline Stmt drop_shared_store(const Stmt& s) { return stores(s, MemoryScope::kShared) ? nullptr : s; }
inline Stmt drop_register_store(const Stmt& s) { return stores(s, MemoryScope::kRegister) ? nullptr : s; }

// The loads ahead of a double buffer, the copies ahead of a pipeline: without their guard one tile too many
// is read, as zeros, and thrown away. That is no damage.
// A fetch by TMA is damage: nobody waits for it, and it may come when the memory is somebody else's.
inline bool loads_ahead(const Stmt& guard) {
  bool all = true, is_copy = false, is_fetch = false;
  visit(guard, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) all = all && s->buffer->name.ends_with(".staged");
    is_copy |= is_async(*s, "copy");
    is_fetch |= is_async(*s, "expect") || is_async(*s, "fetch") || is_async(*s, "init");
  });
  return (all && !is_fetch) || is_copy;
}

// < becomes <=: one iteration or element too many.
inline Stmt loosen_guard(const Stmt& s) {
  if (s->kind != StmtKind::kIf || loads_ahead(s)) return s;
  std::vector<Expr> conditions = conjuncts(s->condition);
  for (Expr& c : conditions) {
    if (c->kind != ExprKind::kBinary || c->binary_op != BinaryOp::kLt) continue;
    c = c->operands[0] <= c->operands[1];
    return make_if(conjunction(conditions), s->body, s->else_body);
  }
  return s;
}
inline Stmt drop_guard(const Stmt& s) {
  return s->kind == StmtKind::kIf && s->else_body == nullptr && !loads_ahead(s) ? s->body : s;
}

// The next stage of a double buffer or pipeline, in what is read or in what is stored. It is the first index.
inline std::vector<Expr> other_stage(std::vector<Expr> indices) {
  int64_t stages = 0;
  if (!indices.empty() && indices[0]->kind == ExprKind::kBinary &&
      indices[0]->binary_op == BinaryOp::kFloorMod && is_const_int(indices[0]->operands[1], &stages))
    indices[0] = floor_mod(indices[0]->operands[0] + Expr(1), stages);
  return indices;
}
inline Stmt store_other_stage(const Stmt& s) {
  if (!stores(s, MemoryScope::kShared)) return s;
  std::vector<Expr> indices = other_stage(s->indices);
  return indices[0].same_as(s->indices[0]) ? s : make_store(s->buffer, std::move(indices), s->value);
}
inline Stmt load_other_stage(const Stmt& s) {
  if (s->kind != StmtKind::kStore && s->kind != StmtKind::kIntrinsic) return s;
  const std::function<Expr(const Expr&)> walk = [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::kLoad || e->buffer->scope != MemoryScope::kShared) return map_children(e, walk);
    std::vector<Expr> indices = other_stage(e->operands);
    return indices.empty() || indices[0].same_as(e->operands[0]) ? e : load(e->buffer, std::move(indices));
  };
  return map_children(s, walk, [](const Stmt& child) { return child; });
}

// --- asynchronous copies and tiles of a warp ---

inline Stmt drop_wait(const Stmt& s) { return is_async(*s, "wait") ? nullptr : s; }
inline Stmt drop_commit(const Stmt& s) { return is_async(*s, "commit") ? nullptr : s; }
inline Stmt drop_copy(const Stmt& s) { return is_async(*s, "copy") ? nullptr : s; }
inline Stmt wait_less(const Stmt& s) {
  int64_t in_flight = 0;
  return is_async(*s, "wait") && is_const_int(s->operands[0], &in_flight) ? make_async_wait(in_flight + 1)
                                                                          : s;
}
// --- copies by TMA and the barriers that they arrive at ---

inline Stmt without(const Stmt& s, std::string_view what) { return is_async(*s, what) ? nullptr : s; }
inline Stmt twice(const Stmt& s, std::string_view what) {
  // Of two nodes, so that each is a place of its own.
  return is_async(*s, what) ? make_seq({s, std::make_shared<const StmtNode>(*s)}) : s;
}
inline Stmt drop_expect(const Stmt& s) { return without(s, "expect"); }
inline Stmt drop_fetch(const Stmt& s) { return without(s, "fetch"); }
inline Stmt drop_await(const Stmt& s) { return without(s, "await"); }
inline Stmt drop_init(const Stmt& s) { return without(s, "init"); }
inline Stmt expect_twice(const Stmt& s) { return twice(s, "expect"); }
inline Stmt fetch_twice(const Stmt& s) { return twice(s, "fetch"); }
// Another number of bytes, of arrivals.
inline Stmt count_other(const Stmt& s, std::string_view what, int64_t more) {
  if (!is_async(*s, what)) return s;
  auto node = std::make_shared<StmtNode>(*s);
  node->operands[1] = simplify(node->operands[1] + Expr(more));
  return node;
}
inline Stmt expect_a_row_more(const Stmt& s) { return count_other(s, "expect", 128); }
inline Stmt expect_a_row_less(const Stmt& s) { return count_other(s, "expect", -128); }
inline Stmt one_arrival_more(const Stmt& s) { return count_other(s, "init", 1); }
inline Stmt one_arrival_less(const Stmt& s) { return count_other(s, "init", -1); }
inline Stmt other_parity(const Stmt& s) {
  if (!is_async(*s, "await")) return s;
  auto node = std::make_shared<StmtNode>(*s);
  node->operands[1] = simplify(Expr(1) - node->operands[1]);
  return node;
}
// The parity does not flip where stages begin again.
inline Stmt parity_stays(const Stmt& s) {
  if (!is_async(*s, "await") || is_const_int(s->operands[1])) return s;
  auto node = std::make_shared<StmtNode>(*s);
  node->operands[1] = Expr(0);
  return node;
}
// The next stage: the first index, of a barrier or a tile.
inline Stmt at_other_stage(const Stmt& s, std::string_view what, size_t operand) {
  if (!is_async(*s, what) || s->operands.size() <= operand || s->operands[operand]->buffer->shape[0] < 2)
    return s;
  auto node = std::make_shared<StmtNode>(*s);
  const Expr& e = s->operands[operand];
  std::vector<Expr> at = e->operands;
  at[0] = simplify(floor_mod(at[0] + Expr(1), e->buffer->shape[0]));
  node->operands[operand] = load(e->buffer, std::move(at));
  return node;
}
inline Stmt await_other_stage(const Stmt& s) { return at_other_stage(s, "await", 0); }
inline Stmt expect_other_stage(const Stmt& s) { return at_other_stage(s, "expect", 0); }
inline Stmt arrive_at_other_stage(const Stmt& s) { return at_other_stage(s, "fetch", 0); }
inline Stmt fetch_to_other_stage(const Stmt& s) { return at_other_stage(s, "fetch", 1); }
inline Stmt swap_coordinates(const Stmt& s) {
  if (!is_async(*s, "fetch") || s->indices.size() < 2 || equal(s->indices[0], s->indices[1])) return s;
  auto node = std::make_shared<StmtNode>(*s);
  std::swap(node->indices[0], node->indices[1]);
  return node;
}
inline Stmt next_box(const Stmt& s) {
  if (!is_async(*s, "fetch") || s->indices.size() < 2) return s;
  auto node = std::make_shared<StmtNode>(*s);
  node->indices[1] = simplify(node->indices[1] + Expr(1));
  return node;
}

// What lies in a row: a row of 128 bytes beside, or some other number of them.
inline Stmt row_beside(const Stmt& s) {
  if (!is_async(*s, "fetch") || s->value.defined()) return s;
  auto node = std::make_shared<StmtNode>(*s);
  std::vector<Expr> at = s->operands[2]->operands;
  at[at.size() - 2] = simplify(at[at.size() - 2] + Expr(1));
  node->operands[2] = load(s->operands[2]->buffer, std::move(at));
  return node;
}
inline Stmt fewer_bytes(const Stmt& s) {
  int64_t bytes = 0;
  if (!is_async(*s, "fetch") || s->value.defined() || !is_const_int(s->operands[3], &bytes)) return s;
  auto node = std::make_shared<StmtNode>(*s);
  node->operands[3] = Expr(bytes - 128);
  return node;
}

// Whether copies by TMA come to this buffer.
inline bool is_fetched(const GpuKernel& kernel, const Buffer& buffer) {
  bool found = false;
  visit(kernel.body,
        [&](const Stmt& s) { found |= is_async(*s, "fetch") && s->operands[1]->buffer == buffer; });
  return found;
}
// The kernel that looks for the elements of a tile by another layout than the engine left them by.
inline void read_by_layout(GpuKernel& kernel, const Buffer& tile, const std::string& layout) {
  auto node = std::make_shared<BufferNode>(*tile);
  node->layout = layout;
  const Buffer other = node;
  kernel.body = replace_buffers(kernel.body, {{tile, other}});
  std::ranges::replace(kernel.shared, tile, other);
}

// Every program with one number of one tensor map changed, one map that of another array, or one tile that is
// read as if it were swizzled otherwise; and what was changed.
struct DamagedMap {
  std::string what;
  GpuProgram program;
};
inline std::vector<DamagedMap> damaged_maps(const GpuProgram& program) {
  std::vector<DamagedMap> result;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    for (size_t m = 0; m < program.kernels[k].tensor_maps.size(); ++m) {
      const auto damage = [&](const std::string& what, const std::function<void(TensorMap&)>& change) {
        result.push_back(
            {str("map ", m, " of ", program.kernels[k].tensor_maps[m].buffer->name, ": ", what), program});
        change(result.back().program.kernels[k].tensor_maps[m].map);
      };
      const TensorMap& map = program.kernels[k].tensor_maps[m].map;
      for (size_t d = 0; d < map.rank(); ++d) {
        if (map.extents[d] > 1)
          damage(str("an element less in dimension ", d), [d](TensorMap& t) { --t.extents[d]; });
        damage(str("an element more in dimension ", d), [d](TensorMap& t) { ++t.extents[d]; });
        if (map.box[d] > 1) damage(str("half a box in dimension ", d), [d](TensorMap& t) { t.box[d] /= 2; });
      }
      for (size_t d = 0; d < map.strides.size(); ++d)
        damage(str("16 bytes more between elements of dimension ", d + 1),
               [d](TensorMap& t) { t.strides[d] += 16; });
      for (size_t d = 1; d < map.rank(); ++d)
        damage(str("every other element of dimension ", d), [&map, d](TensorMap& t) {
          t.steps.assign(map.rank(), 1);
          t.steps[d] = 2;
        });
      for (const int64_t bytes : {0, 32, 64})
        damage(str("a swizzle of ", bytes, " bytes"), [bytes](TensorMap& t) { t.swizzle_bytes = bytes; });
      damage("NaN in place of zeros", [](TensorMap& t) { t.fills_nan = true; });
      const std::vector<KernelTensorMap>& all = program.kernels[k].tensor_maps;
      if (const TensorMap& other = all[(m + 1) % all.size()].map; !(other == map))
        damage("that of the other operand", [&other](TensorMap& t) { t = other; });
    }
  for (size_t k = 0; k < program.kernels.size(); ++k)
    for (const Buffer& tile : program.kernels[k].shared)
      if (is_fetched(program.kernels[k], tile))
        for (const char* layout : {"", "xor:8,4", "xor:8,8,2"}) {
          result.push_back({str("tile ", tile->name, " read by layout \"", layout, "\""), program});
          read_by_layout(result.back().program.kernels[k], tile, layout);
        }
  return result;
}

// An operand in registers is that of the next tile. (Sums that begin at 0 in another order are no damage.)
inline Stmt other_registers(const Stmt& s) {
  if (s->name == "mma.zero") return s;
  const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
  for (size_t o = 0; i != nullptr && o < s->operands.size(); ++o) {
    const Expr& operand = s->operands[o];
    if (operand->buffer->scope != MemoryScope::kRegister ||
        operand->buffer->shape.back() <= i->operands[o].registers)
      continue;
    auto node = std::make_shared<StmtNode>(*s);
    std::vector<Expr> at = operand->operands;
    at.back() = floor_mod(at.back() + i->operands[o].registers, operand->buffer->shape.back());
    node->operands[o] = load(operand->buffer, std::move(at));
    return node;
  }
  return s;
}
// Matrices are transposed on their way that are not to be, and the other way round.
inline Stmt transpose_matrices(const Stmt& s) {
  if (s->kind != StmtKind::kIntrinsic || !s->name.starts_with("ldmatrix.")) return s;
  auto node = std::make_shared<StmtNode>(*s);
  std::string& lines = node->name;
  const std::string last = lines.substr(lines.size() - 2);
  lines.replace(lines.size() - 2, 2, last == "mk" ? "km" : last == "km" ? "mk" : last == "kn" ? "nk" : "kn");
  return node;
}

// Stores to plain addresses of a tile, or of what is packed to lie as one, that is read through its xor
// layout.
inline Stmt store_unswizzled(const Stmt& s) {
  int64_t unit = 0, rows = 0, alike = 1;
  const std::string& layout = s->kind == StmtKind::kStore ? s->buffer->layout : std::string();
  const bool groups = layout.starts_with("groups:");
  if (!(stores(s, MemoryScope::kShared) || stores(s, MemoryScope::kGlobal)) ||
      std::sscanf(layout.c_str() + (groups ? 7 : 0), "xor:%ld,%ld,%ld", &unit, &rows, &alike) < 2)
    return s;
  const size_t column = s->indices.size() - (groups ? 2 : 1);
  Expr row = 0;
  for (size_t d = 0; d < column; ++d) row = row * Expr(s->buffer->shape[d]) + s->indices[d];
  std::vector<Expr> indices = s->indices;
  indices[column] =
      bit_xor(floor_div(indices[column], unit), floor_mod(floor_div(row, alike), rows)) * Expr(unit) +
      floor_mod(s->indices[column], unit);
  return make_store(s->buffer, indices, s->value);
}

// Every store to global memory goes to the place of its neighbour's neighbour in the first dimension that has
// one.
inline Stmt store_elsewhere(const Stmt& s) {
  if (!stores(s, MemoryScope::kGlobal)) return s;
  std::vector<Expr> indices = s->indices;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (s->buffer->shape[d] == 1) continue;
    indices[d] = floor_div(indices[d], 2) * Expr(2);
    return make_store(s->buffer, indices, s->value);
  }
  return s;
}

// Zeros of a copy straight into shared memory: what lies beyond the operand is read in their place.
// Of selects in each other the innermost, which is the padding of an image.
inline Expr without_zeros(const Expr& e) {
  if (e->kind != ExprKind::kSelect) return e;
  const Expr& inner = e->operands[1];
  return inner->kind == ExprKind::kSelect ? select(e->operands[0], without_zeros(inner), e->operands[2])
                                          : inner;
}
inline Stmt drop_copied_zeros(const Stmt& s) {
  const bool zeros = stores(s, MemoryScope::kShared) && s->value->kind == ExprKind::kSelect;
  return zeros ? make_store(s->buffer, s->indices, without_zeros(s->value)) : s;
}

inline bool is_ahead(const Buffer& b) { return b->name.ends_with(".ahead"); }

inline bool is_load_of(const Expr& e, MemoryScope scope) {
  return e->kind == ExprKind::kLoad && e->buffer->scope == scope;
}

// A load into registers without its zeros: what lies beside the operand is read in their place. (Those of
// weights, scales and biases meet zeros of the other operand, or sums that nobody stores: they are there to
// be safe, not to be right.)
inline Stmt drop_zero_fill(const Stmt& s) {
  if (!stores(s, MemoryScope::kRegister) || s->value->kind != ExprKind::kSelect) return s;
  const Expr& loaded = s->value->operands[1];
  if (!is_load_of(loaded, MemoryScope::kGlobal)) return s;
  const std::string& name = loaded->buffer->name;
  if (name == "weight" || name == "scale" || name == "bias") return s;
  return make_store(s->buffer, s->indices, loaded);
}

// A sum that also takes what is beyond its terms. (Terms that were loaded as zeros there add nothing.)
inline Stmt drop_mask(const Stmt& s) {
  if (!stores(s, MemoryScope::kRegister) || s->value->kind != ExprKind::kBinary) return s;
  const Expr& term = s->value->operands[1];
  if (term->kind != ExprKind::kSelect || term->operands[1]->kind == ExprKind::kLoad) return s;
  return make_store(s->buffer, s->indices,
                    binary(s->value->binary_op, s->value->operands[0], term->operands[1]));
}

// Reads each other element twice, the ones between never, along the last dimension in which that is another
// element.
inline Expr read_elsewhere(const Expr& e) {
  std::vector<Expr> indices = e->operands;
  for (size_t d = indices.size(); d-- > 0;) {
    int64_t at = 0;
    if (e->buffer->shape[d] == 1 || (is_const_int(indices[d], &at) && at % 2 == 0)) continue;
    indices[d] = floor_div(indices[d], 2) * Expr(2);
    return load(e->buffer, std::move(indices));
  }
  return e;
}
// The first load from `scope` that can.
inline Stmt load_elsewhere(const Stmt& s, MemoryScope scope) {
  if (s->kind != StmtKind::kStore) return s;
  bool done = false;
  const std::function<Expr(const Expr&)> walk = [&](const Expr& e) -> Expr {
    if (done || !is_load_of(e, scope)) return map_children(e, walk);
    Expr other = read_elsewhere(e);
    done = !other.same_as(e);
    return other;
  };
  Expr value = walk(s->value);
  return done ? make_store(s->buffer, s->indices, value) : s;
}
inline Stmt load_global_elsewhere(const Stmt& s) { return load_elsewhere(s, MemoryScope::kGlobal); }
inline Stmt load_shared_elsewhere(const Stmt& s) { return load_elsewhere(s, MemoryScope::kShared); }

// The stores of a copy before its loads.
inline Stmt store_before_load(const Stmt& s) {
  if (s->kind != StmtKind::kAllocate || !is_ahead(s->buffer) || s->body->kind != StmtKind::kSeq) return s;
  std::vector<Stmt> swapped(s->body->stmts.rbegin(), s->body->stmts.rend());
  return make_allocate(s->buffer, make_seq(std::move(swapped)));
}

// One iteration less.
inline Stmt shorten_loop(const Stmt& s) {
  if (s->kind != StmtKind::kFor || s->extent < 2) return s;
  return make_for(s->var, s->extent - 1, s->body, s->axis, s->loop);
}

struct Move {
  const char* name;
  std::function<bool(const Stmt&)> moves;
};
inline const Move kMoves[] = {
    {"barrier late", [](const Stmt& s) { return s->kind == StmtKind::kBarrier; }},
    {"await late", [](const Stmt& s) { return is_async(*s, "await"); }},
    {"begin of barriers late", [](const Stmt& s) { return is_async(*s, "init"); }},
};

struct Kind {
  const char* name;
  Damage damage;
};
inline const Kind kKinds[] = {{"dropped barrier", drop_barrier},
                              {"dropped intrinsic", drop_intrinsic},
                              {"dropped output store", drop_output_store},
                              {"dropped shared store", drop_shared_store},
                              {"dropped register store", drop_register_store},
                              {"guard off by one", loosen_guard},
                              {"missing predicate", drop_guard},
                              {"wrong stage stored", store_other_stage},
                              {"wrong stage read", load_other_stage},
                              {"one-sided swizzle", store_unswizzled},
                              {"output stored twice", store_elsewhere},
                              {"zero fill dropped", drop_zero_fill},
                              {"mask dropped", drop_mask},
                              {"loaded elsewhere", load_global_elsewhere},
                              {"shared read elsewhere", load_shared_elsewhere},
                              {"stored before loaded", store_before_load},
                              {"copied zeros dropped", drop_copied_zeros},
                              {"dropped wait", drop_wait},
                              {"dropped commit", drop_commit},
                              {"dropped copy", drop_copy},
                              {"waits for one group less", wait_less},
                              {"registers of another tile", other_registers},
                              {"transposed matrices", transpose_matrices},
                              {"dropped expect", drop_expect},
                              {"dropped fetch", drop_fetch},
                              {"dropped await", drop_await},
                              {"dropped begin of barriers", drop_init},
                              {"expected twice", expect_twice},
                              {"fetched twice", fetch_twice},
                              {"a row more expected", expect_a_row_more},
                              {"a row less expected", expect_a_row_less},
                              {"an arrival more", one_arrival_more},
                              {"an arrival less", one_arrival_less},
                              {"other parity", other_parity},
                              {"parity stays", parity_stays},
                              {"other stage awaited", await_other_stage},
                              {"other stage expected", expect_other_stage},
                              {"arrives at another stage", arrive_at_other_stage},
                              {"fetched to another stage", fetch_to_other_stage},
                              {"coordinates swapped", swap_coordinates},
                              {"box beside", next_box},
                              {"row beside", row_beside},
                              {"a row less fetched", fewer_bytes},
                              {"loop too short", shorten_loop}};

}  // namespace tuner::testing
