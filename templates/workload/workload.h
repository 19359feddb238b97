// Workload: what is to be computed: operator, shapes, types, layouts, epilogue. It does not say how, where,
// or how long to search.
//
// key() is canonical text that starts with its version and parses back. It is the key of the database and of
// the reference cache.
//   v1 conv2d n=1 ic=512 ih=7 iw=7 oc=512 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu
//      dtype=float32 layout=NCHW const=weight                                                  (on one line)
//   (out_layout=NCHW16c follows layout if it differs; allow_tf32=1 follows dtype if it is so; scale=1, then
//   residual=1, residual=last or accumulate=1 follow bias if there are any; post=scale,bias,activation follows
//   act if that is the order; out_dtype=uint8 follows dtype if out is not of the type of the sums; act=clip:0:6
//   has numbers)
//   v1 matmul b=1 m=1024 n=1024 k=1024 ta=0 tb=0 bias=0 act=none dtype=float32 const=b
//   v1 pool2d n=1 c=64 ih=112 iw=112 kh=3 kw=3 stride=2,2 pad=1,1,1,1 pooling=max dtype=float32 layout=NCHW
//   (include_pad=1 follows pooling if an average counts padding)
//   v1 softmax rows=4096 columns=1024 dtype=float32
//   v1 layer_norm rows=4096 columns=768 eps=1e-05 dtype=float32
//   v1 reduce rows=4096 columns=1024 reduction=mean dtype=float32
//   v1 transpose rows=4096 columns=1024 dtype=float32
//   v1 elementwise rows=4096 columns=1024 scale=1 bias=1 residual=0 act=relu dtype=float32
//   v1 program in=float32[1,64,56,56],float32[64,1,1] Mul(0,1) LeakyRelu(2){alpha=0.1f}
//
// Each operator has a header and a source in operators/. README.md says how to add one.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "templates/workload/operators/operators.h"

namespace tuner {

struct TaskShape;

class Workload {
 public:
  using Op = AnyOperator;

  Workload() = default;
  template <class W>
  requires std::constructible_from<Op, W> Workload(W w) : op_(std::move(w)) {}

  std::string_view op_name() const;  // "matmul", "conv2d", ...
  std::string key() const;
  // Returns the operations on elements, for reporting. Matrix product and convolution: multiply and add count
  // as two, padding counts as work, the epilogue does not count. Other operators: each operation of the math
  // counts one per element (exp, comparison and division too). That is one per element of a window for
  // pool2d, 5 for softmax, 8 for layer_norm, 1 for reduce, 0 for transpose, and one per optional part for
  // elementwise.
  int64_t flops() const;
  // Returns the compulsory traffic in bytes: each argument read or written once, an accumulated one both. No
  // kernel moves less if the data start in memory.
  int64_t bytes() const;
  // True if times should be compared with bytes() instead of flops(): each operator's kMemoryBound.
  bool memory_bound() const;
  // Returns the fewest operations and bytes that any algorithm needs: what no kernel is faster than.
  double least_operations() const;
  double least_bytes() const;
  bool is_constant(std::string_view operand) const;
  bool has_constants() const;
  DType dtype() const;  // type of the elements that are multiplied
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&op_);
  }

  // The alternatives, for std::visit.
  const Op& op() const { return op_; }

  // Returns it as others compare it, and its extents in the name of a kernel: "128x768".
  TaskShape shape() const;
  std::string shape_name() const;
  // What limits the word "right" of its answers, for people: "right as the default config is". Empty: nothing does.
  std::string_view caveat() const;
  // The C function that it is, where its user has named it; empty: it has no name of its own.
  std::string own_name() const;

  // Returns the unscheduled math. Arguments are inputs and constants in file order (a, b, bias | data,
  // weight, bias | x, gamma, beta | x, scale, bias, residual), then "out". For products, residual, scale,
  // zero_point, residual_scale and residual_zero_point follow bias, whatever the order of their epilogue;
  // with `accumulate` out is in and out.
  Program compute() const;

  // The bytes of argument `place` of compute() before a call, where the operator says what they are; nothing: numbers are drawn
  // (tolerance.h). The right answer for an output, where it is brought and not computed. InvalidArgument: a file that was brought is
  // not of the argument's type and shape.
  std::optional<Result<std::string>> operand(size_t place, uint64_t seed) const;
  std::optional<Result<std::string>> answer(size_t place) const;

 private:
  Op op_;
};

// A fragment of a graph (compiler_core/graph/fragment.h), or its text, as a workload. InvalidArgument: it is
// none, or too large.
Result<Workload> program_workload(graph::Graph fragment);
Result<Workload> program_from_text(std::string_view text);
// Reads Workload::key() back. The result is valid; InvalidArgument names the word that is wrong.
Result<Workload> workload_from_key(std::string_view key);
// Returns "matmul, conv2d, ...", for messages.
std::string operator_names();
// Checks that shapes are at least 1, the padded input is not smaller than the dilated kernel, byte sizes are
// below 2^40, and epsilon is not so small that it vanishes. The message says which fails.
Status validate(const Workload& workload);

}  // namespace tuner
