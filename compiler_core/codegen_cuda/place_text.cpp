#include "compiler_core/codegen_cuda/place_text.h"

#include "compiler_core/base/status.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {

void PlaceText::declare(const Buffer& buffer) {
  const std::string name = names_.declare(buffer);
  if (!index_names_.is_flat(buffer)) return;
  const Buffer flat = make_buffer(buffer->name, buffer->dtype, {storage_elements(*buffer)}, buffer->scope);
  flat_[buffer.get()] = flat;
  names_.alias(flat, name);
}

Expr PlaceText::named(const Expr& e, const RangeMap& ranges) const {
  if (e->dtype == DType::kInt64 && e->kind != ExprKind::kLoad && e->kind != ExprKind::kCast &&
      e->kind != ExprKind::kSelect)
    return index_names_.apply(e, ranges);
  if (e->kind == ExprKind::kLoad) {
    auto [buffer, indices] = named_place(e->buffer, e->operands, ranges);
    return load(buffer, std::move(indices));
  }
  if (e->kind == ExprKind::kSelect) {
    const RangeMap inside = assuming(ranges, e->operands[0]);
    return select(named(e->operands[0], ranges), named(simplify(e->operands[1], inside), inside),
                  named(e->operands[2], ranges));
  }
  return map_children(e, [&](const Expr& operand) { return named(operand, ranges); });
}

std::pair<Buffer, std::vector<Expr>> PlaceText::named_place(const Buffer& buffer,
                                                            const std::vector<Expr>& indices,
                                                            const RangeMap& ranges) const {
  if (const auto flat = flat_.find(buffer.get()); flat != flat_.end())
    return {flat->second, {index_names_.apply_offset(buffer, indices, ranges)}};
  std::vector<Expr> result;
  for (const Expr& index : indices) result.push_back(named(simplify(index, ranges), ranges));
  return {buffer, std::move(result)};
}

std::string PlaceText::element(const Buffer& buffer, const std::vector<Expr>& indices,
                               const RangeMap& ranges) {
  const auto [place, named_indices] = named_place(buffer, indices, ranges);
  return expr_text_.element(place, named_indices, ranges);
}

// "&a[place] + k % 4 * 4096": what a serial loop changes stands behind the address of all its iterations,
// which is computed before it then, with one addition left in it. Of sums within the brackets the compiler
// keeps the number of an element.
std::string PlaceText::address(const Buffer& buffer, const std::vector<Expr>& indices,
                               const RangeMap& ranges) {
  if (buffer->scope != MemoryScope::kShared || serial_.empty()) return "&" + element(buffer, indices, ranges);
  const auto [place, at] = named_place(buffer, indices, ranges);
  LinearForm fixed = linear_form(storage_offset(*place, at), ranges), changing;
  std::erase_if(fixed.terms, [&](const std::pair<Expr, int64_t>& term) {
    bool changes = false;
    visit(term.first, [&](const Expr& e) {
      changes = changes || (e->kind == ExprKind::kVar && serial_.contains(e->var.get()));
    });
    if (changes) changing.terms.push_back(term);
    return changes;
  });
  if (changing.terms.empty() || fixed.terms.empty()) return "&" + element(buffer, indices, ranges);
  return str("&", names_.of(place), "[", expr_text_.index(to_expr(fixed), ranges), "] + ",
             expr_text_.index(to_expr(changing), ranges));
}

std::string PlaceText::value(const Expr& e, const RangeMap& ranges) {
  return expr_text_.value(named(simplify(e, ranges), ranges), ranges);
}

RangeMap PlaceText::assuming(const RangeMap& ranges, const Expr& condition) const {
  RangeMap inside = ranges;
  inside.assume(condition);
  const Expr with_names = named(condition, ranges);
  if (!equal(with_names, condition)) inside.assume(with_names);
  return inside;
}

}  // namespace tuner::cuda
