#include "tests/tuner/model/random_empty.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tuner::testing {
namespace {

using onnx::TensorProto;
using Tensor = RandomEmpty::Tensor;

constexpr int64_t kOperatorSet = 18;

int64_t count_of(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Calls f with each place of the shape, in row-major order.
void each(const Dims& shape, const std::function<void(const Dims&)>& f) {
  Dims at(shape.size(), 0);
  for (int64_t left = count_of(shape); left > 0; --left) {
    f(at);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

// The element at a place of a shape that the tensor is broadcast to.
double element(const Tensor& x, const Dims& at) {
  int64_t flat = 0;
  const size_t skipped = at.size() - x.shape.size();
  for (size_t d = 0; d < x.shape.size(); ++d)
    flat = flat * x.shape[d] + (x.shape[d] == 1 ? 0 : at[skipped + d]);
  return x.numbers.at(static_cast<size_t>(flat));
}

Dims with(Dims dims, size_t d, int64_t extent) {
  dims[d] = extent;
  return dims;
}

}  // namespace

RandomEmpty::RandomEmpty(uint32_t seed, bool as_elsewhere)
    : as_elsewhere_(as_elsewhere), random_(seed), graph_(*model_.mutable_graph()) {
  model_.add_opset_import()->set_version(kOperatorSet);
  graph_.set_name("empty");
  for (int64_t k = pick(1, 2); k > 0; --k) pool_.push_back(input(shape_of_rank(pick(1, 4))));
  const size_t inputs = pool_.size();
  for (int64_t k = pick(2, 7); k > 0; --k) add_step();
  // The last one, and some more.
  for (size_t k = pool_.size(); k-- > inputs;) {
    if (k + 1 < pool_.size() && pick(0, 2) > 0) continue;
    outputs_.push_back(pool_[k]);
    describe(*graph_.add_output(), pool_[k].name, TensorProto::FLOAT, pool_[k].shape);
  }
}

Dims RandomEmpty::shape_of_rank(int64_t rank) {
  Dims shape(static_cast<size_t>(rank));
  for (int64_t& d : shape) d = extent();
  return shape;
}

std::string RandomEmpty::nodes() const {
  std::string text;
  for (const auto& each : graph_.node())
    text += (text.empty() ? "" : ", ") + each.op_type() + " " + each.output(0);
  return text;
}

// Of the last few; numbers that are not finite go no further, as not all agree on their maxima.
const Tensor& RandomEmpty::any() {
  for (int tries = 0; tries < 20; ++tries) {
    const Tensor& x = pool_[static_cast<size_t>(pick(0, std::ssize(pool_) - 1))];
    const bool is_small = std::ranges::all_of(x.numbers, [](double n) { return std::fabs(n) < 1e4; });
    if (is_small && x.shape.size() <= 4 && count_of(x.shape) < 500) return x;
  }
  return pool_[0];
}

Tensor RandomEmpty::input(const Dims& shape) {
  Tensor x{new_name(), shape, {}};
  for (int64_t k = count_of(shape); k > 0; --k) x.numbers.push_back(static_cast<double>(pick(-2, 2)));
  describe(*graph_.add_input(), x.name, TensorProto::FLOAT, shape);
  inputs_.push_back(x);
  return x;
}

Tensor RandomEmpty::constant(const Dims& shape) {
  Tensor x{new_name(), shape, {}};
  for (int64_t k = count_of(shape); k > 0; --k) x.numbers.push_back(static_cast<double>(pick(-2, 2)));
  add_constant(graph_, x.name, TensorProto::FLOAT, shape, x.numbers);
  return x;
}

std::string RandomEmpty::integers(const Dims& numbers) { return integers(numbers, {std::ssize(numbers)}); }
std::string RandomEmpty::integers(const Dims& numbers, const Dims& shape) {
  const std::string name = new_name();
  add_constant(graph_, name, TensorProto::INT64, shape, {numbers.begin(), numbers.end()});
  return name;
}

onnx::NodeProto& RandomEmpty::node(const std::string& op, const Names& names, const Tensor& x,
                                   const Dims& shape, const std::function<double(At)>& f) {
  Tensor made{new_name(), shape, {}};
  each(shape, [&](At at) { made.numbers.push_back(f(at)); });
  if (count_of(shape) == 0 || count_of(x.shape) == 0) ++counts_[op];
  auto& added = add_node(graph_, op, names, {made.name});
  pool_.push_back(std::move(made));
  return added;
}

void RandomEmpty::add_step() {
  const Tensor x = any();
  const bool has_axes = !x.shape.empty();
  switch (pick(0, 20)) {
    case 0:
      return has_axes ? slice(x) : expand(x);
    case 1:
      return has_axes ? split(x) : elementwise(x);
    case 2:
      return has_axes ? concat(x) : of_shape(x);
    case 3:
      return has_axes ? gather(x) : range();
    case 4:
      return reshape(x);
    case 5:
      return expand(x);
    case 6:
    case 7:
    case 8:
      return reduce(x);
    case 9:
      return has_axes ? product(x) : reduce(x);
    case 10:
      return gemm(x);
    case 11:
      return convolution(x);
    case 12:
      return has_axes ? pad(x) : reshape(x);
    case 13:
      return where(x);
    case 14:
      return elementwise(x);
    case 15:
      return of_shape(x);
    case 16:
      return flag() ? range() : non_zero();
    case 17:
      return has_axes ? transpose(x) : elementwise(x);
    case 18:
      return has_axes ? tile(x) : reshape(x);
    case 19:
      return has_axes ? softmax(x) : where(x);
    default:
      return has_axes ? (flag() ? scatter(x) : compress(x)) : reduce(x);
  }
}

void RandomEmpty::slice(const Tensor& x) {
  const size_t axis = axis_of(x);
  const int64_t n = x.shape[axis], start = pick(-n - 1, n + 1), end = pick(-n - 1, n + 1);
  constexpr int64_t kSteps[] = {1, 1, 2, -1, -2};
  const int64_t step = kSteps[pick(0, 4)];
  const auto from_end = [&](int64_t i) { return i < 0 ? i + n : i; };
  Dims places;
  if (n > 0 && step > 0)
    for (int64_t i = std::max<int64_t>(from_end(start), 0); i < std::min(from_end(end), n); i += step)
      places.push_back(i);
  if (n > 0 && step < 0)
    for (int64_t i = std::clamp<int64_t>(from_end(start), 0, n - 1); i > std::max<int64_t>(from_end(end), -1);
         i += step)
      places.push_back(i);
  node("Slice",
       {x.name, integers({start}), integers({end}), integers({static_cast<int64_t>(axis)}), integers({step})},
       x, with(x.shape, axis, std::ssize(places)),
       [&](At at) { return element(x, with(at, axis, places[static_cast<size_t>(at[axis])])); });
}

void RandomEmpty::split(const Tensor& x) {
  const size_t axis = axis_of(x);
  Dims parts(static_cast<size_t>(pick(2, 3)), 0);
  for (int64_t k = 0; k < x.shape[axis]; ++k) ++parts[static_cast<size_t>(pick(0, std::ssize(parts) - 1))];
  const std::string sizes = integers(parts);
  onnx::NodeProto* made = nullptr;
  int64_t start = 0;
  for (const int64_t part : parts) {
    const auto of_part = [&](At at) { return element(x, with(at, axis, at[axis] + start)); };
    if (made == nullptr) {
      made = &node("Split", {x.name, sizes}, x, with(x.shape, axis, part), of_part);
    } else {
      Tensor more{new_name(), with(x.shape, axis, part), {}};
      each(more.shape, [&](At at) { more.numbers.push_back(of_part(at)); });
      made->add_output(more.name);
      pool_.push_back(std::move(more));
    }
    start += part;
  }
  add_integer(*made, "axis", static_cast<int64_t>(axis));
}

void RandomEmpty::concat(const Tensor& x) {
  const size_t axis = axis_of(x);
  std::vector<Tensor> parts{x};
  for (int64_t k = pick(1, 2); k > 0; --k) parts.push_back(fresh(with(x.shape, axis, extent())));
  if (flag()) std::swap(parts.front(), parts.back());
  Names names;
  int64_t all = 0;
  for (const Tensor& part : parts) {
    names.push_back(part.name);
    all += part.shape[axis];
  }
  auto& made = node("Concat", names, x, with(x.shape, axis, all), [&](At at) {
    int64_t place = at[axis];
    size_t k = 0;
    for (; place >= parts[k].shape[axis]; ++k) place -= parts[k].shape[axis];
    return element(parts[k], with(at, axis, place));
  });
  const bool has_empty =
      std::ranges::any_of(parts, [](const Tensor& part) { return count_of(part.shape) == 0; });
  if (has_empty && all > 0 && count_of(x.shape) > 0) ++counts_["Concat"];
  add_integer(made, "axis", static_cast<int64_t>(axis));
}

void RandomEmpty::gather(const Tensor& x) {
  const size_t axis = axis_of(x);
  const Dims of_indices = x.shape[axis] == 0 ? Dims{0} : shape_of_rank(pick(0, 2));
  Tensor indices{"", of_indices, {}};
  Dims numbers;
  for (int64_t k = count_of(of_indices); k > 0; --k)
    numbers.push_back(pick(-x.shape[axis], x.shape[axis] - 1));
  indices.numbers.assign(numbers.begin(), numbers.end());
  Dims shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), of_indices.begin(), of_indices.end());
  const auto rank = static_cast<std::ptrdiff_t>(of_indices.size());
  auto& made = node("Gather", {x.name, integers(numbers, of_indices)}, x, shape, [&](At at) {
    const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto index = static_cast<int64_t>(element(indices, Dims(first, first + rank)));
    Dims from(at.begin(), first);
    from.push_back(index < 0 ? index + x.shape[axis] : index);
    from.insert(from.end(), first + rank, at.end());
    return element(x, from);
  });
  add_integer(made, "axis", static_cast<int64_t>(axis));
}

void RandomEmpty::reshape(const Tensor& x) {
  const int64_t count = count_of(x.shape);
  Dims wanted, shape;
  bool allow_zero = false;
  if (count == 0 && flag()) {  // any other shape without elements
    shape = shape_of_rank(pick(1, 4));
    shape[static_cast<size_t>(pick(0, std::ssize(shape) - 1))] = 0;
    wanted = shape;
    allow_zero = true;
  } else if (count == 0 || flag()) {  // extents that stay
    shape = x.shape;
    wanted.assign(shape.size(), 0);
  } else {
    shape = {1, count};
    wanted = {1, -1};
  }
  if (count == 1 && x.shape.empty()) wanted = shape = {};
  auto& made = node("Reshape", {x.name, integers(wanted)}, x, shape, [&](At at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d) flat = flat * shape[d] + at[d];
    return x.numbers[static_cast<size_t>(flat)];
  });
  if (allow_zero) add_integer(made, "allowzero", 1);
}

