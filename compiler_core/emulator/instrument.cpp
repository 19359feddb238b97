#include "compiler_core/emulator/instrument.h"

#include <algorithm>
#include <limits>

#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {
namespace {

bool has_load(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& inner) { found = found || inner->kind == ExprKind::kLoad; });
  return found;
}
bool any_load(const std::vector<Expr>& exprs) {
  for (const Expr& e : exprs)
    if (has_load(e)) return true;
  return false;
}

bool stores_to(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  visit(s, [&](const Stmt& inner) {
    found = found || (inner->kind == StmtKind::kStore && inner->buffer == buffer);
  });
  return found;
}

bool uses_var(const Stmt& s, const Var& var) {
  bool found = false;
  visit_exprs(s, [&](const Expr& e) { found = found || (e->kind == ExprKind::kVar && e->var == var); });
  return found;
}

bool proved_inside(const Expr& index, int64_t extent, const RangeMap& ranges) {
  if (const auto bounds = const_bounds(index, ranges);
      bounds && bounds->first >= 0 && bounds->second < extent)
    return true;
  return always_true(index >= Expr(0), ranges) && always_true(index < Expr(extent), ranges);
}

Expr poison_of(DType type) {
  return is_float(type) ? float_imm(std::numeric_limits<double>::quiet_NaN(), type) : int_imm(0, type);
}
Expr zero_of(DType type) { return is_float(type) ? float_imm(0, type) : int_imm(0, type); }

// "out[i] = value" without the line feed.
std::string line_of(const Stmt& s) {
  std::string text = to_text(s);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::vector<Stmt> with_guards(std::vector<Stmt> stmts, const std::vector<Expr>& guards) {
  if (guards.empty()) return stmts;
  Stmt body = make_seq(std::move(stmts));
  if (body == nullptr) return {};
  return {make_if(conjunction(guards), std::move(body))};
}

}  // namespace

std::vector<Expr> unravelled(const Expr& flat, const std::vector<int64_t>& shape) {
  if (shape.size() == 1) return {flat};
  std::vector<Expr> indices(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const Expr rest = floor_div(flat, stride);
    indices[d] = d == 0 ? rest : floor_mod(rest, shape[d]);
    stride *= shape[d];
  }
  return indices;
}

Expr flat_element(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) flat = flat * Expr(buffer->shape[d]) + indices[d];
  return flat;
}

Stmt Instrumenter::run(const Stmt& s, const RangeMap& ranges, const std::set<const BufferNode*>& contended) {
  contended_ = &contended;
  Piece p = piece(s, ranges);
  std::vector<Stmt> stmts;
  for (Check& check : p.checks) stmts.push_back(std::move(check.stmt));
  stmts.push_back(std::move(p.stmt));
  return make_seq(std::move(stmts));
}

Stmt Instrumenter::run_copy(const Stmt& s, const RangeMap& ranges,
                            const std::set<const BufferNode*>& contended) {
  copies_ = true;
  if (context_.groups != nullptr) group_ = load(context_.groups, {}) + int_imm(1, DType::kInt32);
  Stmt result = run(s, ranges, contended);
  copies_ = false;
  return result;
}

Stmt Instrumenter::run_fetch(const Stmt& s, const RangeMap& ranges,
                             const std::set<const BufferNode*>& contended, const Expr& number) {
  copies_ = true;
  group_ = cast(DType::kInt32, Expr(-1) - number);
  Stmt result = run(s, ranges, contended);
  copies_ = false;
  return result;
}

Place& Instrumenter::place_register(const Buffer& buffer, bool per_thread) {
  std::vector<int64_t> shape = buffer->shape;
  if (per_thread) shape.insert(shape.begin(), context_.block_threads);
  Place place{.storage = make_buffer(buffer->name, buffer->dtype, shape), .per_thread = per_thread};
  if (context_.faults != nullptr && context_.unproved.contains(buffer.get()))
    place.flags = make_buffer(buffer->name + ".set", DType::kInt32, shape);
  return context_.places[buffer.get()] = std::move(place);
}

