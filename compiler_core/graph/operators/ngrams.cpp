// TfIdfVectorizer: how often each of a list of n-grams stands in a text of numbers.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace ngram_ops {
namespace {

constexpr int64_t kMostPool = 1 << 20, kMostLength = 1024;

struct Pool {
  int64_t least, most, skips;    // lengths of n-grams; how many elements may stand between two
  std::vector<int64_t> numbers;  // all n-grams, by length
  std::vector<int64_t> starts;   // where those of each length begin
  std::vector<int64_t> columns;  // of each n-gram, in the result
  std::vector<double> weights;
  int64_t width = 0;  // of the result

  int64_t begin(int64_t length) const {
    return length <= std::ssize(starts) ? starts[static_cast<size_t>(length - 1)] : std::ssize(numbers);
  }
  int64_t grams(int64_t length) const { return (begin(length + 1) - begin(length)) / length; }
};
Status check_starts(const Pool& p) {
  for (int64_t n = 1; n <= std::ssize(p.starts); ++n)
    if (p.begin(n) < 0 || p.begin(n) > p.begin(n + 1) || (p.begin(n + 1) - p.begin(n)) % n != 0)
      return invalid_argument("ngram_counts do not cut the pool of ", p.numbers.size(),
                              " numbers into n-grams");
  return Status::ok();
}
Result<Pool> pool_of(const Use& use) {
  Pool p{.least = use.integer("min_gram_length", 1),
         .most = use.integer("max_gram_length", 1),
         .skips = use.integer("max_skip_count", 0),
         .numbers = use.integers("pool_int64s"),
         .starts = use.integers("ngram_counts"),
         .columns = use.integers("ngram_indexes"),
         .weights = use.numbers("weights")};
  if (p.numbers.empty()) return invalid_argument("has no pool_int64s: strings are not served");
  if (p.least < 1 || p.most < p.least || p.most > kMostLength || p.skips < 0 || p.skips > kMostLength ||
      std::ssize(p.starts) > kMostLength || std::ssize(p.numbers) > kMostPool)
    return invalid_argument("n-grams of ", p.least, " to ", p.most, " numbers with ", p.skips,
                            " skips and a pool of ", p.numbers.size());
  RETURN_IF_ERROR(check_starts(p));
  int64_t all = 0;
  for (int64_t n = 1; n <= std::ssize(p.starts); ++n) all += p.grams(n);
  if (std::ssize(p.columns) != all || (!p.weights.empty() && std::ssize(p.weights) != all))
    return invalid_argument(p.columns.size(), " ngram_indexes and ", p.weights.size(), " weights for ", all,
                            " n-grams");
  for (const int64_t column : p.columns) {
    if (column < 0 || column >= kMostPool) return invalid_argument("ngram_indexes hold ", column);
    p.width = std::max(p.width, column + 1);
  }
  constexpr int64_t kMostTable = int64_t{1} << 22;
  if (p.width > kMostTable / p.most)
    return invalid_argument(p.width, " columns of ", p.most, " numbers, expected 2^22 in all");
  return p;
}
Result<std::vector<TensorType>> tf_idf_types(const Use& use) {
  if (use.rank(0) != 1 && use.rank(0) != 2)
    return invalid_argument("needs one or two dimensions, got ", to_text(use.type(0)));
  ASSIGN_OR_RETURN(const Pool p, pool_of(use));
  if (use.rank(0) == 1) return one({DType::kFloat32, {p.width}});
  return one({DType::kFloat32, {use.shape(0)[0], p.width}});
}

// Of one length: how often the n-gram of each column stands in each row. Columns of other lengths have none.
Buffer counts_of(const Use& use, MathWriter& m, const Pool& p, int64_t n, const Shape& shape) {
  int64_t before = 0;
  for (int64_t k = 1; k < n; ++k) before += p.grams(k);
  std::vector<double> grams(static_cast<size_t>(p.width * n), 0), there(static_cast<size_t>(p.width), 0);
  for (int64_t g = 0; g < p.grams(n); ++g) {
    const int64_t column = p.columns[static_cast<size_t>(before + g)];
    there[static_cast<size_t>(column)] = 1;
    for (int64_t k = 0; k < n; ++k)
      grams[static_cast<size_t>(column * n + k)] =
          static_cast<double>(p.numbers[static_cast<size_t>(p.begin(n) + g * n + k)]);
  }
  const Buffer gram = m.table(str("grams", n), use.dtype(0), {p.width, n}, grams);
  const Buffer known = m.table(str("known", n), DType::kInt64, {p.width}, there);
  const int64_t length = use.shape(0).back();
  const Shape over{n == 1 ? 1 : p.skips + 1, length};  // a single number skips none
  return m.reduced(str("count", n), shape, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    const Expr step = r[0] + Expr(1);
    Expr hit = equals(load(known, {i.back()}), Expr(1)) && r[1] + step * Expr(n - 1) < Expr(length);
    for (int64_t k = 0; k < n; ++k) {
      te::Indices from(i.begin(), i.end() - 1);
      from.push_back(min(r[1] + step * Expr(k), Expr(length - 1)));
      hit = hit && equals(load(m.in(0), from), load(gram, {i.back(), Expr(k)}));
    }
    return select(hit, float_imm(1), float_imm(0));
  });
}
void tf_idf(const Use& use, MathWriter& m) {
  const Pool p = *pool_of(use);
  const Shape& shape = m.type().shape;
  std::vector<Buffer> counts;
  for (int64_t n = p.least; n <= std::min<int64_t>(p.most, std::ssize(p.starts)); ++n)
    if (p.grams(n) > 0) counts.push_back(counts_of(use, m, p, n, shape));
  std::vector<double> weights(static_cast<size_t>(p.width), 1);
  for (size_t g = 0; g < p.weights.size(); ++g) weights[static_cast<size_t>(p.columns[g])] = p.weights[g];
  const Buffer weight = m.table("weights", DType::kFloat32, {p.width}, weights);
  const std::string mode = use.word("mode", "TF");
  m.result([&](const te::Indices& i) {
    Expr x = float_imm(0);
    for (const Buffer& count : counts) x = x + load(count, i);
    if (mode == "IDF") x = select(binary(BinaryOp::kGt, x, float_imm(0)), float_imm(1), float_imm(0));
    return mode == "TF" ? x : x * load(weight, {i.back()});
  });
}

constexpr Operator kRows[] = {
    {"TfIdfVectorizer", OperatorKind::kReduction, 1, 1, 1, tf_idf_types, tf_idf},
};

}  // namespace
}  // namespace ngram_ops

std::span<const Operator> ngram_operators() { return ngram_ops::kRows; }

}  // namespace tuner::graph
