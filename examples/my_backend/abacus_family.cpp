// Names of the device's targets, and what records of them mean.
#include "abacus.h"

namespace abacus {
namespace {

using namespace tuner;

class Family final : public TargetFamily {
 public:
  std::string_view word() const override { return "abacus"; }
  std::string_view usage() const override { return "\"abacus -lanes=N\""; }
  std::span<const std::string_view> options() const override {
    static constexpr std::string_view kOptions[] = {"-lanes="};
    return kOptions;
  }
  Status set_option(std::string_view key, std::string_view value, Target& t) const override {
    ASSIGN_OR_RETURN(const int64_t lanes, target_number(key, value, 1, 64));
    t.numbers["lanes"] = lanes;
    return Status::ok();
  }
  Status complete(Target& t) const override {
    if (!t.numbers.contains("lanes"))
      return invalid_argument("target: abacus needs -lanes=N, e.g. abacus -lanes=8");
    t.vector_bits = static_cast<int>(32 * t.numbers.at("lanes"));  // what templates ask
    t.vector_registers_n = 32;
    return Status::ok();
  }
  std::string name(const Target& t) const override { return str("abacus -lanes=", t.numbers.at("lanes")); }

  std::string_view toolchain_word() const override { return "abacus"; }
  bool races() const override { return true; }  // its kernels run in the runner's processes, as those of CPUs

  // A schedule for other lanes is not valid here.
  bool near(const Target& a, const Target& b) const override { return a.numbers == b.numbers; }
  bool same_processor(const Target& a, const Target& b) const override { return a.numbers == b.numbers; }
  std::string difference(const Target& asked, const Target& there) const override {
    return asked.numbers == there.numbers ? "" : str("tuned for ", lanes_of(there), " lanes");
  }
};

const RegisterTargetFamily registered(family());

}  // namespace

const TargetFamily& family() {
  static const Family instance;
  return instance;
}

}  // namespace abacus
