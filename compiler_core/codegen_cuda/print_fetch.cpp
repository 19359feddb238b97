// Copies by TMA: boxes of tensor maps, and the barriers that they arrive at (mbarrier). sm_90 and later.
//
// The copy engine takes addresses and coordinates out of registers that a warp has in common. So the compiler
// is shown that the warp and what it asks for are the same in all lanes (a shuffle), and that one of them is
// chosen (elect.sync): else it asks lane by lane, in a loop.
#include <algorithm>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/kernel_printer.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kWarp = 32;

bool is_engine(const Stmt& s) {
  return s->kind == StmtKind::kAsync && s->body == nullptr &&
         (is_async(*s, "init") || is_async(*s, "expect") || is_async(*s, "fetch"));
}

}  // namespace

bool fetches_by_itself(const Stmt& body) {
  bool found = false;
  visit(body, [&](const Stmt& s) { found |= is_async(*s, "fetch"); });
  return found;
}

namespace {

bool mentions(const Stmt& body, const Expr& wanted) {
  bool found = false;
  visit_exprs(body, [&](const Expr& e) { found = found || equal(e, wanted); });
  return found;
}

}  // namespace

bool KernelPrinter::has_uniform_rows() const { return fetches_ && kernel_.block[0] % kWarp == 0; }

void KernelPrinter::define_warp() {
  const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
  if (!fetches_ || threads % kWarp != 0) return;
  warp_ = names_.declare("warp");
  std::string thread = "threadIdx.x";
  if (kernel_.block[1] * kernel_.block[2] > 1)
    thread = str("threadIdx.y * ", kernel_.block[0], " + ", thread);
  if (kernel_.block[2] > 1)
    thread = str("threadIdx.z * ", kernel_.block[0] * kernel_.block[1], " + ", thread);
  text_.line(str("const int ", warp_, " = __shfl_sync(0xffffffffu, (int)(", thread, ") / ", kWarp,
                 ", 0);  // 0..", threads / kWarp - 1));
}

// if (the first thread) what the engine is asked for: any thread of the first warp may do it, as long as it
// is always the same.
bool KernelPrinter::is_first_thread_alone(const StmtNode& guard) const {
  if (warp_.empty() || guard.else_body != nullptr) return false;
  std::vector<Expr> wanted;
  for (size_t d = 0; d < 3; ++d)
    if (kernel_.block[d] > 1)
      wanted.push_back(simplify(binary(BinaryOp::kEq, Expr(kernel_.thread_vars[d]), 0)));
  const std::vector<Expr> found = conjuncts(guard.condition);
  const bool first = found.size() == wanted.size() && std::ranges::all_of(wanted, [&](const Expr& w) {
                       return std::ranges::any_of(found, [&](const Expr& f) { return equal(f, w); });
                     });
  bool others = false;
  visit(guard.body, [&](const Stmt& s) {
    others |= !is_engine(s) && s->kind != StmtKind::kFor && s->kind != StmtKind::kSeq;
  });
  return first && !others;
}

std::optional<KernelPrinter::Stages> KernelPrinter::begin_stages(const StmtNode& loop) {
  Stages s;
  visit(loop.body, [&](const Stmt& child) {
    if (is_async(*child, "await")) s.count = child->operands[0]->buffer->elements();
  });
  if (s.count < 2) return std::nullopt;
  const Expr k(loop.var);
  RangeMap ranges;
  ranges.bind(loop.var, loop.extent);
  s.stage = simplify(floor_mod(k, s.count), ranges);
  s.before = simplify(floor_mod(k + (s.count - 1), s.count), ranges);
  s.parity = simplify(floor_mod(floor_div(k, s.count), 2), ranges);
  if (equal(s.stage, k) || !mentions(loop.body, s.stage)) return std::nullopt;
  std::string text = "int ";
  const auto begin = [&](const Expr& e, const char* wanted, int64_t first, std::string& name) {
    name = names_.declare(wanted);
    expr_text_.alias(e, name);
    text += str(text == "int " ? "" : ", ", name, " = ", first);
  };
  text_.comment(str("stage: ", to_text(s.stage), "; stage_before: ", to_text(s.before),
                    "; parity: ", to_text(s.parity)));
  begin(s.stage, "stage", 0, s.stage_name);
  if (mentions(loop.body, s.before)) begin(s.before, "stage_before", s.count - 1, s.before_name);
  if (mentions(loop.body, s.parity)) begin(s.parity, "parity", 0, s.parity_name);
  text_.line(text + ";");
  return s;
}

