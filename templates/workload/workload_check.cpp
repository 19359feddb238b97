// What a workload must satisfy: its fields, one by one, then what its operator says of them together.
#include <algorithm>
#include <functional>

#include "templates/workload/parts/limits.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

std::string listed(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& w : words) text += str(text.empty() ? "" : separator, w);
  return text;
}

// Integers and numbers in their ranges; names of operands. What other fields may be depends on each other:
// their operator checks it.
class FieldCheck final : public WorkloadFields {
 public:
  // What is asked before the fields together, and after.
  const Status& integers() const { return integers_; }
  const Status& last() const { return last_; }

  void extent(const FieldInfo& f, int64_t& value) override { at_least(f.said_name(), value, f.least); }
  void shape(const ShapeInfo& /*s*/, std::initializer_list<ExtentInfo> extents) override {
    for (const ExtentInfo& e : extents)
      if (!e.word.empty()) at_least(e.name, e.value, 1);
  }
  void pair(const FieldInfo& f, std::array<int64_t, 2>& values) override {
    at_least(str(f.said_name(), "[0] (vertical)"), values[0], 1);
    at_least(str(f.said_name(), "[1] (horizontal)"), values[1], 1);
  }
  void sides(const FieldInfo& f, std::array<int64_t, 4>& values) override {
    constexpr std::string_view kSideNames[] = {"[0] (top)", "[1] (left)", "[2] (bottom)", "[3] (right)"};
    for (size_t i = 0; i < values.size(); ++i) at_least(str(f.said_name(), kSideNames[i]), values[i], 0);
  }
  void number(const FieldInfo& f, double& value, double least, double most) override {
    if (last_.is_ok() && !(value >= least && value <= most))
      last_ = invalid_argument(f.said_name(), ": expected a number from ", least, " to ", most, ", found ",
                               value);
  }
  void operands(const FieldInfo& f, std::vector<std::string>& names,
                const std::vector<std::string>& known) override {
    for (const std::string& name : names)
      if (last_.is_ok() && std::ranges::find(known, name) == known.end())
        last_ = invalid_argument(f.said_name(), ": expected names of operands (", listed(known, ", "),
                                 "), found \"", name, "\"");
    if (last_.is_ok() && std::ranges::adjacent_find(names, std::greater_equal<>()) != names.end())
      last_ = invalid_argument(f.said_name(), ": expected each operand once, in alphabetical order, found ",
                               listed(names, ","));
  }

  void flag(const FieldInfo& /*f*/, bool& /*value*/) override {}
  void choice(const FieldInfo& /*f*/, std::span<const std::string_view> /*names*/,
              size_t& /*place*/) override {}
  void type(const FieldInfo& /*f*/, DType& /*value*/, std::span<const DType> /*served*/,
            DType /*usual*/) override {}
  void layout(const FieldInfo& /*f*/, std::string& /*value*/, std::string_view /*usual*/) override {}
  void activation(const FieldInfo& /*f*/, Activation& /*value*/) override {}
  void residual(const FieldInfo& /*f*/, ResidualPlace& /*value*/) override {}
  void order(const FieldInfo& /*f*/, std::vector<EpiloguePart>& /*parts*/) override {}
  void text(const FieldInfo& /*f*/, std::string& /*value*/,
            const std::function<Status(const std::string&)>& /*parse*/) override {}

 private:
  void at_least(std::string_view name, int64_t value, int64_t lowest) {
    if (integers_.is_ok() && !(value >= lowest && value <= kMaxExtent))
      integers_ = invalid_argument(name, ": expected an integer from ", lowest, " to 2^31, found ", value);
  }

  Status integers_, last_;
};

}  // namespace

Status validate(const Workload& workload) {
  return std::visit(
      [](const auto& w) -> Status {
        FieldCheck fields;
        auto described = w;
        w.facts().describe(described, fields);
        RETURN_IF_ERROR(fields.integers());
        RETURN_IF_ERROR(w.facts().check(w));
        return fields.last();
      },
      workload.op());
}

}  // namespace tuner
