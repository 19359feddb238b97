// Signals: window functions, the matrix of mel bands, and Fourier transforms.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace signal_ops {
namespace {

using std::numbers::pi;
constexpr int64_t kMostNumbers = int64_t{1} << 22;  // of a window or a matrix that is known ahead

DType asked_type(const Use& use) {
  return dtype_from_name(use.word("output_datatype", "")).value_or(DType::kFloat32);
}

// --- HannWindow, HammingWindow, BlackmanWindow ---
double hann(double angle) { return 0.5 - 0.5 * std::cos(angle); }
double hamming(double angle) { return 25.0 / 46 - 21.0 / 46 * std::cos(angle); }
double blackman(double angle) { return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle); }

Result<std::vector<TensorType>> window_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> size, use.integers(0));
  if (size[0] < 1 || size[0] > kMostNumbers)
    return invalid_argument("a window of ", size[0], " numbers, expected 1 to 2^22");
  return one({asked_type(use), {size[0]}});
}
// A symmetric window of one number, for which the standard divides 0 by 0, is 1.
template <double (*kAt)(double)>
void window(const Use& use, MathWriter& m) {
  const int64_t size = m.type().shape[0], turn = use.integer("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> numbers;
  for (int64_t k = 0; k < size; ++k)
    numbers.push_back(turn == 0 ? 1 : kAt(2 * pi * static_cast<double>(k) / static_cast<double>(turn)));
  const Buffer table = m.table("window", m.type().dtype, {size}, numbers);
  m.result([&](const te::Indices& i) { return load(table, i); });
}

// --- MelWeightMatrix: how much of each bin of a spectrum belongs to each band of the mel scale ---
struct MelBands {
  int64_t bands, bins, length, rate;
  double low, high;  // in Hertz
};
Result<MelBands> mel_bands_of(const Use& use) {
  double given[5];
  for (size_t k = 0; k < 5; ++k) {
    ASSIGN_OR_RETURN(const std::vector<double> numbers, use.numbers(k));
    given[k] = numbers[0];
  }
  for (size_t k = 0; k < 3; ++k)
    if (given[k] < 1 || given[k] > kMostNumbers)
      return invalid_argument("input ", k, " is ", given[k], ", expected 1 to 2^22");
  const bool in_order = given[3] >= 0 && given[4] >= given[3] && std::isfinite(given[4]);
  if (!in_order)
    return invalid_argument("a band from ", given[3], " to ", given[4],
                            " Hertz, expected 0 or more, in order");
  MelBands mel{static_cast<int64_t>(given[0]), 0,        static_cast<int64_t>(given[1]),
               static_cast<int64_t>(given[2]), given[3], given[4]};
  mel.bins = mel.length / 2 + 1;
  if (mel.bands > kMostNumbers / mel.bins)
    return invalid_argument("a matrix of ", mel.bins, " bins and ", mel.bands,
                            " bands, expected 2^22 numbers");
  return mel;
}
Result<std::vector<TensorType>> mel_types(const Use& use) {
  ASSIGN_OR_RETURN(const MelBands mel, mel_bands_of(use));
  return one({asked_type(use), {mel.bins, mel.bands}});
}
// Where the bands begin, peak and end, in bins of the spectrum.
std::vector<int64_t> mel_edges(const MelBands& mel) {
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = to_mel(mel.low), step = (to_mel(mel.high) - low) / static_cast<double>(mel.bands + 2);
  std::vector<int64_t> edges;
  for (int64_t k = 0; k < mel.bands + 2; ++k) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(k) * step + low) / 2595) - 1);
    const double bin =
        std::floor(static_cast<double>(mel.length + 1) * hertz / static_cast<double>(mel.rate));
    edges.push_back(static_cast<int64_t>(std::min(bin, 0x1p40)));
  }
  return edges;
}
void mel_weights(const Use& use, MathWriter& m) {
  const MelBands mel = *mel_bands_of(use);
  const std::vector<int64_t> edges = mel_edges(mel);
  std::vector<double> numbers(static_cast<size_t>(mel.bins * mel.bands), 0);
  const auto set = [&](int64_t bin, int64_t band, double x) {
    if (bin < mel.bins) numbers[static_cast<size_t>(bin * mel.bands + band)] = x;
  };
  for (int64_t band = 0; band < mel.bands; ++band) {
    const auto k = static_cast<size_t>(band);
    const int64_t first = edges[k], peak = edges[k + 1], last = edges[k + 2];
    if (first == peak) set(peak, band, 1);
    for (int64_t bin = first; first < peak && bin <= std::min(peak, mel.bins); ++bin)
      set(bin, band, static_cast<double>(bin - first) / static_cast<double>(peak - first));
    for (int64_t bin = peak; bin < std::min(last, mel.bins); ++bin)
      set(bin, band, static_cast<double>(last - bin) / static_cast<double>(last - peak));
  }
  const Buffer table = m.table("bands", m.type().dtype, {mel.bins, mel.bands}, numbers);
  m.result([&](const te::Indices& i) { return load(table, i); });
}

