// Schedule: rewrites a Program, one primitive at a time.
//
// Each primitive is a rewrite Program -> Program that checks its own precondition. The first refusal stops
// the schedule: later calls do nothing (and return empty handles), and finish() returns that refusal. So a
// template needs no checks between its calls. program() may be printed after any step. trace() is the list of
// calls as text, and replay() runs such a list again on the same math.
//
// Axes and tensors are handles: an Axis is a loop of the current Program (its Var), a Tensor is the buffer
// that a stage computes. A *stage* is the loop nest whose innermost store writes that buffer. Using an axis
// that a primitive consumed (split, fused) is refused, with its name.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

struct Intrinsic;

struct Axis {
  Var var;
};
struct SplitAxes {
  Axis outer, inner;
};
struct Tensor {
  Buffer buffer;
};

// One dimension of a packed layout, made from source dimension `dim`: its blocks of `factor` (outer), or the
// position inside a block (inner). factor 1 and outer: the dimension itself. Outer dimensions are padded to a
// multiple of `multiple`.
struct PackDim {
  int dim;
  int64_t factor = 1;
  bool inner = false;
  int64_t multiple = 1;
  // Of an inner one: what lies beyond the tensor. 0: zeros. n, a divisor of the dimension: its last n
  // elements, again and again. Nobody may ask for them, but reading them needs no guard, and n in a row stay
  // in a row.
  int64_t repeat = 0;
};

// The index that PackDim::repeat puts in place of one beyond the dimension. `n` divides `extent`.
Expr repeated_at_edge(const Expr& index, int64_t extent, int64_t n);

class Schedule {
 public:
  explicit Schedule(Program program);

  // --- handles ---
  Tensor tensor(std::string_view buffer_name);  // any buffer of the Program, by name
  std::vector<Axis> axes(const Tensor& t);      // the loops around its stage and no other, outermost first
  std::vector<Axis> spatial_axes(const Tensor& t);      // of these, the spatial ones
  std::vector<Axis> reduce_axis_list(const Tensor& t);  // of these, the reduce ones
  // Structured-binding forms: auto [n, m] = s.axes<2>(t). They refuse if the stage does not have exactly N
  // such axes. axes and inner_axes give its spatial ones; by custom inner_axes is written for a stage that
  // compute_at has put into another's loops, and axes for one that stands by itself.
  template <size_t N>
  std::array<Axis, N> axes(const Tensor& t) {
    return pick<N>("axes", t, spatial_axes(t));
  }
  template <size_t N>
  std::array<Axis, N> inner_axes(const Tensor& t) {
    return pick<N>("inner_axes", t, spatial_axes(t));
  }
  template <size_t N>
  std::array<Axis, N> reduce_axes(const Tensor& t) {
    return pick<N>("reduce_axes", t, reduce_axis_list(t));
  }
  int64_t extent(Axis axis);          // 0 after a refusal (refused()), as lists are empty then
  Axis axis(std::string_view label);  // by the name in trace(): "oh.outer", "conv:oh"

  // --- loops ---

