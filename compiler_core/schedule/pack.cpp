// pack: a tensor in blocks. Constants are packed once, ahead, by the Program's packing entry.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// "1/16, 0, 1%16": blocks of 16 of dimension 1, dimension 0, inside of the blocks. "0/2*16": blocks of 2, as
// many as a multiple of 16. "1%16~4": beyond dimension 1 its last 4 elements are repeated.
std::string dims_text(const std::vector<PackDim>& dims) {
  std::string text;
  for (const PackDim& d : dims) {
    text += text.empty() ? "" : ", ";
    const bool plain = d.factor == 1 && d.multiple == 1;
    text += d.inner ? str(d.dim, "%", d.factor) : plain ? str(d.dim) : str(d.dim, "/", d.factor);
    if (d.multiple != 1) text += str("*", d.multiple);
    if (d.repeat > 0) text += str("~", d.repeat);
  }
  return text;
}

Status check_dims(const Buffer& buffer, const std::vector<PackDim>& dims) {
  const int rank = static_cast<int>(buffer->shape.size());
  for (const PackDim& d : dims) {
    if (d.dim < 0 || d.dim >= rank)
      return invalid_config("dimension ", d.dim, "; ", buffer->name, " has ", rank);
    if (d.factor < 1) return invalid_config("dimension ", d.dim, " in blocks of ", d.factor, "; at least 1");
    const int64_t extent = buffer->shape[static_cast<size_t>(d.dim)];
    if (d.repeat != 0 && (!d.inner || d.repeat < 0 || extent % d.repeat != 0))
      return invalid_config("dimension ", d.dim, ", of extent ", extent, ", with its last ", d.repeat,
                            " elements repeated; only the inside of blocks, and a divisor of the extent");
    if (d.multiple < 1 || (d.inner && d.multiple != 1))
      return invalid_config("dimension ", d.dim, " in multiples of ", d.multiple,
                            d.inner ? "; only blocks are padded" : "; at least 1");
  }
  for (int dim = 0; dim < rank; ++dim) {
    int outer = 0, inner = 0;
    int64_t factor = 0;
    bool same = true;
    for (const PackDim& d : dims) {
      if (d.dim != dim) continue;
      (d.inner ? inner : outer) += 1;
      same &= factor == 0 || factor == d.factor;
      factor = d.factor;
    }
    if (!same) return invalid_config("dimension ", dim, " in blocks of two sizes");
    if (outer != 1 || (inner != 1 && factor != 1) || inner > 1)
      return invalid_config("dimension ", dim,
                            " must appear once whole, or once as blocks and once as their inside");
  }
  return Status::ok();
}

std::vector<int64_t> packed_shape(const Buffer& buffer, const std::vector<PackDim>& dims) {
  std::vector<int64_t> shape;
  for (const PackDim& d : dims) {
    const int64_t extent = buffer->shape[static_cast<size_t>(d.dim)];
    const int64_t blocks = blocks_of(extent, d.factor);
    shape.push_back(d.inner ? d.factor : bounded_product(blocks_of(blocks, d.multiple), d.multiple));
  }
  return shape;
}

// Blocks larger than a dimension multiply a tensor, and blocks of blocks do it again.
Status check_padding(const Buffer& source, const Buffer& packed, const std::vector<PackDim>& dims) {
  RETURN_IF_ERROR(check_size(packed));
  if (!mostly_padding(packed, source)) return Status::ok();
  const auto growth = [&](const PackDim& d) {
    const int64_t extent = source->shape[static_cast<size_t>(d.dim)];
    const int64_t unit = bounded_product(d.factor, d.multiple);
    return static_cast<double>(blocks_of(extent, unit)) * static_cast<double>(unit) /
           static_cast<double>(extent);
  };
  const PackDim& worst = *std::max_element(
      dims.begin(), dims.end(), [&](const PackDim& a, const PackDim& b) { return growth(a) < growth(b); });
  return invalid_config(packed->name, " would take ", packed->bytes(), " bytes, ", source->name, " takes ",
                        source->bytes(), ": mostly padding, above all of dimension ", worst.dim,
                        ", of extent ", source->shape[static_cast<size_t>(worst.dim)], ", in blocks of ",
                        worst.factor, "; smaller blocks");
}

// packed[...] = source[...], where blocks reach past it zeros or the last elements again.
Stmt packing_nest(const Buffer& source, const Buffer& packed, const std::vector<PackDim>& dims) {
  std::vector<Expr> to, from(source->shape.size(), Expr(0));
  std::vector<Stmt> loops;
  RangeMap ranges;
  const Stmt none = make_seq({make_store(packed, std::vector<Expr>(dims.size(), Expr(0)),
                                         load(source, std::vector<Expr>(source->shape.size(), Expr(0))))});
  for (size_t i = 0; i < dims.size(); ++i) {
    const Var var = make_var(str("p", i));
    loops.push_back(make_for(var, packed->shape[i], none));
    ranges.bind(var, packed->shape[i]);
    to.emplace_back(var);
    Expr& index = from[static_cast<size_t>(dims[i].dim)];
    index = index + (dims[i].inner ? Expr(var) : Expr(var) * dims[i].factor);
  }
  Expr inside = bool_imm(true);
  for (size_t d = 0; d < from.size(); ++d) {
    from[d] = simplify(from[d]);
    const auto inner = std::find_if(dims.begin(), dims.end(), [&](const PackDim& p) {
      return p.dim == static_cast<int>(d) && p.repeat > 0;
    });
    if (inner == dims.end()) {
      inside = inside && simplify(from[d] < source->shape[d], ranges);
      continue;
    }
    from[d] = simplify(repeated_at_edge(from[d], source->shape[d], inner->repeat), ranges);
  }
  const Expr zero = is_float(source->dtype) ? float_imm(0, source->dtype) : int_imm(0, source->dtype);
  const Expr value = load(source, from);
  const bool always = inside->kind == ExprKind::kIntImm;
  return nest(loops, {}, make_store(packed, to, always ? value : select(inside, value, zero)));
}

