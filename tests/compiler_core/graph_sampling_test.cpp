// Operators that read images between their pixels, held against plain loops: grids, boxes, moved taps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::list;
using testing::Numbers;
using testing::of;
using testing::Operand;
using ::testing::Pointwise;
using testing::run;
using testing::word;

Numbers drawn(size_t count, double size, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> number(-size, size);
  Numbers numbers(count);
  for (double& x : numbers) x = static_cast<float>(number(random));
  return numbers;
}
auto near(const Numbers& expected) { return Pointwise(DoubleNear(1e-5), expected); }

// --- a grid, pixel by pixel, as the standard's reference computes it ---
struct Plane {
  const double* pixels;
  int64_t height, width;
};
struct Way {
  std::string mode, padding;
  bool aligned;
};
double mirrored(double x, double low, double high) {
  if (high == low) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;  // one border at a time
  return x;
}
double pixel(const Plane& p, const Way& way, double y, double x) {
  const auto inside = [&](double v, int64_t extent) {
    if (way.padding == "border") return std::clamp(v, 0.0, static_cast<double>(extent - 1));
    if (way.padding == "zeros") return v;
    const double edge = way.aligned ? 0 : 0.5;
    return std::trunc(mirrored(v, -edge, static_cast<double>(extent - 1) + edge));
  };
  const double row = inside(y, p.height), column = inside(x, p.width);
  if (row < 0 || column < 0 || row >= static_cast<double>(p.height) || column >= static_cast<double>(p.width))
    return 0;
  return p.pixels[static_cast<int64_t>(row) * p.width + static_cast<int64_t>(column)];
}
double cubic(double d) {
  d = std::fabs(d);
  if (d <= 1) return (1.25 * d - 2.25) * d * d + 1;
  return d < 2 ? -0.75 * (((d - 5) * d + 8) * d - 4) : 0;
}
double sample(const Plane& p, const Way& way, double gy, double gx) {
  const auto coordinate = [&](double g, int64_t extent) {
    const auto size = static_cast<double>(extent);
    double x = way.aligned ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    if (way.mode == "nearest") x = std::nearbyint(x);
    const double edge = way.aligned ? 0 : 0.5, low = -edge, high = size - 1 + edge;
    if (x >= low && x <= high) return x;
    if (way.padding == "border") return std::clamp(x, 0.0, size - 1);
    return way.padding == "zeros" ? x : mirrored(x, low, high);
  };
  const double y = coordinate(gy, p.height), x = coordinate(gx, p.width);
  if (way.mode == "nearest") return pixel(p, way, y, x);
  double sum = 0;
  for (int dy = -1; dy <= 2; ++dy)
    for (int dx = -1; dx <= 2; ++dx) {
      const double row = std::floor(y) + dy, column = std::floor(x) + dx;
      const double weight = way.mode == "cubic" ? cubic(y - row) * cubic(x - column)
                                                : std::max(0.0, 1 - std::fabs(y - row)) *
                                                      std::max(0.0, 1 - std::fabs(x - column));
      sum += weight * pixel(p, way, row, column);
    }
  return sum;
}

TEST(GraphSampling, GridsReadImagesAsTheReferenceDoes) {
  const int64_t height = 4, width = 5;
  const Numbers image = drawn(2 * 2 * 4 * 5, 1, 5), grid = drawn(2 * 3 * 6 * 2, 5.3, 6);
  for (const std::string mode : {"nearest", "linear", "cubic"})
    for (const std::string padding : {"zeros", "border", "reflection"})
      for (const bool aligned : {false, true}) {
        const Answer found =
            run(20, "GridSample", {floats({2, 2, height, width}, image), floats({2, 3, 6, 2}, grid)},
                {{"mode", word(mode)}, {"padding_mode", word(padding)}, {"align_corners", of(aligned)}});
        ASSERT_EQ(found.refusal, "");
        ASSERT_THAT(found.shape, ElementsAre(2, 2, 3, 6));
        Numbers expected;
        for (size_t n = 0; n < 2; ++n)
          for (size_t c = 0; c < 2; ++c)
            for (size_t o = 0; o < 18; ++o) {
              const double* g = &grid[(n * 18 + o) * 2];
              const Plane plane{&image[(n * 2 + c) * 20], height, width};
              expected.push_back(sample(plane, {mode, padding, aligned}, g[1], g[0]));
            }
        EXPECT_THAT(found.numbers, Pointwise(DoubleNear(2e-4), expected))
            << mode << " " << padding << aligned;
      }
}