  // Replaces `axis` by two nested axes and returns them.
  //
  //   before   for i in 0..n: body(i)
  //   after    for o in 0..ceil(n / factor):
  //              for r in 0..factor:
  //                if (o * factor + r < n) body(o * factor + r)     no `if` when factor divides n
  //
  // Requires   factor >= 1, `axis` serial (not vectorized, bound...), at most 2^60 iterations of the nest.
  // Ensures    every element is computed once, in the same order; `axis` may no longer be used.
  SplitAxes split(Axis axis, int64_t factor);
  // Replaces perfectly nested axes, outermost first, by one: i = f / (n1*n2), ... Requires that they are
  // directly nested and of the same kind.
  Axis fuse(std::initializer_list<Axis> axes) { return fuse(std::span(axes.begin(), axes.size())); }
  Axis fuse(std::span<const Axis> axes);
  // Walks over what overlapping windows read, in place of over their taps: replaces `tap`, directly around
  // `out`, by the position r that an element of the window has.
  //
  //   before   reduce kh in 0..K: for oh in 0..O: acc[oh] += x[oh*S + kh*D] * w[kh]
  //   after    reduce r in 0..(O-1)*S + (K-1)*D + 1: for oh in 0..O:
  //              if (r - oh*S is one of 0, D, .., (K-1)*D) acc[oh] += x[r] * w[(r - oh*S) / D]
  //
  // Where both are unrolled the guards vanish, and all that reads x[r] stands together: it is loaded once,
  // and need not be kept. Each sum adds its terms in the same order. Returns the axis of r; `out` stays, and
  // `tap` may no longer be used. Requires serial, directly nested loops, the outer one a reduce axis and the
  // inner one spatial; sums inside with a decomposed initialisation; stride, dilation >= 1.
  Axis skew(Axis tap, Axis out, int64_t stride, int64_t dilation);
  // Reorders these axes of one stage within the places they occupy. Requires perfect nesting between the
  // outermost and the innermost of them (guards move inside).
  void reorder(std::initializer_list<Axis> axes) { reorder(std::span(axes.begin(), axes.size())); }
  void reorder(std::span<const Axis> axes);
  // Renames a loop, for readers of the code. The old handle ends.
  Axis rename(Axis axis, std::string_view name);
  void parallel(Axis axis);  // spatial only; outermost only
  // Innermost loops only. Iterations of a spatial axis become lanes. A reduce axis must have its reduction
  // decomposed: vectors are added lane by lane, and each time the loop ends their lanes are combined by a few
  // shuffles. After rfactor the only loop that ends so is the one that adds up the parts.
  void vectorize(Axis axis);
  // Makes the loop directly around a vectorized one the rows of a tile of vectors (LoopKind::kVectorRows).
  //
  //   for c vector_rows: for w vectorized: out[.., c, w] = f(acc[.., w, c])      acc is read by vectors of c,
  //                                                                             transposed, stored by vectors
  //                                                                             of w
  //
  // Requires a spatial axis of at most 16 iterations, only guards between the two loops, and stores only.
  void vectorize_rows(Axis axis);
  // Makes the reduce axis one dot-product instruction of each lane (LoopKind::kDot). Vectorize the spatial
  // axis around it afterwards.
  //
  //   for j vectorized: for k dot in 0..4: acc[j] += int32(a[k]) * int32(b[j, k])
  //
  // The instruction needs one operand whose elements for a lane are adjacent (pack() puts them so), and
  // another whose elements are adjacent and the same in all lanes. Otherwise the loop is compiled as a plain
  // one. A GPU's takes 8 bits only; the elements of each operand must be an aligned word of shared memory or
  // registers, or compiling refuses. Requires an innermost reduce axis of a sum of products of two loads: 2
  // iterations and casts from bfloat16 to float32, or 4 and casts from int8 or uint8 to int32.
  void dot(Axis axis);
  // Makes the nest at `axis` one statement: a tile intrinsic of the registry (ir/intrinsic.h), whose meaning
  // is these very loops.
  //
  //   before   for i in 0..16: reduce g in 0..16: for j in 0..16: reduce e in 0..2:
  //              C[r*16 + i, j] += float32(A[r, i, g*2 + e]) * float32(B[k*16 + g, j, e])
  //   after    amx.bfloat16.16(C[r*16, 0], A[r, 0, 0], B[k*16, 0, 0])
  //
  // Requires   serial loops with the extents of the meaning in its order, nothing between or beside them (no
  //            guard: pack() pads operands so that tiles are full), and the same store but for names; each
  //            operand in the memory that the intrinsic takes it from, the tile's dimensions the last ones
  //            of its buffer, at an origin that does not change inside the nest. A sum must be decomposed;
  //            its initialisation becomes the intrinsic that sets a tile to 0, where it is a nest of a tile.
  // Ensures    the oracle runs the meaning; a target without the instruction compiles it.
  void tensorize(Axis axis, std::string_view intrinsic);
  void unroll(Axis axis);
  // Binds `axis` to a GPU axis. An axis inside a loop that is bound to the same thread axis is cooperative:
  // the threads share its iterations. A reduce axis bound to kThreadX is a cross-thread reduction
  // (ir/stmt.h, lower/gpu.h). Refuses two block axes of one kind on a path, a reduce axis on anything but
  // kThreadX, and a reduce axis whose extent is neither a power of two up to 32 nor a multiple of 32 up to
  // 1024.
  void bind(Axis axis, LoopKind thread_axis);

