// Copies by TMA, at the worst possible moment, and the barriers that they arrive at.
//
// A barrier counts arrivals and bytes. Its phase is over when both have come; a wait names the phase by its
// parity. What a fetch brings is there with the wait that its phase ends in, and not before, whoever looks: a
// wait that passes at once, because it names another phase, brings nothing. Boxes are taken from the tensor
// map, as the device does, and not from the loops that the map was made of; a wrong map brings other
// elements.
#include <algorithm>
#include <limits>

#include "compiler_core/emulator/fission.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

Expr is_not(const Expr& a, int64_t value) { return binary(BinaryOp::kNe, a, int32(value)); }

Stmt add(const Buffer& counter, const std::vector<Expr>& at, int64_t n) {
  return make_store(counter, at, load(counter, at) + int32(n));
}

// Where element `at` of shared memory is left by a swizzle.
Expr swizzled(const Expr& at, const TensorMap& map) {
  if (map.swizzle_bytes == 0) return at;
  const int64_t unit = 16 / dtype_bytes(map.dtype), line = 128 / dtype_bytes(map.dtype);
  return bit_xor(floor_div(at, unit), floor_mod(floor_div(at, line), map.swizzle_bytes / 16)) * unit +
         floor_mod(at, unit);
}

}  // namespace

Stmt Fission::engine(const Stmt& s, const RangeMap& ranges, const Crew& crew) {
  const bool checks = context_.faults != nullptr;
  if (is_async(*s, "fetch")) return fetch(*s, ranges, crew);
  if (is_async(*s, "await")) {
    if (crew.chosen != nullptr || !is_uniform(s->operands[0]->operands[0]) || !is_uniform(s->operands[1]))
      return refuse("a wait at ", to_text(s->operands[0]), " differs between the threads of the block");
    return checks ? await(*s, ranges) : nullptr;
  }
  if (!checks) return nullptr;
  return is_async(*s, "init") ? init(*s, ranges, crew) : expect(*s, ranges, crew);
}

// Whoever comes to a barrier must see it begun: a read of it.
Stmt Fission::look_at_barrier(const Expr& barrier, const RangeMap& ranges, const Crew& crew) {
  const Buffer sink = make_scratch("sink", DType::kInt64, {context_.block_threads});
  context_.places[sink.get()] = {.storage = sink};
  return interval(make_store(sink, {context_.thread}, barrier), shared_, ranges, crew);
}

Stmt Fission::init(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  const Buffer& buffer = s.operands[0]->buffer;
  const ArrivalBarriers& b = context_.barriers.at(buffer.get());
  const Var i = make_var("i");
  const std::vector<Expr> at = {Expr(i)};
  const Expr arrivals = cast(DType::kInt32, s.operands[1]);
  Stmt begun = make_for(i, buffer->elements(), make_store(buffer, at, s.operands[1]));
  Stmt counters =
      make_for(i, buffer->elements(),
               make_seq({make_store(b.arrivals, at, arrivals), make_store(b.pending, at, arrivals),
                         make_store(b.bytes, at, int32(0)), make_store(b.phases, at, int32(0))}));
  return make_seq({interval(begun, shared_, ranges, crew), run_by_threads(counters, crew)});
}

Stmt Fission::expect(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  const ArrivalBarriers& b = context_.barriers.at(s.operands[0]->buffer.get());
  const std::vector<Expr>& at = s.operands[0]->operands;
  int64_t bytes = 0;
  CHECK(is_const_int(s.operands[1], &bytes)) << "validate() lets only numbers through";
  Stmt counted = make_seq({add(b.pending, at, -1), add(b.bytes, at, bytes),
                           barrier_fault(FaultKind::kMiscounted, s, load(b.pending, at) < int32(0))});
  return make_seq({look_at_barrier(s.operands[0], ranges, crew), run_by_threads(counted, crew)});
}

