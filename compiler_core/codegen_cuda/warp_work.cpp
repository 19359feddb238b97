#include "compiler_core/codegen_cuda/warp_work.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/codegen_cuda/index_value.h"
#include "compiler_core/codegen_cuda/printed_body.h"
#include "compiler_core/codegen_cuda/vector_access.h"
#include "compiler_core/codegen_cuda/warp_access.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

// Instructions of functions that are not one: what NVRTC writes for float32 without fast-math, rounded.
double instructions_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
      return 0;  // a sign of an operand
    case UnaryOp::kNot:
    case UnaryOp::kFloor:
    case UnaryOp::kRound:
    case UnaryOp::kTf32:
      return 1;
    case UnaryOp::kRsqrt:
      return 4;
    case UnaryOp::kSqrt:
    case UnaryOp::kExp:
      return 8;
    case UnaryOp::kLog:
    case UnaryOp::kTanh:
      return 20;
    case UnaryOp::kErf:
      return 25;
    case UnaryOp::kSin:
    case UnaryOp::kCos:
    case UnaryOp::kTan:
    case UnaryOp::kAsin:
    case UnaryOp::kAcos:
    case UnaryOp::kAtan:
    case UnaryOp::kSinh:
    case UnaryOp::kCosh:
    case UnaryOp::kAsinh:
    case UnaryOp::kAcosh:
    case UnaryOp::kAtanh:
      return 30;
  }
  return 1;
}

double instructions_of_integer(const ExprNode& e) {
  if (e.kind != ExprKind::kBinary) return e.kind == ExprKind::kSelect ? 1 : 0;
  // A comparison takes another one's result along.
  if (e.binary_op == BinaryOp::kAnd || e.binary_op == BinaryOp::kOr) return 0;
  if (e.binary_op != BinaryOp::kFloorDiv && e.binary_op != BinaryOp::kFloorMod) return 1;
  int64_t by = 0;
  const bool shifts = is_const_int(e.operands[1], &by) && by > 0 && (by & (by - 1)) == 0;
  return shifts ? 1 : 4;  // else a multiplication by the reciprocal and a correction
}

bool is_float_product(const Expr& e) {
  return is_float(e->dtype) && e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kMul;
}

// Instructions of the float pipe that one evaluation of a value takes.
double value_instructions(const Expr& value) {
  double count = 0;
  visit(value, [&](const Expr& e) {
    if (!is_float(e->dtype) || e->kind == ExprKind::kLoad) return;
    if (e->kind == ExprKind::kUnary) count += instructions_of(e->unary_op);
    if (e->kind == ExprKind::kSelect || e->kind == ExprKind::kCast) count += 1;
    if (e->kind != ExprKind::kBinary) return;
    count += e->binary_op == BinaryOp::kDiv ? 10 : 1;
    // The product is in the same instruction as its sum.
    const bool sum = e->binary_op == BinaryOp::kAdd || e->binary_op == BinaryOp::kSub;
    if (sum && (is_float_product(e->operands[0]) || is_float_product(e->operands[1]))) count -= 1;
  });
  return count;
}

WarpCounts of(Issue issue, double count) {
  WarpCounts counts;
  counts[issue] = count;
  return counts;
}

class Walk {
 public:
  Walk(const GpuKernel& kernel, int64_t wave_blocks)
      : kernel_(kernel), wave_blocks_(wave_blocks), sampler_(kernel), ranges_(kernel_ranges(kernel)) {
    // One block, the first: what the indices then reach is what a block touches.
    block_ranges_ = ranges_;
    for (const Var& var : kernel.block_vars)
      if (var != nullptr) block_ranges_.bind(var, 1);
  }

  WarpWork run() {
    add({.counts = of(Issue::kEntry, 1)}, work_.steps);
    if (kernel_.body != nullptr) walk(kernel_.body, work_.steps);
    work_.evaluations += sampler_.evaluations();
    if (active_blocks_ > 0) work_.active_blocks = active_blocks_;
    return std::move(work_);
  }

 private:
  struct Loop {
    Var var;
    int64_t extent;
    bool unrolled;
    bool lanes;     // its iterations may go together as the lanes of a vector
    size_t guards;  // around it
  };