Stmt Instrumenter::reset_register(const Buffer& buffer, const Place& place) const {
  if (place.flags == nullptr) return nullptr;
  std::vector<Var> vars;
  std::vector<Expr> indices;
  for (size_t d = 0; d < place.storage->shape.size(); ++d) {
    vars.push_back(make_var("e"));
    indices.emplace_back(vars.back());
  }
  Stmt body = make_seq({make_store(place.storage, indices, poison_of(buffer->dtype)),
                        make_store(place.flags, indices, int_imm(0, DType::kInt32))});
  for (size_t d = vars.size(); d-- > 0;) body = make_for(vars[d], place.storage->shape[d], body);
  return body;
}

Instrumenter::Piece Instrumenter::piece(const Stmt& s, const RangeMap& ranges) {
  switch (s->kind) {
    case StmtKind::kFor:
      return loop_piece(s, ranges);
    case StmtKind::kIf:
      return if_piece(s, ranges);
    case StmtKind::kSeq:
      return seq_piece(s, ranges);
    case StmtKind::kAllocate:
      return allocate_piece(s, ranges);
    case StmtKind::kStore:
      return store_piece(s, ranges);
    case StmtKind::kBarrier:
    case StmtKind::kIntrinsic:
    case StmtKind::kAsync:
      break;
  }
  CHECK(false) << "fission left " << to_text(s) << " inside an interval";
  return {};
}

Instrumenter::Piece Instrumenter::loop_piece(const Stmt& s, const RangeMap& ranges) {
  RangeMap inside = ranges;
  inside.bind(s->var, s->extent);
  Piece body = piece(s->body, inside), result;
  std::vector<Stmt> stay;
  for (Check& check : body.checks) {
    if (!check.moves || touches(s->body, check.watched)) {
      stay.push_back(std::move(check.stmt));
      continue;
    }
    if (uses_var(check.stmt, s->var)) {
      const Var again = make_var(s->var->name);
      check.stmt = make_for(again, s->extent, substitute(check.stmt, {{s->var, Expr(again)}}));
    }
    result.checks.push_back(std::move(check));
  }
  stay.push_back(std::move(body.stmt));
  // Unrolling and vectorising change the code, not what it does; small code compiles fast.
  result.stmt = make_for(s->var, s->extent, make_seq(std::move(stay)), s->axis);
  return result;
}

Instrumenter::Piece Instrumenter::if_piece(const Stmt& s, const RangeMap& ranges) {
  Piece result;
  const Reader reader{.within = "if (" + to_text(s->condition) + ")", .checks = &result.checks};
  const Expr condition = rewrite(s->condition, ranges, {}, reader);
  const bool moves = !has_load(condition);
  const auto branch = [&](const Stmt& body, const Expr& original, const Expr& guard) -> Stmt {
    if (body == nullptr) return nullptr;
    RangeMap inside = ranges;
    inside.assume(original);
    Piece p = piece(body, inside);
    std::vector<Stmt> stay;
    for (Check& check : p.checks) {
      if (!check.moves || !moves) {
        stay.push_back(std::move(check.stmt));
        continue;
      }
      check.stmt = make_if(guard, std::move(check.stmt));
      result.checks.push_back(std::move(check));
    }
    stay.push_back(std::move(p.stmt));
    return make_seq(std::move(stay));
  };
  Stmt then_body = branch(s->body, s->condition, condition);
  Stmt else_body = branch(s->else_body, simplify(unary(UnaryOp::kNot, s->condition), ranges),
                          unary(UnaryOp::kNot, condition));
  result.stmt = make_if(condition, std::move(then_body), std::move(else_body));
  return result;
}

