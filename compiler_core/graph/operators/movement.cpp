// Operators that move elements by places known ahead: shapes, orders, parts, borders.
#include <algorithm>
#include <numeric>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace movement_ops {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 40;  // of anything: products of two stay in range

// The same elements in the same order under another shape.
void reshaped(const Use& use, MathWriter& m) {
  const Shape &from = use.shape(0), &to = m.type().shape;
  m.result([&](const te::Indices& i) { return load(m.in(0), indices_of(flat_index(i, to), from)); });
}

Result<std::vector<TensorType>> reshape_types(const Use& use) {
  ASSIGN_OR_RETURN(const auto given, use.integers("shape", 1));
  Shape shape = given.value_or(Shape());  // a scalar's shape has no elements
  const bool zero_is_kept = use.integer("allowzero", 0) == 0;
  std::optional<size_t> open;
  int64_t known = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && zero_is_kept) {
      if (d >= use.shape(0).size())
        return invalid_argument("extent ", d, " is 0, and the input has no such one");
      shape[d] = use.shape(0)[d];
    }
    if (shape[d] == -1 && !open) {
      open = d;
      continue;
    }
    if (shape[d] < 0 || shape[d] > kMostExtent / known)
      return invalid_argument("extent ", d, " is ", shape[d]);
    known *= std::max<int64_t>(shape[d], 1);
  }
  const int64_t elements = use.type(0).elements();
  // Beside an extent of 0 one that is open could be any.
  const bool is_known = std::ranges::find(shape, 0) == shape.end();
  if (open && is_known && elements % known == 0) shape[*open] = elements / known;
  if (elements_of(shape) != elements || std::find(shape.begin(), shape.end(), -1) != shape.end())
    return invalid_argument(to_text(use.type(0)), " does not reshape to ",
                            to_text(TensorType{use.dtype(0), shape}));
  return one({use.dtype(0), shape});
}

// What make-views turns reshapes into: the shape is an attribute.
Result<std::vector<TensorType>> view_types(const Use& use) {
  const Shape shape = use.integers("shape");
  if (elements_of(shape) != use.type(0).elements())
    return invalid_argument(to_text(use.type(0)), " has no view ", to_text(TensorType{use.dtype(0), shape}));
  return one({use.dtype(0), shape});
}

Result<std::vector<TensorType>> flatten_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis("axis", 1, use.rank(0), use.rank(0)));
  const auto cut = static_cast<size_t>(axis);
  return one(
      {use.dtype(0), {product_of(use.shape(0), 0, cut), product_of(use.shape(0), cut, use.shape(0).size())}});
}

Result<std::vector<TensorType>> squeeze_types(const Use& use) {
  ASSIGN_OR_RETURN(const auto axes, use.axes("axes", 1, use.rank(0)));
  Shape shape;
  for (int64_t d = 0; d < use.rank(0); ++d) {
    const int64_t extent = use.shape(0)[static_cast<size_t>(d)];
    const bool named = axes && std::binary_search(axes->begin(), axes->end(), d);
    if (named && extent != 1) return invalid_argument("dimension ", d, " is ", extent, ", expected 1");
    if (!(axes ? named : extent == 1)) shape.push_back(extent);
  }
  return one({use.dtype(0), shape});
}

Result<std::vector<TensorType>> unsqueeze_types(const Use& use) {
  ASSIGN_OR_RETURN(const auto given, use.integers("axes", 1));
  if (!given) return invalid_argument("has no axes");
  const int64_t rank = use.rank(0) + static_cast<int64_t>(given->size());
  ASSIGN_OR_RETURN(const auto axes, use.axes("axes", 1, rank));
  Shape shape;
  auto next = use.shape(0).begin();
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(std::binary_search(axes->begin(), axes->end(), d) ? 1 : *next++);
  return one({use.dtype(0), shape});
}

std::vector<int64_t> permutation_of(const Use& use) {
  std::vector<int64_t> order(use.shape(0).size());
  std::iota(order.rbegin(), order.rend(), 0);
  return use.integers("perm", order);
}
Result<std::vector<TensorType>> transpose_types(const Use& use) {
  const std::vector<int64_t> order = permutation_of(use);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); ++d)
    if (sorted[d] != static_cast<int64_t>(d)) return invalid_argument("perm is no permutation");
  if (order.size() != use.shape(0).size())
    return invalid_argument("perm has ", order.size(), " axes, the input ", use.shape(0).size());
  Shape shape;
  for (const int64_t d : order) shape.push_back(use.shape(0)[static_cast<size_t>(d)]);
  return one({use.dtype(0), shape});
}
void transpose(const Use& use, MathWriter& m) {
  const std::vector<int64_t> order = permutation_of(use);
  m.result([&](const te::Indices& i) {
    te::Indices from(i.size());
    for (size_t d = 0; d < order.size(); ++d) from[static_cast<size_t>(order[d])] = i[d];
    return load(m.in(0), from);
  });
}

