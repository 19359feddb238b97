// Tensor maps: what is refused, by name; and the same decided by a second mind, which encodes and copies
// boxes by the manuals' words.
#include <gtest/gtest.h>

#include <random>

#include "compiler_core/base/tensor_map.h"
#include "compiler_core/host_cuda/device/software_tensor_map.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using Map = TensorMap;

// 16-bit numbers [300, 200], boxes of 64 x 128.
Map tiled() {
  return {.dtype = DType::kBFloat16,
          .extents = {200, 300},
          .strides = {400},
          .box = {64, 128},
          .swizzle_bytes = 128,
          .l2_bytes = 256};
}
// float32, NHWC [2, 7, 6, 16], 24 pixels of 8 channels.
Map pixels() {
  Map m{.kind = Map::Kind::kIm2col,
        .dtype = DType::kFloat32,
        .extents = {16, 6, 7, 2},
        .strides = {64, 384, 2688}};
  m.lower = {-1, -1}, m.upper = {-1, -1}, m.channels = 8, m.pixels = 24, m.swizzle_bytes = 32;
  return m;
}

std::string refusal(Map map, const std::function<void(Map&)>& change) {
  change(map);
  return check_tensor_map(map).message();
}

TEST(TensorMap, RefusesWhatTheManualDoesNotAllowByName) {
  EXPECT_TRUE(check_tensor_map(tiled()).is_ok()) << check_tensor_map(tiled()).message();
  EXPECT_TRUE(check_tensor_map(pixels()).is_ok()) << check_tensor_map(pixels()).message();
  const std::pair<std::function<void(Map&)>, const char*> kTiled[] = {
      {[](Map& m) { m.extents.clear(); }, "it has 0 dimensions, expected 1..5"},
      {[](Map& m) { m.extents = {1, 1, 1, 1, 1, 1}; }, "it has 6 dimensions, expected 1..5"},
      {[](Map& m) { m.strides.clear(); }, "strides has 0 numbers, expected 1"},
      {[](Map& m) { m.extents[1] = 0; }, "extents[1] is 0, expected 1..4294967296"},
      {[](Map& m) { m.strides[0] = 404; }, "strides[0] is 404, expected a multiple of 16"},
      {[](Map& m) { m.strides[0] = int64_t{1} << 40; },
       "strides[0] is 1099511627776, expected 0..1099511627775"},
      {[](Map& m) { m.box[1] = 257; }, "box[1] is 257, expected 1..256"},
      {[](Map& m) { m.box.pop_back(); }, "box has 1 numbers, expected 2"},
      {[](Map& m) { m.box[0] = 60; }, "the inner side of a box has 120 bytes, expected a multiple of 16"},
      {[](Map& m) { m.box[0] = 72; },
       "the inner side of a box has 144 bytes, expected at most the swizzle of 128"},
      {[](Map& m) { m.swizzle_bytes = 16; }, "swizzle is 16, expected 0, 32, 64 or 128"},
      {[](Map& m) {
         m.steps = {1, 9};
       },
       "steps[1] is 9, expected 1..8"},
      {[](Map& m) { m.l2_bytes = 512; }, "l2_bytes is 512, expected 0, 64, 128 or 256"},
      {[](Map& m) { m.dtype = DType::kInt32, m.box[0] = 32, m.fills_nan = true; },
       "fills with NaN, which int32 does not have"},
      {[](Map& m) { m.dtype = DType::kBool; }, "bool is no type of the copy engine"},
  };
  for (const auto& [change, message] : kTiled)
    EXPECT_EQ(refusal(tiled(), change), str("tensor map: ", message));
  const std::pair<std::function<void(Map&)>, const char*> kPixels[] = {
      {[](Map& m) {
         m.extents = {16, 6}, m.strides = {64};
       },
       "it has 2 dimensions, expected 3..5"},
      {[](Map& m) { m.lower = {-1}; }, "lower has 1 numbers, expected 2"},
      {[](Map& m) { m.upper[1] = 128; }, "upper[1] is 128, expected -128..127"},
      {[](Map& m) { m.lower[0] = 3, m.upper[0] = -4; },
       "lower[0] 3 and upper[0] -4 leave nothing of 6 elements"},
      {[](Map& m) { m.channels = 257; }, "channels is 257, expected 1..256"},
      {[](Map& m) { m.pixels = 0; }, "pixels is 0, expected 1..1024"},
  };
  for (const auto& [change, message] : kPixels)
    EXPECT_EQ(refusal(pixels(), change), str("tensor map: ", message));
}