Stmt Fission::fetch(const StmtNode& s, const RangeMap& ranges, const Crew& crew) {
  const Buffer& tile = s.operands[1]->buffer;
  const Buffer flat = make_buffer(tile->name, tile->dtype, {storage_elements(*tile)}, MemoryScope::kShared);
  flat_.push_back(flat);
  context_.places[flat.get()] = context_.places.at(tile.get());
  std::set<const BufferNode*> contended = shared_;
  contended.insert(flat.get());
  const Stmt box = s.value.defined() ? fetched_box(s, flat) : fetched_row(s, flat);
  if (context_.faults == nullptr) return run_by_threads(instrumenter_.run(box, ranges, contended), crew);
  const ArrivalBarriers& b = context_.barriers.at(s.operands[0]->buffer.get());
  const std::vector<Expr>& at = s.operands[0]->operands;
  int64_t number = 0;
  CHECK(is_const_int(s.value.defined() ? s.value : s.operands[3], &number))
      << "validate() lets only numbers through";
  const int64_t bytes =
      s.value.defined() ? context_.kernel->tensor_maps[static_cast<size_t>(number)].map.box_bytes() : number;
  Stmt brought = instrumenter_.run_fetch(box, ranges, contended, Expr(b.first) + at[0]);
  return make_seq({look_at_barrier(s.operands[0], ranges, crew),
                   run_by_threads(make_seq({std::move(brought), add(b.on_way, at, bytes)}), crew)});
}

// The stores of what lies in a row on both sides, layouts or not.
Stmt Fission::fetched_row(const StmtNode& s, const Buffer& flat) {
  const Expr &to = s.operands[1], &from = s.operands[2];
  int64_t bytes = 0;
  CHECK(is_const_int(s.operands[3], &bytes)) << "validate() lets only numbers through";
  const Buffer row = make_buffer(from->buffer->name, from->dtype, {storage_elements(*from->buffer)});
  flat_.push_back(row);
  context_.places[row.get()] = context_.places.at(from->buffer.get());
  context_.places[row.get()].through_layout = true;
  const Var e = make_var("e");
  return make_for(e, bytes / dtype_bytes(from->dtype),
                  make_store(flat, {storage_offset(*to->buffer, to->operands) + e},
                             load(row, {storage_offset(*from->buffer, from->operands) + e})));
}

// The stores of a box, by the words of its map.
Stmt Fission::fetched_box(const StmtNode& s, const Buffer& flat) const {
  int64_t number = 0;
  CHECK(is_const_int(s.value, &number)) << "validate() lets only numbers through";
  const TensorMap& map = context_.kernel->tensor_maps[static_cast<size_t>(number)].map;
  const int64_t bytes = dtype_bytes(map.dtype);
  const Expr& to = s.operands[1];
  const auto place = std::ranges::find(context_.kernel->shared, to->buffer) - context_.kernel->shared.begin();
  const int64_t begin = context_.kernel->shared_offsets[static_cast<size_t>(place)] / bytes;

  std::vector<Var> vars;
  std::vector<int64_t> sides;
  std::vector<Expr> inside;
  Expr in_box = 0, in_array = 0;
  int64_t row = 1;
  for (size_t d = 0; d < map.rank(); ++d) {
    const int64_t step = map.steps.empty() || d == 0 ? 1 : map.steps[d];
    sides.push_back((map.box[d] + step - 1) / step);
    vars.push_back(make_var("box"));
    const Expr coordinate = s.indices[d] + Expr(vars[d]) * step;
    inside.push_back(coordinate >= Expr(0));
    inside.push_back(coordinate < Expr(map.extents[d]));
    in_box = in_box + Expr(vars[d]) * row;
    in_array = in_array + coordinate * (d == 0 ? 1 : map.strides[d - 1] / bytes);
    row *= sides[d];
  }
  const Expr outside = !is_float(map.dtype) ? int_imm(0, map.dtype)
                       : map.fills_nan      ? float_imm(std::numeric_limits<double>::quiet_NaN(), map.dtype)
                                            : float_imm(0, map.dtype);
  const Expr value =
      select(conjunction(inside), load(s.buffer, unravelled(in_array, s.buffer->shape)), outside);
  const Expr at = swizzled(storage_offset(*to->buffer, to->operands) + in_box + begin, map) - begin;
  Stmt body = make_store(flat, {at}, value);
  for (size_t d = 0; d < vars.size(); ++d) body = make_for(vars[d], sides[d], std::move(body));
  return body;
}

