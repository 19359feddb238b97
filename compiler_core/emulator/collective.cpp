// Intrinsics: run once for each group of threads that executes them together, from their own meaning and
// layouts.
//
//   gather   every thread stores its registers into the logical tiles of its group
//   meaning  the intrinsic's Program, once a group
//   scatter  every thread loads its registers from what the meaning wrote
#include <limits>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/emulator/fission.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/lower.h"

namespace tuner::emulation {
namespace {

// The meaning on tiles with a leading dimension, one tile a group, with loops of its own.
class Inliner {
 public:
  Inliner(BufferMap tiles, Expr group) : tiles_(std::move(tiles)), group_(std::move(group)) {}

  Stmt run(const Stmt& s) {
    if (s->kind == StmtKind::kFor) {
      const Var own = make_var(s->var->name);
      return make_for(own, s->extent, substitute(run(s->body), {{s->var, Expr(own)}}), s->axis);
    }
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return run(e); }, [&](const Stmt& c) { return run(c); });
    const auto tile = s->kind == StmtKind::kStore ? tiles_.find(s->buffer) : tiles_.end();
    if (tile == tiles_.end()) return mapped;
    return make_store(tile->second, leading(mapped->indices), mapped->value);
  }

 private:
  Expr run(const Expr& e) {
    Expr mapped = map_children(e, [&](const Expr& operand) { return run(operand); });
    const auto tile = e->kind == ExprKind::kLoad ? tiles_.find(e->buffer) : tiles_.end();
    return tile == tiles_.end() ? mapped : load(tile->second, leading(mapped->operands));
  }
  std::vector<Expr> leading(const std::vector<Expr>& indices) const {
    std::vector<Expr> result = {group_};
    result.insert(result.end(), indices.begin(), indices.end());
    return result;
  }

  BufferMap tiles_;
  Expr group_;
};

using Access = IntrinsicOperand::Access;

// Its tile is there before the meaning runs.
bool is_read(const IntrinsicOperand& o) { return o.access != Access::kWrite; }
bool is_written(const IntrinsicOperand& o) { return o.access != Access::kRead; }

Stmt poison(const Buffer& tile) {
  std::vector<Var> vars;
  std::vector<Expr> indices;
  for (size_t d = 0; d < tile->shape.size(); ++d) {
    vars.push_back(make_var("e"));
    indices.emplace_back(vars.back());
  }
  Stmt body =
      make_store(tile, indices,
                 is_float(tile->dtype) ? float_imm(std::numeric_limits<double>::quiet_NaN(), tile->dtype)
                                       : int_imm(0, tile->dtype));
  for (size_t d = vars.size(); d-- > 0;) body = make_for(vars[d], tile->shape[d], body);
  return body;
}

}  // namespace

Stmt Fission::collective(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  if (const Status valid = check_collective(s); !valid) return refuse(valid.message());
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  if (intrinsic.lands()) return land(s, ranges, crew);
  const int64_t groups = context_.block_threads / intrinsic.threads;
  std::vector<Buffer> tiles;  // in the order of the meaning's arguments: what is read, then what is written
  std::vector<Stmt> gathers, scatters, poisons;
  const auto tile_of = [&](size_t operand, const char* suffix) {
    std::vector<int64_t> shape = intrinsic.operands[operand].shape;
    shape.insert(shape.begin(), groups);
    tiles.push_back(make_scratch(intrinsic.operands[operand].name + suffix, intrinsic.operands[operand].dtype,
                                 std::move(shape)));
    context_.places[tiles.back().get()] = {.storage = tiles.back()};
    return tiles.back();
  };
  const auto gather = [&](size_t i) {
    const Buffer tile = tile_of(i, ".tile");
    // Threads that stay away leave their part of the tile as it was.
    if (crew.chosen != nullptr) poisons.push_back(poison(tile));
    gathers.push_back(move_fragment(s, i, tile, true, ranges, crew));
    return tile;
  };
  for (size_t i = 0; i < intrinsic.operands.size(); ++i)
    if (is_read(intrinsic.operands[i]) && intrinsic.operands[i].access != Access::kAccumulate) gather(i);
  for (size_t i = 0; i < intrinsic.operands.size(); ++i) {
    if (!is_written(intrinsic.operands[i])) continue;
    // What is accumulated is one argument of the meaning.
    const bool in_place = intrinsic.operands[i].access == Access::kAccumulate;
    scatters.push_back(
        move_fragment(s, i, in_place ? gather(i) : tile_of(i, ".result"), false, ranges, crew));
  }
  std::vector<Stmt> all = std::move(poisons);
  all.insert(all.end(), gathers.begin(), gathers.end());
  all.push_back(run_meaning(s, tiles, crew));
  all.insert(all.end(), scatters.begin(), scatters.end());
  if (intrinsic.way == Intrinsic::Way::kStarts) all.push_back(hold(s, crew));
  return make_seq(std::move(all));
}