// --- DFT, STFT ---
// cos and sin of 2 pi k n / length: a matrix of k and n, or one turn where that would be large.
class Turns {
 public:
  Turns(MathWriter& m, const std::string& name, DType dtype, const Shape& matrix, int64_t length,
        bool backwards)
      : length_(length), is_matrix_(matrix[0] <= kMostOfMatrix / matrix[1]) {
    const Shape shape = is_matrix_ ? matrix : Shape{length};
    std::vector<double> cosines, sines;
    const auto add = [&](int64_t step) {
      const double angle = 2 * pi * static_cast<double>(step % length) / static_cast<double>(length);
      cosines.push_back(std::cos(angle));
      sines.push_back(backwards ? -std::sin(angle) : std::sin(angle));
    };
    for (int64_t k = 0; k < shape[0]; ++k) {
      if (!is_matrix_) add(k);
      for (int64_t n = 0; is_matrix_ && n < matrix[1]; ++n) add(k * n);
    }
    cosines_ = m.table(name + "cosines", dtype, shape, cosines);
    sines_ = m.table(name + "sines", dtype, shape, sines);
  }
  Expr cosine(const Expr& k, const Expr& n) const { return load(cosines_, place(k, n)); }
  Expr sine(const Expr& k, const Expr& n) const { return load(sines_, place(k, n)); }

  static constexpr int64_t kMostOfMatrix = int64_t{1} << 20;

 private:
  te::Indices place(const Expr& k, const Expr& n) const {
    if (is_matrix_) return {k, n};
    return {floor_mod(k * n, Expr(length_))};
  }
  int64_t length_;
  bool is_matrix_;
  Buffer cosines_, sines_;
};

// The real (part 0) or imaginary part of what is added up: of term r for the sum at i.
using Part = std::function<Expr(const te::Indices& i, const Expr& r, int64_t part)>;
// Where in the turns: k and n.
using Place = std::function<std::pair<Expr, Expr>(const te::Indices& i, const Expr& r)>;

struct Spectrum {
  Buffer real, imaginary;
};
// Sums over x * (cos - i sin).
Spectrum sums_of(MathWriter& m, const std::string& name, const Shape& shape, int64_t terms,
                 const Turns& turns, const Place& place, bool is_complex, const Part& x) {
  const auto sum = [&](const std::string& part, bool imaginary) {
    return m.reduced(name + part, shape, {terms}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
      const auto [k, n] = place(i, r[0]);
      const Expr cosine = turns.cosine(k, n), sine = turns.sine(k, n);
      const Expr real = x(i, r[0], 0);
      if (!is_complex) return real * (imaginary ? unary(UnaryOp::kNeg, sine) : cosine);
      const Expr other = x(i, r[0], 1);
      return imaginary ? other * cosine - real * sine : real * cosine + other * sine;
    });
  };
  return {sum("real", false), sum("imaginary", true)};
}

// A length as a product, so that a transform is two shorter ones (Cooley and Tukey, 1965): elements are
// n = second * a + b and bins k = first * c + d.
//
//   inner[b, d] = sum over a of x[n] * turn(d * n / length)
//   bin[c, d]   = sum over b of inner[b, d] * turn(c * b / second)
//
// Both run in vectors along d.
struct Factors {
  int64_t first = 1, second = 1;  // first = 1: one sum
};
Factors factors_of(int64_t length, int64_t bins, bool is_complex) {
  constexpr int64_t kVector = 16;
  const int64_t of_sums = is_complex ? 4 : 2;
  Factors best;
  int64_t least = of_sums * bins * length / 2;  // twice as fast, or it is not worth two passes
  for (int64_t first = 2; first <= length / 2 && first * length <= Turns::kMostOfMatrix; ++first) {
    if (length % first != 0) continue;
    const int64_t padded = (first + kVector - 1) / kVector * kVector, second = length / first;
    const int64_t work = padded * (of_sums * length + 4 * second * ((bins + first - 1) / first));
    if (work >= least) continue;
    least = work;
    best = {first, second};
  }
  return best;
}