//   if (its phase is not over)
//     what is under way arrives
//     bytes other than expected: miscounted; arrivals missing: stuck
//     the next phase begins
Stmt Fission::await(const StmtNode& s, const RangeMap& ranges) {
  const ArrivalBarriers& b = context_.barriers.at(s.operands[0]->buffer.get());
  const std::vector<Expr>& at = s.operands[0]->operands;
  const Expr group = cast(DType::kInt32, Expr(-1) - (Expr(b.first) + at[0]));
  const Expr under_way =
      binary(BinaryOp::kEq, floor_mod(load(b.phases, at), int32(2)), cast(DType::kInt32, s.operands[1]));
  Stmt arrive = deliver_where([&](const Expr& of) { return binary(BinaryOp::kEq, of, group); },
                              [&](const Expr&) { return load(clock_.block_base, {}); });
  Stmt bytes =
      barrier_fault(FaultKind::kMiscounted, s, binary(BinaryOp::kNe, load(b.bytes, at), load(b.on_way, at)));
  Stmt stuck = barrier_fault(FaultKind::kStuck, s, is_not(load(b.pending, at), 0));
  Stmt next = make_seq({make_store(b.bytes, at, int32(0)), make_store(b.on_way, at, int32(0)),
                        make_store(b.pending, at, load(b.arrivals, at)), add(b.phases, at, 1)});
  return make_seq({look_at_barrier(s.operands[0], ranges, {}),
                   make_if(under_way, make_seq({bytes, stuck, arrive, next}))});
}

Stmt Fission::barrier_fault(FaultKind kind, const StmtNode& s, const Expr& wrong) {
  const Expr& barrier = s.operands[0];
  const int64_t site = context_.faults->add({.kind = kind,
                                             .kernel = context_.kernel->name,
                                             .access = str(s.name, " at ", to_text(barrier)),
                                             .shape = barrier->buffer->shape,
                                             .block_threads = context_.block_threads});
  return make_if(wrong, context_.faults->record(site, barrier->operands[0],
                                                block_ * Expr(context_.block_threads), Expr(0)));
}

Stmt Fission::no_barriers() const {
  std::vector<Stmt> all;
  for (const auto& [buffer, b] : context_.barriers)
    for (const Buffer& counter : {b.arrivals, b.pending, b.bytes, b.on_way, b.phases}) {
      const Var i = make_var("i");
      all.push_back(make_for(i, counter->elements(), make_store(counter, {Expr(i)}, int32(0))));
    }
  return make_seq(std::move(all));
}

// The memory of a block that is done belongs to the next one.
Stmt Fission::nothing_left() {
  std::vector<Stmt> all;
  for (const Buffer& buffer : context_.kernel->shared) {
    const auto found = context_.barriers.find(buffer.get());
    if (found == context_.barriers.end()) continue;
    const Var i = make_var("i");
    const std::vector<Expr> at = {Expr(i)};
    const Stmt end = make_async_await(load(buffer, at), Expr(0));
    const Expr left = is_not(load(found->second.on_way, at), 0) || is_not(load(found->second.bytes, at), 0);
    all.push_back(make_for(i, buffer->elements(), barrier_fault(FaultKind::kUnfinished, *end, left)));
  }
  return make_seq(std::move(all));
}

}  // namespace tuner::emulation
