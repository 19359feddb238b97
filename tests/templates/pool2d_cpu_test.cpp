// Pooling on CPUs: loops of one config, and random configs against the oracle.
#include <gmock/gmock.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Pool2dWorkload pool(int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride, int64_t pad,
                    const char* layout = "NCHW") {
  Pool2dWorkload p;
  p.batch = 2;
  p.channels = c;
  p.in_height = h;
  p.in_width = w;
  p.kernel_height = p.kernel_width = kernel;
  p.stride = {stride, stride};
  p.padding = {pad, pad, pad, pad};
  p.layout = layout;
  return p;
}

Pool2dWorkload averaged(Pool2dWorkload p, bool include_pad = false) {
  p.pooling = Pooling::kAverage;
  p.count_include_pad = include_pad;
  return p;
}

// Windows that overlap, that leave gaps, that leave the image on one side or on all.
std::vector<Pool2dWorkload> shapes() {
  Pool2dWorkload uneven = pool(3, 9, 11, 3, 2, 0);
  uneven.kernel_width = 4;
  uneven.padding = {1, 0, 2, 3};
  return {pool(3, 7, 9, 3, 2, 1),
          pool(2, 5, 20, 2, 2, 0),
          pool(1, 6, 35, 3, 1, 1),
          pool(2, 10, 10, 2, 3, 1),
          pool(16, 7, 7, 3, 2, 1, "NCHW16c"),
          pool(8, 6, 9, 2, 1, 1, "NCHW8c"),
          pool(8, 4, 4, 3, 1, 0, "NCHW4c"),
          pool(16, 7, 7, 3, 2, 1, "NHWC"),
          pool(37, 6, 9, 2, 1, 1, "NHWC"),
          pool(3, 5, 8, 2, 3, 1, "NHWC"),
          pool(1, 1, 1, 1, 1, 0),
          uneven};
}

TEST(Pool2dCpu, RandomConfigs) {
  uint64_t seed = 1;
  for (const Pool2dWorkload& w : shapes())
    for (const Target& target : {cpu(512, 32), cpu(256, 16, 2), cpu(128, 16)})
      for (const Pool2dWorkload& each : {w, averaged(w), averaged(w, true)})
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(pool2d_cpu(), each, target, 3, seed++));
}

// As networks in 8 bits have them.
TEST(Pool2dCpu, MaximaOfBytes) {
  uint64_t seed = 1;
  int tried = 0;
  for (Pool2dWorkload w : shapes()) {
    w.dtype = seed % 2 == 0 ? DType::kInt8 : DType::kUInt8;
    for (const Target& target : {cpu(512, 32), cpu(256, 16, 2), cpu(128, 16)})
      for (const AnyTemplate* each : {&pool2d_cpu(), &pool2d_rows_cpu()}) {
        EXPECT_FALSE(each->supports(Workload(averaged(w)), target).yes);
        if (!each->supports(Workload(w), target).yes) continue;
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(*each, w, target, 3, seed++));
        ++tried;
      }
  }
  EXPECT_GT(tried, 20);
  for (const char* layout : {"NCHW", "NHWC"}) {
    Pool2dWorkload w = pool(64, 20, 20, 3, 2, 1, layout);
    w.dtype = DType::kUInt8;
    for (const AnyTemplate* each : {&pool2d_cpu(), &pool2d_rows_cpu()})
      EXPECT_TRUE(each->supports(Workload(w), cpu(512, 32)).yes) << layout;
  }
}

// A vector of bytes has four times as many channels.
TEST(Pool2dCpu, ChannelsOfBytesFillVectors) {
  Pool2dWorkload w = pool(64, 20, 20, 3, 2, 1, "NHWC");
  w.dtype = DType::kUInt8;
  const auto instance = pool2d_cpu().apply(w, cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program =
      (*instance)->instantiate(config_from_text("tile_oh=1 tile_ow=2 unroll_kw=1 vectors=1").value());
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program), ::testing::HasSubstr("vectorized c in 0..64"));
}

TEST(Pool2dCpu, GlobalPoolingIsAReduction) {
  uint64_t seed = 1;
  for (const Target& target : {cpu(512, 32), cpu(256, 16, 2), cpu(128, 16)})
    for (const auto& [layout, channels] :
         {std::pair<const char*, int64_t>{"NCHW", 5}, {"NCHW16c", 32}, {"NHWC", 37}})
      for (const int64_t size : {1, 7, 12}) {
        const Pool2dWorkload w = pool(channels, size, size, size, 1, 0, layout);
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(pool2d_cpu(), w, target, 3, seed++));
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(pool2d_cpu(), averaged(w), target, 3, seed++));
      }
}

