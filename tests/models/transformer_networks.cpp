#include "tests/models/transformer_networks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/models/network_writer.h"

namespace tuner::testing {
namespace transformers {
namespace {

using Ints = std::vector<int64_t>;

// Layers that all transformers have. Sequences are [batch, tokens, size].
struct Plan {
  const TransformerOptions& options;
  // What ONNX Runtime's quantize_static() rounds to 8 bits and back: operands and results of products, the
  // tables of words, and what moves bytes. Bias, softmax, activations and norms stay float32.
  bool in_bytes = false;
  // What its quantize_dynamic() does: products with weights, of bytes in the range of each tensor.
  bool is_dynamic = false;
  bool in_4_bits = false;  // weights of products without a bias
  NetworkWriter w{options.seed};

  int64_t narrow(int64_t published) const { return std::max<int64_t>(8, published / options.narrower); }
  int64_t layers(int64_t published) const { return options.layers == 0 ? published : options.layers; }
  int64_t tokens(int64_t published) const { return options.tokens == 0 ? published : options.tokens; }
  int64_t past() const { return options.past == 0 ? 112 : options.past; }

  Tensor op(const std::string& name, const std::vector<Tensor>& in, const Ints& shape) {
    return w.add(name, in, shape);
  }
  Tensor plus(const Tensor& a, const Tensor& b) { return w.binary("Add", a, b); }
  Tensor times(const Tensor& a, const Tensor& b) { return w.binary("Mul", a, b); }
  Tensor gathered(const Tensor& x, int64_t place, int64_t axis) {
    Ints shape = x.shape;
    shape.erase(shape.begin() + axis);
    return w.add("Gather", {x, w.integer(place)}, shape, {{"axis", axis}});
  }
  Tensor sliced(const Tensor& x, int64_t axis, int64_t from, int64_t to) {
    Ints shape = x.shape;
    shape[static_cast<size_t>(axis)] = to - from;
    return op("Slice", {x, w.list({from}), w.list({to}), w.list({axis})}, shape);
  }
  // Values from -most to most, or from 0 where `least` says so, to the nearest byte.
  Tensor rounded(const Tensor& x, float most, float least) {
    if (!in_bytes) return x;
    const float scale = (most - least) / 255;
    return w.rounded(x, scale, static_cast<int>(std::lround(-least / scale)));
  }
  Tensor rounded(const Tensor& x, float most = kUsual) { return rounded(x, most, -most); }
  // Rows of a table; ids are [batch, tokens].
  Tensor embedded(const Tensor& ids, int64_t rows, int64_t size) {
    constexpr float kMost = 1.5F;
    constexpr double kDeviation = 0.5;
    const Tensor table = in_bytes ? w.drawn_rounded({rows, size}, kDeviation, 2 * kMost / 255, 128)
                                  : w.drawn({rows, size}, kDeviation);
    const Tensor found =
        w.add("Gather", {table, ids}, {ids.shape[0], ids.shape[1], size}, {{"axis", int64_t{0}}});
    return rounded(found, kMost);
  }
  // x is rounded(), since several layers may read it.
  Tensor dense(const Tensor& x, int64_t results) {
    if (is_dynamic) return plus(w.product_in_bytes(x, results), w.drawn({results}, 0.1));
    if (!in_bytes) return w.linear(x, results);
    const int64_t terms = x.shape.back();
    Ints shape = x.shape;
    shape.back() = results;
    const Tensor weights =
        w.drawn_bytes({terms, results}, std::sqrt(1.0 / static_cast<double>(terms)), /*axis=*/1);
    return plus(rounded(op("MatMul", {x, weights}, shape)), w.drawn({results}, 0.1));
  }
  Tensor without_bias(const Tensor& x, int64_t results) {
    if (in_4_bits) return w.product_in_4_bits(x, results);
    const int64_t terms = x.shape.back();
    Ints shape = x.shape;
    shape.back() = results;
    return op("MatMul", {x, w.drawn({terms, results}, std::sqrt(1.0 / static_cast<double>(terms)))}, shape);
  }
  // Conv1D of GPT-2: rows as a matrix, Gemm, and back.
  Tensor gemm_of_rows(const Tensor& x, int64_t results) {
    const int64_t terms = x.shape.back(), rows = x.shape[0] * x.shape[1];
    const double deviation = std::sqrt(1.0 / static_cast<double>(terms));
    const Tensor y = op(
        "Gemm", {w.reshaped(x, {rows, terms}), w.drawn({terms, results}, deviation), w.drawn({results}, 0.1)},
        {rows, results});
    return w.reshaped(y, {x.shape[0], x.shape[1], results});
  }
  Tensor gelu(const Tensor& x) {
    const Tensor erf = w.unary("Erf", w.binary("Div", x, w.scalar(std::numbers::sqrt2_v<float>)));
    return times(times(x, plus(erf, w.scalar(1))), w.scalar(0.5F));
  }
  Tensor gelu_by_tanh(const Tensor& x) {
    const Tensor cube = w.binary("Pow", x, w.scalar(3));
    const Tensor inner = times(plus(x, times(cube, w.scalar(0.044715F))), w.scalar(0.7978845608F));
    return times(times(x, w.scalar(0.5F)), plus(w.unary("Tanh", inner), w.scalar(1)));
  }
  // Gemm, whose bias has 32 bits in units of the products.
  Tensor classified(const Tensor& x, int64_t results) {
    if (!in_bytes) return w.gemm(x, results);
    return rounded(w.gemm_in_bytes(rounded(x), 2 * kUsual / 255, results));
  }
  Tensor feed_forward(const Tensor& x, int64_t inner) {
    const Tensor y = gelu(dense(x, inner));
    return dense(rounded(y, kUsual, /*least=*/-0.17F), x.shape.back());
  }

