// A user's kernel as a task: its key, its template, and what a config of it computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/base/elements.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/run_foreign.h"
#include "compiler_core/runtime/kernel.h"
#include "templates/schedule_template.h"
#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "templates/workload/operators/kernel.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const SourceKernel> example(const std::string& change = "{}") {
  const std::unique_ptr<JobFolder> folder = job_folder(TUNER_SOURCE_DIR "/examples/own_kernels");
  nlohmann::json entry = nlohmann::json::parse(*folder->read("stencil.json", 1 << 20));
  entry.merge_patch(nlohmann::json::parse(change));
  json_input::Reader in(entry, "");
  for (const char* key : {"op", "trials"}) in.get(key);
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, *folder);
  EXPECT_TRUE(in.finish().is_ok()) << in.finish().message();
  return kernel;
}

TEST(KernelWorkload, ItsKeyIsReadBackWhereItsSourceIsKnown) {
  const Workload workload(kernel_workload(example()));
  const std::string key = workload.key(), digest = source_digest(*example());
  EXPECT_EQ(key,
            "v1 kernel stencil height=480 width=640 in=float32[482,642] out=out:float32[480,640] "
            "height=int64:480 width=int64:640 source=" +
                digest);
  const Result<Workload> back = workload_from_key(key);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->key(), key);
  EXPECT_EQ(back->flops(), 6 * 480 * 640);
  EXPECT_EQ(back->bytes(), 4 * (482 * 642 + 480 * 640));
  EXPECT_THAT(workload_from_key(key.substr(0, key.size() - 1) + "x").message(), HasSubstr("is not here"));
  std::string lie = key;
  lie.replace(lie.find("height=480"), 10, "height=481");
  EXPECT_THAT(workload_from_key(lie).message(), HasSubstr("is not what its source says"));
}

TEST(KernelWorkload, ASourceElsewhereIsAskedFor) {
  const auto other = example(R"({"sizes": {"height": 8}, "knobs": {"TILE_Y": [1, 2, 4, 8]}})");
  const std::string digest = source_digest(*other), document = source_document(*other);
  EXPECT_FALSE(find_kernel(digest).is_ok());
  std::string given = document;
  const KernelSource source([&](const std::string& wanted) -> Result<std::string> {
    return wanted == digest ? Result<std::string>(given) : not_found("not this one");
  });
  given.back() = '~';
  EXPECT_THAT(find_kernel(digest).message(), HasSubstr("has the digest"));
  given = document;
  EXPECT_TRUE(find_kernel(digest).is_ok());
  EXPECT_FALSE(find_kernel(std::string(64, '0')).is_ok());
}

TEST(KernelWorkload, ConfigsOfItsTemplateComputeWhatTheReferenceDoes) {
  if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
  const auto kernel =
      example(R"({"sizes": {"height": 21, "width": 37}, "flags": ["-O3", "-mprefer-vector-width={WIDTH}"]})");
  const Workload workload(kernel_workload(kernel));
  const Target target = parse_target("llvm -mcpu=x86-64-v3").value();
  const auto templates = templates_for(workload, target);
  ASSERT_TRUE(templates.is_ok()) << templates.message();
  ASSERT_EQ(templates->size(), 1u);
  const auto instance = templates->front()->apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  // Pairs of tiles of at least 256 points, counted by hand: 10 TILE_Y and 40 TILE_X without those too small.
  int64_t pairs = 0;
  for (const int64_t y : {1, 2, 4, 8, 16, 32, 60, 120, 240, 480})
    for (int64_t x = 16; x <= 640; x += 16) pairs += y * x >= 256 ? 1 : 0;
  EXPECT_EQ(space.size(), static_cast<uint64_t>(pairs) * 5 * 3);

  const std::string in = *workload.operand(0, /*seed=*/5).value();
  EXPECT_NE(in, *workload.operand(0, 6).value());
  const auto reference = run_foreign(workload.compute(), {in});
  ASSERT_TRUE(reference.is_ok()) << reference.message();
  const std::vector<double> right = load_elements(reference->at(0).data(), 21 * 37, DType::kFloat32);
  std::mt19937_64 random(3);
  for (int i = 0; i < 4; ++i) {
    const Config config = space.at(space.sample(random));
    const Result<Program> program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    EXPECT_THAT(*(*instance)->schedule_text(config), HasSubstr(str("-DTILE_X=", config.at("TILE_X"))));
    const Result<Artifact> artifact = compile_foreign(*program, target.name(), 1);
    ASSERT_TRUE(artifact.is_ok()) << artifact.message();
    const Result<Kernel> loaded = Kernel::load(*artifact);
    ASSERT_TRUE(loaded.is_ok()) << loaded.message();
    std::vector<float> out(21 * 37);
    std::string given = in;
    void* args[] = {given.data(), out.data()};
    ASSERT_TRUE(loaded->call(args, {}).is_ok());
    for (size_t k = 0; k < out.size(); ++k)
      ASSERT_NEAR(out[k], right[k], 1e-5) << config.to_text() << " at " << k;
  }
  EXPECT_FALSE((*instance)->instantiate(Config(std::map<std::string, int64_t>{{"TILE_X", 7}})).is_ok());
}

}  // namespace
}  // namespace tuner
