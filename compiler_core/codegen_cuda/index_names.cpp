#include "compiler_core/codegen_cuda/index_names.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/flat_buffers.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

// The order of what never stands still.
constexpr int kMoving = std::numeric_limits<int>::max();

// Operations to compute e: what a name saves. Divisions are the dear ones.
int operations(const Expr& e) {
  int count = 0;
  visit(e, [&](const Expr& part) {
    if (part->operands.empty()) return;
    const bool is_division = part->kind == ExprKind::kBinary && (part->binary_op == BinaryOp::kFloorDiv ||
                                                                 part->binary_op == BinaryOp::kFloorMod);
    count += is_division ? 2 : 1;
  });
  return count;
}

bool has_division(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) {
    found |= part->kind == ExprKind::kBinary &&
             (part->binary_op == BinaryOp::kFloorDiv || part->binary_op == BinaryOp::kFloorMod);
  });
  return found;
}

bool has_term(const LinearForm& form, const std::pair<Expr, int64_t>& wanted) {
  return std::any_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
    return term.second == wanted.second && equal(term.first, wanted.first);
  });
}
bool contains(const LinearForm& form, const LinearForm& part) {
  return std::all_of(part.terms.begin(), part.terms.end(),
                     [&](const auto& term) { return has_term(form, term); });
}
bool same(const LinearForm& a, const LinearForm& b) {
  return a.terms.size() == b.terms.size() && contains(a, b);
}

// "m.outer.inner" -> "m"
std::string stem(const std::string& name) { return name.substr(0, name.find('.')); }

}  // namespace

IndexNames::IndexNames(const GpuKernel& kernel, const Stmt& body) {
  for (int d = 0; d < 3; ++d) {
    if (kernel.block_vars[d] != nullptr) order_[kernel.block_vars[d].get()] = 0;
    if (kernel.thread_vars[d] != nullptr) order_[kernel.thread_vars[d].get()] = 0;
  }
  sites_[0] = nullptr;
  RangeMap ranges = kernel_ranges(kernel);
  flat_ = flat_buffers(body, ranges, kernel.shared);
  collect(body, ranges, 0);
  choose();
}

void IndexNames::collect(const Stmt& s, RangeMap& ranges, int depth) {
  if (s == nullptr) return;
  if (s->kind == StmtKind::kFor) {
    if (s->loop != LoopKind::kVectorized && s->loop != LoopKind::kDot) {
      if (prints_unrolled(*s)) unrolled_.insert(next_order_);
      order_[s->var.get()] = next_order_;
      sites_[next_order_++] = s->var.get();
    }
    ranges.bind(s->var, s->extent);
    const bool is_loop = s->extent > 1;  // else it is printed without its variable
    const bool is_round = is_loop && in_copy_ && s->loop == LoopKind::kUnrolled;
    const bool is_step = is_loop && !in_copy_ && (!steps_.empty() || !prints_unrolled(*s));
    if (is_round) rounds_.push_back(s);
    if (is_step) steps_.emplace_back(s->var, s->extent);
    collect(s->body, ranges, depth + 1);
    if (is_round) rounds_.pop_back();
    if (is_step) steps_.pop_back();
    return;
  }
  const bool was_copy = in_copy_;
  in_copy_ |= is_async(*s, "copy") && !steps_.empty();
  own_exprs(*s, [&](const Expr& e) { note_loads(e, ranges, depth); });
  if (s->kind == StmtKind::kStore) {
    if (is_flat(s->buffer))
      note(storage_offset(*s->buffer, s->indices), ranges, depth, s->buffer, 0);
    else
      for (size_t d = 0; d < s->indices.size(); ++d)
        note(s->indices[d], ranges, depth, s->buffer, static_cast<int>(d));
  }
  if (s->kind == StmtKind::kIf) {
    RangeMap inside = ranges;
    inside.assume(s->condition);
    collect(s->body, inside, depth);
    return collect(s->else_body, ranges, depth);
  }
  collect(s->body, ranges, depth);
  for (const Stmt& child : s->stmts) collect(child, ranges, depth);
  in_copy_ = was_copy;
}

