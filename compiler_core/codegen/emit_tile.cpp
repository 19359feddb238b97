// Tiles of vectors: a vectorised loop and the loop of rows around it (LoopKind::kVectorRows).
//
// The tile is cut into blocks of at most a vector of rows by a vector of lanes. In each, a load or store that
// is contiguous along the rows and strided along the lanes would be a gather or scatter for every row; it is
// done by vectors of rows instead, one a lane, and transposed in registers. Everything else is done row by
// row, as a vectorised loop would.
//
//   out[lane, row] = x[lane, row] * 2     16 lanes, 16 rows: 16 loads of rows, transpose, 16 products,
//                                         transpose, 16 stores of rows
//
// Where the vectorised loop is the shorter of the two, they change places: 7 pixels of 16 channels are 7
// vectors of channels, of which the sums are made before they are transposed, not 16 vectors of 7 pixels.
//
// Guards and the conditions of selects become the masks of those loads and stores. Iterations are independent
// of each other, so the loads of a statement may all stand before its first row.
#include <algorithm>
#include <bit>

#include "compiler_core/codegen/emitter.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::codegen {
namespace {

using Vectors = std::vector<llvm::Value*>;

// Transposes in shuffles of two vectors that x86 and AArch64 have as one instruction each:
//   zip      low or high halves of each 16 bytes of a and b, element by element: unpcklps, zip1
//   lanes    even or odd 16 bytes of a, then of b: vshuff32x4, vperm2f128
// Numbers of elements and vectors are powers of two. In terms of bits of indices: a stage makes one bit of
// the vectors' index the lowest bit of the position (in 16 bytes, or among them), moves the others up, and
// the highest that falls out (zip) or the lowest (lanes) becomes the bit of the vectors' index instead.
class Transpose {
 public:
  Transpose(llvm::IRBuilder<>& b, const MachineTraits& machine)
      : b_(b), permutes_bytes_(machine.has_byte_permute), fences_(!machine.has_neon) {}

  // `lanes` vectors of `rows` elements -> `rows` vectors of `lanes`; rows <= lanes.
  Vectors to_rows(Vectors vectors, int64_t rows) {
    const auto lanes = static_cast<int64_t>(vectors.size());
    const int64_t per_lane = elements_of_16_bytes(vectors, lanes);
    const int64_t wide = std::max(rows, per_lane);
    for (llvm::Value*& v : vectors) v = resized(v, wide);
    // Vectors whose indices differ only in the bits from per_lane up to lanes / wide * per_lane lie side by
    // side.
    const int64_t together = lanes / wide;
    Vectors full;
    for (int64_t high = 0; high < lanes; high += together * per_lane)
      for (int64_t low = 0; low < per_lane; ++low) {
        Vectors parts;
        for (int64_t i = 0; i < together; ++i)
          parts.push_back(vectors[static_cast<size_t>(high + i * per_lane + low)]);
        full.push_back(joined(parts));
      }
    zip(full, per_lane);
    shuffle_lanes(full, per_lane);
    full.resize(static_cast<size_t>(rows));
    return full;
  }

  // `rows` vectors of `lanes` elements -> `lanes` vectors of `rows`; rows <= lanes.
  Vectors to_lanes(Vectors vectors, int64_t lanes) {
    const auto rows = static_cast<int64_t>(vectors.size());
    const int64_t per_lane = elements_of_16_bytes(vectors, lanes);
    const int64_t wide = std::max(rows, per_lane);
    vectors.resize(static_cast<size_t>(wide), llvm::PoisonValue::get(vectors[0]->getType()));
    zip(vectors, per_lane);
    Vectors all;
    for (int64_t part = 0; part < lanes; part += wide) {
      Vectors square;
      for (llvm::Value* v : vectors) square.push_back(section(v, part, wide));
      shuffle_lanes(square, per_lane);
      for (llvm::Value* v : square) all.push_back(resized(v, rows));
    }
    return all;
  }