Result<std::vector<TensorType>> concat_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(1, use.rank(0)));
  TensorType type = use.type(0);
  for (size_t k = 1; k < use.inputs(); ++k) {
    Shape shape = use.shape(k);
    if (shape.size() != type.shape.size())
      return invalid_argument("input ", k, " is ", to_text(use.type(k)), ", the first ",
                              to_text(use.type(0)));
    type.shape[static_cast<size_t>(axis)] += shape[static_cast<size_t>(axis)];
    shape[static_cast<size_t>(axis)] = type.shape[static_cast<size_t>(axis)];
    if (shape != type.shape)
      return invalid_argument("input ", k, " is ", to_text(use.type(k)), ", the first ",
                              to_text(use.type(0)));
  }
  return one(type);
}
void concat(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(1, use.rank(0)));
  m.result([&](const te::Indices& i) {
    std::vector<int64_t> starts(use.inputs(), 0);
    for (size_t k = 1; k < use.inputs(); ++k) starts[k] = starts[k - 1] + use.shape(k - 1)[axis];
    const auto part = [&](size_t k) {
      te::Indices own = i;
      own[axis] = i[axis] - Expr(starts[k]);
      return load(m.in(k), own);
    };
    Expr value = part(use.inputs() - 1);
    for (size_t k = use.inputs() - 1; k-- > 0;) value = select(i[axis] < Expr(starts[k + 1]), part(k), value);
    return value;
  });
}

// Extents of the parts along the axis.
Result<std::vector<int64_t>> parts_of(const Use& use, int64_t axis) {
  const int64_t extent = use.shape(0)[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(const auto given, use.integers("split", 1));
  const auto count = static_cast<int64_t>(use.node().outputs.size());
  std::vector<int64_t> parts;
  constexpr int64_t kMayBeUneven = 18;
  if (use.integer("num_outputs", count) != count || (given && use.has_attribute("num_outputs")))
    return invalid_argument("num_outputs is ", use.integer("num_outputs", count), " beside ", count,
                            " results", given ? " and sizes of the parts" : "");
  if (given) {
    parts = *given;
  } else {
    if (use.operator_set() < kMayBeUneven && extent % count != 0)
      return invalid_argument("does not split ", extent, " into ", count, " equal parts");
    const int64_t each = (extent + count - 1) / count;
    for (int64_t k = 0; k < count; ++k) parts.push_back(std::min(each, extent - k * each));
  }
  if (std::accumulate(parts.begin(), parts.end(), int64_t{0}) != extent ||
      static_cast<int64_t>(parts.size()) != count)
    return invalid_argument("does not split ", extent, " into ", count, " parts");
  return parts;
}
Result<std::vector<TensorType>> split_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> parts, parts_of(use, axis));
  std::vector<TensorType> types(parts.size(), use.type(0));
  for (size_t k = 0; k < parts.size(); ++k) types[k].shape[static_cast<size_t>(axis)] = parts[k];
  return types;
}
void split(const Use& use, MathWriter& m) {
  const int64_t axis = *use.axis(0, use.rank(0));
  const std::vector<int64_t> parts = *parts_of(use, axis);
  int64_t start = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    m.result(k, [&](te::Indices i) {
      i[static_cast<size_t>(axis)] = i[static_cast<size_t>(axis)] + Expr(start);
      return load(m.in(0), std::move(i));
    });
    start += parts[k];
  }
}