  // --- stages ---

  // Computes t in a new buffer of `scope` first and then copies it to t. Returns the new tensor, which holds
  // the reduction. t's own stage becomes the copy and keeps the spatial axes. Elementwise consumers inlined
  // into t stay with the copy.
  Tensor cache_write(const Tensor& t, MemoryScope scope);
  // Copies t into a new buffer of `scope`, which the stage of `reader` reads instead of t.
  Tensor cache_read(const Tensor& t, MemoryScope scope, const Tensor& reader);
  // Puts the buffer of t into another memory; the compiler promotes kRegister. Not for arguments.
  void set_scope(const Tensor& t, MemoryScope scope);
  // Moves the stage of t inside `axis` of its consumer and shrinks it to the region read there. Its loops
  // then run over that region (handles of its axes stay valid), and the buffer becomes as small; reduce axes
  // stay complete. Requires that all readers of t are under `axis`, and that the spatial axes of t are not
  // yet split, fused or annotated. Where the region may reach past t's shape, the stage is guarded. The guard
  // of a dimension is left out if computing past the shape reads nothing out of bounds (blocks of a packed
  // operand), because those elements are never read.
  // In shared memory (set the scope first) the region is what the whole block reads: loops around `axis`
  // bound to threads and virtual threads are run through too. Bind them before.
  void compute_at(const Tensor& t, Axis axis);
  // Replaces reads of t by its expression. Requires that t has no reduction.
  void inline_compute(const Tensor& t);
  // Puts the initialisation of the reduction t into its own nest just before `axis`, a loop of t's stage at
  // or outside all reduce axes. Otherwise lowering leaves `if (first)` inside. The new nest has the spatial
  // loops at and inside `axis`, in their order and kind. A later split, unroll, vectorize or bind of such a
  // loop also applies to its twin in the new nest.
  void decompose_reduction(const Tensor& t, Axis axis);

  // Copies t into a packed layout that every reader then uses. `dims` lists the new dimensions, outermost
  // first; a dimension that its blocks, or their multiple, do not divide is padded with zeros, or as
  // PackDim::repeat says. A kConstant argument is packed by the Program's packing entry and becomes a kPacked
  // argument. Any other tensor gets an ordinary stage, which may then be scheduled. Each source dimension
  // appears once as itself, or twice: as the blocks and as the inside of blocks of one factor. Refuses if
  // padding is over 1 GiB and most of the result.
  //   pack(B, {{1, 16}, {0}, {1, 16, true}})     B[K, N] -> B.packed[N/16][K][16]
  Tensor pack(const Tensor& t, std::vector<PackDim> dims);