  void walk(const Stmt& s, std::vector<WarpStep>& steps) {
    if (s == nullptr) return;
    switch (s->kind) {
      case StmtKind::kFor:
        return walk_loop(*s, steps);
      case StmtKind::kIf:
        walk_guarded(s->condition, true, s->body, steps);
        return walk_guarded(s->condition, false, s->else_body, steps);
      case StmtKind::kStore:
        return walk_store(*s, steps);
      case StmtKind::kIntrinsic:
        return walk_intrinsic(*s, steps);
      case StmtKind::kBarrier:
        return walk_barrier(steps);
      case StmtKind::kSeq:
        for (const Stmt& child : s->stmts) walk(child, steps);
        return;
      case StmtKind::kAsync:
        return walk_async(*s, steps);
      case StmtKind::kAllocate:
        return walk(s->body, steps);
    }
  }

  void walk_async(const StmtNode& s, std::vector<WarpStep>& steps) {
    if (is_async(s, "copy")) {
      copies_ = true;
      walk(s.body, steps);
      copies_ = false;
      return;
    }
    if (is_async(s, "init") || is_async(s, "expect") || is_async(s, "fetch") || is_async(s, "await"))
      return walk_engine(s, steps);
    const bool waits = is_async(s, "wait");
    WarpStep step{.kind = waits ? WarpStep::Kind::kWait : WarpStep::Kind::kCommit,
                  .counts = of(Issue::kWork, 1)};
    CHECK(!waits || is_const_int(s.operands[0], &step.in_flight)) << to_text(s.operands[0]);
    add(std::move(step), steps);
  }

  // Copies by TMA: one warp asks, the device does the rest.
  void walk_engine(const StmtNode& s, std::vector<WarpStep>& steps) {
    constexpr double kAsk = 8, kTry = 3;  // instructions
    if (is_async(s, "await")) {
      WarpStep wait{
          .kind = WarpStep::Kind::kWait, .counts = of(Issue::kWork, kTry), .in_flight = expected_ahead_ - 1};
      return add(std::move(wait), steps);
    }
    WarpStep step{.counts = of(Issue::kWork, kAsk * unrolled_copies() * share())};
    if (is_async(s, "expect")) {
      step.kind = WarpStep::Kind::kExpect;
      if (rolled_copies() == 1) ++expected_ahead_;
    }
    int64_t number = 0;
    if (is_async(s, "fetch") && !s.value.defined()) {
      CHECK(is_const_int(s.operands[3], &number)) << to_text(s.operands[3]);
      step.fetched_bytes = static_cast<double>(number) * unrolled_copies();
      const Expr& from = s.operands[2];
      const double warps = static_cast<double>(kernel_.block[0] * kernel_.block[1] * kernel_.block[2]) / 32;
      add_traffic(from->buffer, from->operands, /*is_store=*/false,
                  step.fetched_bytes * rolled_copies() / 32 / warps);
    } else if (is_async(s, "fetch") && is_const_int(s.value, &number)) {
      const TensorMap& map = kernel_.tensor_maps.at(static_cast<size_t>(number)).map;
      step.fetched_bytes = static_cast<double>(map.box_bytes()) * unrolled_copies();
      add_fetched(s, map, step.fetched_bytes * rolled_copies());
    }
    add(std::move(step), steps);
  }

  // `bytes`: of all boxes of a block.
  void add_fetched(const StmtNode& s, const TensorMap& map, double bytes) {
    auto found = std::ranges::find(work_.traffic, s.buffer, &GlobalTraffic::buffer);
    if (found == work_.traffic.end()) found = work_.traffic.insert(found, GlobalTraffic{.buffer = s.buffer});
    const double warps = static_cast<double>(kernel_.block[0] * kernel_.block[1] * kernel_.block[2]) / 32;
    found->load_sectors += bytes / 32 / warps;
    double reached = static_cast<double>(dtype_bytes(map.dtype));
    std::vector<int64_t> shape(map.extents.rbegin(), map.extents.rend());
    std::vector<Expr> indices(s.indices.rbegin(), s.indices.rend());
    for (size_t d = 0; d < map.rank(); ++d) {
      const auto bounds = const_bounds(s.indices[d], block_ranges_);
      const int64_t reach = bounds ? bounds->second - bounds->first + map.box[d] : map.extents[d];
      reached *= static_cast<double>(std::clamp<int64_t>(reach, 1, map.extents[d]));
    }
    found->block_bytes = std::max(found->block_bytes, reached);
    const BufferNode seen{.name = s.buffer->name, .dtype = map.dtype, .shape = std::move(shape)};
    found->wave_blocks = std::max(found->wave_blocks, sampler_.distinct_blocks(seen, indices, wave_blocks_));
  }