// Loads below e, and what conditions compare.
void IndexNames::note_loads(const Expr& e, const RangeMap& ranges, int depth) {
  visit(e, [&](const Expr& part) {
    if (part->kind == ExprKind::kLoad && is_flat(part->buffer))
      note(storage_offset(*part->buffer, part->operands), ranges, depth, part->buffer, 0);
    else if (part->kind == ExprKind::kLoad)
      for (size_t d = 0; d < part->operands.size(); ++d)
        note(part->operands[d], ranges, depth, part->buffer, static_cast<int>(d));
    else if (part->kind == ExprKind::kBinary && part->dtype == DType::kBool &&
             part->operands[0]->dtype == DType::kInt64)
      for (const Expr& side : part->operands) note(side, ranges, depth, nullptr, 0);
  });
}

void IndexNames::note(const Expr& e, const RangeMap& ranges, int depth, const Buffer& buffer, int dimension) {
  const LinearForm form = linear_form(e, ranges);
  note_form(form, depth, buffer, dimension);
  // What stands below divisions. Once for each different division: a name for that one serves all its uses.
  for (const auto& factored : form.terms) {
    const Expr& term = factored.first;
    if (term->operands.empty() || term->kind != ExprKind::kBinary) continue;
    if (std::any_of(divisions_.begin(), divisions_.end(),
                    [&](const Expr& known) { return equal(known, term); }))
      continue;
    divisions_.push_back(term);
    for (const Expr& operand : term->operands)
      if (operand->dtype == DType::kInt64) note(operand, ranges, 0, nullptr, 0);
  }
}

// Counts each part of the form that stands still in some loop: the terms of that loop and those outside.
void IndexNames::note_form(const LinearForm& form, int depth, const Buffer& buffer, int dimension) {
  std::vector<int> orders;
  for (const auto& [term, factor] : form.terms)
    if (const int order = order_of(term); order != kMoving) orders.push_back(order);
  std::sort(orders.begin(), orders.end());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  for (const int order : orders) {
    Candidate part{.site = sites_.at(order)};
    for (const auto& term : form.terms)
      if (order_of(term.first) <= order) part.form.terms.push_back(term);
    Candidate& found = candidate(std::move(part.form));
    if (found.uses == 0 && found.over == nullptr) found.site = part.site;
    found.uses += 1;
    found.in_loop |= depth > order;
    if (buffer == nullptr) {
      found.below_division += 1;
      continue;
    }
    add_place(found, {buffer, dimension, order == orders.back()});
  }
  if (!rounds_.empty()) note_rounds(form, buffer, dimension);
}

IndexNames::Candidate& IndexNames::candidate(LinearForm form) {
  const auto found =
      std::ranges::find_if(candidates_, [&](const Candidate& c) { return same(c.form, form); });
  if (found != candidates_.end()) return *found;
  candidates_.push_back({});
  candidates_.back().form = std::move(form);
  return candidates_.back();
}

void IndexNames::add_place(Candidate& candidate, const Place& place) {
  if (std::ranges::find(candidate.places, place) == candidate.places.end()) candidate.places.push_back(place);
}

// Of an index in the rounds of a copy: what stands still in all steps, and what moves with them alone.
void IndexNames::note_rounds(const LinearForm& form, const Buffer& buffer, int dimension) {
  const Stmt& rounds = rounds_.back();
  LinearForm still, moving;
  bool divides = false;
  size_t depth = 0;  // of the steps that the moving part asks for
  for (const auto& term : form.terms) {
    size_t steps = 0;
    bool of_rounds = false, of_step = false, of_thread = false, other = order_of(term.first) == kMoving;
    visit(term.first, [&](const Expr& part) {
      if (part->kind != ExprKind::kVar || other) return;
      const int order = order_.at(part->var.get());
      if (part->var == rounds->var)
        of_rounds = true;
      else if (order == 0)
        of_thread = true;
      else if (const size_t step = step_of(part->var); step < steps_.size())
        of_step = true, steps = std::max(steps, step + 1);
      else
        other = true;
    });
    if (other) continue;
    if (!of_step) still.terms.push_back(term);
    if (of_step && !of_rounds && !of_thread) {
      moving.terms.push_back(term);
      depth = std::max(depth, steps);
    }
    divides |= !of_step && of_rounds && has_division(term.first);
  }
  if (divides && rounds->extent <= kMostRounds) {
    Candidate& array = candidate(std::move(still));
    array.over = rounds;
    array.before = steps_.front().first.get();
    array.uses += 1;
    if (buffer != nullptr) add_place(array, {buffer, dimension, false});
  }
  if (moving.terms.size() < 2 || divisions(moving) < 2) return;
  Candidate& step = candidate(std::move(moving));
  step.steps.assign(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(depth));
  step.site = step.steps.back().first.get();
  step.uses += 1;
  step.in_loop = true;
  if (buffer != nullptr) add_place(step, {buffer, dimension, false});
}

