// lower: the passes in order.
#include "compiler_core/lower/lower.h"

#include <algorithm>
#include <type_traits>

#include "compiler_core/analysis/in_place.h"
#include "compiler_core/arith/simplify.h"

namespace tuner {
namespace {

// A pass in the form of the table; some ask for the limit on stores.
template <auto pass>
Result<Program> on_program(const Program& program, int64_t max_stores) {
  if constexpr (std::is_invocable_v<decltype(pass), const Program&>)
    return pass(program);
  else
    return pass(program, max_stores);
}

constexpr LoweringPass kCpuPasses[] = {
    // First: the guards that it brings, `if (first)`, are partitioned like those of tails.
    {"reductions", on_program<lower_reductions>},
    // Partitioning reads indices and guards in canonical form.
    {"simplify", on_program<simplify_program>},
    // Before unrolling: it decides guards loop by loop, and loops are gone where they were written out.
    {"partition", on_program<partition_loops>},
    // Before unrolling, which counts stores: folds the conditions of choices that stand inside others.
    {"simplify-2", on_program<simplify_program>},
    {"unroll", on_program<unroll_loops>},
    // Last: unrolling may leave one branch of two. Code generation takes what stands there.
    {"simplify-3", on_program<simplify_program>},
};

}  // namespace

Program simplify_program(const Program& program) {
  Program result = program;
  if (result.body != nullptr) result.body = simplify(result.body);
  return result;
}

std::span<const LoweringPass> lowering_passes() { return kCpuPasses; }

Result<Program> lower(const Program& program, int64_t max_unrolled_stores, std::string_view last) {
  CHECK(last.empty() || std::ranges::find(kCpuPasses, last, &LoweringPass::name) != std::end(kCpuPasses))
      << "no pass is called " << last;
  RETURN_IF_ERROR(check_in_place(program).with_context(str(program.name, ": ")));
  Program p = program;
  for (const LoweringPass& pass : kCpuPasses) {
    ASSIGN_OR_RETURN(p, pass.run(p, max_unrolled_stores));
    if (pass.name == last) break;
  }
  return p;
}

}  // namespace tuner
