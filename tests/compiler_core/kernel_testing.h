// For tests: run a Program compiled and in the oracle, and compare.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/random_numbers.h"

namespace tuner::testing {

// Random data for every argument of the unpacked kernel but outputs, which are empty.
inline std::vector<std::vector<double>> random_args(const Program& program, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<double>> args;
  const std::vector<Buffer> unpacked = unpacked_args(program);
  for (const Buffer& b : unpacked) {
    args.emplace_back();
    if (!is_given(b->role)) continue;
    const double factor = drawn_factor(unpacked, b);
    for (int64_t i = 0; i < b->elements(); ++i)
      args.back().push_back(factor * random_number(random, b->dtype));
  }
  return args;
}

// Memory of an argument with canaries behind it, so that a store past the end shows.
class ArgMemory {
 public:
  ArgMemory(const Buffer& buffer, const std::vector<double>& values)
      : buffer_(buffer), memory_(buffer->bytes() + 256) {
    std::memset(memory_.data(), 0x7f, static_cast<size_t>(memory_.bytes()));
    store_elements(values.data(), static_cast<int64_t>(values.size()), buffer->dtype, memory_.data());
  }
  void* data() const { return memory_.data(); }
  std::vector<double> values() const {
    return load_elements(memory_.data(), buffer_->elements(), buffer_->dtype);
  }
  bool canaries_live() const {
    for (int64_t i = buffer_->bytes(); i < memory_.bytes(); ++i)
      if (memory_.as<unsigned char>()[i] != 0x7f) return false;
    return true;
  }

 private:
  Buffer buffer_;
  AlignedBuffer memory_;
};

// Compiles for `target`, packs, runs on `threads` threads, and fills the outputs of `args` (those of
// unpacked_args).
inline Status run_compiled(const Program& program, std::vector<std::vector<double>>& args,
                           const Target& target, int threads, const CompileOptions& options = {}) {
  ASSIGN_OR_RETURN(const Artifact artifact, compile(program, target, options));
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  ThreadPool pool(threads);
  const AlignedBuffer workspace(kernel.workspace_bytes(threads));
  const tuner_runtime runtime = pool.runtime(workspace.data());
  std::map<const BufferNode*, std::unique_ptr<ArgMemory>> memory;
  const std::vector<Buffer> unpacked = unpacked_args(program);
  for (size_t i = 0; i < unpacked.size(); ++i)
    memory[unpacked[i].get()] = std::make_unique<ArgMemory>(unpacked[i], args[i]);
  const auto pointers = [&](const std::vector<Buffer>& buffers) {
    std::vector<void*> result;
    for (const Buffer& b : buffers) {
      if (!memory.contains(b.get())) memory[b.get()] = std::make_unique<ArgMemory>(b, std::vector<double>());
      result.push_back(memory[b.get()]->data());
    }
    return result;
  };
  if (program.packing != nullptr)
    RETURN_IF_ERROR(kernel.pack(pointers(program.packing->args).data(), runtime));
  RETURN_IF_ERROR(kernel.call(pointers(program.args).data(), runtime));
  for (const auto& [buffer, m] : memory)
    if (!m->canaries_live()) return failed(buffer->name, ": memory behind it was written");
  for (size_t i = 0; i < unpacked.size(); ++i)
    if (is_result(unpacked[i]->role)) args[i] = memory[unpacked[i].get()]->values();
  return Status::ok();
}

// Compiled and interpreted outputs agree within `tolerance` (absolute and relative) on random data.
inline ::testing::AssertionResult matches_oracle(const Program& program, int threads = 1,
                                                 double tolerance = 2e-5, uint32_t seed = 1,
                                                 const Target& target = host_target()) {
  std::vector<std::vector<double>> expected = random_args(program, seed), found = expected;
  if (const Status s = interpret(program, expected); !s)
    return ::testing::AssertionFailure() << "oracle: " << s.message();
  if (const Status s = run_compiled(program, found, target, threads); !s)
    return ::testing::AssertionFailure() << "compiled: " << s.message();
  for (size_t a = 0; a < expected.size(); ++a)
    for (size_t i = 0; i < expected[a].size(); ++i)
      if (!(std::fabs(found[a][i] - expected[a][i]) <= tolerance * (1 + std::fabs(expected[a][i]))))
        return ::testing::AssertionFailure() << unpacked_args(program)[a]->name << " element " << i << " is "
                                             << found[a][i] << ", oracle " << expected[a][i] << "\n"
                                             << to_text(program);
  return ::testing::AssertionSuccess();
}

// for i in 0..n: body(i), and friends, for Programs built by hand.
template <class F>
Stmt loop(const char* name, int64_t extent, LoopKind kind, const F& body) {
  const Var v = make_var(name);
  return make_for(v, extent, body(Expr(v)), AxisKind::kSpatial, kind);
}
template <class F>
Stmt loop(const char* name, int64_t extent, const F& body) {
  return loop(name, extent, LoopKind::kSerial, body);
}

inline Buffer input(const char* name, std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
  return make_buffer(name, dtype, std::move(shape), MemoryScope::kGlobal, BufferRole::kInput);
}
inline Buffer output(const char* name, std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
  return make_buffer(name, dtype, std::move(shape), MemoryScope::kGlobal, BufferRole::kOutput);
}
inline Buffer scratch(const char* name, std::vector<int64_t> shape,
                      MemoryScope scope = MemoryScope::kGlobal) {
  return make_buffer(name, DType::kFloat32, std::move(shape), scope);
}

}  // namespace tuner::testing
