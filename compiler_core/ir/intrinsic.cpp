// The table of intrinsics. compiler_core/CMakeLists.txt lists their families.
#include "compiler_core/ir/intrinsic.h"

#include <map>

#include "ir/intrinsic_families.h"  // generated

namespace tuner {

// Each family's, of intrinsics/NAME.cpp.
#define TUNER_DECLARE(name) std::vector<Intrinsic> name##_intrinsics();
TUNER_INTRINSIC_FAMILIES(TUNER_DECLARE)
#undef TUNER_DECLARE

const Intrinsic* find_intrinsic(std::string_view name) {
  static const std::map<std::string, Intrinsic, std::less<>> kTable = [] {
    std::map<std::string, Intrinsic, std::less<>> table;
#define TUNER_NAME(name) name##_intrinsics,
    for (const auto family : {TUNER_INTRINSIC_FAMILIES(TUNER_NAME)})
#undef TUNER_NAME
      for (Intrinsic& i : family()) table.emplace(i.name, std::move(i));
    return table;
  }();
  const auto found = kTable.find(name);
  return found == kTable.end() ? nullptr : &found->second;
}

}  // namespace tuner