Instrumenter::Piece Instrumenter::seq_piece(const Stmt& s, const RangeMap& ranges) {
  Piece result;
  std::vector<Stmt> stmts;
  for (size_t i = 0; i < s->stmts.size(); ++i) {
    Piece p = piece(s->stmts[i], ranges);
    for (Check& check : p.checks) {
      bool passes = check.moves;
      for (size_t before = 0; before < i && passes; ++before)
        passes = !touches(s->stmts[before], check.watched);
      if (passes)
        result.checks.push_back(std::move(check));
      else
        stmts.push_back(std::move(check.stmt));
    }
    stmts.push_back(std::move(p.stmt));
  }
  result.stmt = make_seq(std::move(stmts));
  return result;
}

Instrumenter::Piece Instrumenter::allocate_piece(const Stmt& s, const RangeMap& ranges) {
  if (s->buffer->scope != MemoryScope::kRegister) {
    if (status_.is_ok())
      status_ = invalid_config(context_.kernel->name, ": ", s->buffer->name, " is allocated in ",
                               memory_scope_name(s->buffer->scope),
                               " memory inside the kernel; only registers may be");
    return {.checks = {}, .stmt = s};
  }
  const Place place = place_register(s->buffer, false);
  Piece body = piece(s->body, ranges), result;
  std::vector<Stmt> stmts = {reset_register(s->buffer, place)};
  for (Check& check : body.checks) {
    if (check.watched == s->buffer)
      stmts.push_back(std::move(check.stmt));
    else
      result.checks.push_back(std::move(check));
  }
  stmts.push_back(std::move(body.stmt));
  result.stmt = make_allocate(place.storage, make_seq(std::move(stmts)));
  if (place.flags != nullptr) result.stmt = make_allocate(place.flags, result.stmt);
  return result;
}

Instrumenter::Piece Instrumenter::store_piece(const Stmt& s, const RangeMap& ranges) {
  Piece result;
  const std::string line = line_of(s);
  const Reader reader{.within = line, .checks = &result.checks};
  std::vector<Expr> indices;
  for (const Expr& index : s->indices) indices.push_back(rewrite(index, ranges, {}, reader));
  const Expr value = rewrite(s->value, ranges, {}, reader);
  const Place* place = place_of(s->buffer);
  if (place == nullptr) {
    result.stmt = s;
    return result;
  }
  const std::vector<Expr> at = storage_indices(*place, s->buffer, indices);
  Stmt store = make_store(place->storage, at, value);
  if (context_.faults == nullptr) {
    result.stmt = store;
    return result;
  }
  if (copies_ && place->in_flight) store = issue(*place, at, value);
  store = make_seq(
      {overwrite(*place, s->buffer, indices, line), in_flight_check(*place, s->buffer, indices, line),
       held_check(*place, s->buffer, indices, line), store_check(*place, s->buffer, indices, line), store});
  const Bounds b = bounds(s->buffer, s->indices, indices, ranges, line);
  result.stmt = b.inside.defined() ? make_seq({b.report, make_if(b.inside, store)}) : store;
  return result;
}

Expr Instrumenter::rewrite(const Expr& e, const RangeMap& ranges, const std::vector<Expr>& guards,
                           const Reader& reader) {
  if (!has_load(e)) return e;
  if (e->kind == ExprKind::kLoad) return rewrite_load(e, ranges, guards, reader);
  // The second operand of && and || runs only when the first leaves it open, as in C.
  if (e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kAnd && has_load(e->operands[1]))
    return rewrite(select(e->operands[0], e->operands[1], bool_imm(false)), ranges, guards, reader);
  if (e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kOr && has_load(e->operands[1]))
    return rewrite(select(e->operands[0], bool_imm(true), e->operands[1]), ranges, guards, reader);
  if (e->kind != ExprKind::kSelect)
    return map_children(e, [&](const Expr& operand) { return rewrite(operand, ranges, guards, reader); });
  const Expr condition = rewrite(e->operands[0], ranges, guards, reader);
  const auto branch = [&](size_t operand, const Expr& original, const Expr& guard) {
    RangeMap inside = ranges;
    inside.assume(original);
    std::vector<Expr> all = guards;
    all.push_back(guard);
    return rewrite(e->operands[operand], inside, all, reader);
  };
  const Expr then_value = branch(1, e->operands[0], condition);
  const Expr else_value =
      branch(2, simplify(unary(UnaryOp::kNot, e->operands[0]), ranges), unary(UnaryOp::kNot, condition));
  return select(condition, then_value, else_value);
}

