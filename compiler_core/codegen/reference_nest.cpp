#include "compiler_core/codegen/reference_nest.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

// A loop cut into blocks of `size` iterations, and these into chunks of `per_chunk` blocks.
struct Cut {
  Var axis, chunk, block;
  int64_t extent = 1, size = 1, per_chunk = 1;

  static Cut of(const StmtNode& loop, int64_t size) {
    const std::string& name = loop.var->name;
    return {loop.var, make_var(name + ".chunk"), make_var(name + ".block"), loop.extent, size};
  }
  int64_t blocks() const { return ceil_div(extent, size); }
  int64_t chunks() const { return ceil_div(blocks(), per_chunk); }
  Expr block_index() const {
    return per_chunk == 1 ? Expr(chunk) : Expr(chunk) * Expr(per_chunk) + Expr(block);
  }
  Expr at(const Expr& in_block) const { return block_index() * Expr(size) + in_block; }

  // for block: make(iterations in that block). The last block has the rest, the last chunk the last blocks.
  Stmt each_block(const std::function<Stmt(int64_t)>& make) const {
    const int64_t whole = extent / size, rest = extent % size;
    Stmt body = make(size);
    const bool some_are_missing = chunks() * per_chunk > blocks();
    if (rest > 0 || some_are_missing) {
      Stmt last = rest == 0          ? nullptr
                  : some_are_missing ? make_if(binary(BinaryOp::kEq, block_index(), Expr(whole)), make(rest))
                                     : make(rest);
      body = make_if(block_index() < Expr(whole), std::move(body), std::move(last));
    }
    const Var own = make_var(block->name);  // of this loop, as there may be others over the same blocks
    return make_for(own, per_chunk, substitute(body, {{block, Expr(own)}}));
  }
};

// A perfect nest around one store, taken apart. Null store: the statement is something else.
struct Nest {
  std::vector<const StmtNode*> spatial, reduce;
  const StmtNode* store = nullptr;

  bool is_reduction() const { return store->reduce != ReduceOp::kNone; }
  int64_t iterations() const {
    int64_t n = 1;
    for (const auto* loops : {&spatial, &reduce})
      for (const StmtNode* loop : *loops) n *= loop->extent;
    return n;
  }
};

Nest take_apart(const Stmt& s) {
  Nest nest;
  const StmtNode* node = s.get();
  while (node->kind == StmtKind::kFor && node->loop == LoopKind::kSerial && node->axis != AxisKind::kStep) {
    (node->axis == AxisKind::kSpatial ? nest.spatial : nest.reduce).push_back(node);
    node = node->body.get();
  }
  if (node->kind == StmtKind::kStore) nest.store = node;
  return nest;
}

// True if each iteration of the spatial loops has an element of its own, named by their variables.
bool has_own_elements(const Nest& nest) {
  std::vector<Var> named;
  for (const Expr& index : nest.store->indices) {
    if (index->kind == ExprKind::kVar)
      named.push_back(index->var);
    else if (!is_const_int(index))
      return false;
  }
  return std::ranges::all_of(nest.spatial,
                             [&](const StmtNode* loop) { return std::ranges::count(named, loop->var) == 1; });
}

// True if the nest reads what it writes.
bool reads_own_buffer(const Nest& nest) {
  bool found = false;
  const auto look = [&](const Expr& e) {
    found |= e->kind == ExprKind::kLoad && e->buffer == nest.store->buffer;
  };
  own_exprs(*nest.store, [&](const Expr& e) { visit(e, look); });
  return found;
}

// The parts of `e` that are the same for all rows and differ between lanes: loads, converted or chosen by a
// condition. Arithmetic is not taken out, as a product that is added is fused with the addition.
void collect_shared(const Expr& e, const Var& lane, const Var& row, std::vector<Expr>& shared) {
  if (!uses_var(e, lane)) return;
  bool loads = false;
  visit(e, [&](const Expr& x) { loads |= x->kind == ExprKind::kLoad; });
  if (!loads) return;
  const bool moves = e->kind == ExprKind::kLoad || e->kind == ExprKind::kCast || e->kind == ExprKind::kSelect;
  if (moves && !uses_var(e, row)) {
    shared.push_back(e);
    return;
  }
  // What a select guards may not be there to be loaded.
  if (e->kind == ExprKind::kLoad || e->kind == ExprKind::kSelect) return;
  for (const Expr& operand : e->operands) collect_shared(operand, lane, row, shared);
}

