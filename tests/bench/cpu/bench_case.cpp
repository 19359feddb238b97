#include "tests/bench/cpu/bench_case.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/codegen/reference.h"
#include "measure_server/runner/input_data.h"

namespace tuner {
namespace {

// Calls f(index in NCHW, index in the layout) for every element.
template <class F>
void for_each_element(const std::vector<int64_t>& shape, std::string_view layout, const F& f) {
  const int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const int64_t block = is_channels_last(layout) ? channels : channel_block(layout);
  int64_t plain = 0;
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p, ++plain)
        f(plain, ((n * (channels / block) + c / block) * pixels + p) * block + c % block);
}

}  // namespace

int64_t HostTensor::count() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Workload in_plain_layout(const Workload& workload) {
  return std::visit(
      [](auto w) {
        if constexpr (requires { w.layout; }) w.layout = "NCHW";
        if constexpr (requires { w.out_layout; }) w.out_layout = "NCHW";
        return Workload(w);
      },
      workload.op());
}

std::string image_layout(const Workload& workload, std::string_view operand) {
  return std::visit(
      [&](const auto& w) {
        std::string layout;
        if constexpr (requires { w.layout; })
          if (operand == "data" || operand == "out") layout = w.layout;
        if constexpr (requires { w.out_layout; })
          if (operand == "out" || operand == "residual") layout = w.out_layout;
        return layout;
      },
      workload.op());
}

std::vector<float> to_layout(const std::vector<float>& values, const std::vector<int64_t>& shape,
                             std::string_view layout) {
  if (is_planar(layout)) return values;
  std::vector<float> out(values.size());
  for_each_element(shape, layout, [&](int64_t plain, int64_t there) { out[there] = values[plain]; });
  return out;
}

std::vector<double> from_layout(const std::vector<double>& values, const std::vector<int64_t>& shape,
                                std::string_view layout) {
  if (is_planar(layout)) return values;
  std::vector<double> out(values.size());
  for_each_element(shape, layout, [&](int64_t plain, int64_t there) { out[plain] = values[there]; });
  return out;
}

Result<BenchCase> BenchCase::make(const Workload& workload, uint64_t seed) {
  BenchCase made;
  made.workload_ = workload;
  const Program math = in_plain_layout(workload).compute();
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < math.args.size(); ++i) {
    const Buffer& arg = math.args[i];
    if (arg->role == BufferRole::kInOut)
      return invalid_argument(workload.key(),
                              ": calls in a row would add up: benchmark it without accumulate");
    HostTensor tensor{.name = arg->name, .shape = arg->shape, .dtype = arg->dtype};
    if (arg->role != BufferRole::kOutput) {
      tensor.values = random_values(seed, static_cast<int>(i), arg->elements(), arg->dtype);
      for (float& value : tensor.values) value *= drawn_factor(workload, arg->name);
      inputs.push_back(tensor.values);
    }
    made.operands_[arg->name] = std::move(tensor);
  }
  ASSIGN_OR_RETURN(std::vector<std::vector<double>> answers, reference_answer(math, inputs));
  made.answer_ = std::move(answers.front());
  return made;
}

const HostTensor& BenchCase::operand(const std::string& name) const {
  const auto it = operands_.find(name);
  CHECK(it != operands_.end()) << workload_.key() << " has no operand " << name;
  return it->second;
}

int BenchCase::sets_for(int64_t rotate_bytes) const {
  const int64_t bytes = workload_.bytes();
  return static_cast<int>(std::max<int64_t>(1, (rotate_bytes + bytes - 1) / bytes));
}

Result<double> BenchCase::check(const Contestant& c) const {
  c.poison();
  c.call(0);
  const std::vector<double> out = c.answer();
  if (out.size() != answer_.size())
    return failed(c.name, ": expected ", answer_.size(), " elements, found ", out.size());
  const Tolerance tolerance = c.tolerance.value_or(tolerance_of(workload_));
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(answer_[i]);
    const double apart = std::abs(out[i] - answer_[i]);
    // Not a number compares false with everything: it must not pass.
    const double error = apart == 0 ? 0 : apart / allowed;
    if (error <= worst) continue;
    worst = error;
    where = i;
    if (!std::isfinite(worst)) break;
  }
  if (!(worst <= 1))
    return failed(c.name, ": wrong: element ", where, " is ", out[where], ", expected ", answer_[where], ", ",
                  worst, " tolerances apart");
  return worst;
}

}  // namespace tuner
