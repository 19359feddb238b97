// What `tuner show --as schedule` prints is the schedule: replayed on the math it gives the very same
// Program, for every template, its default and random configs.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "compiler_core/schedule/schedule.h"
#include "templates/schedule_template.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

// Workloads with something odd in each, so that every template serves one.
std::vector<Workload> workloads() {
  std::vector<Workload> out;
  MatmulWorkload product;
  product.m = 24, product.n = 48, product.k = 40;
  out.push_back(product);
  product.bias = true;
  product.activation = Activation::kRelu;
  out.push_back(product);
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kInt8}) {
    MatmulWorkload typed;
    typed.m = 24, typed.n = 48, typed.k = 64;
    typed.dtype = dtype;
    out.emplace_back(typed);
  }
  for (const char* key : {
           "v1 conv2d n=1 ic=16 ih=14 iw=14 oc=32 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=float32 layout=NCHW const=weight",
           "v1 conv2d n=1 ic=16 ih=14 iw=14 oc=32 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=float32 layout=NCHW16c const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=1 kw=1 stride=1,1 pad=0,0,0,0 dil=1,1 groups=1 bias=0 "
           "act=none "
           "dtype=float32 layout=NCHW const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=32 kh=3 kw=3 stride=2,2 pad=1,1,1,1 dil=1,1 groups=32 bias=0 "
           "act=none "
           "dtype=float32 layout=NCHW const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=32 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=32 bias=0 "
           "act=none "
           "dtype=float32 layout=NCHW16c const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=1 kw=1 stride=2,2 pad=0,0,0,0 dil=1,1 groups=1 bias=0 "
           "act=none "
           "dtype=int8 out_dtype=uint8 layout=NCHW const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=bfloat16 layout=NCHW const=none",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=32 kh=3 kw=3 stride=2,2 pad=1,1,1,1 dil=1,1 groups=32 bias=0 "
           "act=none "
           "dtype=int8 out_dtype=uint8 layout=NCHW const=weight",
           "v1 matmul b=1 m=40 n=48 k=64 ta=0 tb=1 bias=1 act=none dtype=float32 allow_tf32=1 const=none",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=bfloat16 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=float32 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=64 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=float32 allow_tf32=1 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=32 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=32 bias=1 "
           "act=relu "
           "dtype=float16 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=3 ih=20 iw=20 oc=32 kh=7 kw=7 stride=2,2 pad=3,3,3,3 dil=1,1 groups=1 bias=0 "
           "act=none "
           "dtype=int8 out_dtype=uint8 layout=NCHW const=weight",
       }) {
    const Result<Workload> w = workload_from_key(key);
    EXPECT_TRUE(w.is_ok()) << w.message();
    if (w) out.push_back(*w);
  }
  Pool2dWorkload pool{.channels = 32, .in_height = 14, .in_width = 14};
  pool.kernel_height = pool.kernel_width = 3;
  pool.stride = {2, 2};
  pool.padding = {1, 1, 1, 1};
  out.push_back(pool);
  for (const Workload& w : {Workload(SoftmaxWorkload{24, 100}), Workload(LayerNormWorkload{24, 96}),
                            Workload(ReduceWorkload{24, 100, RowReduction::kSum}),
                            Workload(TransposeWorkload{32, 48}), Workload(ElementwiseWorkload{24, 64}),
                            *program_from_text("in=float32[2,24,20],float32[24,1] Mul(0,1) Tanh(2)"),
                            *program_from_text("in=float32[24,3,20] ReduceMean(0,int64[1](1)){keepdims=0}")})
    out.push_back(w);
  return out;
}

TEST(ScheduleText, ReplaysToTheSameProgramForEveryTemplate) {
  constexpr int kRandomConfigs = 3;
  const RandomSeed seed(11);
  std::mt19937_64 random(seed);
  std::set<std::string> shown;
  for (const char* target_text : {"llvm -mcpu=sapphirerapids -threads=1", "llvm -mcpu=haswell -threads=2",
                                  "cuda -arch=sm_90a", "cuda -arch=sm_80"}) {
    const Target target = parse_target(target_text).value();
    for (const Workload& workload : workloads())
      for (const AnyTemplate* t : all_templates()) {
        if (!t->supports(workload, target).yes) continue;
        SCOPED_TRACE(str(t->name(), ", ", workload.key(), " on ", target_text));
        const auto instance = t->apply(workload, target);
        ASSERT_TRUE(instance.is_ok()) << instance.message();
        const ConfigSpace& space = (*instance)->space();
        for (int i = 0; i <= kRandomConfigs; ++i) {
          const Config config = space.at(i == 0 ? space.default_index() : space.sample(random));
          SCOPED_TRACE(space.describe(config));
          const Result<Program> program = (*instance)->instantiate(config);
          const Result<std::string> text = (*instance)->schedule_text(config);
          ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
          const Result<Program> again = replay((*instance)->math(), *text);
          ASSERT_TRUE(again.is_ok()) << again.message() << "\n" << *text;
          ASSERT_EQ(to_text(*again), to_text(*program));
          shown.insert(std::string(t->name()));
        }
      }
  }
  for (const AnyTemplate* t : all_templates())
    EXPECT_TRUE(shown.contains(std::string(t->name())))
        << t->name() << " serves none of these workloads; add one";
}

}  // namespace
}  // namespace tuner
