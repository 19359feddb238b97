// The table of intrinsics: a line a family.
#include "compiler_core/ir/intrinsic.h"

#include <map>

namespace tuner {

std::vector<Intrinsic> npu_intrinsics();  // intrinsics/npu.cpp, which says what they are

const Intrinsic* find_intrinsic(std::string_view name) {
  static const std::map<std::string, Intrinsic, std::less<>> kTable = [] {
    std::map<std::string, Intrinsic, std::less<>> table;
    for (const auto family : {warp_allreduce_intrinsics, amx_intrinsics, amx_fp16_intrinsics, mmla_intrinsics,
                              mma_intrinsics, wgmma_intrinsics, npu_intrinsics})
      for (Intrinsic& i : family()) table.emplace(i.name, std::move(i));
    return table;
  }();
  const auto found = kTable.find(name);
  return found == kTable.end() ? nullptr : &found->second;
}

}  // namespace tuner