  // Extends the reduce axis to the next multiple of `multiple`, so that a later split needs no guard.
  //   before   reduce k in 0..K: acc += a.packed[.., k] * b.packed[.., k]
  //   after    reduce k in 0..ceil(K / multiple) * multiple: the same
  // Requires a sum in which every added term is 0 beyond K: a product of factors that pack() filled with
  // zeros there, with nothing read out of bounds. Otherwise refuses, naming the load it could not prove. A
  // reduction of one term is left as it is.
  void pad_reduction(Axis axis, int64_t multiple);
  // Uses guards instead of selects: terms of the sum t that a select makes 0 are not added. (For a maximum or
  // minimum: terms that a select makes its start value.)
  //
  //   before   reduce kh, kw: acc[oh, ow] += select(inside(oh, kh, ow, kw), x[...], 0) * w[kh, kw]
  //   after    reduce kh: if (rows inside) reduce kw: if (columns inside) acc[oh, ow] += x[...] * w[kh, kw]
  //
  // Each conjunct stands just inside the innermost loop that it tests, so lowering can decide it ahead
  // (partition_loops) or test it once for many terms. Call it after the last reorder of t.
  // Requires a decomposed initialisation. It also leaves out 0 times infinity, so results differ for infinite
  // factors.
  void skip_zeros(const Tensor& t);
  // Moves the stage of t, and stages that only it reads, to the packing entry. t becomes a kPacked argument
  // in the place of the constant it is made of (behind it, if that is read elsewhere too). Schedule t before:
  // its axes are then out of reach. Requires that these stages read only one kConstant argument and each
  // other.
  void precompute(const Tensor& t);
  // Splits a reduction into two stages. t.partial has `axis` (a reduce axis of t, made by split) as its
  // leading dimension and holds the sums over the other reduce axes; t then sums over that dimension. Returns
  // the partial tensor. Split-K: axis = split(k, ...).outer, with the partial in global workspace and a
  // kernel of its own. Requires that t's stage is plain except for splits and orders of its reduce axes.
  Tensor rfactor(const Tensor& t, Axis axis);

  // Lets `part`, a sum over some of the terms of `sum`, begin with what `sum` holds, which then takes what
  // part ends with. Sums in registers (tiles) are so loaded and stored, where they would be stored, loaded
  // and added.
  //
  //   before   for k_block: { part[i, j] = 0
  //                           for k: part[i, j] += ...
  //                           sum[i, j] += part[i, j], from 0 when k_block == 0 }
  //   after    for k_block: { if (k_block == 0) part[i, j] = 0 else part[i, j] = sum[i, j]
  //                           for k: part[i, j] += ...
  //                           sum[i, j] = part[i, j] }
  //
  // Returns the loops of the new nest, outermost first, as those of the adding one are. Requires two sums of
  // one type, part's initialisation decomposed and sum's not, `part` inside `sum`'s loops (rfactor,
  // compute_at), and plain loops of `sum` over all of part. Terms are then added one after the other: of
  // floats the result rounds differently.
  std::vector<Axis> carry_sums(const Tensor& part, const Tensor& sum);

  // Asks the caches for what `reader` will read of t `ahead` iterations later in its serial loop `axis`.
  // Changes no value. It pays if a stream comes from memory and each part of it is worked on for long.
  //
  //   before   for k: unrolled v: vectorized lane: acc[v, lane] += a[k] * t[k, v, lane]
  //   after    for k: { unrolled v: prefetch(t[k + ahead, v, 0])
  //                     unrolled v: vectorized lane: acc[v, lane] += a[k] * t[k, v, lane] }
  //
  // It also asks for elements behind the end: the next ones of a packed operand, or none. Annotate loops
  // before.
  void prefetch(const Tensor& t, const Tensor& reader, Axis axis, int64_t ahead);
  // Asks the caches, while `reader` works on one iteration of its serial loop `axis`, for what it will read
  // of t in the next; the second cache, where a panel has room. `share` is a loop between: it reads the same
  // of t again in each of its iterations, and each asks for a part, inside the serial loop `at` below it
  // (none: the innermost), so that what is asked for comes at the pace of the arithmetic. A line of 64 bytes
  // is asked for once. Changes no value. It pays if a panel is used often once it is near, and comes from
  // far.
  //
  //   before   for panel: for tile: for k: unrolled v: vectorized lane: acc[..] += a[tile, k] * t[panel, k,
  //            v, lane]
  //   after    for panel: for tile: for k: { prefetch.l2(t[panel + 1, k, tile mod extent(v), 0])
  //                                          unrolled v: vectorized lane: acc[..] += ... }
  //
  // With fewer tiles than vectors each asks for several. It asks for elements behind the end, too, like
  // prefetch. Annotate loops before, and make `axis` parallel after. Requires that t is read below `at` by
  // indices that depend on `axis` and not on `share`.
  void prefetch_next(const Tensor& t, const Tensor& reader, Axis axis, Axis share, Axis at = {});