// Of each dimension: element k is element start + k * step of the input.
struct Cut {
  int64_t start = 0, step = 1, count = 0;
};
Result<std::vector<Cut>> cuts_of(const Use& use) {
  ASSIGN_OR_RETURN(const auto starts, use.integers("starts", 1));
  ASSIGN_OR_RETURN(const auto ends, use.integers("ends", 2));
  ASSIGN_OR_RETURN(const auto axes, use.integers("axes", 3));
  ASSIGN_OR_RETURN(const auto steps, use.integers("steps", 4));
  if (!starts || !ends || starts->size() != ends->size())
    return invalid_argument("starts and ends do not fit together");
  if ((axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size()))
    return invalid_argument(starts->size(), " starts, ", axes ? axes->size() : starts->size(), " axes and ",
                            steps ? steps->size() : starts->size(), " steps, expected as many of each");
  std::vector<Cut> cuts;
  for (const int64_t extent : use.shape(0)) cuts.push_back({0, 1, extent});
  std::vector<bool> cut(cuts.size(), false);
  for (size_t k = 0; k < starts->size(); ++k) {
    int64_t axis = axes ? (*axes)[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += use.rank(0);
    if (axis < 0 || axis >= use.rank(0)) return invalid_argument("axes do not fit the input");
    if (cut[static_cast<size_t>(axis)]) return invalid_argument("axis ", axis, " stands twice");
    cut[static_cast<size_t>(axis)] = true;
    const int64_t extent = use.shape(0)[static_cast<size_t>(axis)], step = steps ? (*steps)[k] : 1;
    if (step == 0 || step < -kMostExtent) return invalid_argument("a step is ", step);
    if (extent == 0) continue;
    const auto bound = [&](int64_t x, int64_t least, int64_t most) {
      return std::clamp(x < 0 ? std::max(x, -extent - 1) + extent : x, least, most);
    };
    const int64_t start = bound((*starts)[k], 0, step > 0 ? extent : extent - 1);
    const int64_t end = step > 0 ? bound((*ends)[k], 0, extent) : bound((*ends)[k], -1, extent - 1);
    const int64_t span = step > 0 ? end - start : start - end, size = std::min(std::abs(step), extent + 1);
    cuts[static_cast<size_t>(axis)] = {start, step, span < 1 ? 0 : (span + size - 1) / size};
  }
  return cuts;
}
Result<std::vector<TensorType>> slice_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<Cut> cuts, cuts_of(use));
  Shape shape;
  for (const Cut& cut : cuts) shape.push_back(cut.count);
  return one({use.dtype(0), shape});
}
void slice(const Use& use, MathWriter& m) {
  const std::vector<Cut> cuts = *cuts_of(use);
  m.result([&](te::Indices i) {
    for (size_t d = 0; d < i.size(); ++d)
      if (cuts[d].count > 1)
        i[d] = i[d] * Expr(cuts[d].step) + Expr(cuts[d].start);
      else
        i[d] = Expr(cuts[d].start);
    return load(m.in(0), std::move(i));
  });
}

// Borders before and behind each dimension; negative ones cut.
struct Border {
  int64_t before = 0, behind = 0;
};
Result<std::vector<Border>> borders_of(const Use& use) {
  const std::string_view attribute = use.has_attribute("pads") ? "pads" : "paddings";
  ASSIGN_OR_RETURN(const auto pads, use.integers(attribute, 1));
  std::vector<int64_t> axes(use.shape(0).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (use.has(3)) {
    ASSIGN_OR_RETURN(axes, use.integers(3));
  }
  if (!pads || pads->size() != 2 * axes.size()) return invalid_argument("pads do not fit the input");
  std::vector<Border> borders(use.shape(0).size());
  std::vector<bool> named(borders.size(), false);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + use.rank(0) : axes[k];
    if (axis < 0 || axis >= use.rank(0)) return invalid_argument("axis ", axes[k], " is none of the input");
    if (named[static_cast<size_t>(axis)]) return invalid_argument("axis ", axis, " stands twice");
    named[static_cast<size_t>(axis)] = true;
    const Border border{(*pads)[k], (*pads)[k + axes.size()]};
    if (std::max(border.before, border.behind) > kMostExtent ||
        std::min(border.before, border.behind) < -kMostExtent)
      return invalid_argument("pads hold ", border.before, " and ", border.behind);
    borders[static_cast<size_t>(axis)] = border;
  }
  return borders;
}
Result<std::vector<TensorType>> pad_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<Border> borders, borders_of(use));
  const std::string mode = use.word("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return invalid_argument("mode \"", mode, "\" is not served");
  TensorType type = use.type(0);
  for (size_t d = 0; d < borders.size(); ++d) {
    const int64_t most = std::max(borders[d].before, borders[d].behind);
    if ((mode == "reflect" && most > 0 && most >= type.shape[d]) ||
        (mode == "wrap" && most > type.shape[d]) || (mode == "edge" && most > 0 && type.shape[d] == 0))
      return invalid_argument("a border of ", most, " of dimension ", d, ", which is ", type.shape[d]);
    type.shape[d] += borders[d].before + borders[d].behind;
  }
  return one(type);
}
void pad(const Use& use, MathWriter& m) {
  const std::vector<Border> borders = *borders_of(use);
  const std::string mode = use.word("mode", "constant");
  const DType dtype = use.dtype(0);
  m.result([&](te::Indices i) {
    Expr inside = bool_imm(true);
    for (size_t d = 0; d < i.size(); ++d) {
      if (borders[d].before == 0 && borders[d].behind == 0) continue;
      const Expr extent(use.shape(0)[d]), from = i[d] - Expr(borders[d].before);
      inside = inside && from >= Expr(0) && from < extent;
      i[d] = from;
      if (mode == "edge") i[d] = min(max(from, Expr(0)), extent - Expr(1));
      if (mode == "wrap") i[d] = floor_mod(from, extent);
      if (mode == "reflect") {
        const Expr positive = max(from, Expr(0) - from);
        i[d] = min(positive, Expr(2) * (extent - Expr(1)) - positive);
      }
    }
    const Expr element = load(m.in(0), i);
    if (mode != "constant") return element;
    const Expr filling = use.has(2) ? at(m.in(2), te::Indices(use.shape(2).size(), Expr(0)))
                                    : number(dtype, use.number("value", 0));
    return select(inside, element, filling);
  });
}