  // Two or four vectors element by element, as one piece: a0 b0 c0 d0 a1 b1 ... It comes in parts of 16 bytes
  // where the vectors have 16 bytes and their bytes are not permuted at once, else whole.
  Vectors woven(Vectors v) {
    if (v.size() == 4) {
      const auto bits = static_cast<int64_t>(v[0]->getType()->getScalarSizeInBits());
      const bool fills = count(v[0]) * bits == 128;
      if (fills && bits == 8 && permutes_bytes_) return {quarters_zipped(joined(v))};
      if (fills) {
        const Vectors ac = halves(v[0], v[2]), bd = halves(v[1], v[3]);
        const Vectors first = halves(ac[0], bd[0]), second = halves(ac[1], bd[1]);
        return {first[0], first[1], second[0], second[1]};
      }
      v = {zipped(v[0], v[2]), zipped(v[1], v[3])};
    }
    return {zipped(v[0], v[1])};
  }

 private:
  // a0 b0 a1 b1 ..., and its two halves.
  llvm::Value* zipped(llvm::Value* a, llvm::Value* b) {
    llvm::SmallVector<int> mask;
    for (int64_t i = 0; i < 2 * count(a); ++i) mask.push_back(static_cast<int>(i / 2 + i % 2 * count(a)));
    return b_.CreateShuffleVector(a, b, mask);
  }
  // The four quarters of a vector, element by element.
  llvm::Value* quarters_zipped(llvm::Value* v) {
    llvm::SmallVector<int> mask;
    for (int64_t i = 0; i < count(v); ++i) mask.push_back(static_cast<int>(i / 4 + i % 4 * (count(v) / 4)));
    return b_.CreateShuffleVector(v, mask);
  }
  Vectors halves(llvm::Value* a, llvm::Value* b) {
    llvm::SmallVector<int> low, high;
    for (int64_t i = 0; i < count(a); ++i) {
      const int64_t at = i / 2 + i % 2 * count(a);
      low.push_back(static_cast<int>(at));
      high.push_back(static_cast<int>(at + count(a) / 2));
    }
    return {b_.CreateShuffleVector(a, b, low), b_.CreateShuffleVector(a, b, high)};
  }

  static int64_t count(llvm::Value* v) {
    return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  }
  static int64_t elements_of_16_bytes(const Vectors& vectors, int64_t lanes) {
    const auto bits = static_cast<int64_t>(vectors[0]->getType()->getScalarSizeInBits());
    return std::min(lanes, 128 / bits);
  }

  llvm::Value* section(llvm::Value* v, int64_t begin, int64_t n) {
    if (begin == 0 && n == count(v)) return v;
    llvm::SmallVector<int> mask;
    for (int64_t i = begin; i < begin + n; ++i) mask.push_back(i < count(v) ? static_cast<int>(i) : -1);
    return b_.CreateShuffleVector(v, mask);
  }
  llvm::Value* resized(llvm::Value* v, int64_t n) { return section(v, 0, n); }