  // --- GPU memory ---

  // Sets the address function of a shared buffer (ir/layout.h): "pad:4", "xor:4,8". Call it after compute_at,
  // because it is checked against the shape of the tile. Or of a constant that is packed ahead, by "xor:8,8":
  // its elements then lie in memory as in the tile that is copied of it, so that copy_by_tma needs no tensor
  // map.
  void set_layout(const Tensor& t, std::string_view layout);
  // Doubles the shared buffer t, which is computed (copied) inside the serial loop `axis`, so that the copy
  // for the next iteration proceeds while this one is used.
  //   before   for k: { t = copy(k); use(t) }
  //   after    t[0] = copy(0)
  //            for k: { staged = copy(k + 1) if there is one; use(t[k % 2]); t[(k + 1) % 2] = staged }
  // `staged` are registers between load and store (the load is under way during the use). Without
  // `in_registers` the copy stands before the use. Split, bind and vectorize t's loops before. Several
  // tensors of one loop may be doubled one after the other.
  void double_buffer(const Tensor& t, Axis axis, bool in_registers = true);
  // Makes the copies of the shared buffers `tensors`, which are computed (copied) inside the serial loop
  // `axis`, asynchronous: `stages` - 1 iterations are on their way from global memory while one is used, and
  // no thread waits for what it loads nor keeps it in registers.
  //   before   for k in 0..K: { t = copy(k); use(t) }
  //   after    for s in 0..stages-1: { async t[s] = copy(s); commit }            written out
  //            for k in 0..K: { wait for all but the latest stages-2 groups
  //                             async t[(k + stages-1) % stages] = copy(k + stages-1) if there is one; commit
  //                             use(t[k % stages]) }
  // Lowering puts one barrier into an iteration, behind the wait. A thread copies vectors of 4, 8 or 16 bytes
  // as they lie in memory, or zeros: split, bind and vectorize the loops before.
  //
  // Of tensors that are copied by TMA (copy_by_tma, all or none), one thread asks for the copies. They arrive
  // at a barrier in shared memory, `full`, one for each stage, which counts bytes and phases:
  //   after    init full, 1 arrival
  //            for s in 0..stages-1: { expect full[s], bytes; fetch t[s] = copy(s) }         written out
  //            for k in 0..K: { await full[k % stages], parity k / stages % 2
  //                             expect full[(k + stages-1) % stages], bytes; fetch t[...] = copy(k + stages-1) if there is one
  //                             use(t[k % stages]) }
  // Lowering puts one barrier of the block into an iteration, before a stage is asked for again.
  void pipeline(std::initializer_list<Tensor> tensors, const Axis& axis, int64_t stages) {
    pipeline(std::span(tensors.begin(), tensors.size()), axis, stages);
  }
  void pipeline(std::span<const Tensor> tensors, const Axis& axis, int64_t stages);
  // The same where a unit that works by itself multiplies the buffers (Intrinsic::started): its products go
  // on over the end of an iteration, while threads copy and meet. The stage that it still reads is not copied
  // to, so that one iteration fewer is on its way.
  //   before   for k in 0..K: { t = copy(k); multiply(t) }
  //   after    for s in 0..stages-2: { async t[s] = copy(s); commit }            written out
  //            for k in 0..K: { wait for all but the latest stages-3 groups
  //                             start multiply(t[k % stages])
  //                             if (k > 0) multiply(t[(k - 1) % stages]) has landed
  //                             async t[(k + stages-2) % stages] = copy(k + stages-2) if there is one; commit }
  //            multiply(t[(K - 1) % stages]) has landed
  // Copied by TMA, all stages are on their way: what is asked for behind the landing goes into the stage of
  // iteration k - 1.
  void pipeline_products(std::span<const Tensor> tensors, const Axis& axis, int64_t stages);
  // Lets the copy engine of Hopper GPUs (TMA) make the copy of the shared buffer t: one thread asks for boxes
  // of a tensor map, which bring zeros where the copy has them, so that guards, addresses and registers of
  // the copy vanish.
  //   before   for i, j: t[i, j] = select(inside, x[...], 0)
  //   after    fetch { for i, j: t[i, j] = select(inside, x[...], 0) }
  // Call it after compute_at and before pipeline(), which it needs; the layout of t may be set later.
  // Requires serial loops, rows of x that are a multiple of 16 bytes apart, and zeros beyond x alone
  // (analysis/tensor_copy.h).
  void copy_by_tma(const Tensor& t);
  // Loads the fragments `tensors` one step ahead, in two sets that take turns: while the products of one step
  // run, those of the next are loaded, over the end of an iteration of the pipelined loop around `step`, too.
  //   before   for k in 0..K: { wait; copies; for step in 0..S: { f = load(k, step); use(f) } }
  //   after    copies of the iteration that is one further; wait; f[0] = load(0, 0)
  //            for k in 0..K: { f[1] = load(k, 1); use(f[0])
  //                             f[step % 2] = load(k, step); use(f[(step - 1) % 2])        for step in 2..S
  //                             wait; f[0] = load(k + 1, 0) if there is one; copies of k + 1; use(f[1]) }
  // All stages are on their way then: one that was loaded whole is copied into behind the wait and its
  // barrier. `step` is unrolled, has an even number of steps, and ends the iteration; tensorize what loads
  // and uses before.
  void load_ahead(std::initializer_list<Tensor> tensors, const Axis& step) {
    load_ahead(std::span(tensors.begin(), tensors.size()), step);
  }
  void load_ahead(std::span<const Tensor> tensors, const Axis& step);
  // Asks that `blocks` blocks fit a multiprocessor at once, which bounds the registers of a thread.
  void launch_bounds(int blocks);