  // One instruction for the whole loop, which its store is counted for.
  void walk_dot(const StmtNode& s, std::vector<WarpStep>& steps) {
    sampler_.enter_loop(s.var, s.extent);
    ranges_.bind(s.var, s.extent);
    block_ranges_.bind(s.var, s.extent);
    in_dot_ = true;
    walk(s.body, steps);
    in_dot_ = false;
    sampler_.leave_loop();
  }

  void walk_loop(const StmtNode& s, std::vector<WarpStep>& steps) {
    if (s.loop == LoopKind::kDot) return walk_dot(s, steps);
    bool has_barrier = false;
    visit(s.body, [&](const Stmt& child) { has_barrier |= child->kind == StmtKind::kBarrier; });
    const bool unrolled = s.extent == 1 || (!has_barrier && prints_unrolled(s));
    const size_t computed_outside = computed_.size();
    loops_.push_back({s.var, s.extent, unrolled, s.loop == LoopKind::kVectorized, guards_.size()});
    sampler_.enter_loop(s.var, s.extent);
    ranges_.bind(s.var, s.extent);
    block_ranges_.bind(s.var, s.extent);
    if (unrolled) {
      walk(s.body, steps);
    } else {
      WarpStep loop{.kind = WarpStep::Kind::kLoop, .extent = s.extent};
      walk(s.body, loop.steps);
      WarpStep control{.counts = of(Issue::kTurn, share())};
      add(std::move(control), loop.steps);
      steps.push_back(std::move(loop));
    }
    sampler_.leave_loop();
    loops_.pop_back();
    computed_.resize(computed_outside);
  }

  void walk_guarded(const Expr& condition, bool expected, const Stmt& body, std::vector<WarpStep>& steps) {
    if (body == nullptr) return;
    const size_t computed_outside = computed_.size();
    WarpStep test;
    add_integers(condition, Issue::kCondition, test.counts);
    add(std::move(test), steps);
    const RangeMap outside = ranges_;
    ranges_.assume(expected ? condition : unary(UnaryOp::kNot, condition));
    const double issued_outside = issued_;
    const bool predicated = is_predicated(body);
    guards_.push_back(condition);
    sampler_.enter_guard(condition, expected);
    if (!predicated) issued_ = sampler_.active_share();
    if (issued_ > 0) walk(body, steps);
    sampler_.leave_guard();
    guards_.pop_back();
    issued_ = issued_outside;
    computed_.resize(computed_outside);
    ranges_ = outside;
  }

  // True if the compiler writes the body under a predicate, not with a branch around it: every warp issues
  // it.
  static bool is_predicated(const Stmt& body) {
    constexpr double kMostStores = 4;
    return stores_of(body, 1) <= kMostStores;
  }
  // Stores that are written out; infinitely many when there is a loop or anything else.
  static double stores_of(const Stmt& s, double copies) {
    if (s == nullptr) return 0;
    switch (s->kind) {
      case StmtKind::kStore:
        return copies;
      case StmtKind::kFor:
        if (s->loop == LoopKind::kVectorized || s->extent == 1) return stores_of(s->body, copies);
        if (!prints_unrolled(*s)) break;
        return stores_of(s->body, copies * static_cast<double>(s->extent));
      case StmtKind::kIf:
        return stores_of(s->body, copies) + stores_of(s->else_body, copies);
      case StmtKind::kSeq: {
        double sum = 0;
        for (const Stmt& child : s->stmts) sum += stores_of(child, copies);
        return sum;
      }
      case StmtKind::kAsync:
        return stores_of(s->body, copies);
      default:
        break;
    }
    return std::numeric_limits<double>::infinity();
  }