int software_code(const Map& m, const void* address) {
  alignas(64) unsigned char out[128];
  const std::vector<uint64_t> extents(m.extents.begin(), m.extents.end()),
      strides(m.strides.begin(), m.strides.end());
  const std::vector<uint32_t> box(m.box.begin(), m.box.end()), steps(m.steps.begin(), m.steps.end());
  const std::vector<int> lower(m.lower.begin(), m.lower.end()), upper(m.upper.begin(), m.upper.end());
  constexpr int kTypes[] = {-1, 0, 0, 1, 1, 3, 2, 5, 4, 6, 9, 7, 8};  // CUtensorMapDataType
  const int type = kTypes[static_cast<int>(m.dtype)], fill = m.fills_nan ? 1 : 0;
  const int swizzle = m.swizzle_bytes == 0     ? 0
                      : m.swizzle_bytes == 32  ? 1
                      : m.swizzle_bytes == 64  ? 2
                      : m.swizzle_bytes == 128 ? 3
                                               : 9;
  const int l2 = m.l2_bytes == 0     ? 0
                 : m.l2_bytes == 64  ? 1
                 : m.l2_bytes == 128 ? 2
                 : m.l2_bytes == 256 ? 3
                                     : 9;
  const char* why = "";
  const auto rank = static_cast<uint32_t>(m.extents.size());
  if (m.kind == Map::Kind::kTiled)
    return software_map::encode_tiled(out, type, rank, address, extents.data(), strides.data(), box.data(),
                                      steps.data(), 0, swizzle, l2, fill, &why);
  return software_map::encode_im2col(out, type, rank, address, extents.data(), strides.data(), lower.data(),
                                     upper.data(), static_cast<uint32_t>(m.channels),
                                     static_cast<uint32_t>(m.pixels), steps.data(), 0, swizzle, l2, fill,
                                     &why);
}

// Numbers around their limits, one or two at a time: both minds allow and refuse the same maps.
TEST(TensorMap, TwoMindsAllowTheSameMaps) {
  const RandomSeed seed(11);
  std::mt19937_64 rng(seed);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[rng() % values.size()];
  };
  int allowed = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Map m = rng() % 2 == 0 ? tiled() : pixels();
    m.steps.assign(m.rank(), 1);
    for (uint64_t changes = rng() % 3; changes-- > 0;) {
      const size_t d = rng() % m.rank(), stride = rng() % m.strides.size();
      switch (rng() % 9) {
        case 0:
          m.extents[d] = one_of({0, 1, 2, 64, int64_t{1} << 32, (int64_t{1} << 32) + 1});
          break;
        case 1:
          m.strides[stride] = one_of({0, 8, 16, 100, 112, (int64_t{1} << 40) - 16, int64_t{1} << 40});
          break;
        case 2:
          if (!m.box.empty()) m.box[d % m.box.size()] = one_of({0, 1, 4, 8, 16, 32, 64, 128, 256, 257});
          break;
        case 3:
          m.steps[d] = one_of({0, 1, 2, 8, 9});
          break;
        case 4:
          m.swizzle_bytes = one_of({0, 32, 64, 128, 256});
          break;
        case 5:
          m.l2_bytes = one_of({0, 64, 128, 256, 32});
          break;
        case 6:
          m.fills_nan = true;
          m.dtype = rng() % 2 == 0 ? DType::kInt32 : DType::kFloat16;
          break;
        case 7:
          m.channels = one_of({0, 1, 2, 4, 8, 256, 257});
          m.pixels = one_of({0, 1, 1024, 1025});
          break;
        case 8:
          if (!m.lower.empty())
            m.lower[d % 2] = one_of({-129, -128, 0, 5, 6, 127, 128}),
                        m.upper[d % 2] = one_of({-128, -1, 0, 127, 128});
          break;
      }
    }
    const Status ours = check_tensor_map(m);
    const bool theirs = software_code(m, nullptr) == software_map::kSuccess;
    ASSERT_EQ(ours.is_ok(), theirs) << to_text(m) << ": " << ours.message();
    (theirs ? allowed : refused)++;
  }
  EXPECT_GT(allowed, 3000);
  EXPECT_GT(refused, 3000);
}

