// A target with AMX for tests: this CPU, and tiles.
#pragma once

#include <gtest/gtest.h>

#include "compiler_core/codegen/compile.h"
#include "tests/support/amx_emulator.h"

namespace tuner::testing {

// As run_amx_here(), for a process that links kernels: the first link sets LLVM's own handlers of signals.
inline std::string run_amx_kernels_here() {
  static const bool linked = [] {
    Program nothing;
    nothing.name = "nothing";
    return compile(nothing, host_target()).is_ok();
  }();
  EXPECT_TRUE(linked);
  return run_amx_here();
}

inline Target amx_target(int threads = 1) {
  std::string name = host_target(threads).name();
  if (name.find("-mattr=") == std::string::npos) name += " -mattr=+fma";
  for (const char* feature : {"amx-bf16", "amx-int8", "amx-tile"}) {
    const size_t denied = name.find(str("-", feature));
    if (denied != std::string::npos) name[denied] = '+';
    if (denied == std::string::npos) name.insert(name.find("-mattr=") + 7, str("+", feature, ","));
  }
  const Result<Target> target = parse_target(name);
  EXPECT_TRUE(target.is_ok()) << target.message();
  return *target;
}

// The same with tiles of float16, which came later.
inline Target amx_fp16_target(int threads = 1) {
  const Target target = amx_target(threads);
  std::string name = target.name();
  if (!target.has_tiles(DType::kFloat16)) name.insert(name.find("-mattr=") + 7, "+amx-fp16,");
  return *parse_target(name);
}

}  // namespace tuner::testing