void RandomEmpty::expand(const Tensor& x) {
  Dims shape = x.shape;
  for (int64_t& d : shape)
    if (d == 1) d = extent();
  if (shape.size() < 4 && flag()) shape.insert(shape.begin(), extent());
  node("Expand", {x.name, integers(shape)}, x, shape, [&](At at) { return element(x, at); });
}

void RandomEmpty::reduce(const Tensor& x) {
  constexpr const char* kOps[] = {"ReduceSum", "ReduceProd",      "ReduceMax",
                                  "ReduceMin", "ReduceMean",      "ReduceL1",
                                  "ReduceL2",  "ReduceSumSquare", "ReduceLogSumExp"};
  const std::string op = kOps[pick(0, 8)];
  Dims axes;
  std::vector<bool> reduced(x.shape.size(), false);
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (flag()) {
      axes.push_back(static_cast<int64_t>(d));
      reduced[d] = true;
    }
  const bool keeps = flag(), noop = axes.empty() && flag();
  std::string named;
  if (axes.empty() && flag()) {  // a list without elements that a caller gives
    named = new_name();
    describe(*graph_.add_input(), named, TensorProto::INT64, {0});
    inputs_.push_back({named, {0}, {}, false});
  } else {
    named = integers(axes);
  }
  if (axes.empty() && !noop) reduced.assign(reduced.size(), true);
  Dims shape, over;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (reduced[d]) over.push_back(x.shape[d]);
    if (!reduced[d] || keeps) shape.push_back(reduced[d] ? 1 : x.shape[d]);
  }
  const double infinity = HUGE_VAL;
  auto& made = node(op, {x.name, named}, x, shape, [&](At at) {
    double sum = 0, product = 1, most = -infinity, least = infinity, size = 0, squares = 0, powers = 0;
    each(over, [&](At r) {
      Dims from;
      size_t next_at = 0, next_r = 0;
      for (size_t d = 0; d < x.shape.size(); ++d) {
        from.push_back(reduced[d] ? r[next_r] : at[next_at]);
        next_r += reduced[d] ? 1 : 0;
        next_at += !reduced[d] || keeps ? 1 : 0;
      }
      const double e = element(x, from);
      sum += e;
      product *= e;
      most = std::max(most, e);
      least = std::min(least, e);
      size += std::fabs(e);
      squares += e * e;
      powers += std::exp(e);
    });
    if (noop) return sum;  // the element itself
    if (op == "ReduceSum") return sum;
    if (op == "ReduceProd") return product;
    if (op == "ReduceMax") return most;
    if (op == "ReduceMin") return least;
    if (op == "ReduceMean") return sum / static_cast<double>(count_of(over));
    if (op == "ReduceL1") return size;
    if (op == "ReduceL2") return std::sqrt(squares);
    return op == "ReduceSumSquare" ? squares : std::log(powers);
  });
  add_integer(made, "keepdims", keeps ? 1 : 0);
  if (noop) add_integer(made, "noop_with_empty_axes", 1);
  // With no axes to take, not all agree on whether squares and the like are still taken.
  if (noop && op != "ReduceSum") made.set_op_type("ReduceSum");
}

