#include "tests/bench/cpu/shapes.h"

#include <optional>
#include <span>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

struct Layer {
  int64_t in_channels, size, out_channels, kernel, stride = 1;
  int uses = 1;
};

// ResNet-50 v1.5 (strides stand on the 3x3): 53 convolutions.
constexpr Layer kResnet50[] = {
    {3, 224, 64, 7, 2, 1},     {64, 56, 64, 1, 1, 1},    {256, 56, 64, 1, 1, 2},   {64, 56, 64, 3, 1, 3},
    {64, 56, 256, 1, 1, 4},    {256, 56, 128, 1, 1, 1},  {128, 56, 128, 3, 2, 1},  {128, 28, 512, 1, 1, 4},
    {256, 56, 512, 1, 2, 1},   {512, 28, 128, 1, 1, 3},  {128, 28, 128, 3, 1, 3},  {512, 28, 256, 1, 1, 1},
    {256, 28, 256, 3, 2, 1},   {256, 14, 1024, 1, 1, 6}, {512, 28, 1024, 1, 2, 1}, {1024, 14, 256, 1, 1, 5},
    {256, 14, 256, 3, 1, 5},   {1024, 14, 512, 1, 1, 1}, {512, 14, 512, 3, 2, 1},  {512, 7, 2048, 1, 1, 3},
    {1024, 14, 2048, 1, 2, 1}, {2048, 7, 512, 1, 1, 2},  {512, 7, 512, 3, 1, 2}};
// VGG-16, distinct ones.
constexpr Layer kVgg16[] = {{3, 224, 64, 3, 1, 1},    {64, 224, 64, 3, 1, 1},  {64, 112, 128, 3, 1, 1},
                            {128, 112, 128, 3, 1, 1}, {128, 56, 256, 3, 1, 1}, {256, 56, 256, 3, 1, 2},
                            {256, 28, 512, 3, 1, 1},  {512, 28, 512, 3, 1, 2}, {512, 14, 512, 3, 1, 3}};
// MobileNetV2, distinct ones; of the depthwise ones in_channels counts.
constexpr Layer kMobilenetDepthwise[] = {
    {32, 112, 32, 3, 1, 1},  {96, 112, 96, 3, 2, 1},  {144, 56, 144, 3, 1, 1}, {144, 56, 144, 3, 2, 1},
    {192, 28, 192, 3, 1, 2}, {192, 28, 192, 3, 2, 1}, {384, 14, 384, 3, 1, 4}, {576, 14, 576, 3, 1, 2},
    {576, 14, 576, 3, 2, 1}, {960, 7, 960, 3, 1, 3}};
constexpr Layer kMobilenet1x1[] = {
    {32, 112, 16, 1, 1, 1}, {16, 112, 96, 1, 1, 1}, {96, 56, 24, 1, 1, 1},  {24, 56, 144, 1, 1, 2},
    {144, 56, 24, 1, 1, 1}, {144, 28, 32, 1, 1, 1}, {32, 28, 192, 1, 1, 3}, {192, 28, 32, 1, 1, 2},
    {192, 14, 64, 1, 1, 1}, {64, 14, 384, 1, 1, 4}, {384, 14, 64, 1, 1, 3}, {384, 14, 96, 1, 1, 1},
    {96, 14, 576, 1, 1, 3}, {576, 14, 96, 1, 1, 2}, {576, 7, 160, 1, 1, 1}, {160, 7, 960, 1, 1, 3},
    {960, 7, 160, 1, 1, 2}, {960, 7, 320, 1, 1, 1}, {320, 7, 1280, 1, 1, 1}};

// Layers whose weights are large: 1 to 40 MB of them, used once a call. MB stand behind each.
constexpr Layer kLargeWeights[] = {{256, 14, 256, 3},       // 2.4
                                   {512, 7, 512, 3},        // 9.4
                                   {512, 14, 512, 3, 2},    // 9.4
                                   {1024, 7, 1024, 3},      // 37.7
                                   {1024, 14, 2048, 1, 2},  // 8.4
                                   {2048, 7, 512, 1},       // 4.2
                                   {512, 7, 2048, 1}};      // 4.2