Status Fission::check_collective(const StmtNode& s) const {
  const Intrinsic* intrinsic = find_intrinsic(s.name);
  if (intrinsic == nullptr) return invalid_config("intrinsic ", s.name, " is not known (ir/intrinsic.h)");
  if (s.operands.size() != intrinsic->operands.size())
    return invalid_config("intrinsic ", s.name, " takes ", intrinsic->operands.size(), " operands, found ",
                          s.operands.size());
  if (context_.block_threads % intrinsic->threads != 0)
    return invalid_config("intrinsic ", s.name, " is executed by ", intrinsic->threads,
                          " threads together; the block has ", context_.block_threads,
                          ", which leaves some of them alone");
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const Expr& operand = s.operands[i];
    const bool in_shared = intrinsic->operands[i].place == IntrinsicOperand::Place::kShared;
    if (operand->kind != ExprKind::kLoad ||
        operand->buffer->scope != (in_shared ? MemoryScope::kShared : MemoryScope::kRegister) ||
        !context_.places.contains(operand->buffer.get()))
      return invalid_config("intrinsic ", s.name, ": operand ", to_text(operand), " is not an element of ",
                            in_shared ? "a shared buffer" : "an allocated register buffer");
  }
  return Status::ok();
}

Stmt Fission::move_fragment(const StmtNode& s, size_t operand, const Buffer& tile, bool gather,
                            const RangeMap& ranges, const Crew& crew) {
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  const IntrinsicOperand& o = intrinsic.operands[operand];
  const Expr& first = s.operands[operand];
  const Var reg = make_var("reg");
  std::vector<Expr> own = first->operands;
  std::vector<Expr> in_tile = o.layout(floor_mod(context_.thread, intrinsic.threads), Expr(reg));
  if (o.place == IntrinsicOperand::Place::kShared) {
    own = in_buffer(std::move(own), in_tile);
  } else if (!own.empty()) {
    own.back() = own.back() + Expr(reg);
  }
  in_tile.insert(in_tile.begin(), floor_div(context_.thread, intrinsic.threads));
  Stmt move = gather ? make_store(tile, in_tile, load(first->buffer, own))
                     : make_store(first->buffer, own, load(tile, in_tile));
  return interval(make_for(reg, o.registers, std::move(move)), shared_, ranges, crew);
}

//   for group:
//     here = how many of its threads take part
//     if (here != 0 && here != threads) divergent
//     if (here != 0) meaning
Stmt Fission::run_meaning(const StmtNode& s, const std::vector<Buffer>& tiles, const Crew& crew) {
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  const Program meaning = lower_reductions(intrinsic.meaning);
  CHECK(meaning.args.size() == tiles.size()) << s.name << " does not have the arguments its operands ask for";
  const Var group = make_var("group");
  BufferMap buffers;
  for (size_t i = 0; i < tiles.size(); ++i) buffers[meaning.args[i]] = tiles[i];
  Stmt body = Inliner(buffers, Expr(group)).run(meaning.body);
  const int64_t groups = context_.block_threads / intrinsic.threads;
  if (crew.chosen == nullptr) return make_for(group, groups, body);

  const Buffer here = make_scratch("here", DType::kInt32, {});
  const Var lane = make_var("lane");
  const Expr zero = int_imm(0, DType::kInt32), count = load(here, {});
  const Expr thread = Expr(group) * Expr(intrinsic.threads) + Expr(lane);
  Stmt counting = make_seq(
      {make_store(here, {}, zero),
       make_for(lane, intrinsic.threads, make_store(here, {}, count + load(crew.chosen, {thread})))});
  body = make_if(binary(BinaryOp::kNe, count, zero), body);
  if (context_.faults != nullptr) {
    const int64_t site =
        context_.faults->add({.kind = FaultKind::kDivergent,
                              .kernel = context_.kernel->name,
                              .access = str(s.name, " under `if (", to_text(crew.condition), ")`"),
                              .shape = {},
                              .block_threads = context_.block_threads});
    const Expr number = block_ * Expr(context_.block_threads) + Expr(group) * Expr(intrinsic.threads);
    const Expr all = int_imm(intrinsic.threads, DType::kInt32);
    Stmt divergent = make_if(binary(BinaryOp::kNe, count, zero) && binary(BinaryOp::kNe, count, all),
                             context_.faults->record(site, count, number, Expr(0)));
    body = make_seq({divergent, body});
  }
  return make_for(group, groups, make_seq({counting, body}));
}

}  // namespace tuner::emulation