std::vector<Expr> shared_parts(const Nest& nest, const StmtNode* lane, const StmtNode* row) {
  std::vector<Expr> shared;
  collect_shared(nest.store->value, lane->var, row->var, shared);
  return shared;
}

// The spatial loop along which most of what is read is the same; of several the longest, then the innermost.
// Null: there is none.
const StmtNode* row_loop(const Nest& nest, const StmtNode* lane) {
  const StmtNode* best = nullptr;
  std::pair<size_t, int64_t> most{0, 1};
  for (const StmtNode* loop : nest.spatial) {
    if (loop == lane || loop->extent < 2) continue;
    const std::pair found{shared_parts(nest, lane, loop).size(), loop->extent};
    if (found.first == 0 || found < most) continue;
    best = loop;
    most = found;
  }
  return best;
}

// Blocks of at most `most` iterations, as equal as they can be.
int64_t even_share(int64_t extent, int64_t most) {
  return ceil_div(extent, ceil_div(extent, std::min(extent, most)));
}

// for each loop: body, the outermost ones as one parallel loop with enough iterations for all threads.
Stmt outer_loops(const std::vector<std::pair<Var, int64_t>>& loops, Stmt body, int threads) {
  constexpr int64_t kEnough = 16;  // a thread
  size_t n = 0;
  int64_t pieces = 1;
  while (threads > 1 && n < loops.size() && pieces < kEnough * threads) pieces *= loops[n++].second;
  for (size_t i = loops.size(); i-- > n;) body = make_for(loops[i].first, loops[i].second, std::move(body));
  if (n == 0 || pieces > INT32_MAX) {
    for (size_t i = n; i-- > 0;) body = make_for(loops[i].first, loops[i].second, std::move(body));
    return body;
  }
  const Var piece = make_var("piece");
  VarMap places;
  int64_t inner = 1;
  for (size_t i = n; i-- > 0;) {
    const Expr outer = floor_div(Expr(piece), Expr(inner));
    places[loops[i].first] = i == 0 ? outer : floor_mod(outer, Expr(loops[i].second));
    inner *= loops[i].second;
  }
  return make_for(piece, pieces, substitute(body, places), AxisKind::kSpatial, LoopKind::kParallel);
}

Stmt lanes_of(const Var& lane, int64_t lanes, Stmt store) {
  return make_for(lane, lanes, std::move(store), AxisKind::kSpatial, LoopKind::kVectorized);
}

// One vector of lanes at a time, its sums in registers:
//   for block: for other spatial axes: acc[lanes] = init;  for reduce axes: acc[lanes] (op)= value;  store[lanes] = acc
Stmt nest_of_vectors(const Nest& nest, const StmtNode* lane_loop, int threads) {
  constexpr int64_t kMostLanes = 32;  // doubles: four registers of 512 bits, eight of 256
  const StmtNode& store = *nest.store;
  const int64_t extent = lane_loop->extent, lanes = std::min(extent, kMostLanes);
  const Var block = make_var(lane_loop->var->name + ".block");
  const auto in_block = [&](const Var& lane) { return Expr(block) * Expr(lanes) + Expr(lane); };
  const auto at = [&](const Expr& e, const Var& lane) {
    return substitute(e, {{lane_loop->var, in_block(lane)}});
  };
  const auto indices_at = [&](const Var& lane) {
    std::vector<Expr> indices;
    for (const Expr& index : store.indices) indices.push_back(at(index, lane));
    return indices;
  };
  const auto each_lane = [&](const Var& lane, Stmt s) {
    if (extent % lanes != 0) s = make_if(in_block(lane) < Expr(extent), std::move(s));
    return lanes_of(lane, lanes, std::move(s));
  };
  Stmt body;
  const Var lane = make_var(lane_loop->var->name);
  if (!nest.is_reduction()) {
    body = each_lane(lane, make_store(store.buffer, indices_at(lane), at(store.value, lane)));
  } else {
    const Buffer sums =
        make_buffer(store.buffer->name + ".sums", store.buffer->dtype, {lanes}, MemoryScope::kRegister);
    const Var first = make_var(lane->name), done = make_var(lane->name);
    Stmt init = lanes_of(first, lanes, make_store(sums, {Expr(first)}, at(store.init, first)));
    Stmt update =
        each_lane(lane, make_reduce(sums, {Expr(lane)}, store.reduce, Expr(), at(store.value, lane), Expr()));
    for (auto loop = nest.reduce.rbegin(); loop != nest.reduce.rend(); ++loop)
      update = make_for((*loop)->var, (*loop)->extent, update, AxisKind::kReduce);
    Stmt copy = each_lane(done, make_store(store.buffer, indices_at(done), load(sums, {Expr(done)})));
    body = make_allocate(sums, make_seq({init, update, copy}));
  }
  std::vector<std::pair<Var, int64_t>> loops;
  for (const StmtNode* loop : nest.spatial)
    if (loop != lane_loop) loops.emplace_back(loop->var, loop->extent);
  // Of a reduction blocks go outside: the part of the operands that one block reads stays in cache.
  loops.emplace(nest.is_reduction() ? loops.begin() : loops.end(), block, ceil_div(extent, lanes));
  return outer_loops(loops, std::move(body), threads);
}

