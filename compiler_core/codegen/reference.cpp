#include "compiler_core/codegen/reference.h"

#include <algorithm>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/one_by_one.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

Stmt block_nests(const Stmt& s, const ReferenceBlocks& blocks, const Target& target) {
  if (s == nullptr) return s;
  if (s->kind == StmtKind::kFor) return reference_nest(s, blocks, target);
  return map_children(
      s, [](const Expr& e) { return e; },
      [&](const Stmt& child) { return block_nests(child, blocks, target); });
}

}  // namespace

double stores_in(const Stmt& s) {
  if (s == nullptr) return 0;
  if (s->kind == StmtKind::kStore) return 1;
  double n = stores_in(s->body) + stores_in(s->else_body);
  for (const Stmt& child : s->stmts) n += stores_in(child);
  return s->kind == StmtKind::kFor ? n * static_cast<double>(s->extent) : n;
}

Program reference_program(const Program& unscheduled, const ReferenceBlocks& blocks, const Target& target) {
  Program program = te::with_float_type(unscheduled, DType::kFloat64);
  program.body = block_nests(program.body, blocks, target);
  return program;
}

namespace {

Status unfit(const Program& program, const Buffer& arg, size_t found) {
  return invalid_argument("reference of ", program.name, ": ", arg->name, ": expected ", arg->elements(),
                          " elements, found ", found);
}

// Stores the numbers as elements of an argument, each thread some of them.
template <class Number>
void store(OneByOne& threads, const std::vector<Number>& numbers, DType to, void* elements) {
  constexpr int64_t kPiece = 1 << 18;  // a large page of doubles
  struct Closure {
    const std::vector<Number>& numbers;
    DType to;
    char* elements;
  } closure{numbers, to, static_cast<char*>(elements)};
  const auto run = [](void* of, int32_t begin, int32_t end, int32_t) {
    const Closure& c = *static_cast<Closure*>(of);
    const int64_t first = begin * kPiece,
                  last = std::min(end * kPiece, static_cast<int64_t>(c.numbers.size()));
    store_elements(c.numbers.data() + first, last - first, c.to, c.elements + first * dtype_bytes(c.to));
  };
  threads.parallel_for(static_cast<int32_t>(ceil_div(static_cast<int64_t>(numbers.size()), kPiece)), run,
                       &closure);
}

// Runs it on the arguments that are given, the others null, and returns the outputs in order.
template <class Number>
Result<std::vector<std::vector<double>>> run(const Program& unscheduled, int threads,
                                             const std::vector<const std::vector<Number>*>& given) {
  ThreadPool pool = ThreadPool::at_most(threads > 0 ? threads : reference_threads(unscheduled));
  const Target target = host_target(pool.threads());
  const Program program = reference_program(unscheduled, reference_blocks(target), target);
  ASSIGN_OR_RETURN(const Artifact artifact, compile(program, target));
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  OneByOne shares(pool);  // other processes of ours are busy, too
  std::vector<AlignedBuffer> memory;
  std::vector<void*> pointers;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    memory.emplace_back(arg->bytes(), AlignedBuffer::Content::kAny);
    pointers.push_back(memory.back().data());
    if (given[i] != nullptr) store(shares, *given[i], arg->dtype, pointers.back());
  }
  const AlignedBuffer workspace(kernel.workspace_bytes(pool.threads()), AlignedBuffer::Content::kAny);
  const tuner_runtime runtime = shares.runtime(workspace.data());
  RETURN_IF_ERROR(kernel.call(pointers.data(), runtime));
  std::vector<std::vector<double>> outputs;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (is_result(arg->role)) outputs.push_back(load_elements(pointers[i], arg->elements(), arg->dtype));
  }
  return outputs;
}

}  // namespace

int reference_threads(const Program& unscheduled) {
  // A thread costs some 50 us to start and 8 MB of addresses, of which it touches a few pages and its panels.
  constexpr double kMuchWork = 5e8;  // iterations: some 10 ms of one thread
  constexpr size_t kMostThreads = 64;
  // How much work a user's function is, nobody knows; it has threads of its own, if any.
  if (unscheduled.foreign == nullptr && stores_in(unscheduled.body) < kMuchWork) return 1;
  return static_cast<int>(std::clamp(cpus_of_this_thread().size(), size_t{1}, kMostThreads));
}

Status evaluate_compiled(const Program& unscheduled, std::vector<std::vector<double>>& args) {
  if (args.size() != unscheduled.args.size())
    return invalid_argument("reference of ", unscheduled.name, ": expected ", unscheduled.args.size(),
                            " arguments, found ", args.size());
  std::vector<const std::vector<double>*> given(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& arg = unscheduled.args[i];
    if (!is_given(arg->role)) continue;
    given[i] = &args[i];
    if (static_cast<int64_t>(args[i].size()) != arg->elements())
      return unfit(unscheduled, arg, args[i].size());
  }
  ASSIGN_OR_RETURN(std::vector<std::vector<double>> outputs, run(unscheduled, /*threads=*/0, given));
  size_t next = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (is_result(unscheduled.args[i]->role)) args[i] = std::move(outputs[next++]);
  return Status::ok();
}

Result<std::vector<std::vector<double>>> reference_answer(const Program& unscheduled,
                                                          const std::vector<std::vector<float>>& inputs,
                                                          int threads) {
  std::vector<const std::vector<float>*> given(unscheduled.args.size());
  size_t next = 0;
  for (size_t i = 0; i < unscheduled.args.size(); ++i) {
    const Buffer& arg = unscheduled.args[i];
    if (!is_given(arg->role)) continue;
    if (next >= inputs.size())
      return invalid_argument("reference of ", unscheduled.name, ": ", arg->name, ": expected ",
                              arg->elements(), " elements, found no data");
    given[i] = &inputs[next++];
    if (static_cast<int64_t>(given[i]->size()) != arg->elements())
      return unfit(unscheduled, arg, given[i]->size());
  }
  if (next != inputs.size())
    return invalid_argument("reference of ", unscheduled.name, ": expected ", next, " inputs, found ",
                            inputs.size());
  return run(unscheduled, threads, given);
}

}  // namespace tuner
