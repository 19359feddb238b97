// What `tuner show --as schedule` prints is the schedule: replayed on the math it gives the very same
// Program, for every template, its default and random configs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "compiler_core/schedule/schedule.h"
#include "templates/schedule_template.h"
#include "tests/random_seed.h"
#include "tests/templates/schedule_templates.h"

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
           "v1 matmul b=1 m=40 n=48 k=64 ta=0 tb=1 bias=1 act=relu dtype=int8 out_dtype=uint8 const=b",
           "v1 conv2d n=1 ic=24 ih=14 iw=14 oc=40 kh=3 kw=3 stride=2,2 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
           "act=relu "
           "dtype=int8 out_dtype=uint8 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=40 ih=14 iw=14 oc=40 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=40 bias=1 "
           "act=relu "
           "dtype=int8 out_dtype=uint8 layout=NHWC const=weight",
           "v1 conv2d n=1 ic=32 ih=14 iw=14 oc=32 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=4 bias=1 "
           "act=relu "
           "dtype=float32 layout=NCHW const=weight",
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
  pool.dtype = DType::kUInt8;
  pool.layout = "NHWC";
  out.push_back(pool);
  for (const Workload& w :
       {Workload(SoftmaxWorkload{24, 100}), Workload(LayerNormWorkload{24, 96}),
        Workload(RmsNormWorkload{24, 96}),
        Workload(AttentionWorkload{.queries = 20, .keys = 24, .size = 8, .v_size = 8}),
        Workload(ReduceWorkload{24, 100, RowReduction::kSum}),
        Workload(MatmulNBitsWorkload{.m = 3, .n = 40, .k = 70, .zero_points = true}),
        Workload(TransposeWorkload{32, 48}), Workload(ElementwiseWorkload{24, 64}),
        *program_from_text(
            "in=uint8[1000],uint8[1000] com.microsoft.QLinearAdd(0,float32[](0.02),uint8[](0),1,"
            "float32[](0.03),uint8[](0),float32[](0.05),uint8[](0))"),
        *program_from_text("in=uint8[64,100] com.microsoft.QLinearSoftmax(0,float32[](0.125),uint8[](3),"
                           "float32[](0.00390625),uint8[](0))"),
        *program_from_text("in=uint8[64,100],float32[100],float32[100] "
                           "tuner.QLinearLayerNormalization(0,1,2,uint8[](128)){epsilon=0.125f}"),
        *program_from_text("in=float32[2,24,20],float32[24,1] Mul(0,1) Tanh(2)"),
        *program_from_text("in=float32[24,3,20] ReduceMean(0,int64[1](1)){keepdims=0}"),
        *program_from_text("in=float32[3,2,64],float32[1,16,64],float32[1,2,16],float32[1,2,16] "
                           "tuner.Recurrence(0,1,_,_,2,3,_){cell=\"LSTM\",packed=1,results=[0;1;2]}")})
    out.push_back(w);
  return out;
}