// Depthwise with large windows: ConvNeXt-T (7x7); MNASNet and EfficientNet (5x5); 9x9 and 11x11 as in
// networks of large kernels. in_channels counts.
constexpr Layer kDepthwiseLarge[] = {
    {96, 56, 96, 7},    {192, 28, 192, 7},    {384, 14, 384, 7}, {768, 7, 768, 7},     {72, 56, 72, 5, 2},
    {120, 28, 120, 5},  {240, 28, 240, 5, 2}, {480, 14, 480, 5}, {672, 14, 672, 5, 2}, {960, 7, 960, 5},
    {64, 56, 64, 9, 1}, {48, 56, 48, 11, 1},  {96, 57, 96, 7, 2}};
// As networks from TensorFlow have them: first layers, 3x3, 1x1 and depthwise of EfficientNet-Lite and
// ResNet.
constexpr Layer kNhwc[] = {{3, 224, 32, 3, 2},  {32, 112, 16, 1},  {24, 56, 144, 1},  {144, 28, 40, 1},
                           {240, 14, 80, 1},    {112, 14, 672, 1}, {1152, 7, 320, 1}, {64, 56, 64, 3},
                           {128, 28, 128, 3},   {256, 14, 256, 3}, {512, 7, 512, 3},  {96, 35, 96, 3, 2},
                           {256, 56, 512, 1, 2}};
constexpr Layer kNhwcDepthwise[] = {{32, 112, 32, 3},     {96, 112, 96, 3, 2}, {144, 56, 144, 3},
                                    {240, 28, 240, 5},    {480, 14, 480, 3},   {672, 14, 672, 5},
                                    {672, 14, 672, 5, 2}, {1152, 7, 1152, 5}};
// Stable Diffusion's U-Net (latents of 64 x 64), its first and last layer, and the widest layers of its
// decoder.
constexpr Layer kDiffusion[] = {{4, 64, 320, 3},      {320, 64, 320, 3},   {960, 64, 320, 3},
                                {320, 64, 320, 3, 2}, {640, 32, 640, 3},   {1280, 16, 1280, 3},
                                {1280, 8, 1280, 3},   {512, 64, 512, 3},   {320, 64, 320, 1},
                                {640, 32, 640, 1},    {1280, 16, 1280, 1}, {320, 64, 4, 3}};
// Layers of no other set, over all operators: defaults are judged by them (fit_defaults), so nothing may be
// fitted to them.
constexpr Layer kUnseenConvolutions[] = {{80, 40, 80, 3},      {48, 60, 96, 3, 2}, {160, 20, 160, 3},
                                         {224, 48, 224, 3},    {40, 28, 240, 1},   {768, 14, 192, 1},
                                         {128, 40, 256, 1, 2}, {3, 160, 32, 7, 2}, {32, 32, 64, 5}};
constexpr Layer kUnseenBlocked[] = {
    {80, 40, 80, 3}, {160, 20, 320, 3, 2}, {96, 28, 384, 1}, {384, 14, 160, 1}};
constexpr Layer kUnseenNhwc[] = {{48, 48, 48, 3}, {192, 24, 64, 1}, {64, 24, 384, 1}, {3, 192, 24, 3, 2}};
constexpr Layer kUnseenDepthwise[] = {
    {88, 40, 88, 3}, {320, 20, 320, 3, 2}, {200, 16, 200, 5}, {128, 32, 128, 7}};
struct Product {
  int64_t m, n, k;
};
constexpr Product kUnseenProducts[] = {{100, 200, 300}, {384, 1024, 1024}, {1, 2048, 512}, {3, 4096, 1024},
                                       {196, 640, 640}, {1000, 1000, 500}, {16, 3072, 768}};
constexpr Product kLargeProducts[] = {{128, 768, 3072},  // 9.4
                                      {64, 768, 3072},   // 9.4
                                      {128, 3072, 768},  // 9.4
                                      {64, 1024, 4096},  // 16.8
                                      {32, 2048, 4096},  // 33.6
                                      {16, 1024, 1024},  // 4.2
                                      {8, 512, 512}};    // 1.0

enum class Images : uint8_t { kNchw, kNhwc, kBlocked };
constexpr const char* kImagesNames[] = {"NCHW", "NHWC", "blocked"};

// The widest block these channels divide into.
std::string layout_of(int64_t channels, Images images) {
  if (images != Images::kBlocked) return kImagesNames[static_cast<size_t>(images)];
  for (const int64_t block : {16, 8, 4})
    if (channels % block == 0) return str("NCHW", block, "c");
  return "NCHW";
}