Expr Instrumenter::rewrite_load(const Expr& e, const RangeMap& ranges, const std::vector<Expr>& guards,
                                const Reader& reader) {
  std::vector<Expr> indices;
  for (const Expr& index : e->operands) indices.push_back(rewrite(index, ranges, guards, reader));
  const Place* place = place_of(e->buffer);
  if (place == nullptr) return e;
  Expr value = load(place->storage, storage_indices(*place, e->buffer, indices));
  if (context_.faults == nullptr) return value;
  const std::string access = to_text(e) + " in " + reader.within;
  const Bounds b = bounds(e->buffer, e->operands, indices, ranges, access);
  Stmt check = make_seq(
      {in_flight_check(*place, e->buffer, indices, access), read_check(*place, e->buffer, indices, access)});
  if (b.inside.defined()) {
    value = select(b.inside, value, zero_of(value->dtype));
    if (check != nullptr) check = make_if(b.inside, check);
  }
  const std::vector<Stmt> stmts = with_guards({b.report, check}, guards);
  if (Stmt all = make_seq(stmts); all != nullptr)
    reader.checks->push_back(
        {.stmt = std::move(all), .watched = e->buffer, .moves = !any_load(indices) && !any_load(guards)});
  return value;
}

const Place* Instrumenter::place_of(const Buffer& buffer) {
  const auto found = context_.places.find(buffer.get());
  if (found != context_.places.end()) return &found->second;
  if (status_.is_ok())
    status_ = invalid_config(
        context_.kernel->name, ": ", buffer->name, " (", memory_scope_name(buffer->scope),
        ") is neither a parameter nor a shared buffer of the kernel, nor allocated where it is used");
  return nullptr;
}

std::vector<Expr> Instrumenter::storage_indices(const Place& place, const Buffer& buffer,
                                                const std::vector<Expr>& indices) const {
  if (place.through_layout) return unravelled(storage_offset(*buffer, indices), place.storage->shape);
  if (!place.per_thread) return indices;
  std::vector<Expr> result = {context_.thread};
  result.insert(result.end(), indices.begin(), indices.end());
  return result;
}

Instrumenter::Bounds Instrumenter::bounds(const Buffer& buffer, const std::vector<Expr>& indices,
                                          const std::vector<Expr>& rewritten, const RangeMap& ranges,
                                          const std::string& access) {
  Bounds result;
  std::vector<Expr> inside;
  std::vector<Stmt> reports;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (proved_inside(indices[d], buffer->shape[d], ranges)) continue;
    const Expr holds = rewritten[d] >= Expr(0) && rewritten[d] < Expr(buffer->shape[d]);
    const int64_t number = context_.faults->add(
        {.kind = FaultKind::kOutOfBounds,
         .kernel = context_.kernel->name,
         .access = str("dimension ", d, " of ", buffer->name, ", ", buffer->shape[d], " long, in ", access),
         .shape = {},
         .block_threads = context_.block_threads});
    inside.push_back(holds);
    reports.push_back(make_if(unary(UnaryOp::kNot, holds),
                              context_.faults->record(number, rewritten[d], context_.number, Expr(0))));
  }
  if (inside.empty()) return result;
  result.inside = conjunction(inside);
  result.report = make_seq(std::move(reports));
  return result;
}

