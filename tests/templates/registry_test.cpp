// The list of templates: those of this repository, then those that a program registers.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"

namespace tuner {
namespace {

// A template that a program outside the repository might have: it serves one shape of softmax.
class Mine final : public AnyTemplate {
 public:
  std::string_view name() const override { return "mine"; }
  int version() const override { return 7; }
  std::string_view algorithm() const override { return "my_algorithm"; }
  Support supports(const Workload& workload, const Target& target) const override {
    const auto* w = workload.get_if<SoftmaxWorkload>();
    return w != nullptr && w->rows == 3 ? supported() : softmax_cpu().supports(workload, target);
  }
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& w, const Target& t) const override {
    return softmax_cpu().apply(w, t);
  }
};
const Mine mine;
const RegisterTemplate registered(mine);

TEST(Registry, ARegisteredTemplateComesAfterThoseOfTheRepository) {
  EXPECT_EQ(all_templates().back(), &mine);
  EXPECT_EQ(find_template("mine"), &mine);
  const auto serving = templates_for(SoftmaxWorkload{3, 64}, *parse_target("llvm -mcpu=haswell"));
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  ASSERT_EQ(serving->size(), 2u);
  EXPECT_EQ((*serving)[0], find_template("softmax_cpu")) << "the default stays that of the repository";
  EXPECT_EQ((*serving)[1], &mine);
}

TEST(Registry, ItsAlgorithmMayBeNamed) {
  EXPECT_EQ(*canonical_algorithms({"my_algorithm"}), "my_algorithm");
  EXPECT_EQ(templates_of("my_algorithm"), std::vector<std::string>{"mine"});
}

TEST(RegistryDeathTest, ATemplateRegisteredTooLateEndsTheProgram) {
  ASSERT_FALSE(all_templates().empty());
  EXPECT_DEATH(RegisterTemplate again(mine), "template mine is registered after the list");
}

}  // namespace
}  // namespace tuner