void RandomEmpty::product(const Tensor& x) {
  const int64_t terms = x.shape.back(), columns = extent();
  const Tensor b = fresh({terms, columns});
  Dims shape = x.shape;
  shape.back() = columns;
  const bool as_equation = x.shape.size() == 2 && flag();
  auto& made = node(as_equation ? "Einsum" : "MatMul", {x.name, b.name}, x, shape, [&](At at) {
    double sum = 0;
    for (int64_t k = 0; k < terms; ++k)
      sum += element(x, with(at, at.size() - 1, k)) * element(b, {k, at.back()});
    return sum;
  });
  if (as_equation) add_attribute(made, "equation", onnx::AttributeProto::STRING).set_s("ij,jk->ik");
}

void RandomEmpty::gemm(const Tensor& x) {
  if (x.shape.size() != 2) return gemm(fresh({pick(1, 3), extent()}));
  const int64_t columns = extent();
  const bool turned = flag();
  const Tensor b = fresh(turned ? Dims{columns, x.shape[1]} : Dims{x.shape[1], columns});
  const Tensor c = fresh({columns});
  const bool has_c = flag();
  const double beta = flag() || (as_elsewhere_ && x.shape[1] == 0) ? 1 : 0.5;
  auto& made =
      node("Gemm", has_c ? Names{x.name, b.name, c.name} : Names{x.name, b.name}, x, {x.shape[0], columns},
           [&](At at) {
             double sum = has_c ? beta * element(c, at) : 0;
             for (int64_t k = 0; k < x.shape[1]; ++k)
               sum += element(x, {at[0], k}) * (turned ? element(b, {at[1], k}) : element(b, {k, at[1]}));
             return sum;
           });
  if (turned) add_integer(made, "transB", 1);
  add_attribute(made, "beta", onnx::AttributeProto::FLOAT).set_f(static_cast<float>(beta));
}