// Tiles of rows and lanes, as reference_nest.h draws them.
class TiledNest {
 public:
  TiledNest(const Nest& nest, const StmtNode* lane_loop, const StmtNode* row_loop,
            const ReferenceBlocks& blocks, const Target& target)
      : nest_(nest),
        store_(*nest.store),
        threads_(target.threads),
        shared_(shared_parts(nest, lane_loop, row_loop)) {
    const int64_t element = std::max<int64_t>(dtype_bytes(store_.buffer->dtype), 4);
    lanes_ =
        Cut::of(*lane_loop, std::min(lane_loop->extent, blocks.vectors * target.vector_bits / (8 * element)));
    lanes_.per_chunk = lanes_.blocks();
    rows_ = Cut::of(*row_loop, even_share(row_loop->extent, blocks.rows));
    rows_.per_chunk = even_share(rows_.blocks(), ceil_div(blocks.chunk_rows, rows_.size));
    int64_t tiles = rows_.per_chunk, rows_left = blocks.chunk_rows / (rows_.per_chunk * rows_.size);
    for (auto loop = nest.spatial.rbegin(); loop != nest.spatial.rend(); ++loop) {
      if (*loop == lane_loop || *loop == row_loop) continue;
      Cut cut = Cut::of(**loop, 1);
      const bool own_panel =
          std::ranges::any_of(shared_, [&](const Expr& e) { return uses_var(e, cut.axis); });
      if (!own_panel && rows_left > 1) cut.per_chunk = even_share(cut.extent, rows_left);
      rows_left /= cut.per_chunk;
      tiles *= cut.per_chunk;
      others_.insert(others_.begin(), cut);
    }
    constexpr int64_t kLeastTiles = 3;  // that read a panel, or it is not worth its making
    has_panels_ = tiles >= kLeastTiles;
    if (has_panels_) cut_reduction(blocks.depth);
    share_out();
  }

  Stmt make() {
    Stmt body = each_depth([&](int64_t depth) {
      return lanes_.each_block([&](int64_t lanes) {
        std::vector<Stmt> stmts;
        for (size_t i = 0; i < panels_.size(); ++i) stmts.push_back(fill_panel(i, depth, lanes));
        stmts.push_back(each_row_block([&](int64_t rows) { return tile(depth, rows, lanes); }));
        return make_seq(std::move(stmts));
      });
    });
    if (sums_wait()) {
      Stmt begin = lanes_.each_block([&](int64_t lanes) {
        return each_row_block([&](int64_t rows) { return begin_sums(rows, lanes); });
      });
      body = make_seq({std::move(begin), std::move(body)});
    }
    for (const Buffer& panel : panels_) body = make_allocate(panel, std::move(body));
    std::vector<std::pair<Var, int64_t>> chunks;
    for (const Cut& cut : others_) chunks.emplace_back(cut.chunk, cut.chunks());
    chunks.emplace_back(rows_.chunk, rows_.chunks());
    chunks.emplace_back(lanes_.chunk, lanes_.chunks());
    return outer_loops(chunks, std::move(body), threads_);
  }

 private:
  // The reduction is cut at one of its loops: those inside it, and `depth_.size` of its own, make up a block.
  void cut_reduction(int64_t most) {
    int64_t inner = 1;
    cut_at_ = nest_.reduce.size() - 1;
    while (cut_at_ > 0 && inner * nest_.reduce[cut_at_]->extent <= most)
      inner *= nest_.reduce[cut_at_--]->extent;
    const StmtNode& loop = *nest_.reduce[cut_at_];
    depth_ = Cut::of(loop, even_share(loop.extent, std::max<int64_t>(most / inner, 1)));
    depth_.per_chunk = depth_.blocks();
    std::vector<int64_t> shape{depth_.size};
    for (size_t i = cut_at_ + 1; i < nest_.reduce.size(); ++i) shape.push_back(nest_.reduce[i]->extent);
    shape.push_back(lanes_.size);
    for (const Expr& part : shared_)
      panels_.push_back(make_buffer(str(store_.buffer->name, ".panel", panels_.size()), part->dtype, shape));
  }

