// Asynchronous copies, at the worst possible moment: what a copy brings is there with the wait that covers
// it, and until then the element holds poison, whoever looks. Without checks they are done at once, which is
// the other extreme.
#include "compiler_core/emulator/fission.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::emulation {

Stmt Fission::async(const Stmt& s, const RangeMap& ranges, const Crew& crew) {
  const bool checks = context_.faults != nullptr;
  if (!is_async(*s, "copy") && !is_async(*s, "commit") && !is_async(*s, "wait"))
    return engine(s, ranges, crew);
  if (is_async(*s, "copy")) {
    const std::set<const BufferNode*>& contended = intervals_.contended(s);
    return run_by_threads(instrumenter_.run_copy(s->body, ranges, contended), crew);
  }
  if (crew.chosen != nullptr)
    return refuse("async ", s->name, " stands under `if (", to_text(crew.condition),
                  ")`, which is not the same for all threads of a block: their groups would be others");
  if (!checks) return nullptr;
  if (is_async(*s, "commit")) return make_store(context_.groups, {}, load(context_.groups, {}) + int32(1));
  int64_t in_flight = 0;
  CHECK(is_const_int(s->operands[0], &in_flight)) << "validate() lets only numbers through";
  return deliver(in_flight);
}

// What belongs to all groups but the latest `in_flight` arrives, as if its threads stored it now.
Stmt Fission::deliver(int64_t in_flight) {
  return deliver_where(
      [&](const Expr& group) {
        return int32(0) < group && group <= load(context_.groups, {}) - int32(in_flight);
      },
      [&](const Expr& thread) { return load(clock_.base, {}) + cast(clock_.tag->dtype, thread); });
}

// Copies to shared memory of groups that have `arrived` do, with the tag that their thread leaves.
Stmt Fission::deliver_where(const std::function<Expr(const Expr&)>& arrived,
                            const std::function<Expr(const Expr&)>& tag) const {
  std::vector<Stmt> all;
  for (const Buffer& b : context_.kernel->shared) {
    const Place& place = context_.places.at(b.get());
    if (!place.in_flight) continue;
    const Var e = make_var("e");
    const std::vector<Expr> at = {Expr(e)};
    all.push_back(make_for(
        e, place.storage->elements(),
        make_if(arrived(load(place.in_flight->group, at)),
                make_seq({make_store(place.storage, at, load(place.in_flight->arriving, at)),
                          make_store(place.shadow->written, at, tag(load(place.in_flight->thread, at))),
                          make_store(place.in_flight->group, at, int32(0))}))));
  }
  return make_seq(std::move(all));
}

Stmt Fission::nothing_in_flight() const {
  std::vector<Stmt> all;
  const auto clear = [&](const Buffer& numbers) {
    const Var e = make_var("e");
    all.push_back(make_for(e, numbers->elements(), make_store(numbers, {Expr(e)}, int32(0))));
  };
  for (const Buffer& counter : {context_.groups, context_.started})
    if (counter != nullptr) all.push_back(make_store(counter, {}, int32(0)));
  for (const Buffer& b : context_.kernel->shared) {
    const Place& place = context_.places.at(b.get());
    if (place.in_flight) clear(place.in_flight->group);
    if (place.held != nullptr) clear(place.held);
  }
  return make_seq(std::move(all));
}

}  // namespace tuner::emulation
