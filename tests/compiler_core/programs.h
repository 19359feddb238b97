// Small Programs for the tests of schedules, and their loops as text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"

namespace tuner::testing {

// The loops alone, after a line feed, so that expected ones stand on lines of their own.
inline std::string loops(const Schedule& s) { return "\n" + to_text(s.program().body); }

// y[i] = x[i] * 2
struct Doubling {
  explicit Doubling(int64_t n) : s(program(n)), y(s.tensor("y")), i(s.axes(y)[0]) {}
  static Program program(int64_t n) {
    te::Builder b("doubling");
    const Buffer x = b.input("x", {n});
    b.compute("y", {n}, [&](const te::Indices& i) { return load(x, i) * 2; }, BufferRole::kOutput, {"i"});
    return b.finish();
  }
  Schedule s;
  Tensor y;
  Axis i;
};

// C[m, n] = sum over k of A[m, k] * B[k, n]
inline Program matmul(int64_t m, int64_t n, int64_t k) {
  te::Builder b("matmul");
  const Buffer A = b.input("A", {m, k}), B = b.constant("B", {k, n});
  b.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum,
           [&](const te::Indices& i, const te::Indices& r) {
             return load(A, {i[0], r[0]}) * load(B, {r[0], i[1]});
           },
           BufferRole::kOutput, {"m", "n"});
  return b.finish();
}

// The same of smaller types: bfloat16 summed in float32, bytes in int32.
inline Program typed_matmul(DType a, DType b, int64_t m, int64_t n, int64_t k) {
  const DType sum = is_float(a) ? DType::kFloat32 : DType::kInt32;
  te::Builder builder("matmul", sum);
  const Buffer A = builder.input("A", {m, k}, a), B = builder.constant("B", {k, n}, b);
  builder.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum,
                 [&](const te::Indices& i, const te::Indices& r) {
                   return cast(sum, load(A, {i[0], r[0]})) * cast(sum, load(B, {r[0], i[1]}));
                 },
                 BufferRole::kOutput, {"m", "n"});
  return builder.finish();
}

// out[m, n] = max(C[m, n] + bias[n], 0) over the same C
inline Program dense(int64_t m, int64_t n, int64_t k) {
  te::Builder b("dense");
  const Buffer A = b.input("A", {m, k}), B = b.constant("B", {k, n}), bias = b.input("bias", {n});
  const Buffer C = b.reduce("C", {m, n}, {{"k", k}}, ReduceOp::kSum,
                            [&](const te::Indices& i, const te::Indices& r) {
                              return load(A, {i[0], r[0]}) * load(B, {r[0], i[1]});
                            },
                            BufferRole::kIntermediate, {"m", "n"});
  b.compute("out", {m, n}, [&](const te::Indices& i) { return max(load(C, i) + load(bias, {i[1]}), 0); },
            BufferRole::kOutput, {"m", "n"});
  return b.finish();
}

// y[i] = (x[i] + 1) * (x[i] + 1) in two stages, the first named t; with `window`, y[i] = t[i] + t[i + 1] +
// t[i + 2].
inline Program two_stages(int64_t n, bool window = false) {
  te::Builder b("two_stages");
  const int64_t reach = window ? 2 : 0;
  const Buffer x = b.input("x", {n + reach});
  const Buffer t = b.compute("t", {n + reach}, [&](const te::Indices& i) { return load(x, i) + 1; },
                             BufferRole::kIntermediate, {"j"});
  b.compute("y", {n},
            [&](const te::Indices& i) {
              if (!window) return load(t, i) * load(t, i);
              return load(t, i) + load(t, {i[0] + 1}) + load(t, {i[0] + 2});
            },
            BufferRole::kOutput, {"i"});
  return b.finish();
}

struct ConvShape {
  int64_t n = 1, ic = 1, h = 1, w = 1, oc = 1, kh = 1, kw = 1, stride = 1, padding = 0, dilation = 1;
  int64_t out_h() const { return (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1; }
  int64_t out_w() const { return (w + 2 * padding - dilation * (kw - 1) - 1) / stride + 1; }
};

// Convolution of a padded input with bias and ReLU: stages data_pad, conv, out.
inline Program conv2d(const ConvShape& c) {
  te::Builder b("conv2d");
  const Buffer data = b.input("data", {c.n, c.ic, c.h, c.w}),
               weight = b.constant("weight", {c.oc, c.ic, c.kh, c.kw}), bias = b.input("bias", {c.oc});
  const int64_t p = c.padding;
  const Buffer pad = b.compute("data_pad", {c.n, c.ic, c.h + 2 * p, c.w + 2 * p},
                               [&](const te::Indices& i) {
                                 return select(i[2] >= p && i[2] < c.h + p && i[3] >= p && i[3] < c.w + p,
                                               load(data, {i[0], i[1], i[2] - p, i[3] - p}), 0);
                               },
                               BufferRole::kIntermediate, {"n", "c", "h", "w"});
  const Buffer conv = b.reduce(
      "conv", {c.n, c.oc, c.out_h(), c.out_w()}, {{"ic", c.ic}, {"kh", c.kh}, {"kw", c.kw}}, ReduceOp::kSum,
      [&](const te::Indices& i, const te::Indices& r) {
        return load(pad,
                    {i[0], r[0], i[2] * c.stride + r[1] * c.dilation, i[3] * c.stride + r[2] * c.dilation}) *
               load(weight, {i[1], r[0], r[1], r[2]});
      },
      BufferRole::kIntermediate, {"n", "oc", "oh", "ow"});
  b.compute("out", {c.n, c.oc, c.out_h(), c.out_w()},
            [&](const te::Indices& i) { return max(load(conv, i) + load(bias, {i[1]}), 0); },
            BufferRole::kOutput, {"n", "oc", "oh", "ow"});
  return b.finish();
}

}  // namespace tuner::testing