// A box of 16-byte units, each holding its own number: where swizzled_byte() says, and nowhere else.
TEST(TensorMap, UnitsLieWhereTheEngineLeavesThem) {
  for (const int64_t swizzle : {0, 32, 64, 128}) {
    const int64_t row = swizzle == 0 ? 160 : swizzle, rows = 24;
    Map m{.dtype = DType::kInt32,
          .extents = {row / 4, rows},
          .strides = {row},
          .box = {row / 4, rows},
          .swizzle_bytes = swizzle};
    ASSERT_TRUE(check_tensor_map(m).is_ok()) << check_tensor_map(m).message();
    alignas(16) static int32_t array[40 * 24];
    for (int i = 0; i < row / 4 * rows; ++i) array[i] = i;
    software_map::Map map{};
    alignas(64) unsigned char out[128];
    const std::vector<uint64_t> extents = {static_cast<uint64_t>(row / 4), 24},
                                strides = {static_cast<uint64_t>(row)};
    const uint32_t box[] = {static_cast<uint32_t>(row / 4), 24}, steps[] = {1, 1};
    const char* why = "";
    ASSERT_EQ(software_map::encode_tiled(out, 3, 2, array, extents.data(), strides.data(), box, steps, 0,
                                         swizzle == 0    ? 0
                                         : swizzle == 32 ? 1
                                         : swizzle == 64 ? 2
                                                         : 3,
                                         0, 0, &why),
              0)
        << why;
    memcpy(&map, out, sizeof map);
    std::vector<unsigned char> shared(8192, 0xff);
    const int at[] = {0, 0};
    ASSERT_TRUE(software_map::copy_box(map, at, shared.data(), 2048));
    for (int64_t byte = 0; byte < row * rows; byte += 4) {
      int32_t found = 0;
      memcpy(&found, shared.data() + 2048 + swizzled_byte(byte, swizzle), 4);
      ASSERT_EQ(found, byte / 4) << "swizzle " << swizzle;
    }
  }
}

TEST(TensorMap, TextAndSizes) {
  EXPECT_EQ(to_text(tiled()), "bfloat16 [200, 300], box [64, 128], swizzle 128");
  EXPECT_EQ(to_text(pixels()),
            "float32 [16, 6, 7, 2], 24 pixels of 8 channels between [-1, -1] and [-1, -1], swizzle 32");
  EXPECT_EQ(tiled().box_bytes(), 64 * 128 * 2);
  EXPECT_EQ(pixels().box_bytes(), 24 * 8 * 4);
  EXPECT_EQ(tiled().array_bytes(), 300 * 200 * 2);
  EXPECT_TRUE(check_tensor_map(tiled(), 120000).is_ok());
  EXPECT_EQ(check_tensor_map(tiled(), 119999).message(),
            "tensor map: it reaches over 120000 bytes of an array of 119999");
  Map every_other = tiled();
  every_other.steps = {1, 2};
  EXPECT_EQ(every_other.box_bytes(), 64 * 64 * 2);
  EXPECT_EQ(box_alignment(tiled()), 1024);
}

}  // namespace
}  // namespace tuner