// With a window of one pixel.
void RandomEmpty::convolution(const Tensor& x) {
  if (x.shape.size() != 3 || x.shape[2] == 0) return convolution(fresh({pick(1, 2), extent(), pick(1, 3)}));
  if (as_elsewhere_ && x.shape[1] == 0) return elementwise(x);
  const int64_t results = pick(1, 3);
  const Tensor w = constant({results, x.shape[1], 1}), bias = fresh({results});
  const bool has_bias = flag();
  node("Conv", has_bias ? Names{x.name, w.name, bias.name} : Names{x.name, w.name}, x,
       {x.shape[0], results, x.shape[2]}, [&](At at) {
         double sum = has_bias ? element(bias, {at[1]}) : 0;
         for (int64_t c = 0; c < x.shape[1]; ++c)
           sum += element(x, {at[0], c, at[2]}) * element(w, {at[1], c, 0});
         return sum;
       });
}

void RandomEmpty::pad(const Tensor& x) {
  Dims before(x.shape.size()), behind(x.shape.size()), shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    before[d] = pick(0, 2) - (x.shape[d] > 1 ? 1 : 0);
    behind[d] = pick(0, 1);
    shape[d] += before[d] + behind[d];
  }
  Dims pads = before;
  pads.insert(pads.end(), behind.begin(), behind.end());
  const Tensor filling = fresh({});
  node("Pad", {x.name, integers(pads), filling.name}, x, shape, [&](At at) {
    Dims from = at;
    for (size_t d = 0; d < from.size(); ++d) {
      from[d] -= before[d];
      if (from[d] < 0 || from[d] >= x.shape[d]) return filling.numbers[0];
    }
    return element(x, from);
  });
}

