#include "tuner/verify/verify_data.h"

#include <cmath>
#include <set>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/oracle/oracle.h"
#include "measure_server/runner/input_data.h"

namespace tuner {
namespace {

// As workers draw them, or as the operator says what they are.
Status add_inputs(const Workload& workload, uint64_t seed, VerifyData& data) {
  const Program& program = data.unscheduled;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& buffer = program.args[i];
    if (!is_given(buffer->role)) continue;
    if (std::optional<Result<std::string>> brought = workload.operand(i, seed)) {
      ASSIGN_OR_RETURN(std::string bytes, *std::move(brought));
      const std::vector<double> values = load_elements(bytes.data(), buffer->elements(), buffer->dtype);
      data.inputs.emplace_back(values.begin(), values.end());
      data.given.push_back(std::move(bytes));
      continue;
    }
    data.inputs.push_back(random_values(seed, static_cast<int>(i), buffer->elements(), buffer->dtype));
    for (float& value : data.inputs.back()) value *= drawn_factor(workload, buffer->name);
    data.given.push_back(element_bytes(data.inputs.back(), buffer->dtype));
  }
  return Status::ok();
}

}  // namespace

Result<VerifyData> make_verify_data(const Workload& workload, uint64_t seed) {
  VerifyData data{.unscheduled = workload.compute(), .tolerance = tolerance_of(workload)};
  RETURN_IF_ERROR(add_inputs(workload, seed, data));
  const OnCpus there(cpus_beside_runs());  // a worker of this host may time something meanwhile
  if (data.unscheduled.foreign != nullptr) {
    ASSIGN_OR_RETURN(data.answers, user_answers(data.unscheduled, data.given, {},
                                                [&](size_t argument) { return workload.answer(argument); }));
  } else {
    ASSIGN_OR_RETURN(data.answers, reference_answer(data.unscheduled, data.inputs));
  }
  return data;
}

namespace {

// Some products are those of tensor cores (UnaryOp::kTf32), in the oracle, too.
bool cuts_numbers(const Stmt& body) {
  bool found = false;
  visit_exprs(body,
              [&](const Expr& e) { found |= e->kind == ExprKind::kUnary && e->unary_op == UnaryOp::kTf32; });
  visit(body, [&](const Stmt& s) {
    const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
    found = found || (i != nullptr && cuts_numbers(i->meaning.body));
  });
  return found;
}

}  // namespace

Status check_with_oracle(const Program& program, const VerifyData& data) {
  // Else both are sums in double precision, only in another order.
  const Tolerance exact{.absolute = 1e-9, .relative = 1e-9};
  const Tolerance allowed = cuts_numbers(program.body) ? data.tolerance : exact;
  std::vector<std::vector<double>> args;
  size_t input = 0;
  for (const Buffer& buffer : data.unscheduled.args) {
    if (is_given(buffer->role))
      args.emplace_back(data.inputs[input].begin(), data.inputs[input].end()), ++input;
    else
      args.emplace_back();
  }
  RETURN_IF_ERROR(interpret(program, args));
  size_t output = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = data.unscheduled.args[i];
    if (!is_result(buffer->role)) continue;
    const std::vector<double>& expected = data.answers[output++];
    if (args[i].size() != expected.size())
      return failed(buffer->name, " has ", args[i].size(), " elements, expected ", expected.size());
    for (size_t k = 0; k < expected.size(); ++k)
      if (!(std::abs(args[i][k] - expected[k]) <=
            allowed.absolute + allowed.relative * std::abs(expected[k])))
        return failed("interpreted ", buffer->name, "[", k, "] is ", args[i][k], ", reference ", expected[k]);
  }
  return Status::ok();
}

std::vector<ConfigIndex> draw_configs(const ConfigSpace& space, uint64_t samples, std::mt19937_64& random) {
  std::vector<ConfigIndex> drawn;
  if (space.size() <= samples) {
    for (ConfigIndex i = 0; i < space.size(); ++i) drawn.push_back(i);
    return drawn;
  }
  std::set<ConfigIndex> seen;
  for (ConfigIndex next = space.default_index(); drawn.size() < samples; next = space.sample(random))
    if (seen.insert(next).second) drawn.push_back(next);
  return drawn;
}

}  // namespace tuner