TEST(Pool2dCpu, LoopsOfABlockedLayout) {
  const auto instance = pool2d_cpu().apply(pool(16, 8, 8, 3, 2, 1, "NCHW16c"), cpu(512, 32, 2));
  const Result<Program> program =
      (*instance)->instantiate(config_from_text("tile_oh=1 tile_ow=2 unroll_kw=1 vectors=1").value());
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel pool2d(input data float32[2, 1, 8, 8, 16], output out float32[2, 1, 4, 4, 16])
  parallel n.c.oh.fused in 0..8
    for ow.outer in 0..2
      allocate acc float32[1, 1, 1, 2, 16] register
      for n.init in 0..1
        for c.init in 0..1
          for oh.init in 0..1
            unrolled ow.init in 0..2
              vectorized cb.init in 0..16
                acc[0, 0, 0, ow.init, cb.init] = -inf
      reduce kh in 0..3
        if n.c.oh.fused%4*2 + kh >= 1
          unrolled reduce kw in 0..3
            for n in 0..1
              for c in 0..1
                for oh in 0..1
                  unrolled ow in 0..2
                    if ow.outer*4 + ow*2 + kw >= 1
                      vectorized cb in 0..16
                        acc[0, 0, 0, ow, cb] max= data[n.c.oh.fused//4, 0, n.c.oh.fused%4*2 + kh - 1, ow.outer*4 + ow*2 + kw - 1, cb]
      unrolled ow.inner in 0..2
        vectorized cb in 0..16
          out[n.c.oh.fused//4, 0, n.c.oh.fused%4, ow.outer*2 + ow.inner, cb] = acc[0, 0, 0, ow.inner, cb]
)");
}

// Two rows of pixels at once, each asked on its own whether it is inside.
TEST(Pool2dCpu, LoopsOfATileOfRows) {
  const auto instance = pool2d_cpu().apply(pool(2, 4, 16, 3, 1, 1, "NCHW"), cpu(512, 32, 1));
  const Result<Program> program =
      (*instance)->instantiate(config_from_text("tile_oh=2 tile_ow=16 unroll_kw=0 vectors=1").value());
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel pool2d(input data float32[2, 2, 4, 16], output out float32[2, 2, 4, 16])
  for n in 0..2
    for c in 0..2
      for oh.outer in 0..2
        for ow.outer in 0..1
          allocate acc float32[1, 1, 2, 16] register
          for n.init in 0..1
            for c.init in 0..1
              unrolled oh.init in 0..2
                vectorized ow.init in 0..16
                  acc[0, 0, oh.init, ow.init] = -inf
          reduce kh in 0..3
            reduce kw in 0..3
              for n_1 in 0..1
                for c_1 in 0..1
                  unrolled oh in 0..2
                    if oh.outer*2 + oh + kh >= 1 && oh.outer*2 + oh + kh < 5
                      vectorized ow in 0..16
                        if ow + kw >= 1 && ow + kw < 17
                          acc[0, 0, oh, ow] max= data[n, c, oh.outer*2 + oh + kh - 1, ow + kw - 1]
          unrolled oh.inner in 0..2
            vectorized ow.inner in 0..16
              out[n, c, oh.outer*2 + oh.inner, ow.inner] = acc[0, 0, oh.inner, ow.inner]
)");
}

TEST(Pool2dRowsCpu, RandomConfigs) {
  uint64_t seed = 1;
  int tried = 0;
  for (const Pool2dWorkload& w : shapes())
    for (const Target& target : {cpu(512, 32), cpu(256, 16, 2), cpu(128, 16)})
      for (const Pool2dWorkload& each : {w, averaged(w), averaged(w, true)}) {
        if (!pool2d_rows_cpu().supports(Workload(each), target).yes) continue;
        ASSERT_NO_FATAL_FAILURE(expect_configs_right(pool2d_rows_cpu(), each, target, 3, seed++));
        ++tried;
      }
  EXPECT_EQ(tried, 8 * 9) << "of the shapes above eight have windows that share rows";
}