TEST(GraphSampling, GridsHaveTheDefaultsOfOnnxAndTwoNamesForTheirModes) {
  const Operand image = floats({1, 1, 3, 3}, drawn(9, 1, 1)), grid = floats({1, 2, 2, 2}, drawn(8, 1.2, 2));
  const Answer plain = run(20, "GridSample", {image, grid});
  ASSERT_EQ(plain.refusal, "");
  EXPECT_EQ(plain.numbers,
            run(20, "GridSample", {image, grid},
                {{"mode", word("linear")}, {"padding_mode", word("zeros")}, {"align_corners", of(0)}})
                .numbers);
  EXPECT_EQ(plain.numbers, run(16, "GridSample", {image, grid}, {{"mode", word("bilinear")}}).numbers);
  EXPECT_EQ(run(16, "GridSample", {image, grid}, {{"mode", word("bicubic")}}).numbers,
            run(20, "GridSample", {image, grid}, {{"mode", word("cubic")}}).numbers);
  // Volumes: at the middle of a cube of 8 all count alike. One pixel of a row: both of its borders are it.
  const Answer cube =
      run(20, "GridSample",
          {floats({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), floats({1, 1, 1, 1, 3}, {0, 0, 0})});
  EXPECT_THAT(cube.numbers, near({4.5}));
  const Attributes reflects{{"padding_mode", word("reflection")}, {"align_corners", of(1)}};
  EXPECT_THAT(
      run(20, "GridSample", {floats({1, 1, 1, 1}, {7}), floats({1, 1, 1, 2}, {3, -5})}, reflects).numbers,
      near({7}));
  EXPECT_THAT(
      run(20, "GridSample", {floats({1, 1, 2, 2, 2}, Numbers(8, 1)), floats({1, 1, 1, 1, 3}, {0, 0, 0})},
          {{"mode", word("cubic")}})
          .refusal,
      HasSubstr("mode \"cubic\" needs images of 2 dimensions, got 3"));
}

// Coordinates that are none, or far away, read nothing beside the image.
TEST(GraphSampling, FarCoordinatesReadNothingElse) {
  const Operand image = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const Operand far = floats({1, 1, 3, 2}, {1e30, 0, -1e30, HUGE_VAL, std::nan(""), 0});
  for (const std::string mode : {"nearest", "linear", "cubic"})
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      const Answer found =
          run(20, "GridSample", {image, far}, {{"mode", word(mode)}, {"padding_mode", word(padding)}});
      EXPECT_EQ(found.refusal, "") << mode << padding;
      if (mode != "nearest" || padding == "reflection") continue;
      EXPECT_EQ(found.numbers, padding == "border" ? (Numbers{2, 3, 1}) : (Numbers{0, 0, 0})) << padding;
    }
}

