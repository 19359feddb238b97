#include "templates/workload/operators/kernel.h"

#include <algorithm>

#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/operands.h"
#include "templates/workload/parts/operator.h"

namespace tuner {
namespace {

constexpr std::string_view kSource = " source=";

std::string argument_text(const SourceArgument& a) {
  if (a.scalar) {
    // A scalar of floats stands whole in the digest; here a person reads what tells tasks apart.
    return str(a.name, "=", dtype_name(a.dtype), ":",
               is_float(a.dtype) ? shortest_text(static_cast<float>(a.number)) : std::to_string(a.integer));
  }
  static constexpr std::string_view kRoles[] = {"", "out:", "inout:"};
  std::string shape;
  for (const int64_t extent : a.shape) shape += str(shape.empty() ? "" : ",", extent);
  return str(a.name, "=", kRoles[static_cast<size_t>(a.role)], dtype_name(a.dtype), "[", shape, "]");
}

std::string text_of(const SourceKernel& kernel, std::string_view digest) {
  std::string text = kernel.function;
  for (const auto& [name, value] : kernel.sizes) text += str(" ", name, "=", value);
  for (const SourceArgument& a : kernel.arguments) text += " " + argument_text(a);
  // Whoever sees a time of it sees the key beside it.
  if (kernel.command) text += " not_checked_by_us";
  return str(text, kSource, digest);
}

Status set_kernel(KernelWorkload& w, std::shared_ptr<const SourceKernel> kernel, std::string_view digest) {
  w.text = text_of(*kernel, digest);
  const auto out = std::ranges::find_if(
      kernel->arguments, [](const SourceArgument& a) { return !a.scalar && a.role != SourceRole::kIn; });
  w.dtype = out == kernel->arguments.end() ? DType::kFloat32 : out->dtype;
  w.kernel = std::move(kernel);
  return Status::ok();
}

class KernelFacts final : public OperatorFacts<KernelWorkload> {
 public:
  void describe(KernelWorkload& w, WorkloadFields& f) const override {
    f.text({.word = "key"}, w.text, [&w](const std::string& text) -> Status {
      const size_t at = text.rfind(kSource);
      if (at == std::string::npos) return invalid_argument("expected a text that ends with source=DIGEST");
      const std::string digest = text.substr(at + kSource.size());
      ASSIGN_OR_RETURN(std::shared_ptr<const SourceKernel> kernel, find_kernel(digest));
      RETURN_IF_ERROR(set_kernel(w, std::move(kernel), digest));
      // What the source says stays with who has it: anybody may ask for a digest.
      if (w.text != text) return invalid_argument("what it says before source= is not what its source says");
      return Status::ok();
    });
  }
  Status check(const KernelWorkload& w) const override {
    return w.kernel == nullptr ? invalid_argument("key: a kernel needs one") : Status::ok();
  }

  Program math(const KernelWorkload& w) const override { return reference_program(*w.kernel); }
  // Scalars are no operands of the Program.
  static size_t argument_of(const SourceKernel& kernel, size_t place) {
    for (size_t i = 0, buffers = 0; i < kernel.arguments.size(); ++i)
      if (!kernel.arguments[i].scalar && buffers++ == place) return i;
    return kernel.arguments.size();
  }
  std::optional<Result<std::string>> operand(const KernelWorkload& w, size_t place,
                                             uint64_t seed) const override {
    return operand_bytes(*w.kernel, argument_of(*w.kernel, place), seed);
  }
  std::optional<Result<std::string>> answer(const KernelWorkload& w, size_t place) const override {
    if (w.kernel->reference.from != ReferenceFrom::kArrays) return std::nullopt;
    return given_answer(*w.kernel, argument_of(*w.kernel, place));
  }
  Tolerance tolerance(const KernelWorkload& w) const override {
    Tolerance all;
    for (const SourceArgument& a : w.kernel->arguments)
      if (!a.scalar && a.role != SourceRole::kIn) all = {a.absolute, a.relative};
    return all;
  }
  std::optional<Tolerance> output_tolerance(const KernelWorkload& w, size_t place) const override {
    const SourceArgument& a = w.kernel->arguments.at(argument_of(*w.kernel, place));
    return Tolerance{a.absolute, a.relative};
  }
  std::string_view caveat(const KernelWorkload& w) const override {
    if (w.kernel->command) return "not checked by us";
    return w.kernel->reference.from == ReferenceFrom::kDefaultConfig ? "right as the default config is" : "";
  }
  int64_t flops(const KernelWorkload& w) const override { return w.kernel->flops; }
  // As its user counts them. Where he says nothing, nothing is known.
  double least_bytes(const KernelWorkload& w) const override { return static_cast<double>(w.kernel->bytes); }

  // What was learned of one source says nothing of another; of one with other sizes it does.
  TaskShape shape(const KernelWorkload& w) const override { return {str(w.kOp, " ", w.text), {}}; }
  // Without the namespaces that it may have in C++.
  std::string own_name(const KernelWorkload& w) const override {
    const size_t colons = w.kernel->function.rfind("::");
    return colons == std::string::npos ? w.kernel->function : w.kernel->function.substr(colons + 2);
  }
  std::string shape_name(const KernelWorkload& w) const override {
    std::string name = w.kernel->function;
    std::ranges::replace(name, ':', '_');
    for (const auto& [size, value] : w.kernel->sizes) name += str("_", value);
    return name;
  }
};

}  // namespace

const OperatorFacts<KernelWorkload>& KernelWorkload::facts() {
  static const KernelFacts facts;
  return facts;
}

KernelWorkload kernel_workload(std::shared_ptr<const SourceKernel> kernel) {
  KernelWorkload w;
  const std::string digest = know_kernel(kernel);
  CHECK(set_kernel(w, std::move(kernel), digest)) << "a kernel without an output passed its check";
  return w;
}

}  // namespace tuner