  void walk_store(const StmtNode& s, std::vector<WarpStep>& steps) {
    WarpStep step;
    const bool to_registers = s.buffer->scope == MemoryScope::kRegister;
    const double arithmetic = value_instructions(s.value) * unrolled_copies();
    step.counts.arithmetic = arithmetic * share();
    const double dots = in_dot_ ? unrolled_copies() : 0;
    step.counts.dots = dots * share();
    step.counts[Issue::kWork] = step.counts.arithmetic + step.counts.dots;
    bool updates = false;
    look_at_loads(s.value, s.buffer, step, updates);
    if (!to_registers)
      access(s.buffer, s.indices, /*is_store=*/true, step);
    else if (arithmetic == 0 && dots == 0 && !step.global_loads && !step.shared_loads)
      step.counts[Issue::kMove] += unrolled_copies() * share();
    if (to_registers) step.result = s.buffer.get();
    step.is_async = copies_;
    step.loads_go_on = copies_ || (to_registers && arithmetic <= unrolled_copies() && !updates);
    step.chain = updates ? chain_of(s.indices) : 0;
    add(std::move(step), steps);
  }

  // Loads of a value, each under the conditions that select it.
  void look_at_loads(const Expr& e, const Buffer& stored, WarpStep& step, bool& updates) {
    if (e->kind == ExprKind::kLoad) {
      if (e->buffer->scope == MemoryScope::kRegister) {
        updates |= e->buffer == stored;
        step.operands.push_back(e->buffer.get());
      } else {
        (e->buffer->scope == MemoryScope::kGlobal ? step.global_loads : step.shared_loads) = true;
        access(e->buffer, e->operands, /*is_store=*/false, step);
      }
      return;
    }
    if (e->kind != ExprKind::kSelect) {
      for (const Expr& operand : e->operands) look_at_loads(operand, stored, step, updates);
      return;
    }
    add_integers(e->operands[0], Issue::kCondition, step.counts);
    guards_.push_back(e->operands[0]);
    for (const bool taken : {true, false}) {
      sampler_.enter_guard(e->operands[0], taken);
      look_at_loads(e->operands[taken ? 1 : 2], stored, step, updates);
      sampler_.leave_guard();
    }
    guards_.pop_back();
  }

  // Counts an access of global or shared memory. The compiler loads once what several iterations of unrolled
  // loops read.
  void access(const Buffer& buffer, const std::vector<Expr>& indices, bool is_store, WarpStep& step) {
    int64_t width = 1;
    double copies = 1;
    for (const Loop& loop : loops_) {
      if (!loop.unrolled || (!is_store && !uses(indices, loop.var))) continue;
      const int64_t together = width == 1 ? vector_width(buffer, indices, loop) : 1;
      width = std::max(width, together);
      copies *= static_cast<double>(loop.extent) / static_cast<double>(together);
    }
    if (!is_store) copies *= distinct_share(*buffer, indices);
    const AccessCost cost = sampler_.access(*buffer, indices, width);
    // An asynchronous copy is one instruction for both its sides.
    if (!copies_ || !is_store) step.counts[Issue::kAccess] += copies * share();
    step.counts.wavefronts += cost.wavefronts * copies;
    step.counts.conflicts += cost.conflicts * copies;
    step.counts.sectors += cost.sectors * copies;
    for (const Expr& index : indices) add_integers(index, Issue::kIndex, step.counts);
    add_address(buffer, indices, copies, step.counts);
    if (buffer->scope == MemoryScope::kGlobal)
      add_traffic(buffer, indices, is_store, cost.sectors * copies * rolled_copies());
  }

  // Of the iterations of unrolled loops that a load's indices use, the share that reads something new: x + kw
  // is the same for several, and the compiler loads that once.
  double distinct_share(const BufferNode& buffer, const std::vector<Expr>& indices) {
    const int64_t most =
        std::min(int64_t{1024}, WarpSampler::kMaxEvaluations - sampler_.evaluations() - work_.evaluations);
    std::vector<const Loop*> used;
    bool together = false;
    for (const Expr& index : indices) {
      size_t of_index = 0;
      for (const Loop& loop : loops_)
        if (loop.unrolled && loop.extent > 1 && uses_var(index, loop.var)) {
          ++of_index;
          if (std::ranges::find(used, &loop) == used.end()) used.push_back(&loop);
        }
      together |= of_index > 1;
    }
    int64_t points = 1;
    for (const Loop* loop : used) points = points > most ? points : points * loop->extent;
    if (!together || points > most) return 1;
    const Expr offset = storage_offset(buffer, indices);
    std::set<int64_t> offsets;
    VarValues values;
    std::vector<int64_t> extents;
    for (const Loop* loop : used) {
      values.emplace_back(loop->var.get(), 0);
      extents.push_back(loop->extent);
    }
    for_each_point(values, 0, extents, [&] { offsets.insert(index_value(offset, values)); });
    work_.evaluations += points;
    return static_cast<double>(offsets.size()) / static_cast<double>(points);
  }

