#include "compiler_core/target_family.h"

#include "compiler_core/target.h"

namespace tuner {

const TargetFamily& npu_family();  // codegen_npu/npu_family.cpp

namespace {

// Every family of the tree; a new one is a line here.
std::vector<const TargetFamily*>& families() {
  static std::vector<const TargetFamily*> all = {&cpu_family(), &cuda_family(), &npu_family()};
  return all;
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && text.substr(word.size()).starts_with(' ');
}

}  // namespace

const std::vector<const TargetFamily*>& target_families() { return families(); }

const TargetFamily* find_target_family(std::string_view word) {
  for (const TargetFamily* family : families())
    if (family->word() == word) return family;
  return nullptr;
}

const TargetFamily* family_of_toolchain(std::string_view toolchain) {
  for (const TargetFamily* family : families())
    if (begins_with_word(toolchain, family->toolchain_word())) return family;
  return nullptr;
}

RegisterTargetFamily::RegisterTargetFamily(const TargetFamily& family) {
  CHECK(find_target_family(family.word()) == nullptr) << "two target families are called " << family.word();
  families().push_back(&family);
}

}  // namespace tuner