  llvm::Value* joined(Vectors parts) {
    while (parts.size() > 1) {
      llvm::SmallVector<int> mask;
      for (int64_t i = 0; i < 2 * count(parts[0]); ++i) mask.push_back(static_cast<int>(i));
      Vectors pairs;
      for (size_t i = 0; i < parts.size(); i += 2)
        pairs.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], mask));
      parts = std::move(pairs);
    }
    return parts[0];
  }

  // The vectors a and b of each pair `bit` apart become two shuffles of both.
  void stage(Vectors& vectors, size_t bit, const llvm::SmallVector<int>& low,
             const llvm::SmallVector<int>& high) {
    for (size_t i = 0; i < vectors.size(); ++i) {
      if ((i & bit) != 0) continue;
      llvm::Value *a = vectors[i], *b = vectors[i | bit];
      vectors[i] = b_.CreateShuffleVector(a, b, low);
      vectors[i | bit] = b_.CreateShuffleVector(a, b, high);
    }
  }

  // LLVM looks for one instruction in place of several shuffles that follow each other, at every shuffle,
  // through all that it is made of. In a transposition there is none, and looking took a third of the time to
  // compile. Behind a fence it does not look; a fence is no instruction.
  void fence(Vectors& vectors) {
    if (!fences_ || !vectors[0]->getType()->getScalarType()->isFloatTy()) return;
    for (llvm::Value*& v : vectors)
      if (!llvm::isa<llvm::Constant>(v))
        v = b_.CreateIntrinsic(v->getType(), llvm::Intrinsic::arithmetic_fence, {v});
  }

  void zip(Vectors& vectors, int64_t per_lane) {
    const int64_t n = count(vectors[0]);
    llvm::SmallVector<int> low, high;
    for (int64_t lane = 0; lane < n; lane += per_lane)
      for (int64_t i = 0; i < per_lane; ++i) {
        const int64_t at = lane + i / 2 + (i % 2) * n;
        low.push_back(static_cast<int>(at));
        high.push_back(static_cast<int>(at + per_lane / 2));
      }
    for (auto bit = static_cast<size_t>(per_lane) / 2; bit >= 1; bit /= 2) stage(vectors, bit, low, high);
    fence(vectors);
  }

  void shuffle_lanes(Vectors& vectors, int64_t per_lane) {
    const int64_t n = count(vectors[0]);
    llvm::SmallVector<int> even, odd;
    for (int64_t lane = 0; lane < 2 * n; lane += 2 * per_lane)
      for (int64_t i = 0; i < per_lane; ++i) {
        even.push_back(static_cast<int>(lane + i));
        odd.push_back(static_cast<int>(lane + per_lane + i));
      }
    for (auto bit = static_cast<size_t>(per_lane); bit < vectors.size(); bit *= 2)
      stage(vectors, bit, even, odd);
  }

  llvm::IRBuilder<>& b_;
  bool permutes_bytes_;  // one instruction puts the bytes of a vector in any order (vpermb)
  bool fences_;          // between the stages
};

}  // namespace

// The part `s` of the tile's body; `guards` stand around it.
void Emitter::emit_tile(const StmtNode& rows, const Stmt& s, std::vector<Expr>& guards) {
  if (lanes_.var != nullptr)
    return refuse("vector rows ", rows.var->name, " stand inside vectorized ", lanes_.var->name);
  switch (s->kind) {
    case StmtKind::kSeq:
      for (const Stmt& child : s->stmts) emit_tile(rows, child, guards);
      return;
    case StmtKind::kIf:
      guards.push_back(s->condition);
      emit_tile(rows, s->body, guards);
      guards.back() = unary(UnaryOp::kNot, s->condition);
      if (s->else_body != nullptr) emit_tile(rows, s->else_body, guards);
      guards.pop_back();
      return;
    case StmtKind::kFor:
      if (s->loop == LoopKind::kVectorized) break;
      [[fallthrough]];
    default:
      return refuse("the loop ", rows.var->name, " of vector rows is not directly around a vectorized loop");
  }
  // Iterations are independent, so the longer side may be the lanes: fewer and fuller vectors of arithmetic.
  const bool turned = s->extent < rows.extent;
  const StmtNode &across = turned ? *s : rows, &along = turned ? rows : *s;
  const int64_t whole = machine_.vector_bits / 32;
  for (Piece lane{0, 0, 0}; lane.begin < along.extent; lane.begin += lane.lanes) {
    lane = lanes_.next_piece(lane.begin, along.extent, whole);
    for (Piece row{0, 0, 0}; row.begin < across.extent; row.begin += row.lanes) {
      row = lanes_.next_piece(row.begin, across.extent, lane.lanes);
      emit_tile_block({across.var, along.var, row, lane}, s->body, guards);
    }
  }
  scope_.ranges.bind(rows.var, rows.extent);
  scope_.ranges.bind(s->var, s->extent);
}

