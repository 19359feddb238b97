// Tensor expressions: the math without loops. Building one gives an unscheduled Program: one plain loop nest
// per compute, in order, with intermediates in their own buffers. It defines the meaning of the task;
// schedules only rearrange it.
//
//   te::Builder b("matmul");
//   auto A = b.input("A", {m, k});
//   auto B = b.constant("B", {k, n});
//   auto C = b.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum,
//                     [&](auto i, auto r) { return load(A, {i[0], r[0]}) * load(B, {r[0], i[1]}); });
//   auto out = b.compute("out", {m, n}, [&](auto i) { return max(load(C, i), float_imm(0)); },
//                        BufferRole::kOutput);
//   Program p = b.finish();
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner::te {

using Indices = std::vector<Expr>;

class Builder {
 public:
  explicit Builder(std::string name, DType dtype = DType::kFloat32);

  // Declare arguments, of the builder's type or of the given `dtype`.
  Buffer input(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype = {});
  Buffer constant(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype = {});

  // Declares an output that holds an operand before the call: f of the compute() of this name may load it, at
  // the element that it computes.
  Buffer in_out(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype = {});

  // Adds out[i...] = f(i). Axes are named by `axis_names` if given, else i0, i1, ... out has the type of f's
  // value, and the builder's if f gives indices or plain numbers; with `dtype` it has that one, which f's
  // value must have, too.
  Buffer compute(const std::string& name, std::vector<int64_t> shape,
                 const std::function<Expr(const Indices&)>& f, BufferRole role = BufferRole::kIntermediate,
                 const std::vector<std::string>& axis_names = {}, std::optional<DType> dtype = {});
  struct ReduceAxis {
    std::string name;
    int64_t extent;
  };
  // Adds out[i...] = (op) over r of f(i, r). Sum starts at 0, max at -inf, min at +inf; of integers max
  // starts at the least number of the type, min at the greatest.
  Buffer reduce(const std::string& name, std::vector<int64_t> shape,
                const std::vector<ReduceAxis>& reduce_axes, ReduceOp op,
                const std::function<Expr(const Indices&, const Indices&)>& f,
                BufferRole role = BufferRole::kIntermediate, const std::vector<std::string>& axis_names = {});

  // Runs what `stages` adds once for each step 0 .. count - 1, one step after the other. A stage may read
  // what earlier steps stored in a tensor of declare(). What stages of steps give is no output.
  //
  //   const Buffer sums = b.declare("sums", {n, 4});
  //   b.steps("s", n, [&](const Expr& s) {
  //     b.fill(sums, {s}, [&](auto i) {
  //       return select(s < 1, x(i), load(sums, {max(s - 1, 0), i[0]}) + x(i)); });
  //   });
  void steps(const std::string& name, int64_t count, const std::function<void(const Expr& step)>& stages);
  // Declares an intermediate that one fill() stores.
  Buffer declare(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype = {});
  // Adds buffer[at..., i...] = f(i): the part of a declared tensor at these leading indices.
  void fill(const Buffer& buffer, const Indices& at, const std::function<Expr(const Indices&)>& f);

  // Returns the Program: arguments in order of declaration, outputs last.
  Program finish();

 private:
  std::string name_;
  DType dtype_;
  std::vector<Buffer> args_, outputs_;
  std::vector<Stmt> nests_;
};

// Returns the same Program with every float type replaced, as for the reference answer, which is computed in
// float64. Buffers are new; the order of arguments stays. A value that is cast to an integer is still
// computed in its own type, from loads rounded to it: the last bit of a float decides which integer it
// becomes.
Program with_float_type(const Program& program, DType dtype);

}  // namespace tuner::te