TEST(GraphSampling, AffineGridsAreThetaTimesCoordinates) {
  const Numbers theta = drawn(2 * 6, 1, 9);
  for (const bool aligned : {false, true}) {
    const Answer found = run(20, "AffineGrid", {floats({2, 2, 3}, theta), list({2, 3, 4, 5})},
                             {{"align_corners", of(aligned)}});
    ASSERT_THAT(found.shape, ElementsAre(2, 4, 5, 2));
    Numbers expected;
    for (size_t n = 0; n < 2; ++n)
      for (int h = 0; h < 4; ++h)
        for (int w = 0; w < 5; ++w) {
          const double y = aligned ? -1 + 2.0 * h / 3 : (2 * h + 1) / 4.0 - 1,
                       x = aligned ? -1 + 2.0 * w / 4 : (2 * w + 1) / 5.0 - 1;
          for (size_t k = 0; k < 2; ++k) {
            const double* row = &theta[n * 6 + k * 3];
            expected.push_back(row[0] * x + row[1] * y + row[2]);
          }
        }
    EXPECT_THAT(found.numbers, near(expected));
  }
  // The identity of a volume: x, y, z of the corners.
  const Answer volume =
      run(20, "AffineGrid", {floats({1, 3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}), list({1, 1, 2, 2, 2})},
          {{"align_corners", of(1)}});
  EXPECT_THAT(volume.numbers,
              near({-1, -1, -1, 1, -1, -1, -1, 1, -1, 1, 1, -1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1, 1}));
  EXPECT_THAT(run(20, "AffineGrid", {floats({1, 2, 3}, Numbers(6, 1)), list({2, 3, 4, 5})}).refusal,
              HasSubstr("theta is"));
}

// --- boxes ---
struct Bins {
  int64_t height, width, ratio;
  double scale;
  bool half_pixel, max;
};
double roi_bin(const Plane& p, const Bins& bins, const double* box, int64_t row, int64_t column) {
  const double shift = bins.half_pixel ? 0.5 : 0;
  const double x1 = box[0] * bins.scale - shift, y1 = box[1] * bins.scale - shift;
  double w = box[2] * bins.scale - shift - x1, h = box[3] * bins.scale - shift - y1;
  if (!bins.half_pixel) w = std::max(w, 1.0), h = std::max(h, 1.0);
  const double bin_h = h / static_cast<double>(bins.height), bin_w = w / static_cast<double>(bins.width);
  const auto rows = bins.ratio > 0 ? bins.ratio : static_cast<int64_t>(std::max(1.0, std::ceil(bin_h)));
  const auto columns = bins.ratio > 0 ? bins.ratio : static_cast<int64_t>(std::max(1.0, std::ceil(bin_w)));
  double sum = 0, most = -HUGE_VAL;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double y =
          y1 +
          (static_cast<double>(row) + (static_cast<double>(r) + 0.5) / static_cast<double>(rows)) * bin_h;
      double x =
          x1 + (static_cast<double>(column) + (static_cast<double>(c) + 0.5) / static_cast<double>(columns)) *
                   bin_w;
      if (y < -1 || y > static_cast<double>(p.height) || x < -1 || x > static_cast<double>(p.width)) {
        most = std::max(most, 0.0);
        continue;
      }
      y = std::clamp(y, 0.0, static_cast<double>(p.height - 1));
      x = std::clamp(x, 0.0, static_cast<double>(p.width - 1));
      for (const int64_t dy : {0, 1})
        for (const int64_t dx : {0, 1}) {
          const int64_t at_y = static_cast<int64_t>(y) + dy, at_x = static_cast<int64_t>(x) + dx;
          const double weight =
              (1 - std::fabs(y - static_cast<double>(at_y))) * (1 - std::fabs(x - static_cast<double>(at_x)));
          const double value =
              weight * p.pixels[std::min(at_y, p.height - 1) * p.width + std::min(at_x, p.width - 1)];
          sum += value;
          most = std::max(most, value);
        }
    }
  return bins.max ? most : sum / static_cast<double>(rows * columns);
}