void Emitter::emit_tile_block(const Tile& tile, const Stmt& s, std::vector<Expr>& guards) {
  switch (s->kind) {
    case StmtKind::kSeq:
      for (const Stmt& child : s->stmts) emit_tile_block(tile, child, guards);
      return;
    case StmtKind::kIf:
      guards.push_back(s->condition);
      emit_tile_block(tile, s->body, guards);
      guards.back() = unary(UnaryOp::kNot, s->condition);
      if (s->else_body != nullptr) emit_tile_block(tile, s->else_body, guards);
      guards.pop_back();
      return;
    case StmtKind::kStore:
      break;
    default:
      return refuse("the tile of ", tile.rows->name, " and ", tile.lanes->name,
                    " has more than stores in it");
  }
  if (tile.lane.lanes > 1) {
    std::vector<Expr> conditions = guards;
    load_across(tile, s->value, conditions);
    if (is_across(tile, s->buffer, s->indices)) return store_across(tile, s, guards);
  }
  Stmt guarded = s;
  for (size_t i = guards.size(); i-- > 0;) guarded = make_if(guards[i], guarded);
  for (int64_t row = 0; row < tile.row.active; ++row) {
    at_row(tile, row);
    emit(guarded);
  }
  leave_tile(tile);
}

void Emitter::at_row(const Tile& tile, int64_t row) {
  if (tile.lane.lanes > 1)
    lanes_.run_along(tile.lanes, tile.lane);
  else
    lanes_.run_at(tile.lanes, tile.lane.begin);
  lanes_.run_at(tile.rows, tile.row.begin + row);
  transposed_.row = static_cast<size_t>(row);
}

void Emitter::at_lane(const Tile& tile, int64_t lane) {
  lanes_.run_along(tile.rows, tile.row);
  lanes_.run_at(tile.lanes, tile.lane.begin + lane);
}

void Emitter::leave_tile(const Tile& tile) {
  lanes_.leave();
  scope_.vars.erase(tile.rows.get());
  scope_.vars.erase(tile.lanes.get());
  transposed_.vectors.clear();
}

// Neighbours along the rows, but not along the lanes; and rows long enough to be worth a transpose: one or
// two elements are gathered or scattered where the target can, which no target can with less than four bytes.
bool Emitter::is_across(const Tile& tile, const Buffer& buffer, const std::vector<Expr>& indices) {
  const int64_t least = machine_.has_scatter && dtype_bytes(buffer->dtype) >= 4 ? 3 : 2;
  if (buffer->dtype == DType::kBool || tile.row.lanes < least) return false;
  lanes_.run_along(tile.rows, tile.row);
  scope_.ranges.bind(tile.lanes, tile.lane.begin, tile.lane.begin + tile.lane.active);
  const bool by_rows = addresses_.analyze(buffer, indices).kind == Access::kContiguous;
  lanes_.run_along(tile.lanes, tile.lane);
  scope_.ranges.bind(tile.rows, tile.row.begin, tile.row.begin + tile.row.active);
  const bool by_lanes = addresses_.analyze(buffer, indices).kind != Access::kStrided;
  lanes_.leave();
  return by_rows && !by_lanes;
}

// Restricts the lanes that run to those for which all conditions hold; false when none is left.
bool Emitter::mask_by(const std::vector<Expr>& conditions) {
  lanes_.mask = nullptr;
  for (const Expr& condition : conditions) {
    llvm::Value* holds = values_.emit(condition);
    if (const auto* known = llvm::dyn_cast<llvm::Constant>(holds)) {
      if (known->isNullValue()) return false;
      if (known->isAllOnesValue()) continue;
    }
    lanes_.mask = lanes_.with_mask(holds);
  }
  return true;
}