void RandomEmpty::where(const Tensor& x) {
  Dims part = x.shape;
  for (int64_t& d : part)
    if (flag()) d = 1;
  const Tensor other = fresh(part);
  Tensor condition{new_name(), x.shape, {}};
  for (int64_t k = count_of(x.shape); k > 0; --k) condition.numbers.push_back(flag() ? 1 : 0);
  add_constant(graph_, condition.name, TensorProto::BOOL, condition.shape, condition.numbers);
  node("Where", {condition.name, x.name, other.name}, x, x.shape,
       [&](At at) { return element(condition, at) != 0 ? element(x, at) : element(other, at); });
}

void RandomEmpty::elementwise(const Tensor& x) {
  if (flag()) {
    node("Relu", {x.name}, x, x.shape, [&](At at) { return std::max(element(x, at), 0.0); });
    return;
  }
  Dims part = x.shape;  // an extent of 1 may become one of 0
  Dims shape = x.shape;
  for (size_t d = 0; d < part.size(); ++d) {
    if (part[d] != 1 && flag()) part[d] = 1;
    if (shape[d] == 1 && part[d] == 1) shape[d] = part[d] = extent();
  }
  const Tensor other = fresh(part);
  const bool adds = flag();
  node(adds ? "Add" : "Mul", {x.name, other.name}, x, shape, [&](At at) {
    return adds ? element(x, at) + element(other, at) : element(x, at) * element(other, at);
  });
}

// A tensor of some of the extents of x.
void RandomEmpty::of_shape(const Tensor& x) {
  const int64_t rank = std::ssize(x.shape), first = pick(0, rank), last = pick(first, rank);
  const std::string extents = new_name();
  auto& shape = add_node(graph_, "Shape", {x.name}, {extents});
  add_integer(shape, "start", first);
  add_integer(shape, "end", last);
  node("ConstantOfShape", {extents}, x, Dims(x.shape.begin() + first, x.shape.begin() + last),
       [](At /*at*/) { return 0.0; });
}