  // How many iterations of the loop are one access. Of shared memory, whose alignment it sees, the compiler
  // makes vectors itself; of arguments only where the text says so.
  int64_t vector_width(const Buffer& buffer, const std::vector<Expr>& indices, const Loop& loop) const {
    if (!loop.lanes && buffer->scope != MemoryScope::kShared) return 1;
    const int64_t width = loop.lanes ? loop.extent : loop.extent % 4 == 0 ? 4 : loop.extent % 2 == 0 ? 2 : 1;
    for (size_t g = loop.guards; g < guards_.size(); ++g)
      if (!same_for_all_lanes(guards_[g], loop.var, width, ranges_)) return 1;
    return lane_access(buffer, indices, loop.var, width, ranges_) == LaneAccess::kVector ? width : 1;
  }

  void add_traffic(const Buffer& buffer, const std::vector<Expr>& indices, bool is_store, double sectors) {
    auto found = std::find_if(work_.traffic.begin(), work_.traffic.end(),
                              [&](const GlobalTraffic& t) { return t.buffer == buffer; });
    if (found == work_.traffic.end()) found = work_.traffic.insert(found, GlobalTraffic{.buffer = buffer});
    (is_store ? found->store_sectors : found->load_sectors) += sectors;
    found->block_bytes = std::max(found->block_bytes, box_bytes(*buffer, indices));
    found->wave_blocks =
        std::max(found->wave_blocks, sampler_.distinct_blocks(*buffer, indices, wave_blocks_));
  }