void KernelPrinter::end_stages(const Stages& s) {
  if (!s.before_name.empty()) text_.line(str(s.before_name, " = ", s.stage_name, ";"));
  text_.line(str("if (++", s.stage_name, " == ", s.count, ") ", s.stage_name, " = 0",
                 s.parity_name.empty() ? "" : str(", ", s.parity_name, " ^= 1"), ";"));
  for (const Expr& e : {s.stage, s.before, s.parity}) expr_text_.forget(e);
}

std::pair<Expr, Expr> KernelPrinter::parted_place(const Expr& element, const std::set<const VarNode*>& inner,
                                                  const RangeMap& ranges) const {
  LinearForm fixed = linear_form(storage_offset(*element->buffer, element->operands), ranges), moving;
  std::erase_if(fixed.terms, [&](const std::pair<Expr, int64_t>& term) {
    bool moves = false;
    visit(term.first, [&](const Expr& e) {
      moves = moves || (e->kind == ExprKind::kVar && inner.contains(e->var.get()));
    });
    if (moves) moving.terms.push_back(term);
    return moves;
  });
  return {to_expr(fixed), to_expr(moving)};
}

void KernelPrinter::name_unit_tiles(const StmtNode& loop, const RangeMap& ranges) {
  if (!fetches_) return;
  tile_inner_ = {loop.var.get()};
  visit(loop.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) tile_inner_.insert(s->var.get());
  });
  visit(loop.body, [&](const Stmt& s) {
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    for (size_t o = 0; i != nullptr && !i->lands() && o < i->operands.size(); ++o) {
      const IntrinsicOperand& operand = i->operands[o];
      if (*operand.unit_address == '\0') continue;
      const Buffer& buffer = s->operands[o]->buffer;
      const Expr fixed = parted_place(s->operands[o], tile_inner_, ranges).first;
      const bool known = std::ranges::any_of(
          unit_tiles_, [&](const UnitTile& t) { return t.buffer == buffer && equal(t.fixed, fixed); });
      if (known) continue;
      const std::string name = names_.declare(buffer->name + ".tile");
      text_.line(str("unsigned long long ", name, " = ", operand.unit_address, "(", names_.of(buffer), " + ",
                     expr_text_.index(index_names_.apply(fixed, ranges), ranges), ");"));
      text_.line(str("asm(\"\" : \"+l\"(", name, "));  // made here, and not again in each step"));
      unit_tiles_.push_back({buffer, fixed, name});
    }
  });
}

std::string KernelPrinter::unit_tile(const IntrinsicOperand& o, const Expr& operand, const RangeMap& ranges) {
  const auto [fixed, moving] = parted_place(operand, tile_inner_, ranges);
  LinearForm steps = linear_form(moving, ranges);
  const int64_t step = o.unit_step / dtype_bytes(operand->dtype);
  bool whole = true;
  for (auto& [term, factor] : steps.terms) {
    whole &= factor % step == 0;
    factor /= step;
  }
  for (const UnitTile& tile : unit_tiles_) {
    if (!whole || tile.buffer != operand->buffer || !equal(tile.fixed, fixed)) continue;
    if (steps.terms.empty()) return tile.name;
    return str(tile.name, " + ", expr_text_.index(index_names_.apply(to_expr(steps), ranges), ranges));
  }
  return str(o.unit_address, "(", places_.address(operand->buffer, operand->operands, ranges), ")");
}

void KernelPrinter::engine(const StmtNode& s, const RangeMap& ranges) {
  if (s.name == "fetch") return fetch(s, ranges);
  const Expr& barrier = s.operands[0];
  const std::string at = "&" + places_.element(barrier->buffer, barrier->operands, ranges);
  if (s.name == "init") {
    for (const std::string& map : map_names_) text_.line(str("prefetch_map(&", map, ");"));
    return text_.line(str("begin_arrivals(", at, ", ", barrier->buffer->elements(), ", ",
                          places_.value(s.operands[1], ranges), ");  // barriers for ",
                          barrier->buffer->elements(), " stages"));
  }
  if (s.name == "expect")
    return text_.line(str("expect_bytes(", at, ", ", places_.value(s.operands[1], ranges),
                          ");  // of all boxes of a stage"));
  CHECK(s.name == "await") << s.name;
  text_.line(str("await_phase(", at, ", ", places_.value(s.operands[1], ranges),
                 ");  // until what was fetched is there"));
}