class ShapeList {
 public:
  // Of bfloat16 out is bfloat16, of int8 uint8, so that layers follow each other; there saturation is the
  // ReLU.
  void convolutions(const std::string& set, std::span<const Layer> layers, Images images, bool depthwise,
                    DType dtype = DType::kFloat32) {
    for (const Layer& l : layers) {
      Conv2dWorkload w;
      w.in_channels = l.in_channels;
      w.in_height = w.in_width = l.size;
      w.out_channels = l.out_channels;
      w.kernel_height = w.kernel_width = l.kernel;
      w.stride = {l.stride, l.stride};
      const int64_t pad = l.kernel / 2;
      w.padding = {pad, pad, pad, pad};
      w.groups = depthwise ? l.in_channels : 1;
      w.bias = true;
      w.activation = dtype == DType::kInt8 ? Activation::kNone : Activation::kRelu;
      w.dtype = dtype;
      if (dtype != DType::kFloat32) w.narrow_out = dtype == DType::kInt8 ? DType::kUInt8 : DType::kBFloat16;
      w.layout = layout_of(l.in_channels, images);
      w.out_layout = layout_of(l.out_channels, images);
      w.constant = {"weight"};
      const std::string kind = str(depthwise ? "dw" : "", l.kernel, "x", l.kernel,
                                   l.stride > 1 ? str("s", l.stride) : std::string());
      shapes.push_back({set, str(kind, "_", l.in_channels, "_", l.out_channels, "_", l.size),
                        str(depthwise ? "depthwise " : "conv ", l.kernel, "x", l.kernel, " s", l.stride, " ",
                            kImagesNames[static_cast<size_t>(images)], of_type(dtype)),
                        w, l.uses});
    }
  }
  void matmul(const std::string& set, const std::string& name, const std::string& group, int64_t m, int64_t n,
              int64_t k, int64_t batch = 1, DType dtype = DType::kFloat32,
              std::optional<DType> narrow_out = {}) {
    MatmulWorkload w;
    w.narrow_out = narrow_out;
    w.batch = batch;
    w.m = m;
    w.n = n;
    w.k = k;
    w.dtype = dtype;
    if (batch == 1) w.constant = {"b"};
    shapes.push_back({set, name, group, w});
  }
  // Projections of language models, weights of 4 bits with a scale for each group.
  void matmul_int4(const std::string& set, int64_t m, int64_t n, int64_t k, int64_t group, bool zero_points) {
    shapes.push_back(
        {set, str("fc_", m, "x", n, "x", k, "_g", group, zero_points ? "_z" : ""),
         str("matmul int4, ", m, m == 1 ? " row" : " rows"),
         MatmulNBitsWorkload{.m = m,
                             .n = n,
                             .k = k,
                             .group = group,
                             .zero_points = zero_points,
                             .constant = zero_points ? std::vector<std::string>{"b", "scales", "zero_points"}
                                                     : std::vector<std::string>{"b", "scales"}}});
  }
  template <class W>
  void rows(const std::string& name, W w, int64_t rows, int64_t columns, const std::string& set = "rows") {
    w.rows = rows;
    w.columns = columns;
    shapes.push_back({set, str(name, "_", rows, "x", columns), str("rows ", name), w});
  }
  void pool(const std::string& name, Pooling pooling, int64_t channels, int64_t size, int64_t kernel,
            int64_t stride) {
    for (const Images images : {Images::kNchw, Images::kNhwc, Images::kBlocked}) {
      Pool2dWorkload w;
      w.channels = channels;
      w.in_height = w.in_width = size;
      w.kernel_height = w.kernel_width = kernel;
      w.stride = {stride, stride};
      const int64_t pad = kernel == 3 ? 1 : 0;
      w.padding = {pad, pad, pad, pad};
      w.pooling = pooling;
      w.layout = layout_of(channels, images);
      const char* kind = kImagesNames[static_cast<size_t>(images)];
      shapes.push_back({images == Images::kNhwc ? "nhwc" : "pooling",
                        str(name, "_", channels, "_", size, "_", kind), str("pooling ", kind), w});
    }
  }
  static std::string of_type(DType dtype) { return dtype == DType::kFloat32 ? "" : str(" ", dtype); }
  std::vector<BenchShape> shapes;
};