int IndexNames::order_of(const Expr& term) const {
  int order = 0;
  visit(term, [&](const Expr& part) {
    // A load inside an index (a gather) may change at any time: never part of a name.
    if (part->kind == ExprKind::kLoad) order = kMoving;
    if (part->kind != ExprKind::kVar || order == kMoving) return;
    const auto found = order_.find(part->var.get());
    order = found == order_.end() ? kMoving : std::max(order, found->second);
  });
  return order;
}

void IndexNames::choose() {
  // The simple ones first: they are found again in the others.
  const auto cost = [](const Candidate& c) { return operations(to_expr(c.form)); };
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& a, const Candidate& b) { return cost(a) < cost(b); });
  for (const Candidate& candidate : candidates_) {
    if (candidate.uses < 2 && !candidate.in_loop && candidate.over == nullptr) continue;
    const Expr value = rebuilt(candidate.form, {}, candidate.over != nullptr);
    // A sum with the variable of an unrolled loop is a constant away from what has a name already.
    const bool is_sum = candidate.over == nullptr && candidate.site != nullptr &&
                        unrolled_.contains(order_.at(candidate.site)) && !has_division(value);
    if (operations(value) < 2 || (is_sum && candidate.below_division == 0)) continue;
    Named named{.var = make_var(wanted_name(candidate)), .value = value};
    named.about = about(candidate);
    named.over = candidate.over;
    if (!candidate.steps.empty()) tabulate(named, candidate);
    known_.push_back({candidate.form, named.var, candidate.site});
    (named.over == nullptr ? defined_[candidate.site] : arrays_[candidate.before])
        .push_back(std::move(named));
  }
}

// The loop of the step that `var` is of, by its place in steps_; their number if none.
size_t IndexNames::step_of(const Var& var) const {
  const auto found = std::ranges::find_if(steps_, [&](const auto& step) { return step.first == var; });
  return static_cast<size_t>(found - steps_.begin());
}

// What it is in each step, where divisions make it dear and the steps are few.
void IndexNames::tabulate(Named& named, const Candidate& candidate) {
  const std::optional<int64_t> count = step_count(candidate.steps);
  if (!count) return;
  const Expr value = to_expr(candidate.form);
  std::vector<int64_t> values;
  for (int64_t step = 0; step < *count; ++step) {
    int64_t number = 0;
    if (!is_const_int(simplify(substitute(value, step_values(candidate.steps, step))), &number) ||
        number < INT32_MIN || number > INT32_MAX)
      return;
    values.push_back(number);
  }
  named.steps = candidate.steps;
  named.values = std::move(values);
}

// "place in b_tile, dimension 0 of out"
std::string IndexNames::about(const Candidate& candidate) const {
  std::string text;
  for (const Place& p : candidate.places)
    text += str(text.empty() ? "" : ", ",
                is_flat(p.buffer) ? "place in " : str("dimension ", p.dimension, " of "), p.buffer->name);
  return text.empty() ? "part of several indices" : text;
}