// What is transformed: along axis `bin` of `shape`, which has the bins there, `length` elements of which the
// first `terms` are there.
struct Signal {
  Shape shape;
  size_t bin = 0;
  int64_t terms = 1, length = 1;
  bool is_complex = false, inverse = false;
  DType dtype = DType::kFloat32;
  Part element;  // r: n; the bin in i means nothing
};
void write_spectrum(MathWriter& m, const Signal& s, double factor) {
  const int64_t bins = s.shape[s.bin];
  const Factors f = s.terms == s.length ? factors_of(s.length, bins, s.is_complex) : Factors{};
  const auto at_bin = static_cast<std::ptrdiff_t>(s.bin);
  Spectrum spectrum;
  if (f.first == 1) {
    const Turns turns(m, "", s.dtype, {bins, s.terms}, s.length, s.inverse);
    const Place place = [&](const te::Indices& i, const Expr& r) { return std::pair(i[s.bin], r); };
    spectrum = sums_of(m, "", s.shape, s.terms, turns, place, s.is_complex, s.element);
  } else {
    const auto split = [&](int64_t outer) {
      Shape shape = s.shape;
      shape[s.bin] = f.first;
      shape.insert(shape.begin() + at_bin, outer);
      return shape;
    };
    const Turns turns(m, "inner_", s.dtype, {s.length, f.first}, s.length, s.inverse);
    const auto element_of = [&](const te::Indices& i, const Expr& a) {
      return Expr(f.second) * a + i[s.bin];
    };
    const Spectrum inner = sums_of(
        m, "inner_", split(f.second), f.first, turns,
        [&](const te::Indices& i, const Expr& a) { return std::pair(element_of(i, a), i[s.bin + 1]); },
        s.is_complex,
        [&](te::Indices i, const Expr& a, int64_t part) {
          const Expr n = element_of(i, a);
          i.erase(i.begin() + at_bin);
          return s.element(i, n, part);
        });
    const int64_t outer = (bins + f.first - 1) / f.first;
    const Turns again(m, "", s.dtype, {outer, f.second}, f.second, s.inverse);
    spectrum = sums_of(
        m, "", split(outer), f.second, again,
        [&](const te::Indices& i, const Expr& b) { return std::pair(i[s.bin], b); }, true,
        [&](te::Indices i, const Expr& b, int64_t part) {
          i[s.bin] = b;
          return load(part == 0 ? inner.real : inner.imaginary, i);
        });
  }
  m.result([&](te::Indices i) {
    const Expr part = i.back();
    i.pop_back();
    if (f.first > 1) {
      const Expr bin = i[s.bin];
      i[s.bin] = floor_mod(bin, Expr(f.first));
      i.insert(i.begin() + at_bin, floor_div(bin, Expr(f.first)));
    }
    const Expr x = select(equals(part, Expr(0)), load(spectrum.real, i), load(spectrum.imaginary, i));
    return factor == 1 ? x : x * number(x->dtype, factor);
  });
}