TEST(ScheduleText, ReplaysToTheSameProgramForEveryTemplate) {
  constexpr int kRandomConfigs = 3;
  const RandomSeed seed(11);
  std::mt19937_64 random(seed);
  std::set<std::string> shown;
  for (const char* target_text : {"llvm -mcpu=sapphirerapids -threads=1", "llvm -mcpu=haswell -threads=2",
                                  "cuda -arch=sm_90a", "cuda -arch=sm_80", "npu"}) {
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
  for (const AnyTemplate* t : testing::schedule_templates())
    EXPECT_TRUE(shown.contains(std::string(t->name())))
        << t->name() << " serves none of these workloads; add one";
}

// What is tried before any tuning, and how much there is to try. A line that changes is a change that users
// meet: their untuned kernels, the records of which the version says what they mean.
TEST(ScheduleText, EveryTemplateBeginsWithTheConfigWrittenDown) {
  std::string found = "\n";
  for (const AnyTemplate* t : all_templates()) {
    std::string line;
    for (const char* target_text : {"llvm -mcpu=haswell -threads=2", "llvm -mcpu=sapphirerapids -threads=1",
                                    "cuda -arch=sm_80", "cuda -arch=sm_90a", "npu"}) {
      const Target target = parse_target(target_text).value();
      for (const Workload& workload : workloads()) {
        if (!line.empty() || !t->supports(workload, target).yes) continue;
        const auto instance = t->apply(workload, target);
        EXPECT_TRUE(instance.is_ok()) << instance.message();
        if (!instance) continue;
        const ConfigSpace& space = (*instance)->space();
        std::string words(t->name());
        std::ranges::replace(words, '_', ' ');
        line = str(words, ", version ", t->version(), ", of ", space.size(), ": ",
                   space.describe(space.at(space.first_index())), "\n");
      }
    }
    found += line;
  }
  EXPECT_EQ(found, R"(
matmul cpu, version 3, of 3132: block_k=0 block_m=0 narrow_panels=no next_panel=no pack_a=plain pack_b=panel prefetch_b=0 tile_m=6 tile_n=16 unroll_k=1
matmul tile cpu, version 3, of 24: across=2 block_k=0 block_m=0 down=2 next_panel=no pack_a=no rows=12
matmul dot cpu, version 3, of 798: block_m=0 narrow_panels=no next_panel=no pack_a=no prefetch_b=0 tile_m=4 tile_n=16 unroll_k=1
matmul nbits cpu, version 1, of 15: prefetch_b=0 tile_m=3 tile_n=16 vectors=2
conv2d tile cpu, version 3, of 48: across=2 block=0 by_tile=no down=2 in_place=no next_panel=no pack_block=no rows=16
conv2d rows dot cpu, version 1, of 13: tile_oc=8 tile_ow=10
conv2d direct cpu, version 3, of 10226: block_ic=16 block_oh=0 narrow_panels=no next_panel=yes tile_oc=16 tile_oh=2 tile_ow=3 unroll_ic=1 unroll_kw=no
depthwise conv2d dot cpu, version 1, of 6: block_rows=7 tile_p=56
depthwise conv2d rows cpu, version 1, of 40: copy=no tile_oh=7 tile_ow=8 unroll_kw=yes
depthwise conv2d cpu, version 1, of 8: tile_oh=1 tile_ow=8 unroll_kh=no
conv2d 1x1 pixels cpu, version 1, of 840: block_oc=0 pack_data=yes tile_oc=6 tile_p=16 unroll_ic=1
conv2d 1x1 channels cpu, version 2, of 1242: block_p=0 narrow_panels=no next_panel=yes tile_oc=16 tile_p=6 unroll_ic=1
conv2d winograd2 cpu, version 4, of 96: data_ahead=yes group=5 next_panel=no oc_share=2 order=panels_outer tile_rows=7 unroll_ic=1 vectors=1
conv2d winograd2x4 cpu, version 4, of 66: data_ahead=yes group=5 next_panel=no oc_share=2 order=panels_outer tile_rows=7 unroll_ic=1 vectors=1
conv2d winograd4 cpu, version 4, of 132: data_ahead=yes group=4 next_panel=no oc_share=2 order=panels_outer tile_rows=4 unroll_ic=1 vectors=1
conv2d winograd5 cpu, version 4, of 54: data_ahead=yes group=5 next_panel=no oc_share=2 order=panels_outer tile_rows=3 unroll_ic=1 vectors=1
conv2d winograd6 cpu, version 4, of 54: data_ahead=yes group=5 next_panel=no oc_share=2 order=panels_outer tile_rows=3 unroll_ic=1 vectors=1
pool2d rows cpu, version 1, of 5: tile_oh=4 tile_ow=8
pool2d cpu, version 2, of 8: tile_oh=4 tile_ow=8 unroll_kw=yes vectors=1
softmax cpu, version 2, of 16: in_registers=no prefetch_rows=no rows=4 vectors=4
layer norm cpu, version 1, of 16: rows=4 vectors=4
rms norm cpu, version 1, of 16: rows=4 vectors=4
reduce cpu, version 2, of 16: ahead=0 blocks=1 rows=1 vectors=8
transpose cpu, version 1, of 36: block_columns=4 block_rows=4 order=along_out order_in_block=along_out
elementwise cpu, version 1, of 4: vectors=4
attention cpu, version 1, of 3600: block=4 copies=whole pack_values=yes rows=4 tile_e=8 tile_i=3 tile_s=24 unroll=2 vectors=2
recurrence cpu, version 2, of 72: prefetch=0 tile_b=2 tile_n=32 unroll_k=1 vectors=1
program cpu, version 2, of 16: fuse_axes=yes inline_all=no rows=1 vectors=2
matmul tf32 cuda, version 3, of 18900: ahead=yes block_k=32 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=1 tiles_n=4 unroll_stages=no warps_m=2 warps_n=2
matmul cuda, version 4, of 1123016: block_k=8 double_buffer=yes group_m=1 lanes_m=8 layout_a=pad layout_b=plain min_blocks=2 rows_a=1 rows_b=1 split_k=1 strided_m=no strided_n=no thread_m=2 thread_n=2 unroll_k=8 unroll_stages=no vector_a=2 vector_b=1 warps_m=2 warps_n=2
matmul wgmma cuda, version 2, of 8: columns=64 group_m=1 groups_m=1 groups_n=1 min_blocks=1 overlap=no split_k=1 stages=2 steps=1 tma=yes
matmul mma cuda, version 3, of 7584: ahead=yes block_k=32 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=1 tiles_n=4 unroll_stages=no warps_m=2 warps_n=2
matmul dp4a cuda, version 2, of 168090: block_k=8 double_buffer=yes group_m=1 lanes_m=8 layout_a=pad layout_b=plain min_blocks=1 rows_a=1 rows_b=1 split_k=1 strided_m=no strided_n=no thread_m=2 thread_n=2 unroll_k=8 unroll_stages=yes vector_a=2 vector_b=1 warps_m=2 warps_n=2
matmul tf32x3 cuda, version 3, of 6618: ahead=no block_k=16 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=1 tiles_n=2 unroll_stages=no warps_m=1 warps_n=1
conv2d nchw cuda, version 4, of 5588676: double_buffer=no inner_f=1 inner_x=1 inner_y=1 keep_rows=no kernel_outer=no layout_weight=plain min_blocks=1 pixels_in_warp=no split_ic=1 threads_f=8 threads_x=4 threads_y=4 tile_ic=16 tile_kh=3 tile_kw=3 unroll_ic=1 unroll_kh=yes vthread_f=1 vthread_x=1
conv2d implicit gemm cuda, version 4, of 204042: block_k=16 double_buffer=yes group_m=1 lanes_m=8 layout_a=plain layout_b=plain min_blocks=2 rows_a=1 rows_b=1 split_k=1 strided_m=no strided_n=no thread_m=2 thread_n=2 unroll_k=16 unroll_stages=no vector_a=4 vector_b=1 warps_m=2 warps_n=2
conv2d nhwc mma cuda, version 3, of 363732: ahead=yes block_k=32 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=2 tiles_n=4 unroll_stages=no warps_m=2 warps_n=2
conv2d nhwc tf32 cuda, version 3, of 239055: ahead=yes block_k=32 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=1 tiles_n=4 unroll_stages=no warps_m=2 warps_n=2
conv2d nhwc tf32x3 cuda, version 3, of 206679: ahead=no block_k=16 group_m=1 layout_a=xor layout_b=xor min_blocks=1 split_k=1 stages=3 tiles_m=1 tiles_n=2 unroll_stages=no warps_m=1 warps_n=1
depthwise conv2d nchw cuda, version 1, of 17312: channels=2 inner_x=1 inner_y=1 min_blocks=1 rows_first=yes shared=no threads_x=8 threads_y=8 unroll_kh=yes
depthwise conv2d nhwc cuda, version 1, of 76696: channels_first=yes inner_x=1 inner_y=1 min_blocks=1 threads_c=8 threads_x=16 threads_y=1 unroll_kh=yes vector=4
conv2d groups cuda, version 1, of 24: inline_all=no lanes=1 threads=256 vector=1
pool2d cuda, version 1, of 24: inline_all=no lanes=1 threads=256 vector=1
softmax cuda, version 1, of 547: kept=registers loads=1 rows=4 threads=8 vector=4
layer norm cuda, version 1, of 518: kept=registers loads=1 rows=4 threads=8 vector=4
rms norm cuda, version 1, of 24: inline_all=no lanes=1 threads=256 vector=1
reduce cuda, version 1, of 231: loads=4 rows=4 splits=1 threads=8 vector=4
transpose cuda, version 1, of 144: order=along_x threads=256 tile_columns=32 tile_rows=32 vector_in=4 vector_out=4
elementwise cuda, version 1, of 48: loads=1 threads=256 vector=4
program cuda, version 1, of 24: inline_all=no lanes=1 threads=256 vector=1
matmul npu, version 1, of 590: order=0 resident=no stages=1 tile_k=64 tile_m=40 tile_n=48
conv2d npu, version 1, of 30: order=0 resident=no stages=1 tile_h=7 tile_ic=32 tile_oc=48 tile_w=7
depthwise conv2d npu, version 1, of 27: stages=2 tile_c=48 tile_h=7 tile_w=14
pool2d npu, version 1, of 2: stages=1 tile_c=32 tile_h=7 tile_w=7
quantized add npu, version 1, of 54: stages=1 tile=1008
quantized softmax npu, version 1, of 26: stages=1 tile=64
quantized norm npu, version 1, of 26: stages=1 tile=64
)");
}

}  // namespace
}  // namespace tuner