Expr read_packed(const Expr& e, const Buffer& source, const Buffer& packed,
                 const std::vector<PackDim>& dims) {
  const Expr mapped =
      map_children(e, [&](const Expr& operand) { return read_packed(operand, source, packed, dims); });
  if (e->kind != ExprKind::kLoad || e->buffer != source) return mapped;
  std::vector<Expr> indices;
  for (const PackDim& d : dims) {
    const Expr& index = mapped->operands[static_cast<size_t>(d.dim)];
    indices.push_back(d.inner ? floor_mod(index, d.factor) : floor_div(index, d.factor));
  }
  return load(packed, std::move(indices));
}

Stmt read_packed(const Stmt& s, const Buffer& source, const Buffer& packed,
                 const std::vector<PackDim>& dims) {
  return map_children(
      s, [&](const Expr& e) { return read_packed(e, source, packed, dims); },
      [&](const Stmt& child) { return read_packed(child, source, packed, dims); });
}

// The Program with one more constant packed ahead.
void pack_ahead(Program& program, const Buffer& source, const Buffer& packed,
                const std::vector<PackDim>& dims) {
  Program packing;
  if (program.packing != nullptr)
    packing = *program.packing;
  else
    packing.name = program.name + "_pack";
  const auto first_packed = std::find_if(packing.args.begin(), packing.args.end(),
                                         [](const Buffer& b) { return b->role == BufferRole::kPacked; });
  packing.args.insert(first_packed, source);
  packing.args.push_back(packed);
  packing.body = make_seq({packing.body, packing_nest(source, packed, dims)});
  program.packing = std::make_shared<const Program>(std::move(packing));
  std::replace(program.args.begin(), program.args.end(), source, packed);
}

// Where a stage that reads `source` and feeds all of its readers can stand: before the first nest that reads
// it.
Result<Path> before_readers(const Stmt& root, const Buffer& source) {
  Path path;
  for (Stmt s = root;;) {
    path.push_back(s);
    if (s->kind == StmtKind::kAllocate) {
      s = s->body;
    } else if (s->kind == StmtKind::kSeq) {
      const auto reader = std::find_if(s->stmts.begin(), s->stmts.end(),
                                       [&](const Stmt& child) { return reads_from(child, source); });
      if (reader == s->stmts.end()) return invalid_config("nothing reads ", source->name);
      s = *reader;
    } else {
      break;
    }
  }
  if (!reads_from(path.back(), source)) return invalid_config("nothing reads ", source->name);
  if (stores_to(path.back(), source))
    return invalid_config(source->name,
                          " is computed inside the loops of its reader; pack before compute_at");
  return path;
}

}  // namespace

Expr repeated_at_edge(const Expr& index, int64_t extent, int64_t n) {
  return min(floor_div(index, n) * n, extent - n) + floor_mod(index, n);
}

Tensor Schedule::pack(const Tensor& t, std::vector<PackDim> dims) {
  Tensor result;
  if (refused()) return result;
  const Buffer source = resolve(t);
  const std::string call =
      str("pack(", source == nullptr ? "(none)" : source->name, ", {", dims_text(dims), "})");
  apply(call, [&]() -> Status {
    if (source == nullptr) return invalid_config("the tensor handle is empty");
    RETURN_IF_ERROR(check_dims(source, dims));
    if (source->role == BufferRole::kPacked) return invalid_config(source->name, " is packed already");
    RETURN_IF_ERROR(check_no_tiles(program_.body, source));
    ASSIGN_OR_RETURN(const Path path, before_readers(program_.body, source));
    const bool ahead = source->role == BufferRole::kConstant;
    auto node = std::make_shared<BufferNode>(*source);
    node->name = free_name(program_, source->name + ".packed");
    node->shape = packed_shape(source, dims);
    node->scope = MemoryScope::kGlobal;
    node->role = ahead ? BufferRole::kPacked : BufferRole::kIntermediate;
    const Buffer packed = std::move(node);
    RETURN_IF_ERROR(check_padding(source, packed, dims));
    result.buffer = packed;
    if (ahead) {
      program_.body = simplify(read_packed(program_.body, source, result.buffer, dims));
      pack_ahead(program_, source, result.buffer, dims);
    } else {
      program_.body = simplify(read_packed(program_.body, source, result.buffer, dims));
      // The same place in the rewritten tree: the first nest that reads the packed tensor.
      ASSIGN_OR_RETURN(const Path place, before_readers(program_.body, result.buffer));
      program_.body = replace_at(place, make_seq({packing_nest(source, result.buffer, dims), place.back()}));
      program_.body = allocate_at_root(program_.body, result.buffer);
    }
    record(str(call, " -> ", result.buffer->name));
    return Status::ok();
  });
  return result;
}

}  // namespace tuner