TEST(GraphSampling, BoxesAreAlignedAsTheReferenceDoes) {
  const Numbers image = drawn(2 * 2 * 6 * 7, 1, 21);
  const Numbers boxes = {0.3, 1.1, 5.2, 4.9, -3, -2, 9, 8, 2, 2, 2.2, 2.1, 6.5, 5.5, 7.5, 6.9};
  for (const int64_t ratio : {0, 1, 2})
    for (const bool max : {false, true})
      for (const bool half_pixel : {false, true}) {
        const Bins bins{2, 3, ratio, 1.25, half_pixel, max};
        Operand rois = floats({4, 4}, boxes);
        rois.constant = ratio == 0;
        const Operand images{{DType::kInt64, {4}}, {0, 1, 1, 0}};
        const Attributes attributes{
            {"output_height", of(2)},
            {"output_width", of(3)},
            {"sampling_ratio", of(ratio)},
            {"spatial_scale", 1.25},
            {"mode", word(max ? "max" : "avg")},
            {"coordinate_transformation_mode", word(half_pixel ? "half_pixel" : "output_half_pixel")}};
        const Answer found = run(16, "RoiAlign", {floats({2, 2, 6, 7}, image), rois, images}, attributes);
        ASSERT_EQ(found.refusal, "");
        ASSERT_THAT(found.shape, ElementsAre(4, 2, 2, 3));
        Numbers expected;
        for (size_t b = 0; b < 4; ++b)
          for (size_t c = 0; c < 2; ++c)
            for (int64_t row = 0; row < 2; ++row)
              for (int64_t column = 0; column < 3; ++column) {
                const auto n = static_cast<size_t>(images.numbers[b]);
                expected.push_back(
                    roi_bin({&image[(n * 2 + c) * 42], 6, 7}, bins, &boxes[4 * b], row, column));
              }
        EXPECT_THAT(found.numbers, near(expected)) << ratio << max << half_pixel;
      }
}

TEST(GraphSampling, RoiAlignHasTheDefaultsOfItsSets) {
  Operand rois = floats({1, 4}, {1, 1, 3, 3});
  rois.constant = true;
  const std::vector<Operand> operands{
      floats({1, 1, 4, 4}, drawn(16, 1, 30)), rois, {{DType::kInt64, {1}}, {0}}};
  const auto named = [&](const char* way) {
    return run(16, "RoiAlign", operands, {{"coordinate_transformation_mode", word(way)}}).numbers;
  };
  EXPECT_EQ(run(16, "RoiAlign", operands).numbers, named("half_pixel"));
  EXPECT_EQ(run(10, "RoiAlign", operands).numbers, named("output_half_pixel"));
  EXPECT_NE(named("half_pixel"), named("output_half_pixel"));
  // How many samples a bin has follows from the boxes.
  std::vector<Operand> unknown = operands;
  unknown[1].constant = false;
  EXPECT_THAT(run(16, "RoiAlign", unknown).refusal, HasSubstr("sampling_ratio = 0: input 1 (x) is an input"));
}

TEST(GraphSampling, MaxRoiPoolTakesTheLargestPixelOfEachBin) {
  Numbers image(16);
  for (size_t k = 0; k < 16; ++k) image[k] = static_cast<double>(k);
  image[0] = -1;
  const Operand boxes = floats({3, 5}, {0, 0, 0, 3, 3, 0, 1, 2, 2, 2, 0, 9, 9, 12, 12});
  const Answer found =
      run(7, "MaxRoiPool", {floats({1, 1, 4, 4}, image), boxes}, {{"pooled_shape", Dims{2, 2}}});
  ASSERT_EQ(found.refusal, "");
  // A box of one row: both rows of bins hold it. A box beside the image has no pixels.
  EXPECT_THAT(found.numbers, ElementsAre(5, 7, 13, 15, 9, 10, 9, 10, 0, 0, 0, 0));
  const Answer half = run(7, "MaxRoiPool", {floats({1, 1, 4, 4}, image), floats({1, 5}, {0, 0, 0, 7, 3})},
                          {{"pooled_shape", Dims{1, 1}}, {"spatial_scale", 0.5}});
  EXPECT_THAT(half.numbers, ElementsAre(11));  // 3.5 is rounded to 4, which is cut, and 1.5 to 2
  EXPECT_THAT(run(7, "MaxRoiPool", {floats({1, 1, 4, 4}, image), boxes}).refusal,
              HasSubstr("pooled_shape is no two numbers"));
}