int64_t Instrumenter::site(FaultKind kind, const std::string& access, const Buffer& buffer) {
  return context_.faults->add({.kind = kind,
                               .kernel = context_.kernel->name,
                               .access = access,
                               .shape = buffer->shape,
                               .block_threads = context_.block_threads});
}

bool Instrumenter::touches(const Stmt& s, const Buffer& buffer) const {
  if (stores_to(s, buffer)) return true;
  const auto place = context_.places.find(buffer.get());
  return place != context_.places.end() &&
         std::ranges::any_of(place->second.lies_on,
                             [&](const SharedBytes& other) { return stores_to(s, other.buffer); });
}

// What lies on a shared element that is stored: nobody may have been there in this interval, nor be on the
// way; it is no more.
Stmt Instrumenter::overwrite(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                             const std::string& access) {
  std::vector<Stmt> all;
  for (const SharedBytes& on : place.lies_on) {
    const Place& other = context_.places.at(on.buffer.get());
    const int64_t own_bytes = dtype_bytes(buffer->dtype), bytes = dtype_bytes(on.buffer->dtype);
    const Expr begin = storage_indices(place, buffer, indices)[0] * Expr(own_bytes) + Expr(on.distance);
    for (int64_t byte = 0; byte < own_bytes; byte += bytes) {
      const Expr element = floor_div(begin + Expr(byte), bytes);
      const std::vector<Expr> at = {element};
      const std::string what = str(access, ", which lies on ", on.buffer->name);
      const Shadow& shadow = *other.shadow;
      std::vector<Stmt> checks;
      const auto conflict = [&](const Buffer& by) {
        const Expr tag = load(by, at);
        checks.push_back(make_if(tag >= shadow.base && binary(BinaryOp::kNe, tag, shadow.tag),
                                 context_.faults->record(site(FaultKind::kRace, what, on.buffer), element,
                                                         context_.number, number_of(shadow, tag))));
      };
      conflict(shadow.written);
      if (watches_readers(other, on.buffer)) conflict(shadow.read);
      if (other.in_flight) {
        checks.push_back(
            make_if(binary(BinaryOp::kNe, load(other.in_flight->group, at), int_imm(0, DType::kInt32)),
                    context_.faults->record(site(FaultKind::kInFlight, what, on.buffer), element,
                                            context_.number, context_.number)));
        checks.push_back(make_store(other.in_flight->group, at, int_imm(0, DType::kInt32)));
      }
      if (other.held != nullptr)
        checks.push_back(make_if(binary(BinaryOp::kNe, load(other.held, at), int_imm(0, DType::kInt32)),
                                 context_.faults->record(site(FaultKind::kHeld, what, on.buffer), element,
                                                         context_.number, Expr(0))));
      checks.push_back(make_store(shadow.written, at, int_imm(0, shadow.written->dtype)));
      checks.push_back(make_store(other.storage, at, poison_of(other.storage->dtype)));
      const Expr inside = begin + Expr(byte) >= Expr(0) && element < Expr(other.storage->elements());
      all.push_back(make_if(inside, make_seq(std::move(checks))));
    }
  }
  return make_seq(std::move(all));
}

// Nobody but the copy itself may touch its element before it has arrived.
Stmt Instrumenter::in_flight_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                                   const std::string& access) {
  if (!place.in_flight) return nullptr;
  const std::vector<Expr> at = storage_indices(place, buffer, indices);
  const Expr copier =
      context_.number - cast(DType::kInt32, context_.thread) + load(place.in_flight->thread, at);
  return make_if(binary(BinaryOp::kNe, load(place.in_flight->group, at), int_imm(0, DType::kInt32)),
                 context_.faults->record(site(FaultKind::kInFlight, access, buffer),
                                         flat_element(buffer, indices), context_.number, copier));
}

