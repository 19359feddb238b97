// Operands of a matrix product as a BLAS takes them: row-major, one copy a set; and a call on them as a
// contestant.
#pragma once

#include <cstring>
#include <memory>

#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/bench_case.h"

namespace tuner {

struct PlainMatmul {
  MatmulWorkload w;
  struct Set {
    AlignedBuffer a, b, out;
  };
  std::vector<Set> sets;

  PlainMatmul(const BenchCase& bench_case, int count) : w(*bench_case.workload().get_if<MatmulWorkload>()) {
    const auto copy = [](const HostTensor& t) {
      AlignedBuffer buffer(static_cast<int64_t>(t.values.size()) * 4);
      std::memcpy(buffer.data(), t.values.data(), t.values.size() * 4);
      return buffer;
    };
    for (int i = 0; i < count; ++i)
      sets.push_back({copy(bench_case.operand("a")), copy(bench_case.operand("b")),
                      AlignedBuffer(w.batch * w.m * w.n * 4)});
  }
  // Of one product of the batch.
  const float* a(int set, int64_t i) const { return sets[set].a.as<float>() + i * w.m * w.k; }
  const float* b(int set, int64_t i) const { return sets[set].b.as<float>() + i * w.k * w.n; }
  float* out(int set, int64_t i) const { return sets[set].out.as<float>() + i * w.m * w.n; }
};

// Whether a BLAS does all of it: nothing is added to the product.
inline bool is_plain_matmul(const Workload& workload) {
  const auto* w = workload.get_if<MatmulWorkload>();
  return w != nullptr && w->dtype == DType::kFloat32 && !w->bias && !w->scale && !w->residual &&
         w->activation == Activation::kNone;
}

// `multiply(operands, set, i)` does product i of the batch.
template <class Multiply>
Contestant plain_matmul_contestant(const BenchCase& bench_case, int sets, const std::string& name,
                                   ContestantKind kind, const std::string& detail, Multiply multiply) {
  const auto operands = std::make_shared<PlainMatmul>(bench_case, sets);
  return {.name = name,
          .kind = kind,
          .detail = detail,
          .call =
              [operands, multiply](int set) {
                for (int64_t i = 0; i < operands->w.batch; ++i) multiply(*operands, set, i);
              },
          .poison =
              [operands] {
                const AlignedBuffer& out = operands->sets[0].out;
                std::memset(out.data(), 0xff, static_cast<size_t>(out.bytes()));
              },
          .answer =
              [operands] {
                const float* data = operands->out(0, 0);
                return std::vector<double>(data, data + operands->sets[0].out.bytes() / 4);
              },
          .flush =
              [operands] {
                const PlainMatmul::Set& set = operands->sets[0];
                for (const AlignedBuffer* buffer : {&set.a, &set.b, &set.out})
                  flush_lines(buffer->data(), buffer->bytes());
              }};
}

}  // namespace tuner