void RandomEmpty::range() {
  const int64_t start = pick(-1, 2), end = pick(-1, 3), step = flag() ? 1 : -1;
  const std::string numbers = new_name();
  add_node(graph_, "Range", {integers({start}, {}), integers({end}, {}), integers({step}, {})}, {numbers});
  const int64_t length = std::max<int64_t>((end - start) * step, 0);
  auto& made = node("Cast", {numbers}, {"", {length}, {}}, {length},
                    [&](At at) { return static_cast<double>(start + at[0] * step); });
  add_integer(made, "to", TensorProto::FLOAT);
}

void RandomEmpty::non_zero() {
  Tensor x = constant(shape_of_rank(pick(1, 3)));
  if (flag() && !x.numbers.empty()) {  // zeros alone
    auto& initializer = *graph_.mutable_initializer(graph_.initializer_size() - 1);
    for (int k = 0; k < initializer.float_data_size(); ++k) initializer.set_float_data(k, 0);
    x.numbers.assign(x.numbers.size(), 0);
  }
  std::vector<Dims> places;
  each(x.shape, [&](At at) {
    if (element(x, at) != 0) places.push_back(at);
  });
  const std::string found = new_name();
  add_node(graph_, "NonZero", {x.name}, {found});
  auto& made = node("Cast", {found}, x, {std::ssize(x.shape), std::ssize(places)}, [&](At at) {
    return static_cast<double>(places[static_cast<size_t>(at[1])][static_cast<size_t>(at[0])]);
  });
  add_integer(made, "to", TensorProto::FLOAT);
}

void RandomEmpty::transpose(const Tensor& x) {
  Dims order(x.shape.size()), shape;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random_);
  for (const int64_t d : order) shape.push_back(x.shape[static_cast<size_t>(d)]);
  auto& made = node("Transpose", {x.name}, x, shape, [&](At at) {
    Dims from(at.size());
    for (size_t d = 0; d < at.size(); ++d) from[static_cast<size_t>(order[d])] = at[d];
    return element(x, from);
  });
  add_integers(made, "perm", order);
}

void RandomEmpty::tile(const Tensor& x) {
  Dims repeats(x.shape.size()), shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d] = pick(0, 4) == 0 ? 0 : pick(1, 2);
  node("Tile", {x.name, integers(repeats)}, x, shape, [&](At at) {
    Dims from = at;
    for (size_t d = 0; d < from.size(); ++d) from[d] %= x.shape[d];
    return element(x, from);
  });
}

void RandomEmpty::softmax(const Tensor& x) {
  const size_t axis = axis_of(x);
  auto& made = node("Softmax", {x.name}, x, x.shape, [&](At at) {
    double sum = 0;
    for (int64_t k = 0; k < x.shape[axis]; ++k)
      sum += std::exp(element(x, with(at, axis, k)) - element(x, at));
    return 1 / sum;
  });
  add_integer(made, "axis", static_cast<int64_t>(axis));
}

// Of no updates.
void RandomEmpty::scatter(const Tensor& x) {
  Dims updates = x.shape;
  updates[0] = 0;
  const Tensor none = fresh(updates);
  node("ScatterND", {x.name, integers({}, {0, 1}), none.name}, x, x.shape,
       [&](At at) { return element(x, at); });
  if (count_of(x.shape) > 0) ++counts_["ScatterND"];
}

void RandomEmpty::compress(const Tensor& x) {
  const size_t axis = axis_of(x);
  Dims places;
  std::vector<double> condition;
  for (int64_t k = 0; k < x.shape[axis]; ++k) {
    condition.push_back(pick(0, 3) == 0 ? 1 : 0);
    if (condition.back() != 0) places.push_back(k);
  }
  const std::string name = new_name();
  add_constant(graph_, name, TensorProto::BOOL, {std::ssize(condition)}, condition);
  auto& made = node("Compress", {x.name, name}, x, with(x.shape, axis, std::ssize(places)),
                    [&](At at) { return element(x, with(at, axis, places[static_cast<size_t>(at[axis])])); });
  add_integer(made, "axis", static_cast<int64_t>(axis));
}

}  // namespace tuner::testing