void KernelPrinter::fetch(const StmtNode& s, const RangeMap& ranges) {
  if (!s.value.defined()) {
    const Expr &at = s.operands[0], &to = s.operands[1], &from = s.operands[2];
    fetched_ranks_.insert(0);
    return text_.line(str("fetch_bytes(", places_.address(to->buffer, to->operands, ranges), ", &",
                          places_.element(from->buffer, from->operands, ranges), ", ",
                          places_.value(s.operands[3], ranges), ", &",
                          places_.element(at->buffer, at->operands, ranges), ");  // of ", from->buffer->name,
                          ", as it lies"));
  }
  int64_t number = 0;
  CHECK(is_const_int(s.value, &number)) << "not a map's number";
  const TensorMap& map = kernel_.tensor_maps.at(static_cast<size_t>(number)).map;
  fetched_ranks_.insert(map.rank());
  const Expr &barrier = s.operands[0], &to = s.operands[1];
  std::string coordinates;
  for (const Expr& c : s.indices) coordinates += str(", ", places_.value(c, ranges));
  text_.line(str("fetch_box_", map.rank(), "(", places_.address(to->buffer, to->operands, ranges), ", &",
                 map_names_.at(static_cast<size_t>(number)), coordinates, ", &",
                 places_.element(barrier->buffer, barrier->operands, ranges), ");  // ", map.box_bytes(),
                 " bytes of ", s.buffer->name));
}

const char* barrier_helpers() {
  return R"(// How the copy engine sees an array; filled by the driver.
struct __align__(64) CUtensorMap {
  unsigned long long opaque[16];
};
static __device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Barriers in shared memory. Each counts, phase after phase, so many arrivals and the bytes that were announced.
static __device__ __forceinline__ void begin_arrivals(long long* barriers, int count, unsigned arrivals) {
  for (int i = 0; i < count; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(barriers + i)),
                 "r"(arrivals) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Arrives, and announces bytes.
static __device__ __forceinline__ void expect_bytes(long long* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   (unsigned)__cvta_generic_to_shared(barrier)),
               "r"(bytes) : "memory");
}
// True in one lane of a warp that is all here, always the same one.
static __device__ __forceinline__ bool elect_one() {
  unsigned chosen;
  asm volatile("{\n  .reg .pred one;\n  elect.sync _|one, 0xffffffff;\n  selp.u32 %0, 1, 0, one;\n}" : "=r"(chosen));
  return chosen != 0;
}
// Waits until the phase of that parity is over. With TUNER_TRAP_NS the kernel ends in an error after so long.
static __device__ __forceinline__ void await_phase(long long* barrier, unsigned parity) {
  unsigned over;
#ifdef TUNER_TRAP_NS
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
#endif
  do {
    asm volatile("{\n  .reg .pred over;\n  mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                 "  selp.u32 %0, 1, 0, over;\n}" : "=r"(over) : "r"((unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(parity) : "memory");
#ifdef TUNER_TRAP_NS
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > TUNER_TRAP_NS) __trap();
#endif
  } while (over == 0);
}
)";
}

std::string fetch_helper(size_t rank) {
  if (rank == 0)
    return "// Asks for bytes, a multiple of 16, which arrive at the barrier.\n"
           "static __device__ __forceinline__ void fetch_bytes(void* to, const void* from, unsigned bytes, "
           "long long* "
           "barrier) {\n"
           "  asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
           "%2, [%3];\" ::\n"
           "      \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(bytes), "
           "\"r\"((unsigned)__cvta_generic_to_shared(barrier)) : \"memory\");\n}\n";
  std::string parameters, places, operands;
  for (size_t d = 0; d < rank; ++d) {
    parameters += str(", int c", d);
    places += str(d == 0 ? "" : ", ", "%", d + 3);
    operands += str(", \"r\"(c", d, ")");
  }
  return str("// Asks for a box of an array of ", rank,
             " dimensions, which arrives at the barrier; zeros outside.\n",
             "static __device__ __forceinline__ void fetch_box_", rank, "(void* to, const CUtensorMap* map",
             parameters, ", long long* barrier) {\n  asm volatile(\"cp.async.bulk.tensor.", rank,
             "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {", places,
             "}], [%2];\" ::\n",
             "      \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(map), "
             "\"r\"((unsigned)__cvta_generic_to_shared(barrier))",
             operands, " : \"memory\");\n}\n");
}

}  // namespace tuner::cuda