  // Bytes of the box that an access reaches in one block, rows rounded up to sectors.
  double box_bytes(const BufferNode& buffer, const std::vector<Expr>& indices) const {
    double elements = 1;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto bounds = const_bounds(indices[d], block_ranges_);
      const int64_t reach = bounds ? bounds->second - bounds->first + 1 : buffer.shape[d];
      double extent = static_cast<double>(std::clamp<int64_t>(reach, 1, buffer.shape[d]));
      if (d + 1 == indices.size())
        extent = std::max(extent, 32.0 / static_cast<double>(dtype_bytes(buffer.dtype)));
      elements *= extent;
    }
    return std::min(elements * static_cast<double>(dtype_bytes(buffer.dtype)),
                    static_cast<double>(std::max<int64_t>(32, buffer.bytes())));
  }

  // Tiles of a warp: loads and stores of matrices, products of them, sums that begin.
  void walk_tiles(const StmtNode& s, const Intrinsic& intrinsic, std::vector<WarpStep>& steps) {
    if (intrinsic.lands()) return add({.counts = of(Issue::kWork, share())}, steps);
    WarpStep step;
    const double copies = unrolled_copies() * share();
    bool in_memory = false, is_product = false;
    for (size_t n = 0; n < s.operands.size(); ++n) {
      const IntrinsicOperand& o = intrinsic.operands[n];
      const Expr& operand = s.operands[n];
      if (o.place == IntrinsicOperand::Place::kShared) {
        if (o.unit_place != nullptr) {
          step.counts.wavefronts += wavefronts_of_unit(o, intrinsic.threads) * copies;
          add_address(operand->buffer, operand->operands, 0, step.counts);
          continue;
        }
        in_memory = true;
        step.shared_loads |= o.access == IntrinsicOperand::Access::kRead;
        for (int64_t reg = 0; reg < o.registers; reg += o.run) {
          const std::vector<Expr> at =
              in_buffer(operand->operands, o.layout(Expr(kernel_.thread_vars[0]), Expr(reg)));
          const AccessCost cost = sampler_.access(*operand->buffer, at, o.run);
          step.counts[Issue::kAccess] += copies;
          step.counts.wavefronts += cost.wavefronts * unrolled_copies();
          step.counts.conflicts += cost.conflicts * unrolled_copies();
          add_address(operand->buffer, operand->operands, 0, step.counts);
        }
        continue;
      }
      if (o.access == IntrinsicOperand::Access::kAccumulate) {
        is_product = true;
        const TileProducts products = tile_products(intrinsic);
        step.counts.halves = copies * products.halves;
        step.counts.bytes = copies * products.bytes;
        step.counts.grouped = copies * products.grouped;
        // Its terms are added to the same sums, one after the other.
        step.chain = chain_of(operand->operands) * static_cast<double>(intrinsic.products);
      }
      if (o.access == IntrinsicOperand::Access::kWrite)
        step.result = operand->buffer.get();
      else
        step.operands.push_back(operand->buffer.get());
    }
    if (is_product) {
      const double all = static_cast<double>(intrinsic.instructions);
      const double tiles = std::min(all, tile_products(intrinsic).instructions);
      step.counts[Issue::kTile] += copies * tiles;
      step.counts[Issue::kWork] += copies * (all - tiles);
    }
    if (!in_memory && !is_product)  // registers that are set
      step.counts[Issue::kMove] += copies * static_cast<double>(intrinsic.operands[0].registers);
    step.loads_go_on = step.shared_loads;
    add(std::move(step), steps);
  }

  // A unit that fetches a tile by itself reads 128 bytes at a time, for all warps together.
  static double wavefronts_of_unit(const IntrinsicOperand& o, int64_t threads) {
    constexpr double kBytes = 128, kWarp = 32;
    double bytes = static_cast<double>(dtype_bytes(o.dtype));
    for (const int64_t d : o.shape) bytes *= static_cast<double>(d);
    return bytes / kBytes / (static_cast<double>(threads) / kWarp);
  }

  void walk_intrinsic(const StmtNode& s, std::vector<WarpStep>& steps) {
    const Intrinsic* const known = find_intrinsic(s.name);
    if (known != nullptr && std::ranges::any_of(known->operands, [](const IntrinsicOperand& o) {
          return o.place == IntrinsicOperand::Place::kFragment || o.place == IntrinsicOperand::Place::kShared;
        }))
      return walk_tiles(s, *known, steps);
    int64_t width = 32;
    const size_t dot = s.name.rfind('.');
    if (dot != std::string::npos)
      std::from_chars(s.name.data() + dot + 1, s.name.data() + s.name.size(), width);
    double rounds = 0;
    for (int64_t lanes = 1; lanes < width; lanes *= 2) ++rounds;
    WarpStep step{.chain = rounds, .shuffles = true};
    const double copies = unrolled_copies() * share();
    step.counts = of(Issue::kWork, 2 * rounds * copies);
    step.counts.arithmetic = step.counts.wavefronts = rounds * copies;
    for (const Expr& operand : s.operands)
      if (operand->kind == ExprKind::kLoad) step.operands.push_back(operand->buffer.get());
    add(std::move(step), steps);
  }

  void walk_barrier(std::vector<WarpStep>& steps) {
    work_.has_barriers = true;
    WarpStep barrier{.kind = WarpStep::Kind::kBarrier, .counts = of(Issue::kBarrier, 1)};
    add(std::move(barrier), steps);
  }

  void add(WarpStep step, std::vector<WarpStep>& steps) {
    work_.counts += step.counts * rolled_copies();
    if (step.counts.arithmetic > 0 || step.counts.wavefronts > 0 || step.counts.tiles() > 0)
      active_blocks_ = std::max(active_blocks_, sampler_.block_share().value_or(1));
    steps.push_back(std::move(step));
  }

  // Adds the operations of an index or condition, of one pass through the statement: what stands still in the
  // loops inside is computed before them, and what unrolling makes a constant is part of the instruction.
  void add_integers(const Expr& whole, Issue issue, WarpCounts& counts) {
    visit(whole, [&](const Expr& e) {
      const double own = instructions_of_integer(*e);
      if (own == 0 || is_float(e->dtype)) return;
      if (std::ranges::any_of(computed_, [&](const Expr& before) { return equal(before, e); })) return;
      computed_.push_back(e);
      for (const Expr& operand : e->operands)
        if (known_when_unrolled(operand) && e->kind == ExprKind::kBinary &&
            (e->binary_op == BinaryOp::kAdd || e->binary_op == BinaryOp::kSub || known_when_unrolled(e)))
          return;
      const bool goes_on = std::ranges::any_of(
          loops_, [&](const Loop& loop) { return !loop.unrolled && uses_var(e, loop.var); });
      counts[goes_on ? issue : Issue::kSetup] += own * passes_of(e) * share();
    });
  }

  // What an address takes beside its indices: a pointer that goes on with the innermost loop; and of a
  // swizzle an exclusive or for each access, and the row's share of it when the row goes on.
  void add_address(const Buffer& buffer, const std::vector<Expr>& indices, double copies,
                   WarpCounts& counts) const {
    constexpr double kRowOfSwizzle = 3;  // remainder, shift, sum
    const auto innermost =
        std::find_if(loops_.rbegin(), loops_.rend(), [](const Loop& l) { return !l.unrolled; });
    if (innermost != loops_.rend() && uses(indices, innermost->var)) counts[Issue::kAddress] += share();
    if (buffer->layout.empty()) return;
    bool swizzled = false, row_goes_on = false;
    visit(storage_offset(*buffer, indices), [&](const Expr& e) {
      if (e->kind != ExprKind::kBinary || e->binary_op != BinaryOp::kXor) return;
      swizzled = true;
      row_goes_on |= innermost != loops_.rend() && uses_var(e, innermost->var);
    });
    counts[Issue::kSwizzle] += ((swizzled ? copies : 0) + (row_goes_on ? kRowOfSwizzle : 0)) * share();
  }

  bool known_when_unrolled(const Expr& e) const {
    bool known = true;
    visit(e, [&](const Expr& part) {
      if (part->kind == ExprKind::kLoad) known = false;
      if (part->kind != ExprKind::kVar) return;
      known = known && std::any_of(loops_.begin(), loops_.end(),
                                   [&](const Loop& l) { return l.unrolled && l.var == part->var; });
    });
    return known;
  }

  // How often e is computed for each pass through the innermost loop that stays one.
  double passes_of(const Expr& e) const {
    double passes = 1, rolled_inside = 1;
    for (const Loop& loop : loops_) {
      const bool used = uses_var(e, loop.var);
      if (loop.unrolled)
        passes *= used && !loop.lanes ? static_cast<double>(loop.extent) : 1;
      else
        rolled_inside = used ? 1 : rolled_inside * static_cast<double>(loop.extent);
    }
    return passes / rolled_inside;
  }

  // Operations that wait for each other: the iterations of unrolled loops that add to one element.
  double chain_of(const std::vector<Expr>& indices) const {
    double chain = 1;
    for (const Loop& loop : loops_)
      if (loop.unrolled && !uses(indices, loop.var)) chain *= static_cast<double>(loop.extent);
    return chain;
  }

  static bool uses(const std::vector<Expr>& indices, const Var& var) {
    return std::any_of(indices.begin(), indices.end(), [&](const Expr& i) { return uses_var(i, var); });
  }
  double copies_of(bool unrolled) const {
    double copies = 1;
    for (const Loop& loop : loops_)
      copies *= loop.unrolled == unrolled ? static_cast<double>(loop.extent) : 1;
    return copies;
  }
  double unrolled_copies() const { return copies_of(true); }
  double rolled_copies() const { return copies_of(false); }
  double share() const { return issued_; }

  const GpuKernel& kernel_;
  const int64_t wave_blocks_;
  WarpSampler sampler_;
  RangeMap ranges_, block_ranges_;
  std::vector<Loop> loops_;
  bool copies_ = false;         // in an asynchronous copy
  int64_t expected_ahead_ = 0;  // steps whose copies by TMA are asked for before the loop
  bool in_dot_ = false;         // in the loop of a dot product, which is one instruction
  std::vector<Expr> guards_;
  double issued_ = 1;           // share of the warps that issue what stands here
  std::vector<Expr> computed_;  // what stands in the loops and guards around: the compiler computes it once
  double active_blocks_ = 0;    // of what has been counted
  WarpWork work_;
};

}  // namespace

WarpWork warp_work(const GpuKernel& kernel, int64_t wave_blocks) { return Walk(kernel, wave_blocks).run(); }

}  // namespace tuner::cuda