// Reads and transposes the loads of `value` that lie across the tile; `conditions` hold where it is wanted.
void Emitter::load_across(const Tile& tile, const Expr& value, std::vector<Expr>& conditions) {
  if (value->kind == ExprKind::kSelect) {
    conditions.push_back(value->operands[0]);
    load_across(tile, value->operands[1], conditions);
    conditions.back() = unary(UnaryOp::kNot, value->operands[0]);
    load_across(tile, value->operands[2], conditions);
    conditions.pop_back();
    return;
  }
  if (value->kind != ExprKind::kLoad) {
    for (const Expr& operand : value->operands) load_across(tile, operand, conditions);
    return;
  }
  if (!is_across(tile, value->buffer, value->operands)) return;
  if (const auto [known, is_new] = transposed_.vectors.try_emplace(&*value); !is_new) {
    known->second
        .clear();  // one expression at two places, perhaps under two conditions: read where it stands
    return;
  }
  auto* type = llvm::FixedVectorType::get(type_of(value->dtype), static_cast<unsigned>(tile.row.lanes));
  Vectors vectors;
  for (int64_t lane = 0; lane < tile.lane.lanes; ++lane) {
    llvm::Value* vector = llvm::PoisonValue::get(type);
    if (lane < tile.lane.active) {
      at_lane(tile, lane);
      vector = mask_by(conditions) ? values_.emit_load(value->buffer, value->operands)
                                   : llvm::Constant::getNullValue(type);
      lanes_.mask = nullptr;
    }
    vectors.push_back(vector);
  }
  lanes_.leave();
  transposed_.vectors[&*value] = Transpose(b_, machine_).to_rows(std::move(vectors), tile.row.lanes);
}

// The lanes' rows lie one after the other in memory, whole: 16 pixels of 4 channels, say.
bool Emitter::is_one_piece(const Tile& tile, const StmtNode& store) {
  if (store.buffer->scope == MemoryScope::kRegister || tile.row.active != tile.row.lanes ||
      tile.lane.active != tile.lane.lanes || (tile.row.lanes != 2 && tile.row.lanes != 4))
    return false;
  at_row(tile, 0);
  const Access along = addresses_.analyze(store.buffer, store.indices);
  lanes_.leave();
  return along.kind == Access::kStrided && along.affine() && along.stride == tile.row.lanes;
}

// `parts` one after the other, from where `first` begins.
void Emitter::store_woven(const Buffer& buffer, const Access& first, const std::vector<llvm::Value*>& parts) {
  llvm::Value* p = addresses_.pointer(buffer, first);
  const llvm::Align align(static_cast<uint64_t>(dtype_bytes(buffer->dtype)));
  for (llvm::Value* part : parts) {
    b_.CreateAlignedStore(part, p, align);
    const auto elements = llvm::cast<llvm::FixedVectorType>(part->getType())->getNumElements();
    p = b_.CreateGEP(memory_type(buffer->dtype), p, b_.getInt64(elements));
  }
}

void Emitter::store_across(const Tile& tile, const Stmt& store, const std::vector<Expr>& guards) {
  auto* type =
      llvm::FixedVectorType::get(type_of(store->buffer->dtype), static_cast<unsigned>(tile.lane.lanes));
  Vectors vectors;
  for (int64_t row = 0; row < tile.row.lanes; ++row) {
    llvm::Value* vector = llvm::PoisonValue::get(type);
    if (row < tile.row.active) {
      at_row(tile, row);
      if (mask_by(guards)) vector = lanes_.widen(values_.emit(store->value));
      lanes_.mask = nullptr;
    }
    vectors.push_back(vector);
  }
  if (guards.empty() && is_one_piece(tile, *store)) {
    at_lane(tile, 0);
    const Access first = addresses_.analyze(store->buffer, store->indices);
    store_woven(store->buffer, first, Transpose(b_, machine_).woven(std::move(vectors)));
    return leave_tile(tile);
  }
  vectors = Transpose(b_, machine_).to_lanes(std::move(vectors), tile.lane.lanes);
  for (int64_t lane = 0; lane < tile.lane.active; ++lane) {
    at_lane(tile, lane);
    const Access access = addresses_.analyze(store->buffer, store->indices);
    if (store->buffer->scope == MemoryScope::kRegister && !addresses_.register_offset(store->buffer, access))
      break;
    if (mask_by(guards)) store_contiguous(store->buffer, access, vectors[static_cast<size_t>(lane)]);
    lanes_.mask = nullptr;
  }
  leave_tile(tile);
}

}  // namespace tuner::codegen