  // --- results ---
  bool refused() const { return !status_.is_ok(); }
  const Program& program() const { return program_; }
  std::string trace() const;       // one primitive per line, with axes and tensors by name
  Result<Program> finish() const;  // the Program, or the first refusal

 private:
  template <size_t N>
  std::array<Axis, N> pick(std::string_view what, const Tensor& t, const std::vector<Axis>& found) {
    std::array<Axis, N> axes{};
    if (check_count(what, t, N, found.size())) std::copy(found.begin(), found.end(), axes.begin());
    return axes;
  }
  bool check_count(std::string_view what, const Tensor& t, size_t wanted, size_t found);

  // Runs `rewrite` unless there is a refusal already. An error becomes the first refusal, with `call` in
  // front.
  template <class F>
  void apply(const std::string& call, const F& rewrite);
  void record(std::string line) { trace_.push_back(std::move(line)); }
  Status annotate(const Axis& axis, LoopKind kind);
  void pipeline_tensors(std::string_view name, std::span<const Tensor> tensors, const Axis& axis,
                        int64_t stages, bool products_go_on);
  Status tensorize_nest(const Var& var, const Intrinsic& intrinsic);
  Status split_loop(const Var& var, int64_t factor, SplitAxes* result);
  Buffer resolve(const Tensor& t) const;             // the present buffer of the handle
  void moved(const Buffer& from, const Buffer& to);  // makes handles of `from` mean `to`
  const Var* twin(const Var& var) const;

  Program program_;
  Status status_;
  std::vector<std::string> trace_;
  std::vector<std::pair<Buffer, Buffer>> moved_;
  std::vector<std::pair<Var, Var>> twins_;  // a loop of a decomposed reduction, and its twin in the
                                            // initialisation
};

// Runs a trace on the same unscheduled Program. An error names the line.
Result<Program> replay(const Program& unscheduled, std::string_view trace);

}  // namespace tuner