  // Chunks become smaller until there are several for each thread.
  void share_out() {
    constexpr int64_t kChunks = 4;  // a thread
    const auto few = [&] {
      int64_t n = lanes_.chunks() * rows_.chunks();
      for (const Cut& cut : others_) n *= cut.chunks();
      return threads_ > 1 && n < kChunks * threads_;
    };
    const auto halve = [&](Cut& cut, int64_t least) {
      while (few() && cut.per_chunk > least) cut.per_chunk = std::max(least, ceil_div(cut.per_chunk, 2));
    };
    halve(lanes_, 1);
    for (Cut& cut : others_) halve(cut, 1);
    halve(rows_, 4);
  }

  // True if the sums of a tile are not finished at once: the output holds them until the next block.
  bool sums_wait() const { return has_panels_ && (cut_at_ > 0 || depth_.blocks() > 1); }

  Stmt each_depth(const std::function<Stmt(int64_t)>& make) const {
    if (!has_panels_) return make(0);
    Stmt body = substitute(depth_.each_block(make), {{depth_.chunk, Expr(0)}});
    for (size_t i = cut_at_; i-- > 0;)
      body = make_for(nest_.reduce[i]->var, nest_.reduce[i]->extent, std::move(body), AxisKind::kReduce);
    return body;
  }
  Stmt each_row_block(const std::function<Stmt(int64_t)>& make) const {
    Stmt body = rows_.each_block(make);
    for (auto cut = others_.rbegin(); cut != others_.rend(); ++cut)
      body = cut->each_block([&](int64_t) { return body; });
    return body;
  }

  // Where one element is computed: what becomes of the loops' variables there.
  VarMap place(const Var& row, const Var& lane) const {
    VarMap at{{lanes_.axis, lanes_.at(Expr(lane))}, {rows_.axis, rows_.at(Expr(row))}};
    for (const Cut& cut : others_) at[cut.axis] = cut.at(Expr(0));
    return at;
  }
  std::vector<Expr> element(const VarMap& at) const {
    std::vector<Expr> indices;
    for (const Expr& index : store_.indices) indices.push_back(substitute(index, at));
    return indices;
  }

  // The loops of one block of the reduction, with variables of their own.
  struct Steps {
    std::vector<std::pair<Var, int64_t>> loops;
    VarMap at;                  // what becomes of the reduction's variables
    std::vector<Expr> indices;  // of a panel, without the lane
  };
  Steps steps(int64_t depth) const {
    Steps s;
    for (size_t i = has_panels_ ? cut_at_ : 0; i < nest_.reduce.size(); ++i) {
      const StmtNode& loop = *nest_.reduce[i];
      const bool is_cut = has_panels_ && i == cut_at_;
      const Var var = make_var(loop.var->name);
      s.loops.emplace_back(var, is_cut ? depth : loop.extent);
      s.at[loop.var] = is_cut ? substitute(depth_.at(Expr(var)), {{depth_.chunk, Expr(0)}}) : Expr(var);
      s.indices.emplace_back(var);
    }
    return s;
  }
  static Stmt each_step(const Steps& steps, Stmt body) {
    for (auto loop = steps.loops.rbegin(); loop != steps.loops.rend(); ++loop)
      body = make_for(loop->first, loop->second, std::move(body), AxisKind::kReduce);
    return body;
  }

  Stmt fill_panel(size_t i, int64_t depth, int64_t lanes) const {
    Steps s = steps(depth);
    const Var lane = make_var(lanes_.axis->name);
    VarMap at = place(lane, lane);  // no row: its variable is not used
    at.insert(s.at.begin(), s.at.end());
    s.indices.emplace_back(lane);
    Stmt body = lanes_of(lane, lanes, make_store(panels_[i], s.indices, substitute(shared_[i], at)));
    for (auto loop = s.loops.rbegin(); loop != s.loops.rend(); ++loop)
      body = make_for(loop->first, loop->second, std::move(body));
    return body;
  }

  // The value, with what the rows share read from the panels.
  Expr from_panels(const Expr& e, const std::vector<Expr>& indices) const {
    for (size_t i = 0; i < panels_.size(); ++i)
      if (e.same_as(shared_[i])) return load(panels_[i], indices);
    return map_children(e, [&](const Expr& operand) { return from_panels(operand, indices); });
  }