// Three rows of the image, each once, serve two rows of the output.
TEST(Pool2dRowsCpu, Loops) {
  const auto instance = pool2d_rows_cpu().apply(pool(2, 5, 17, 2, 1, 0, "NCHW"), cpu(512, 32, 1));
  const Result<Program> program = (*instance)->instantiate(config_from_text("tile_oh=2 tile_ow=16").value());
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel pool2d(input data float32[2, 2, 5, 17], output out float32[2, 2, 4, 16])
  for n in 0..2
    for c in 0..2
      for oh.outer in 0..2
        for ow.outer in 0..1
          allocate acc float32[1, 1, 2, 16] register
          allocate rows float32[1, 1, 3, 16] register
          for n.init in 0..1
            for c.init in 0..1
              unrolled ih.init in 0..3
                vectorized ow.init in 0..16
                  rows[0, 0, ih.init, ow.init] = -inf
          unrolled reduce kw in 0..2
            for n_1 in 0..1
              for c_1 in 0..1
                unrolled ih in 0..3
                  vectorized ow in 0..16
                    rows[0, 0, ih, ow] max= data[n, c, oh.outer*2 + ih, ow + kw]
          for n.init in 0..1
            for c.init in 0..1
              unrolled oh.init in 0..2
                vectorized ow.init in 0..16
                  acc[0, 0, oh.init, ow.init] = -inf
          unrolled reduce kh in 0..2
            for n_1 in 0..1
              for c_1 in 0..1
                unrolled oh in 0..2
                  vectorized ow in 0..16
                    acc[0, 0, oh, ow] max= rows[0, 0, oh + kh, ow]
          unrolled oh.inner in 0..2
            vectorized ow.inner in 0..16
              out[n, c, oh.outer*2 + oh.inner, ow.inner] = acc[0, 0, oh.inner, ow.inner]
)");
}

TEST(Pool2dRowsCpu, GivesTheDefaultConfigWherePixelsLieSideBySide) {
  EXPECT_FALSE(pool2d_rows_cpu().supports(Workload(pool(16, 8, 8, 3, 2, 1, "NCHW")), cpu(512, 32)).as_second);
  const Support blocked =
      pool2d_rows_cpu().supports(Workload(pool(16, 8, 8, 3, 2, 1, "NCHW16c")), cpu(512, 32));
  EXPECT_TRUE(blocked.yes && blocked.as_second);
}

TEST(Pool2dRowsCpu, DeclinesWindowsThatShareNoRows) {
  EXPECT_EQ(pool2d_rows_cpu().supports(Workload(pool(1, 8, 8, 2, 2, 0)), cpu(512, 32)).reason,
            "needs windows that share rows, got 2 rows each and a stride of 2 in an output of 4");
  EXPECT_EQ(pool2d_rows_cpu().supports(Workload(pool(1, 20, 20, 8, 1, 0)), cpu(512, 32)).reason,
            "needs windows of 2 to 7 columns and at most 7 rows, got 8x8");
}

TEST(Pool2dCpu, DeclinesOtherTargets) {
  const Target gpu = parse_target("cuda -arch=sm_80").value();
  EXPECT_EQ(pool2d_cpu().supports(Workload(pool(1, 4, 4, 2, 2, 0)), gpu).reason,
            "needs a CPU target, got cuda -arch=sm_80");
}

// Rows by vectors of a tile, one that is read, one to spare.
TEST(Pool2dCpu, EveryTileFitsTheRegisters) {
  const auto instance = pool2d_cpu().apply(pool(8, 64, 256, 3, 1, 1), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  std::mt19937_64 rng(6);
  int64_t most = 0;
  for (int i = 0; i < 2000; ++i) {
    const Config c = (*instance)->space().at((*instance)->space().sample(rng));
    most = std::max(most, c.at("tile_ow") / 8 * c.at("tile_oh") + 2);
  }
  EXPECT_LE(most, 16);
  EXPECT_GE(most, 14);
}

// Pixels by vectors of channels of a tile.
TEST(Pool2dCpu, EveryTileOfChannelsFitsTheRegisters) {
  const auto instance = pool2d_cpu().apply(pool(256, 64, 64, 3, 1, 1, "NHWC"), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  int64_t most = 0;
  for (uint64_t i = 0; i < space.size(); ++i) {
    const Config c = space.at(i);
    most = std::max(most, c.at("tile_ow") * c.at("vectors") + 2);
  }
  EXPECT_LE(most, 16);
  EXPECT_GE(most, 14);
}

// Two registers a pixel: 16 channels of 256 bits. Rows of the image by pixels, and two others.
TEST(Pool2dRowsCpu, EveryTileFitsTheRegisters) {
  const auto instance = pool2d_rows_cpu().apply(pool(16, 64, 64, 3, 1, 1, "NCHW16c"), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  int64_t most = 0;
  for (uint64_t i = 0; i < space.size(); ++i) {
    const Config c = space.at(i);
    most = std::max(most, (c.at("tile_oh") + 2) * c.at("tile_ow") * 2 + 2);
  }
  EXPECT_LE(most, 16);
  EXPECT_GE(most, 14);
}

}  // namespace
}  // namespace tuner