struct Transform {
  size_t axis;
  int64_t terms, length, bins;  // terms: elements that are there; behind them the signal is 0
  bool is_complex, inverse;
};
constexpr int64_t kAxisIsInput = 20;
Result<Transform> transform_of(const Use& use) {
  const Shape& shape = use.shape(0);
  if (shape.size() < 2 || (shape.back() != 1 && shape.back() != 2))
    return invalid_argument("needs a last dimension of 1 or 2, got ", to_text(use.type(0)));
  int64_t axis = use.integer("axis", 1);
  if (use.operator_set() >= kAxisIsInput) {
    axis = -2;
    if (use.has(2)) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> given, use.integers(2));
      axis = given[0];
    }
  }
  if (axis < -use.rank(0) || axis >= use.rank(0) - 1 || axis == -1)
    return invalid_argument("axis ", axis, " is no signal of ", to_text(use.type(0)));
  Transform t{.axis = static_cast<size_t>(axis < 0 ? axis + use.rank(0) : axis)};
  t.length = shape[t.axis];
  if (use.has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, use.integers(1));
    t.length = given[0];
  }
  if (t.length < 1 || t.length > kMostNumbers)
    return invalid_argument("a length of ", t.length, ", expected 1 to 2^22");
  t.terms = std::min(t.length, shape[t.axis]);
  t.is_complex = shape.back() == 2;
  t.inverse = use.integer("inverse", 0) != 0;
  const bool onesided = use.integer("onesided", 0) != 0;
  if (onesided && (t.is_complex || t.inverse))
    return invalid_argument("onesided = 1 needs a real signal and no inverse");
  t.bins = onesided ? t.length / 2 + 1 : t.length;
  return t;
}
Result<std::vector<TensorType>> dft_types(const Use& use) {
  ASSIGN_OR_RETURN(const Transform t, transform_of(use));
  TensorType type = use.type(0);
  type.shape[t.axis] = t.bins;
  type.shape.back() = 2;
  return one(type);
}
void dft(const Use& use, MathWriter& m) {
  const Transform t = *transform_of(use);
  Shape shape = m.type().shape;
  shape.pop_back();
  const auto element = [&](te::Indices i, const Expr& n, int64_t part) {
    i[t.axis] = n;
    i.emplace_back(part);
    return load(m.in(0), i);
  };
  const Signal signal{shape, t.axis, t.terms, t.length, t.is_complex, t.inverse, use.dtype(0), element};
  write_spectrum(m, signal, t.inverse ? 1 / static_cast<double>(t.length) : 1);
}

// Signal [batch, length, 1 or 2], step, window, length of a frame: frames [batch, frames, bins, 2].
struct Frames {
  int64_t length, step, count, bins;
  bool is_complex;
};
Result<Frames> frames_of(const Use& use) {
  const Shape& shape = use.shape(0);
  if (shape.size() != 2 && (shape.size() != 3 || (shape[2] != 1 && shape[2] != 2)))
    return invalid_argument("needs signals [batch, length, 1 or 2], got ", to_text(use.type(0)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> step, use.integers(1));
  Frames f{.length = 0, .step = step[0]};
  if (use.has(3)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> length, use.integers(3));
    f.length = length[0];
  } else if (use.has(2)) {
    f.length = use.shape(2)[0];
  } else {
    return invalid_argument("has neither a window nor a frame_length, expected one of them");
  }
  if (f.step < 1 || f.length < 1 || f.length > shape[1])
    return invalid_argument("frames of ", f.length, " each ", f.step, " of a signal of ", shape[1]);
  if (use.has(2) && use.shape(2)[0] != f.length)
    return invalid_argument("a window of ", use.shape(2)[0], " for frames of ", f.length);
  f.count = (shape[1] - f.length) / f.step + 1;
  f.is_complex = shape.size() == 3 && shape[2] == 2;
  const bool onesided = use.integer("onesided", 1) != 0;
  if (onesided && f.is_complex) return invalid_argument("onesided = 1 needs a real signal");
  f.bins = onesided ? f.length / 2 + 1 : f.length;
  return f;
}
Result<std::vector<TensorType>> stft_types(const Use& use) {
  ASSIGN_OR_RETURN(const Frames f, frames_of(use));
  return one({use.dtype(0), {use.shape(0)[0], f.count, f.bins, 2}});
}
void stft(const Use& use, MathWriter& m) {
  const Frames f = *frames_of(use);
  const auto element = [&](const te::Indices& i, const Expr& n, int64_t part) {
    te::Indices from{i[0], i[1] * Expr(f.step) + n};
    if (use.rank(0) == 3) from.emplace_back(part);
    const Expr x = load(m.in(0), from);
    return use.has(2) ? x * load(m.in(2), {n}) : x;
  };
  const Shape shape{use.shape(0)[0], f.count, f.bins};
  write_spectrum(m, {shape, 2, f.length, f.length, f.is_complex, false, use.dtype(0), element}, 1);
}

constexpr auto kShape = OperatorKind::kShape;
constexpr auto kReduction = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"BlackmanWindow", kShape, 1, 1, 1, window_types, window<blackman>},
    {"DFT", kReduction, 1, 3, 1, dft_types, dft},
    {"HammingWindow", kShape, 1, 1, 1, window_types, window<hamming>},
    {"HannWindow", kShape, 1, 1, 1, window_types, window<hann>},
    {"MelWeightMatrix", kShape, 5, 5, 1, mel_types, mel_weights},
    {"STFT", kReduction, 2, 4, 1, stft_types, stft},
};

}  // namespace
}  // namespace signal_ops

std::span<const Operator> signal_operators() { return signal_ops::kRows; }

}  // namespace tuner::graph
