// Workload: what its operator says of it. Keys, job files and checks are in the files beside this one.
#include "templates/workload/workload.h"

#include <algorithm>

#include "compiler_core/graph/fragment.h"
#include "templates/workload/parts/operator.h"

namespace tuner {
namespace {

template <class W>
concept HasConstants = requires(const W& w) {
  w.constant;
};

template <size_t... I>
std::string names_of(std::index_sequence<I...>) {
  std::string names;
  ((names += str(I == 0 ? "" : ", ", std::variant_alternative_t<I, Workload::Op>::kOp)), ...);
  return names;
}

}  // namespace

int64_t argument_bytes(const Program& math) {
  int64_t total = 0;
  for (const Buffer& arg : math.args) total += (arg->role == BufferRole::kInOut ? 2 : 1) * arg->bytes();
  return total;
}

std::string operator_names() {
  return names_of(std::make_index_sequence<std::variant_size_v<Workload::Op>>());
}

std::string_view Workload::op_name() const {
  return std::visit([](const auto& w) { return w.kOp; }, op_);
}

DType Workload::dtype() const {
  return std::visit([](const auto& w) { return w.dtype; }, op_);
}

int64_t Workload::flops() const {
  return std::visit([](const auto& w) { return w.facts().flops(w); }, op_);
}

int64_t Workload::bytes() const { return argument_bytes(compute()); }

bool Workload::memory_bound() const {
  return std::visit([](const auto& w) { return w.kMemoryBound; }, op_);
}

double Workload::least_operations() const {
  return std::visit([](const auto& w) { return w.facts().least_operations(w); }, op_);
}

double Workload::least_bytes() const {
  return std::visit([](const auto& w) { return w.facts().least_bytes(w); }, op_);
}

bool Workload::is_constant(std::string_view operand) const {
  return std::visit(
      [&]<class W>(const W& w) {
        if constexpr (HasConstants<W>)
          return std::find(w.constant.begin(), w.constant.end(), operand) != w.constant.end();
        else
          return false;
      },
      op_);
}

bool Workload::has_constants() const {
  return std::visit(
      []<class W>(const W& w) {
        if constexpr (HasConstants<W>)
          return !w.constant.empty();
        else
          return false;
      },
      op_);
}

TaskShape Workload::shape() const {
  return std::visit([](const auto& w) { return w.facts().shape(w); }, op_);
}

std::string Workload::shape_name() const {
  return std::visit([](const auto& w) { return w.facts().shape_name(w); }, op_);
}

std::string_view Workload::caveat() const {
  return std::visit([](const auto& w) { return w.facts().caveat(w); }, op_);
}

std::string Workload::own_name() const {
  return std::visit([](const auto& w) { return w.facts().own_name(w); }, op_);
}

std::optional<Result<std::string>> Workload::operand(size_t place, uint64_t seed) const {
  return std::visit([&](const auto& w) { return w.facts().operand(w, place, seed); }, op_);
}

std::optional<Result<std::string>> Workload::answer(size_t place) const {
  return std::visit([&](const auto& w) { return w.facts().answer(w, place); }, op_);
}

Program Workload::compute() const {
  return std::visit([](const auto& w) { return w.facts().math(w); }, op_);
}

Result<Workload> program_workload(graph::Graph fragment) {
  ASSIGN_OR_RETURN(auto program, program_of_fragment(std::move(fragment)));
  return Workload(std::move(program));
}

Result<Workload> program_from_text(std::string_view text) {
  ASSIGN_OR_RETURN(graph::Graph fragment, graph::fragment_from_text(text));
  return program_workload(std::move(fragment));
}

}  // namespace tuner