std::vector<BenchShape> make_shapes() {
  ShapeList list;
  list.convolutions("resnet50", kResnet50, Images::kNchw, false);
  list.convolutions("resnet50_blocked", kResnet50, Images::kBlocked, false);
  list.convolutions("vgg16", kVgg16, Images::kNchw, false);
  list.convolutions("vgg16_blocked", kVgg16, Images::kBlocked, false);
  list.convolutions("mobilenetv2_dw", kMobilenetDepthwise, Images::kNchw, true);
  list.convolutions("mobilenetv2_dw_blocked", kMobilenetDepthwise, Images::kBlocked, true);
  list.convolutions("mobilenetv2_1x1", kMobilenet1x1, Images::kNchw, false);
  list.convolutions("mobilenetv2_1x1_blocked", kMobilenet1x1, Images::kBlocked, false);
  list.convolutions("depthwise_large", kDepthwiseLarge, Images::kNchw, true);
  list.convolutions("depthwise_large_nhwc", kDepthwiseLarge, Images::kNhwc, true);
  list.convolutions("diffusion", kDiffusion, Images::kNchw, false);
  list.convolutions("diffusion_blocked", kDiffusion, Images::kBlocked, false);
  list.convolutions("nhwc", kNhwc, Images::kNhwc, false);
  list.convolutions("nhwc", kNhwcDepthwise, Images::kNhwc, true);
  for (const DType dtype : {DType::kBFloat16, DType::kInt8}) {
    const std::string type = dtype == DType::kInt8 ? "_int8" : "_bf16";
    list.convolutions("resnet50" + type, kResnet50, Images::kNchw, false, dtype);
    list.convolutions("resnet50_blocked" + type, kResnet50, Images::kBlocked, false, dtype);
    list.convolutions("resnet50_nhwc" + type, kResnet50, Images::kNhwc, false, dtype);
    list.convolutions("mobilenetv2_1x1" + type, kMobilenet1x1, Images::kNchw, false, dtype);
    list.convolutions("mobilenetv2_1x1_blocked" + type, kMobilenet1x1, Images::kBlocked, false, dtype);
    list.convolutions("mobilenetv2_dw" + type, kMobilenetDepthwise, Images::kNchw, true, dtype);
    list.convolutions("mobilenetv2_dw_blocked" + type, kMobilenetDepthwise, Images::kBlocked, true, dtype);
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8}) {
    const std::string set = dtype == DType::kFloat32    ? ""
                            : dtype == DType::kBFloat16 ? "_bf16"
                            : dtype == DType::kFloat16  ? "_f16"
                                                        : "_int8";
    const std::string group = ShapeList::of_type(dtype);
    for (const int64_t n : {64, 128, 256, 512, 1024, 2048})
      list.matmul("cubes" + set, str(n, "^3"), (n < 256 ? "matmul small" : "matmul large") + group, n, n, n,
                  1, dtype);
    // BERT-base, 128 tokens: projections, the two halves of the feed-forward part, attention of 12 heads.
    list.matmul("bert" + set, "qkv_128x768x768", "matmul large" + group, 128, 768, 768, 1, dtype);
    list.matmul("bert" + set, "ffn1_128x3072x768", "matmul large" + group, 128, 3072, 768, 1, dtype);
    list.matmul("bert" + set, "ffn2_128x768x3072", "matmul large" + group, 128, 768, 3072, 1, dtype);
    list.matmul("bert" + set, "scores_12x128x128x64", "matmul batched" + group, 128, 128, 64, 12, dtype);
    list.matmul("bert" + set, "context_12x128x64x128", "matmul batched" + group, 128, 64, 128, 12, dtype);
  }
  // Scaled into uint8, as they stand in a quantised network.
  for (const int64_t n : {256, 512, 1024})
    list.matmul("cubes_uint8", str(n, "^3"), "matmul requantised", n, n, n, 1, DType::kInt8, DType::kUInt8);
  list.matmul("bert_uint8", "qkv_128x768x768", "matmul requantised", 128, 768, 768, 1, DType::kInt8,
              DType::kUInt8);
  list.matmul("bert_uint8", "ffn1_128x3072x768", "matmul requantised", 128, 3072, 768, 1, DType::kInt8,
              DType::kUInt8);
  list.matmul("bert_uint8", "ffn2_128x768x3072", "matmul requantised", 128, 768, 3072, 1, DType::kInt8,
              DType::kUInt8);
  list.matmul("skinny", "fc_1x4096x4096", "matmul skinny", 1, 4096, 4096);
  list.matmul("skinny", "fc_8x4096x4096", "matmul skinny", 8, 4096, 4096);
  list.matmul("skinny", "fc_1x1000x2048", "matmul skinny", 1, 1000, 2048);
  list.matmul("skinny", "fc_1x128x784", "matmul skinny", 1, 128, 784);
  list.matmul("skinny", "few_rows_64x768x2304", "matmul few rows", 64, 768, 2304);
  list.matmul("skinny", "few_rows_64x768x3072", "matmul few rows", 64, 768, 3072);
  list.matmul("skinny", "ragged_49x512x2048", "matmul ragged", 49, 512, 2048);
  list.matmul("skinny", "ragged_197x770x769", "matmul ragged", 197, 770, 769);

  for (const int64_t m : {1, 4, 8})
    for (const int64_t group : {32, 128}) {
      list.matmul_int4("skinny_int4", m, 4096, 4096, group, /*zero_points=*/false);
      list.matmul_int4("skinny_int4", m, 11008, 4096, group, /*zero_points=*/false);
      list.matmul_int4("skinny_int4", m, 5632, 2048, group, /*zero_points=*/true);
    }
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const int64_t m : {1, 4, 8})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{4096, 4096}, {11008, 4096}, {5632, 2048}})
        list.matmul("skinny_small_types",
                    str("fc_", m, "x", n, "x", k, dtype == DType::kInt8 ? "_int8" : "_bf16"),
                    str("matmul skinny ", dtype), m, n, k, 1, dtype);

  list.convolutions("large_weights", kLargeWeights, Images::kNchw, false);
  for (const auto& [m, n, k] : kLargeProducts)
    list.matmul("large_weights", str("matmul_", m, "x", n, "x", k), "matmul large weights", m, n, k);

  list.convolutions("unseen", kUnseenConvolutions, Images::kNchw, false);
  list.convolutions("unseen", kUnseenDepthwise, Images::kNchw, true);
  list.convolutions("unseen_blocked", kUnseenBlocked, Images::kBlocked, false);
  list.convolutions("unseen_blocked", kUnseenDepthwise, Images::kBlocked, true);
  list.convolutions("unseen_nhwc", kUnseenNhwc, Images::kNhwc, false);
  list.convolutions("unseen_nhwc", kUnseenDepthwise, Images::kNhwc, true);
  for (const auto& [m, n, k] : kUnseenProducts)
    list.matmul("unseen", str("matmul_", m, "x", n, "x", k), "matmul unseen", m, n, k);
  list.matmul("unseen", "matmul_16x50x50x64", "matmul unseen", 50, 50, 64, 16);
  list.rows("softmax", SoftmaxWorkload{}, 384, 384, "unseen");
  list.rows("layer_norm", LayerNormWorkload{}, 197, 640, "unseen");
  list.rows("mean", ReduceWorkload{.reduction = RowReduction::kMean}, 1000, 300, "unseen");

  list.rows("softmax", SoftmaxWorkload{}, 1536, 128);
  list.rows("softmax", SoftmaxWorkload{}, 1, 1000);
  list.rows("softmax", SoftmaxWorkload{}, 128, 30522);
  list.rows("layer_norm", LayerNormWorkload{}, 128, 768);
  list.rows("layer_norm", LayerNormWorkload{}, 4096, 1024);
  ElementwiseWorkload bias_relu{.bias = true, .activation = Activation::kRelu}, residual_relu = bias_relu;
  residual_relu.bias = false;
  residual_relu.residual = true;
  list.rows("bias_relu", bias_relu, 128, 3072);
  list.rows("bias_relu", bias_relu, 8192, 3072);
  list.rows("add_relu", residual_relu, 256, 3136);
  ReduceWorkload mean;
  mean.reduction = RowReduction::kMean;
  list.rows("mean", mean, 2048, 49);
  list.rows("mean", mean, 4096, 1024);
  list.rows("transpose", TransposeWorkload{}, 1024, 1024);
  list.pool("max3x3s2", Pooling::kMax, 64, 112, 3, 2);    // ResNet-50
  list.pool("max2x2s2", Pooling::kMax, 64, 224, 2, 2);    // VGG-16
  list.pool("global", Pooling::kAverage, 2048, 7, 7, 1);  // ResNet-50
  list.pool("average3x3", Pooling::kAverage, 256, 28, 3, 1);
  return std::move(list.shapes);
}

}  // namespace

const std::vector<BenchShape>& bench_shapes() {
  static const std::vector<BenchShape> shapes = make_shapes();
  return shapes;
}

std::string bench_set_names() {
  std::string names;
  std::string last;
  for (const BenchShape& s : bench_shapes()) {
    if (s.set != last) names += str(last.empty() ? "" : ", ", s.set);
    last = s.set;
  }
  return names;
}

}  // namespace tuner