  static Stmt each_row(const Var& row, int64_t rows, const Var& lane, int64_t lanes, LoopKind kind,
                       Stmt body) {
    return make_for(row, rows, lanes_of(lane, lanes, std::move(body)), AxisKind::kSpatial, kind);
  }

  Stmt begin_sums(int64_t rows, int64_t lanes) const {
    const Var row = make_var(rows_.axis->name), lane = make_var(lanes_.axis->name);
    const VarMap at = place(row, lane);
    return each_row(row, rows, lane, lanes, LoopKind::kSerial,
                    make_store(store_.buffer, element(at), substitute(store_.init, at)));
  }

  Stmt tile(int64_t depth, int64_t rows, int64_t lanes) const {
    const Buffer sums = make_buffer(store_.buffer->name + ".sums", store_.buffer->dtype, {rows, lanes},
                                    MemoryScope::kRegister);
    const auto each = [&](const std::function<Stmt(const VarMap&, const std::vector<Expr>&)>& make) {
      const Var row = make_var(rows_.axis->name), lane = make_var(lanes_.axis->name);
      return each_row(row, rows, lane, lanes, LoopKind::kUnrolled,
                      make(place(row, lane), {Expr(row), Expr(lane)}));
    };
    Stmt begin = each([&](const VarMap& at, const std::vector<Expr>& sum) {
      return make_store(sums, sum,
                        sums_wait() ? load(store_.buffer, element(at)) : substitute(store_.init, at));
    });
    const Steps s = steps(depth);
    Stmt update = each([&](VarMap at, const std::vector<Expr>& sum) {
      at.insert(s.at.begin(), s.at.end());
      std::vector<Expr> in_panel = s.indices;
      in_panel.push_back(sum.back());
      // The panels' indices are named by the new variables already; those of the nest are left in the rest
      // alone.
      return make_reduce(sums, sum, store_.reduce, Expr(),
                         substitute(from_panels(store_.value, in_panel), at), Expr());
    });
    Stmt end = each([&](const VarMap& at, const std::vector<Expr>& sum) {
      return make_store(store_.buffer, element(at), load(sums, sum));
    });
    return make_allocate(sums, make_seq({std::move(begin), each_step(s, std::move(update)), std::move(end)}));
  }

  const Nest& nest_;
  const StmtNode& store_;
  const int threads_;
  const std::vector<Expr> shared_;  // what all rows of a tile read
  Cut lanes_, rows_;
  std::vector<Cut> others_;  // one iteration a block
  bool has_panels_ = false;
  size_t cut_at_ = 0;  // the loop of the reduction that is cut
  Cut depth_;
  std::vector<Buffer> panels_;  // one for each of shared_
};

}  // namespace

ReferenceBlocks reference_blocks(const Target& target) {
  ReferenceBlocks blocks;
  // Sums, one row of the panel, and an element that is the same for all lanes: 24 + 4 + 1 of 32, 12 + 2 + 1
  // of 16.
  if (target.vector_registers() < 32) blocks.vectors = 2;
  return blocks;
}

Stmt reference_nest(const Stmt& s, const ReferenceBlocks& blocks, const Target& target) {
  const Nest nest = take_apart(s);
  if (nest.store == nullptr || nest.spatial.empty() || nest.store->indices.empty()) return s;
  // Only along the contiguous axis, and only when a loop of this nest runs exactly along it.
  const Expr& last = nest.store->indices.back();
  const auto lane_loop = std::ranges::find_if(nest.spatial, [&](const StmtNode* loop) {
    return last->kind == ExprKind::kVar && last->var == loop->var;
  });
  if (lane_loop == nest.spatial.end() || (*lane_loop)->extent < 2) return s;
  if (nest.is_reduction() != !nest.reduce.empty() || (nest.is_reduction() && !nest.store->first.defined()))
    return s;
  // Free to go over them in any order, by any thread. What is not a reduction reads at most the element that
  // it writes.
  const bool free = has_own_elements(nest) && !(nest.is_reduction() && reads_own_buffer(nest));
  const bool tiled = free && nest.is_reduction() && blocks.rows > 1 && nest.iterations() >= blocks.least_work;
  if (tiled)
    if (const StmtNode* const rows = row_loop(nest, *lane_loop))
      return TiledNest(nest, *lane_loop, rows, blocks, target).make();
  return nest_of_vectors(nest, *lane_loop, free ? target.threads : 1);
}

}  // namespace tuner
