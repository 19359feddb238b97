#include "compiler_core/lower/lower.h"

#include "compiler_core/analysis/in_place.h"
#include "compiler_core/arith/simplify.h"

namespace tuner {

Program simplify_program(const Program& program) {
  Program result = program;
  if (result.body != nullptr) result.body = simplify(result.body);
  return result;
}

Result<Program> lower(const Program& program, int64_t max_unrolled_stores) {
  RETURN_IF_ERROR(check_in_place(program).with_context(str(program.name, ": ")));
  Program p = simplify_program(lower_reductions(program));
  p = simplify_program(partition_loops(p, max_unrolled_stores));
  ASSIGN_OR_RETURN(p, unroll_loops(p, max_unrolled_stores));
  return simplify_program(p);
}

}  // namespace tuner