Result<std::vector<TensorType>> expand_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, use.integers(1));
  ASSIGN_OR_RETURN(const Shape shape, broadcast(use.shape(0), wanted));
  return one({use.dtype(0), shape});
}
void expand(const Use& /*use*/, MathWriter& m) {
  m.result([&](const te::Indices& i) { return at(m.in(0), i); });
}

Result<std::vector<TensorType>> tile_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, use.integers(1));
  if (repeats.size() != use.shape(0).size()) return invalid_argument("repeats do not fit the input");
  TensorType type = use.type(0);
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > kMostExtent / std::max<int64_t>(type.shape[d], 1))
      return invalid_argument("repeats dimension ", d, " ", repeats[d], " times");
    type.shape[d] *= repeats[d];
  }
  return one(type);
}
void tile(const Use& use, MathWriter& m) {
  m.result([&](te::Indices i) {
    for (size_t d = 0; d < i.size(); ++d) i[d] = floor_mod(i[d], Expr(use.shape(0)[d]));
    return load(m.in(0), std::move(i));
  });
}

// Blocks of b x b pixels from channels, and back.
Result<int64_t> block_of(const Use& use) {
  const int64_t block = use.integer("blocksize", 0);
  constexpr int64_t kMostBlock = 1024;
  if (use.rank(0) != 4 || block < 1 || block > kMostBlock)
    return invalid_argument("needs an image [N, C, H, W] and a blocksize");
  return block;
}
Result<std::vector<TensorType>> depth_to_space_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t b, block_of(use));
  const Shape& s = use.shape(0);
  if (s[1] % (b * b) != 0) return invalid_argument(s[1], " channels, expected a multiple of ", b * b);
  return one({use.dtype(0), {s[0], s[1] / (b * b), s[2] * b, s[3] * b}});
}
void depth_to_space(const Use& use, MathWriter& m) {
  const int64_t b = *block_of(use);
  const bool channels_first = use.word("mode", "DCR") == "CRD";
  const Expr channels(m.type().shape[1]);
  m.result([&](const te::Indices& i) {
    const Expr part = floor_mod(i[2], Expr(b)) * Expr(b) + floor_mod(i[3], Expr(b));
    const Expr channel = channels_first ? i[1] * Expr(b * b) + part : part * channels + i[1];
    return load(m.in(0), {i[0], channel, floor_div(i[2], Expr(b)), floor_div(i[3], Expr(b))});
  });
}
Result<std::vector<TensorType>> space_to_depth_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t b, block_of(use));
  const Shape& s = use.shape(0);
  if (s[2] % b != 0 || s[3] % b != 0) return invalid_argument("height and width are no multiples of ", b);
  return one({use.dtype(0), {s[0], s[1] * b * b, s[2] / b, s[3] / b}});
}
void space_to_depth(const Use& use, MathWriter& m) {
  const int64_t b = *block_of(use);
  const Expr channels(use.shape(0)[1]);
  m.result([&](const te::Indices& i) {
    const Expr part = floor_div(i[1], channels);
    return load(m.in(0), {i[0], floor_mod(i[1], channels), i[2] * Expr(b) + floor_div(part, Expr(b)),
                          i[3] * Expr(b) + floor_mod(part, Expr(b))});
  });
}

