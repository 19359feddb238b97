#include "compiler_core/emulator/faults.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tuner {
namespace emulation {
namespace {

constexpr int64_t kFields = 4;

}  // namespace

int64_t FaultLog::add(FaultSite site) {
  sites_.push_back(std::move(site));
  node_->shape[0] = static_cast<int64_t>(sites_.size());
  return static_cast<int64_t>(sites_.size()) - 1;
}

Stmt FaultLog::record(int64_t site, const Expr& element, const Expr& now, const Expr& before) const {
  const auto store = [&](int64_t field, const Expr& value) {
    return make_store(buffer_, {Expr(site), Expr(field)}, cast(DType::kInt32, value));
  };
  const Expr count = load(buffer_, {Expr(site), Expr(0)});
  const Expr most = int_imm(std::numeric_limits<int32_t>::max(), DType::kInt32);
  Stmt first = make_if(binary(BinaryOp::kEq, count, int_imm(0, DType::kInt32)),
                       make_seq({store(1, element), store(2, now), store(3, before)}));
  return make_seq({first, store(0, select(count < most, count + int_imm(1, DType::kInt32), most))});
}

Stmt FaultLog::reset() const {
  const Var site = make_var("site"), field = make_var("field");
  Stmt zero = make_store(buffer_, {Expr(site), Expr(field)}, int_imm(0, DType::kInt32));
  return make_for(site, node_->shape[0], make_for(field, kFields, std::move(zero)));
}

}  // namespace emulation

std::string_view fault_name(FaultKind kind) {
  constexpr std::string_view kNames[] = {"race",
                                         "out of bounds",
                                         "uninitialised read",
                                         "written twice",
                                         "unwritten",
                                         "copy under way",
                                         "products under way",
                                         "products not started",
                                         "divergent intrinsic",
                                         "endless wait",
                                         "miscounted barrier",
                                         "unfinished copies"};
  return kNames[static_cast<int>(kind)];
}

namespace {

std::string thread_text(int32_t number, int64_t block_threads) {
  if (number < 0) return "several threads";
  return str("thread ", number % block_threads, " of block ", number / block_threads);
}

std::string element_text(int64_t flat, const std::vector<int64_t>& shape) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    text = str(flat % shape[d], text.empty() ? "" : ", ", text);
    flat /= shape[d];
  }
  return str("[", text, "]");
}

std::string describe(const FaultSite& site, std::span<const int32_t> numbers) {
  const std::string now = thread_text(numbers[2], site.block_threads);
  std::string text = str(site.kernel, ": ", fault_name(site.kind), ", ", numbers[0],
                         numbers[0] == 1 ? " time: " : " times: ", site.access, ": first ");
  switch (site.kind) {
    case FaultKind::kOutOfBounds:
      return str(text, "index ", numbers[1], " in ", now);
    case FaultKind::kUnwritten:
      return str(text, "element ", element_text(numbers[1], site.shape));
    case FaultKind::kDivergent:
      return str(text, "in the warp of ", now, ", with ", numbers[1], " of its threads");
    case FaultKind::kUninitialised:
    case FaultKind::kHeld:
    case FaultKind::kNotStarted:
      return str(text, "element ", element_text(numbers[1], site.shape), ", ", now);
    case FaultKind::kStuck:
    case FaultKind::kMiscounted:
    case FaultKind::kUnfinished:
      return str(text, "at barrier ", element_text(numbers[1], site.shape), ", in block ",
                 numbers[2] / site.block_threads);
    case FaultKind::kInFlight:
      return str(text, "element ", element_text(numbers[1], site.shape), ", ", now, "; copied by ",
                 thread_text(numbers[3], site.block_threads));
    case FaultKind::kRace:
    case FaultKind::kWrittenTwice:
      break;
  }
  return str(text, "element ", element_text(numbers[1], site.shape), ", ", now, ", after ",
             thread_text(numbers[3], site.block_threads));
}

}  // namespace

std::vector<std::string> describe_faults(const EmulatedProgram& emulated, std::span<const int32_t> faults) {
  CHECK(faults.size() >= emulated.sites.size() * emulation::kFields)
      << "expected " << emulated.sites.size() << " sites, found " << faults.size() << " numbers";
  std::vector<size_t> order(emulated.sites.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto numbers = [&](size_t site) {
    return faults.subspan(site * emulation::kFields, emulation::kFields);
  };
  std::erase_if(order, [&](size_t site) { return numbers(site)[0] == 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return numbers(a)[0] > numbers(b)[0]; });
  std::vector<std::string> lines;
  for (size_t site : order) lines.push_back(describe(emulated.sites[site], numbers(site)));
  return lines;
}

}  // namespace tuner