  // [batch, tokens, heads * size] -> [batch, heads, tokens, size], or keys transposed
  Tensor heads(const Tensor& x, int64_t count, bool is_transposed = false) {
    const Tensor apart = w.reshaped(x, {x.shape[0], x.shape[1], count, x.shape[2] / count});
    return w.transposed(apart, is_transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3});
  }
  // What moves bytes is between such, too.
  Tensor together(const Tensor& x) {
    const Tensor y = rounded(w.transposed(x, {0, 2, 1, 3}));
    return rounded(w.reshaped(y, {y.shape[0], y.shape[1], y.shape[2] * y.shape[3]}));
  }
  Tensor product(const Tensor& a, const Tensor& b) {
    Ints shape = a.shape;
    shape.back() = b.shape.back();
    return op("MatMul", {a, b}, shape);
  }
  // Q, K and V of one product, as timm takes them apart: [3, batch, heads, tokens, size].
  std::vector<Tensor> one_product(const Tensor& x, int64_t count) {
    const int64_t size = x.shape[2];
    const Tensor all = w.reshaped(w.linear(x, 3 * size), {x.shape[0], x.shape[1], 3, count, size / count});
    const Tensor moved = w.transposed(all, {2, 0, 3, 1, 4});
    return {gathered(moved, 0, 0), gathered(moved, 1, 0), gathered(moved, 2, 0)};
  }
  static constexpr float kUsual = 4;  // activations have a deviation of 1
  float scale_of(const Tensor& q) const { return 1 / std::sqrt(static_cast<float>(q.shape.back())); }
};

void bert_base(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kHeads = 12;
  constexpr float kUsualScore = 32;
  const int64_t size = kHeads * p.narrow(64), tokens = p.tokens(128);
  const Ints ids{p.options.batch, tokens};
  const Tensor words = w.input("input_ids", ids, DType::kInt64),
               mask = w.input("attention_mask", ids, DType::kInt64),
               kinds = w.input("token_type_ids", ids, DType::kInt64);
  Tensor x = p.plus(p.embedded(words, p.narrow(30522), size), p.embedded(kinds, 2, size));
  x = w.layer_norm(p.plus(x, w.drawn({1, tokens, size}, 0.5)));
  const Ints wide{ids[0], 1, 1, tokens};
  const Tensor shown = w.add("Cast", {p.op("Unsqueeze", {mask, w.list({1, 2})}, wide)}, wide,
                             {{"to", int64_t{onnx_type(DType::kFloat32)}}});
  const Tensor hidden = p.times(p.op("Sub", {w.scalar(1), shown}, wide), w.scalar(-3.4028235e38F));
  for (int64_t layer = 0; layer < p.layers(12); ++layer) {
    const Tensor seen = p.rounded(x);
    const Tensor q = p.rounded(p.heads(p.dense(seen, size), kHeads)),
                 v = p.rounded(p.heads(p.dense(seen, size), kHeads)),
                 k = p.rounded(p.heads(p.dense(seen, size), kHeads, true));
    const Tensor products = p.rounded(p.product(q, k), kUsualScore);
    const Tensor scores = w.binary("Div", products, w.scalar(1 / p.scale_of(q)));
    const Tensor weights = p.rounded(w.softmax(p.plus(scores, hidden), -1), 1, 0);
    const Tensor mixed = p.together(p.rounded(p.product(weights, v)));
    x = w.layer_norm(p.plus(p.dense(mixed, size), x));
    x = w.layer_norm(p.plus(p.feed_forward(p.rounded(x), 4 * size), x));
  }
  w.output(x);
  w.output(w.unary("Tanh", p.classified(p.gathered(x, 0, 1), size)));
}
void bert_base_qdq(Plan& p) {
  p.in_bytes = true;
  bert_base(p);
}

void bert_base_dynamic(Plan& p) {
  p.is_dynamic = true;
  bert_base(p);
}

void vit_b16(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kHeads = 12, kPatch = 16;
  const int64_t size = kHeads * p.narrow(64), side = p.tokens(224), patches = side / kPatch,
                batch = p.options.batch;
  const Tensor image = w.input({batch, 3, side, side});
  Tensor x = w.add("Conv", {image, w.drawn({size, 3, kPatch, kPatch}, 0.04), w.drawn({size}, 0.1)},
                   {batch, size, patches, patches},
                   {{"kernel_shape", Ints{kPatch, kPatch}}, {"strides", Ints{kPatch, kPatch}}});
  x = w.transposed(w.reshaped(x, {batch, size, patches * patches}), {0, 2, 1});
  const Tensor first =
      p.op("Expand", {w.drawn({1, 1, size}, 0.5), w.list({batch, 1, size})}, {batch, 1, size});
  x = w.concat({first, x}, 1);
  x = p.plus(x, w.drawn({1, x.shape[1], size}, 0.5));
  for (int64_t layer = 0; layer < p.layers(12); ++layer) {
    const std::vector<Tensor> qkv = p.one_product(w.layer_norm(x), kHeads);
    const Tensor q = p.times(qkv[0], w.scalar(p.scale_of(qkv[0])));
    const Tensor weights = w.softmax(p.product(q, w.transposed(qkv[1], {0, 1, 3, 2})), -1);
    x = p.plus(x, w.linear(p.together(p.product(weights, qkv[2])), size));
    x = p.plus(x, p.feed_forward(w.layer_norm(x), 4 * size));
  }
  w.output(w.gemm(p.gathered(w.layer_norm(x), 0, 1), 1000));
}

// torch.roll along both sides of the image, by two slices and a Concat each.
Tensor rolled(Plan& p, Tensor x, int64_t by) {
  for (const int64_t axis : {1, 2}) {
    const int64_t side = x.shape[static_cast<size_t>(axis)], cut = (by + side) % side;
    x = p.w.concat({p.sliced(x, axis, cut, side), p.sliced(x, axis, 0, cut)}, axis);
  }
  return x;
}
// [batch, side, side, size] <-> [batch * windows, places, size]
Tensor in_windows(Plan& p, const Tensor& x, int64_t window) {
  const int64_t batch = x.shape[0], count = x.shape[1] / window, size = x.shape[3];
  const Tensor apart = p.w.reshaped(x, {batch, count, window, count, window, size});
  return p.w.reshaped(p.w.transposed(apart, {0, 1, 3, 2, 4, 5}),
                      {batch * count * count, window * window, size});
}
Tensor as_image(Plan& p, const Tensor& x, int64_t window, int64_t side) {
  const int64_t count = side / window, batch = x.shape[0] / (count * count), size = x.shape[2];
  const Tensor apart = p.w.reshaped(x, {batch, count, count, window, window, size});
  return p.w.reshaped(p.w.transposed(apart, {0, 1, 3, 2, 4, 5}), {batch, side, side, size});
}

void swin_block(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kHeads = 3, kWindow = 7, kPlaces = kWindow * kWindow;
  const int64_t size = kHeads * p.narrow(32), side = p.tokens(56), batch = p.options.batch,
                windows = (side / kWindow) * (side / kWindow);
  Tensor x = w.input({batch, side * side, size});
  const Tensor image = w.reshaped(w.layer_norm(x), {batch, side, side, size});
  const std::vector<Tensor> qkv =
      p.one_product(in_windows(p, rolled(p, image, kWindow / 2), kWindow), kHeads);
  const Tensor q = p.times(qkv[0], w.scalar(p.scale_of(qkv[0])));
  Tensor scores = p.product(q, w.transposed(qkv[1], {0, 1, 3, 2}));
  scores = p.plus(scores, w.drawn({1, kHeads, kPlaces, kPlaces}, 0.5));
  const Ints whole = scores.shape;
  scores = w.reshaped(scores, {batch, windows, kHeads, kPlaces, kPlaces});
  scores = p.plus(scores, w.drawn({1, windows, 1, kPlaces, kPlaces}, 5));
  const Tensor weights = w.softmax(w.reshaped(scores, whole), -1);
  const Tensor y = w.linear(p.together(p.product(weights, qkv[2])), size);
  const Tensor back = rolled(p, as_image(p, y, kWindow, side), -(kWindow / 2));
  x = p.plus(x, w.reshaped(back, x.shape));
  w.output(p.plus(x, p.feed_forward(w.layer_norm(x), 4 * size)));
}

void gpt2(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kHeads = 12;
  const int64_t head = p.narrow(64), size = kHeads * head, tokens = p.tokens(16), past = p.past(),
                all = past + tokens, batch = p.options.batch, vocabulary = p.narrow(50257);
  const Tensor words = w.input("input_ids", {batch, tokens}, DType::kInt64);
  Tensor x = p.plus(p.embedded(words, vocabulary, size), w.drawn({1, tokens, size}, 0.5));
  std::vector<Tensor> presents;
  for (int64_t layer = 0; layer < p.layers(12); ++layer) {
    const Tensor past_k = w.input(str("past_key_values.", layer, ".key"), {batch, kHeads, past, head}),
                 past_v = w.input(str("past_key_values.", layer, ".value"), {batch, kHeads, past, head});
    const Tensor qkv = p.gemm_of_rows(w.layer_norm(x), 3 * size);
    const Ints part{batch, tokens, size};
    const std::string name = str("layer", layer);
    const std::vector<Tensor> parts =
        w.add("Split", {qkv, w.list({size, size, size})},
              {{name + "_q", part}, {name + "_k", part}, {name + "_v", part}}, {{"axis", int64_t{2}}});
    const Tensor k = w.concat({past_k, p.heads(parts[1], kHeads)}, 2),
                 v = w.concat({past_v, p.heads(parts[2], kHeads)}, 2), q = p.heads(parts[0], kHeads);
    presents.insert(presents.end(), {k, v});
    Tensor scores = w.binary("Div", p.product(q, w.transposed(k, {0, 1, 3, 2})), w.scalar(1 / p.scale_of(q)));
    scores = p.op("Where", {w.lower_triangle(tokens, all), scores, w.scalar(-3.4028235e38F)}, scores.shape);
    x = p.plus(p.gemm_of_rows(p.together(p.product(w.softmax(scores, -1), v)), size), x);
    x = p.plus(x, p.gemm_of_rows(p.gelu_by_tanh(p.gemm_of_rows(w.layer_norm(x), 4 * size)), size));
  }
  w.output(p.without_bias(w.layer_norm(x), vocabulary));
  for (const Tensor& each : presents) w.output(each);
}

Tensor rms_norm(Plan& p, const Tensor& x) {
  NetworkWriter& w = p.w;
  Ints rows = x.shape;
  rows.back() = 1;
  const Tensor mean = w.add("ReduceMean", {w.binary("Pow", x, w.scalar(2))}, rows, {{"axes", Ints{-1}}});
  const Tensor root = w.unary("Sqrt", p.plus(mean, w.scalar(1e-5F)));
  const Tensor normal = p.times(x, p.op("Div", {w.scalar(1), root}, rows));
  return p.op("Mul", {w.drawn({x.shape.back()}, 1), normal}, x.shape);
}
// Halves of each head turned by the place's angle.
Tensor turned(Plan& p, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const int64_t half = x.shape[3] / 2;
  const Tensor other =
      p.w.concat({p.w.unary("Neg", p.sliced(x, 3, half, 2 * half)), p.sliced(x, 3, 0, half)}, 3);
  return p.plus(p.times(x, cosine), p.times(other, sine));
}
Tensor repeated(Plan& p, const Tensor& x, int64_t times) {
  const int64_t batch = x.shape[0], heads = x.shape[1], places = x.shape[2], size = x.shape[3];
  const Tensor apart = p.op("Unsqueeze", {x, p.w.list({2})}, {batch, heads, 1, places, size});
  const Ints more{batch, heads, times, places, size};
  return p.w.reshaped(p.op("Expand", {apart, p.w.list(more)}, more), {batch, heads * times, places, size});
}

void llama_step(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kHeads = 32, kShared = 4;
  const int64_t head = p.narrow(64), size = kHeads * head, inner = p.narrow(5632), tokens = p.tokens(1),
                past = p.past(), batch = p.options.batch, vocabulary = p.narrow(32000);
  const Tensor words = w.input("input_ids", {batch, tokens}, DType::kInt64),
               places = w.input("position_ids", {batch, tokens}, DType::kInt64);
  Tensor x = p.embedded(words, vocabulary, size);
  const Ints angles{batch, 1, tokens, head};
  const auto table = [&] { return p.op("Unsqueeze", {p.embedded(places, 2048, head), w.list({1})}, angles); };
  const Tensor cosine = table(), sine = table();
  std::vector<Tensor> presents;
  for (int64_t layer = 0; layer < p.layers(2); ++layer) {
    const Ints cache{batch, kShared, past, head};
    const Tensor past_k = w.input(str("past_key_values.", layer, ".key"), cache),
                 past_v = w.input(str("past_key_values.", layer, ".value"), cache);
    const Tensor y = rms_norm(p, x);
    const Tensor q = turned(p, p.heads(p.without_bias(y, size), kHeads), cosine, sine),
                 new_k = turned(p, p.heads(p.without_bias(y, kShared * head), kShared), cosine, sine),
                 new_v = p.heads(p.without_bias(y, kShared * head), kShared);
    const Tensor k = w.concat({past_k, new_k}, 2), v = w.concat({past_v, new_v}, 2);
    presents.insert(presents.end(), {k, v});
    const Tensor keys = w.transposed(repeated(p, k, kHeads / kShared), {0, 1, 3, 2});
    const Tensor scores = p.times(p.product(q, keys), w.scalar(p.scale_of(q)));
    const Tensor seen = p.product(w.softmax(scores, -1), repeated(p, v, kHeads / kShared));
    x = p.plus(x, p.without_bias(p.together(seen), size));
    const Tensor z = rms_norm(p, x);
    x = p.plus(x, p.without_bias(p.times(w.silu(p.without_bias(z, inner)), p.without_bias(z, inner)), size));
  }
  w.output(p.without_bias(rms_norm(p, x), vocabulary));
  for (const Tensor& each : presents) w.output(each);
}

void llama_step_int4(Plan& p) {
  p.in_4_bits = true;
  llama_step(p);
}

struct Known {
  const char* name;
  void (*write)(Plan&);
  bool is_narrow = false;
};
constexpr Known kTransformers[] = {{"bert_base", bert_base},
                                   {"vit_b16", vit_b16},
                                   {"swin_block", swin_block},
                                   {"gpt2", gpt2},
                                   {"llama_step", llama_step},
                                   {"bert_base_qdq", bert_base_qdq, true},
                                   {"bert_base_dynamic", bert_base_dynamic, true},
                                   {"llama_step_int4", llama_step_int4, true}};

std::vector<std::string> names_of(bool are_narrow) {
  std::vector<std::string> names;
  for (const Known& k : kTransformers)
    if (k.is_narrow == are_narrow) names.emplace_back(k.name);
  return names;
}

}  // namespace
}  // namespace transformers

const std::vector<std::string>& transformer_names() {
  static const std::vector<std::string> names = transformers::names_of(false);
  return names;
}
const std::vector<std::string>& names_of_narrow_transformers() {
  static const std::vector<std::string> names = transformers::names_of(true);
  return names;
}

Result<std::string> transformer(std::string_view name, const TransformerOptions& options) {
  for (const transformers::Known& k : transformers::kTransformers) {
    if (name != k.name) continue;
    transformers::Plan plan{.options = options};
    k.write(plan);
    return plan.w.bytes();
  }
  return invalid_argument("no transformer is called \"", name, "\"");
}

}  // namespace tuner::testing
