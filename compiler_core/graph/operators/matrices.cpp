#include "compiler_core/graph/operators/matrices.h"

namespace tuner::graph {

Result<Matrices> matrices_of(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) return invalid_argument("needs matrices, got a scalar");
  Matrices m{a, b, {}, {}};
  if (a.size() == 1) m.a.insert(m.a.begin(), 1);
  if (b.size() == 1) m.b.push_back(1);
  if (m.a.back() != m.b[m.b.size() - 2])
    return invalid_argument("sums over ", m.a.back(), " and ", m.b[m.b.size() - 2], " terms");
  ASSIGN_OR_RETURN(m.batch, broadcast({m.a.begin(), m.a.end() - 2}, {m.b.begin(), m.b.end() - 2}));
  m.result = m.batch;
  if (a.size() > 1) m.result.push_back(m.a[m.a.size() - 2]);
  if (b.size() > 1) m.result.push_back(m.b.back());
  return m;
}

Expr element_a(const Use& use, const MathWriter& m, size_t a, size_t b, const te::Indices& i, const Expr& k) {
  if (use.rank(a) == 1) return load(m.in(a), {k});
  const bool has_column = use.rank(b) > 1;
  te::Indices from(i.begin(), has_column ? i.end() - 1 : i.end());
  from.push_back(k);
  return at(m.in(a), from);
}

Expr element_b(const Use& use, const MathWriter& m, size_t a, size_t b, const te::Indices& i, const Expr& k) {
  if (use.rank(b) == 1) return load(m.in(b), {k});
  const std::ptrdiff_t own = use.rank(a) > 1 ? 2 : 1;
  te::Indices from(i.begin(), i.end() - own);
  from.push_back(k);
  from.push_back(i.back());
  return at(m.in(b), from);
}

Expr row_of(const Use& use, size_t a, size_t b, const te::Indices& i) {
  if (use.rank(a) == 1) return Expr(0);
  return i[i.size() - (use.rank(b) > 1 ? 2 : 1)];
}

Expr column_of(const Use& use, size_t b, const te::Indices& i) {
  return use.rank(b) == 1 ? Expr(0) : i.back();
}

}  // namespace tuner::graph