// --- DeformConv ---
TEST(GraphSampling, MovedTapsAreReadBetweenPixels) {
  const Dims image_shape{1, 4, 4, 5}, weight_shape{2, 2, 2, 2};
  const Numbers image = drawn(80, 1, 41), weight = drawn(16, 1, 42), bias = drawn(2, 1, 45);
  const int64_t out_h = 3, out_w = 3;  // stride 1 of rows 4 + 2 - 3, 2 of columns; dilation 2 of rows
  const Numbers offset = drawn(static_cast<size_t>(2 * 4 * 2 * out_h * out_w), 1.5, 43),
                mask = drawn(static_cast<size_t>(2 * 4 * out_h * out_w), 1, 44);
  const Attributes attributes{{"group", of(2)},
                              {"offset_group", of(2)},
                              {"pads", Dims{1, 1, 0, 0}},
                              {"strides", Dims{1, 2}},
                              {"dilations", Dims{2, 1}}};
  const Answer found =
      run(19, "DeformConv",
          {floats(image_shape, image), floats(weight_shape, weight), floats({1, 16, out_h, out_w}, offset),
           floats({2}, bias), floats({1, 8, out_h, out_w}, mask)},
          attributes);
  ASSERT_EQ(found.refusal, "");
  ASSERT_THAT(found.shape, ElementsAre(1, 2, out_h, out_w));
  const auto at = [&](int64_t c, int64_t y, int64_t x) {
    return y < 0 || x < 0 || y >= 4 || x >= 5 ? 0 : image[static_cast<size_t>((c * 4 + y) * 5 + x)];
  };
  Numbers expected;
  for (int64_t oc = 0; oc < 2; ++oc)
    for (int64_t oy = 0; oy < out_h; ++oy)
      for (int64_t ox = 0; ox < out_w; ++ox) {
        double sum = bias[static_cast<size_t>(oc)];
        for (int64_t ic = 0; ic < 2; ++ic)
          for (int64_t k = 0; k < 4; ++k) {
            const int64_t c = oc * 2 + ic, g = c / 2, place = oy * out_w + ox, area = out_h * out_w;
            const auto tap = static_cast<size_t>((g * 4 + k) * 2 * area + place);
            const int64_t down = k / 2 * 2 - 1;
            const double y = static_cast<double>(oy + down) + offset[tap];
            const double x =
                static_cast<double>(ox * 2 + k % 2 - 1) + offset[tap + static_cast<size_t>(area)];
            const double fy = std::floor(y), fx = std::floor(x);
            double value = 0;
            for (const int dy : {0, 1})
              for (const int dx : {0, 1})
                value += (dy == 1 ? y - fy : 1 - y + fy) * (dx == 1 ? x - fx : 1 - x + fx) *
                         at(c, static_cast<int64_t>(fy) + dy, static_cast<int64_t>(fx) + dx);
            sum += value * mask[static_cast<size_t>((g * 4 + k) * area + place)] *
                   weight[static_cast<size_t>((oc * 2 + ic) * 4 + k)];
          }
        expected.push_back(sum);
      }
  EXPECT_THAT(found.numbers, near(expected));
  EXPECT_THAT(
      run(19, "DeformConv",
          {floats(image_shape, image), floats(weight_shape, weight), floats({1, 8, 1, 1}, Numbers(8, 1))},
          attributes)
          .refusal,
      HasSubstr("offsets are float32[1, 8, 1, 1], expected float32[1, 16, 3, 3]"));
}

// Without offsets it is a convolution.
TEST(GraphSampling, UnmovedTapsAreAConvolution) {
  const Operand image = floats({1, 2, 4, 4}, drawn(32, 1, 50)),
                weight = floats({3, 2, 2, 2}, drawn(24, 1, 51));
  const Operand still = floats({1, 8, 3, 3}, Numbers(72, 0));
  EXPECT_THAT(run(19, "DeformConv", {image, weight, still}).numbers,
              near(run(19, "Conv", {image, weight}).numbers));
}

}  // namespace
}  // namespace tuner::graph