std::string IndexNames::wanted_name(const Candidate& candidate) const {
  std::string common;
  bool one_stem = true;
  for (const auto& [term, factor] : candidate.form.terms)
    visit(term, [&](const Expr& part) {
      if (part->kind != ExprKind::kVar) return;
      const std::string name = stem(part->var->name);
      one_stem &= common.empty() || common == name;
      common = name;
    });
  const auto& [first, factor] = candidate.form.terms[0];
  int64_t divisor = 0;
  if (candidate.form.terms.size() == 1 && factor == 1 && one_stem && first->kind == ExprKind::kBinary &&
      is_const_int(first->operands[1], &divisor)) {
    const bool is_var = first->operands[0]->kind == ExprKind::kVar;
    const std::string name = is_var ? first->operands[0]->var->name : common;
    if (first->binary_op == BinaryOp::kFloorDiv) return str(name, "_div_", divisor);
    if (first->binary_op == BinaryOp::kFloorMod && is_var) return str(name, "_mod_", divisor);
    if (first->binary_op == BinaryOp::kFloorMod) return name + "_part";
  }
  if ((one_stem && candidate.form.terms.size() > 1) || candidate.places.empty()) return common + "_base";
  // No one axis: after the first buffer it is an index of, best one of which it is all that stands still.
  const auto whole =
      std::find_if(candidate.places.begin(), candidate.places.end(), [](const Place& p) { return p.whole; });
  const Place& place = whole == candidate.places.end() ? candidate.places[0] : *whole;
  if (is_flat(place.buffer)) return place.buffer->name + "_place";
  if (place.buffer->shape.size() == 2)
    return place.buffer->name + (place.dimension == 0 ? "_row" : "_column");
  return str(place.buffer->name, "_i", place.dimension);
}

const std::vector<IndexNames::Named>& IndexNames::defined_in(const VarNode* loop) const {
  static const std::vector<Named> kNone;
  const auto found = defined_.find(loop);
  return found == defined_.end() ? kNone : found->second;
}

const std::vector<IndexNames::Named>& IndexNames::defined_before(const VarNode* loop) const {
  static const std::vector<Named> kNone;
  const auto found = arrays_.find(loop);
  return found == arrays_.end() ? kNone : found->second;
}

Expr IndexNames::apply(const Expr& e, const RangeMap& ranges) const {
  return rebuilt(linear_form(e, ranges), ranges, ahead_);
}

Expr IndexNames::apply_offset(const Buffer& buffer, const std::vector<Expr>& indices,
                              const RangeMap& ranges) const {
  return apply(storage_offset(*buffer, indices), ranges);
}

// The sum with the longest known parts replaced by their names, from the outside in, the constant last.
Expr IndexNames::rebuilt(LinearForm form, const RangeMap& ranges, bool ahead) const {
  Expr sum = 0;
  const Known* best = nullptr;
  do {
    best = nullptr;
    for (const Known& known : known_)
      if ((!ahead || known.site == nullptr) && contains(form, known.form) &&
          (best == nullptr || known.form.terms.size() > best->form.terms.size()))
        best = &known;
    if (best == nullptr) break;
    sum = sum + Expr(best->var);
    std::erase_if(form.terms, [&](const auto& term) { return has_term(best->form, term); });
  } while (!form.terms.empty());
  std::stable_sort(form.terms.begin(), form.terms.end(), [&](const auto& a, const auto& b) {
    if ((a.second > 0) != (b.second > 0)) return a.second > 0;  // a sum begins with something positive
    return order_of(a.first) < order_of(b.first);
  });
  if (equal(sum, Expr(0)) && form.constant > 0 && !form.terms.empty() && form.terms[0].second < 0)
    sum = std::exchange(form.constant, 0);  // 5 - i, not -i + 5
  for (auto& [term, factor] : form.terms) {
    const Expr inner = term->kind == ExprKind::kBinary
                           ? map_children(term,
                                          [&](const Expr& operand) {
                                            return operand->dtype == DType::kInt64
                                                       ? rebuilt(linear_form(operand, ranges), ranges, ahead)
                                                       : operand;
                                          })
                           : term;
    const bool starts_negative = factor < 0 && equal(sum, Expr(0));
    sum = starts_negative ? unary(UnaryOp::kNeg, inner * -factor)
          : factor < 0    ? sum - inner * -factor
                          : sum + inner * factor;
  }
  return form.constant < 0 ? sum - (-form.constant) : sum + form.constant;
}

}  // namespace tuner::cuda
