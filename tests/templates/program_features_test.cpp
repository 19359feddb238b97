// Features of scheduled Programs: one length, what they say of a known schedule.
#include "compiler_core/analysis/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

float feature(const std::vector<float>& values, const std::string& name) {
  const auto& names = program_feature_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return at == names.end() ? 0 : values[static_cast<size_t>(at - names.begin())];
}
float log2p1(double x) { return static_cast<float>(std::log2(1 + x)); }

TEST(ProgramFeatures, DescribeTheMicroKernel) {
  MatmulWorkload w;
  w.m = 64;
  w.n = 128;
  w.k = 256;
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config({{"tile_m", 8},
                       {"tile_n", 32},
                       {"block_m", 0},
                       {"block_k", 0},
                       {"unroll_k", 2},
                       {"pack_a", 0},
                       {"pack_b", 1},
                       {"narrow_panels", 0},
                       {"next_panel", 0},
                       {"prefetch_b", 0}});
  const auto program = (*instance)->instantiate(config);
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::vector<float> f = program_features(*program);
  ASSERT_EQ(f.size(), program_feature_names().size());
  EXPECT_EQ(feature(f, "log2(runs)"), log2p1(64.0 * 128 * 256));
  EXPECT_EQ(feature(f, "log2(lanes)"), log2p1(16));
  EXPECT_EQ(feature(f, "log2(accumulators)"), log2p1(16));
  EXPECT_EQ(feature(f, "log2(unrolled_reduce)"), log2p1(2));
  EXPECT_EQ(feature(f, "log2(vector_loads_in_body)"), log2p1(4));   // two vectors of b, twice
  EXPECT_EQ(feature(f, "log2(scalar_loads_in_body)"), log2p1(16));  // eight rows of a, twice
  EXPECT_EQ(feature(f, "log2(loop0.extent)"), log2p1(128));
  EXPECT_EQ(feature(f, "loop0.reduces"), 1);
  EXPECT_EQ(feature(f, "log2(loop0.bytes)"), log2p1(8 * 256 * 4 + 256 * 32 * 4));
  EXPECT_EQ(feature(f, "packs_ahead"), 1);
}

TEST(ProgramFeatures, OfAnEmptyProgramHaveTheSameLength) {
  EXPECT_EQ(program_features(Program{}).size(), program_feature_names().size());
}

}  // namespace
}  // namespace tuner