// The middle of each of some dimensions, or the whole with zeros around it. Of an odd rest the larger half
// lies behind.
Result<std::vector<Border>> margins_of(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, use.integers(1));
  std::vector<int64_t> axes = use.integers("axes");
  if (!use.has_attribute("axes")) {
    axes.resize(use.shape(0).size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != wanted.size())
    return invalid_argument(wanted.size(), " extents for ", axes.size(), " axes");
  std::vector<Border> borders(use.shape(0).size());
  std::vector<bool> named(borders.size(), false);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + use.rank(0) : axes[k];
    if (axis < 0 || axis >= use.rank(0)) return invalid_argument("axis ", axes[k], " is none of the input");
    const auto d = static_cast<size_t>(axis);
    if (named[d]) return invalid_argument("axis ", axis, " stands twice");
    named[d] = true;
    if (wanted[k] < 0 || wanted[k] > kMostExtent) return invalid_argument("an extent of ", wanted[k]);
    const int64_t more = wanted[k] - use.shape(0)[d];
    borders[d].before = more / 2;  // toward zero: of a negative one the smaller half, too
    borders[d].behind = more - borders[d].before;
  }
  return borders;
}
Result<std::vector<TensorType>> center_crop_pad_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<Border> borders, margins_of(use));
  TensorType type = use.type(0);
  for (size_t d = 0; d < borders.size(); ++d) type.shape[d] += borders[d].before + borders[d].behind;
  return one(type);
}
void center_crop_pad(const Use& use, MathWriter& m) {
  const std::vector<Border> borders = *margins_of(use);
  m.result([&](te::Indices i) {
    Expr inside = bool_imm(true);
    for (size_t d = 0; d < i.size(); ++d) {
      i[d] = i[d] - Expr(borders[d].before);
      if (borders[d].before > 0) inside = inside && i[d] >= Expr(0);
      if (borders[d].behind > 0) inside = inside && i[d] < Expr(use.shape(0)[d]);
    }
    return select(inside, load(m.in(0), i), number(use.dtype(0), 0));
  });
}

// The lower or upper triangle of matrices, zeros elsewhere.
Result<std::vector<TensorType>> trilu_types(const Use& use) {
  if (use.rank(0) < 2) return invalid_argument("needs matrices, got ", use.rank(0), " dimensions");
  if (use.has(1)) RETURN_IF_ERROR(use.integers(1).status());
  return like_first(use);
}
void trilu(const Use& use, MathWriter& m) {
  const int64_t k = use.has(1) ? use.integers(1)->at(0) : 0;
  const bool upper = use.integer("upper", 1) != 0;
  m.result([&](const te::Indices& i) {
    const Expr row = i[i.size() - 2] + Expr(k);
    const Expr& column = i[i.size() - 1];
    return select(upper ? column >= row : column <= row, load(m.in(0), i), number(use.dtype(0), 0));
  });
}

constexpr auto kKind = OperatorKind::kMovement;
constexpr Operator kRows[] = {
    {"CenterCropPad", kKind, 2, 2, 1, center_crop_pad_types, center_crop_pad},
    {"Reshape", kKind, 1, 2, 1, reshape_types, reshaped},
    {"tuner.View", kKind, 1, 1, 1, view_types, reshaped},
    {"Flatten", kKind, 1, 1, 1, flatten_types, reshaped},
    {"Squeeze", kKind, 1, 2, 1, squeeze_types, reshaped},
    {"Unsqueeze", kKind, 1, 2, 1, unsqueeze_types, reshaped},
    {"Transpose", kKind, 1, 1, 1, transpose_types, transpose},
    {"Concat", kKind, 1, kAnyNumber, 1, concat_types, concat},
    {"Split", kKind, 1, 2, kAnyNumber, split_types, split},
    {"Slice", kKind, 1, 5, 1, slice_types, slice},
    {"Pad", kKind, 1, 4, 1, pad_types, pad},
    {"Expand", kKind, 2, 2, 1, expand_types, expand},
    {"Tile", kKind, 2, 2, 1, tile_types, tile},
    {"DepthToSpace", kKind, 1, 1, 1, depth_to_space_types, depth_to_space},
    {"SpaceToDepth", kKind, 1, 1, 1, space_to_depth_types, space_to_depth},
    {"Trilu", kKind, 1, 2, 1, trilu_types, trilu},
};

}  // namespace
}  // namespace movement_ops

std::span<const Operator> movement_operators() { return movement_ops::kRows; }

}  // namespace tuner::graph