// A copy begins: it belongs to the next commit, or arrives at its barrier.
Stmt Instrumenter::issue(const Place& place, const std::vector<Expr>& at, const Expr& value) const {
  const InFlight& in_flight = *place.in_flight;
  return make_seq({make_store(in_flight.arriving, at, value),
                   make_store(place.storage, at, poison_of(place.storage->dtype)),
                   make_store(in_flight.group, at, group_),
                   make_store(in_flight.thread, at, cast(DType::kInt32, context_.thread))});
}

Expr Instrumenter::number_of(const Shadow& shadow, const Expr& tag) const {
  const Expr other = context_.number - cast(DType::kInt32, shadow.tag) + cast(DType::kInt32, tag);
  return select(binary(BinaryOp::kEq, tag, shadow.many), int_imm(-1, DType::kInt32), other);
}

bool Instrumenter::watches_readers(const Place& place, const Buffer& buffer) const {
  if (place.shadow->read == nullptr) return false;
  return buffer->scope != MemoryScope::kShared || contended_->contains(buffer.get());
}

//   w = written[at]
//   if (w < oldest || w >= base)                   rarely
//     if (w < oldest) uninitialised
//     else if (w != tag) race
//   read[at] = read[at] < base || read[at] == tag ? tag : many
Stmt Instrumenter::read_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                              const std::string& access) {
  const Expr element = flat_element(buffer, indices);
  if (place.flags != nullptr) {
    const Expr unset = binary(BinaryOp::kEq, load(place.flags, storage_indices(place, buffer, indices)),
                              int_imm(0, DType::kInt32));
    return make_if(unset, context_.faults->record(site(FaultKind::kUninitialised, access, buffer), element,
                                                  context_.number, Expr(0)));
  }
  if (!place.shadow) return nullptr;
  const Shadow& shadow = *place.shadow;
  const std::vector<Expr> at = place.through_layout ? storage_indices(place, buffer, indices) : indices;
  const Expr w = load(shadow.written, at);
  Stmt found =
      make_if(w < shadow.oldest, context_.faults->record(site(FaultKind::kUninitialised, access, buffer),
                                                         element, context_.number, Expr(0)));
  Expr rare = w < shadow.oldest;
  if (watches_readers(place, buffer)) {
    Stmt race = context_.faults->record(site(FaultKind::kRace, access, buffer), element, context_.number,
                                        number_of(shadow, w));
    found = make_seq({found, make_if(w >= shadow.base && binary(BinaryOp::kNe, w, shadow.tag), race)});
    rare = rare || w >= shadow.base;
  }
  Stmt check = make_if(rare, found);
  if (!watches_readers(place, buffer)) return check;
  const Expr r = load(shadow.read, at);
  const Expr still_one = r < shadow.base || binary(BinaryOp::kEq, r, shadow.tag);
  return make_seq({check, make_store(shadow.read, at, select(still_one, shadow.tag, shadow.many))});
}

Stmt Instrumenter::store_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                               const std::string& access) {
  if (place.flags != nullptr)
    return make_store(place.flags, storage_indices(place, buffer, indices), int_imm(1, DType::kInt32));
  if (!place.shadow) return nullptr;
  const Shadow& shadow = *place.shadow;
  const std::vector<Expr> at = place.through_layout ? storage_indices(place, buffer, indices) : indices;
  const Expr element = flat_element(buffer, indices);
  // Somebody else was here in the same interval.
  const auto conflict = [&](const Buffer& by, FaultKind kind, const std::string& what) {
    const Expr other = load(by, at);
    return make_if(other >= shadow.base && binary(BinaryOp::kNe, other, shadow.tag),
                   context_.faults->record(site(kind, what, buffer), element, context_.number,
                                           number_of(shadow, other)));
  };
  std::vector<Stmt> stmts = {conflict(shadow.written, shadow.store_conflict, access)};
  if (watches_readers(place, buffer))
    stmts.push_back(conflict(shadow.read, FaultKind::kRace, access + " (read before by the other)"));
  stmts.push_back(make_store(shadow.written, at, shadow.tag));
  return make_seq(std::move(stmts));
}

}  // namespace tuner::emulation
