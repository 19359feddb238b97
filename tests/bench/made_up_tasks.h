// Tasks of packs for the CUDA driver of ours (libfakecuda.so), with kernels that it can run: products,
// convolutions, and transpositions of one row. Their answers are computed here by the definition. For tests
// of bench_gpu and for rehearsals.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "measure_server/runner/input_data.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/reference_file.h"

namespace tuner {

inline constexpr uint64_t kSeed = 5;

// Types of a product as the workload has them: of what is multiplied, of sums and, if it is not that, of out.
struct Types {
  DType dtype = DType::kFloat32;
  bool narrow = false, tf32 = false;

  DType left() const { return dtype == DType::kInt8 ? DType::kUInt8 : dtype; }
  DType sum() const { return dtype == DType::kInt8 ? DType::kInt32 : DType::kFloat32; }
  DType out() const { return narrow ? dtype : sum(); }
  std::string words() const {
    return str("dtype=", dtype, tf32 ? " allow_tf32=1" : "",
               narrow ? str(" out_dtype=", dtype) : std::string());
  }
  // The same to the driver.
  std::string kernel() const {
    const int number = dtype == DType::kBFloat16  ? 1
                       : dtype == DType::kFloat16 ? 2
                       : dtype == DType::kInt8    ? 3
                                                  : 0;
    return str(" type=", number, " narrow=", narrow);
  }
  // As tolerance_of() has them for sums of some ten terms.
  CheckSpec check() const {
    return tf32 ? CheckSpec{0.01, 1e-5} : narrow ? CheckSpec{1e-4, 0x1p-8} : CheckSpec{};
  }
};

struct Product {
  int64_t batch = 1, m = 5, n = 7, k = 11;
  bool transpose_a = false, transpose_b = false, bias = false, relu = false;
  Types types = {};

  std::string key() const {
    return str("v1 matmul b=", batch, " m=", m, " n=", n, " k=", k, " ta=", transpose_a, " tb=", transpose_b,
               " bias=", bias, " act=", relu ? "relu" : "none", " ", types.words(), " const=");
  }
  std::string kernel() const {
    return str("matmul b=", batch, " m=", m, " n=", n, " k=", k, " ta=", transpose_a, " tb=", transpose_b,
               " bias=", bias, " relu=", relu, types.kernel());
  }
};

struct Image {
  int64_t batch = 2, channels = 4, height = 9, width = 7, filters = 6, size = 3, stride = 1, padding = 1,
          groups = 1;
  bool bias = false;
  bool last = false;  // NHWC
  Types types = {};
  bool relu = false;

  std::vector<int64_t> shape(int64_t c, int64_t h, int64_t w) const {
    return last ? std::vector{batch, h, w, c} : std::vector{batch, c, h, w};
  }
  // Where an element of such an image lies.
  int64_t at(int64_t n, int64_t channel, int64_t y, int64_t x, int64_t c, int64_t h, int64_t w) const {
    return last ? ((n * h + y) * w + x) * c + channel : ((n * c + channel) * h + y) * w + x;
  }
  int64_t rows() const { return (height + 2 * padding - size) / stride + 1; }
  int64_t columns() const { return (width + 2 * padding - size) / stride + 1; }
  std::string key(const std::string& pad = "") const {
    const std::string same = str(padding, ",", padding, ",", padding, ",", padding);
    return str("v1 conv2d n=", batch, " ic=", channels, " ih=", height, " iw=", width, " oc=", filters,
               " kh=", size, " kw=", size, " stride=", stride, ",", stride, " pad=", pad.empty() ? same : pad,
               " dil=1,1 groups=", groups, " bias=", bias, " act=", relu ? "relu " : "none ", types.words(),
               " layout=", last ? "NHWC" : "NCHW", " const=weight");
  }
  std::string kernel() const {
    return str("conv b=", batch, " c=", channels, " h=", height, " w=", width, " m=", filters, " k=", size,
               " s=", stride, " p=", padding, " g=", groups, " bias=", bias, " relu=", relu, " last=", last,
               types.kernel());
  }
};

class MadeUpTasks {
 public:
  // References are written to `folder` before they are in a task.
  explicit MadeUpTasks(std::filesystem::path folder) : dir_(std::move(folder)) {}
  // From now on references are kept like that.
  void keep_references_as(ReferenceKind kind) { kind_ = kind; }

  // A task whose operands are `args`, the output last; candidates are added by the caller.
  PackTask task(const std::string& key, const std::vector<ArgInfo>& args, const std::vector<double>& answer) {
    PackTask t{.workload_key = key, .target = "cuda -arch=sm_90", .input_seed = kSeed};
    for (size_t i = 0; i + 1 < args.size(); ++i)
      t.inputs.push_back(
          {args[i].name, static_cast<int>(i), args[i].bytes / dtype_bytes(args[i].dtype), args[i].dtype});
    const std::string path = (dir_ / "out.ref").string();
    const Status written =
        write_reference(path, answer, args.back().shape, kind_, {.stored_as = args.back().dtype});
    CHECK(written.is_ok()) << written.message();
    std::ifstream in(path, std::ios::binary);
    t.references = {{args.back().name, std::string(std::istreambuf_iterator<char>(in), {})}};
    return t;
  }
  static ArgInfo arg(const char* name, std::vector<int64_t> shape, bool output = false,
                     DType dtype = DType::kFloat32) {
    int64_t bytes = dtype_bytes(dtype);
    for (const int64_t d : shape) bytes *= d;
    return {name, output ? BufferRole::kOutput : BufferRole::kInput, dtype, std::move(shape), "", bytes};
  }
  static PackCandidate candidate(const std::vector<ArgInfo>& args, const std::string& kernel) {
    Manifest m;
    m.kind = binary_kind::kCubin;
    m.entry = "k";
    m.args = args;
    m.target = "cuda -arch=sm_90";
    m.toolchain = "fake";
    LaunchInfo launch{.kernel = "k"};
    for (size_t i = 0; i < args.size(); ++i) launch.params.push_back(static_cast<int>(i));
    m.launches = {launch};
    return {.template_name = "t",
            .config = kernel,
            .template_version = 1,
            .artifact = {m, "FAKECUBIN\nkernel k " + kernel + "\n"}};
  }

  // out[i] = x[i], which a transposition of one row is.
  PackTask copying(const std::vector<std::string>& kernels, int64_t count = 1000) {
    const std::vector<ArgInfo> args = {arg("x", {1, count}), arg("out", {count, 1}, true)};
    const std::vector<float> x = random_values(kSeed, 0, count);
    PackTask t =
        task(str("v1 transpose rows=1 columns=", count, " dtype=float32"), args, {x.begin(), x.end()});
    for (const std::string& kernel : kernels)
      t.candidates.push_back(candidate(args, str(kernel, " n=", count)));
    return t;
  }
  PackTask product(const Product& p, const std::string& kernel) {
    const auto shape = [&p](int64_t rows, int64_t columns) {
      return p.batch == 1 ? std::vector<int64_t>{rows, columns}
                          : std::vector<int64_t>{p.batch, rows, columns};
    };
    const Types& types = p.types;
    std::vector<ArgInfo> args = {
        arg("a", p.transpose_a ? shape(p.k, p.m) : shape(p.m, p.k), false, types.left()),
        arg("b", p.transpose_b ? shape(p.n, p.k) : shape(p.k, p.n), false, types.dtype)};
    if (p.bias) args.push_back(arg("bias", {p.n}, false, types.sum()));
    args.push_back(arg("out", shape(p.m, p.n), true, types.out()));
    PackTask t = task(p.key(), args, answer(p));
    t.check = types.check();
    t.candidates.push_back(candidate(args, kernel));
    return t;
  }
  PackTask convolution(const Image& c, const std::string& more = "") {
    const Types& types = c.types;
    std::vector<ArgInfo> args = {
        arg("data", c.shape(c.channels, c.height, c.width), false, types.left()),
        arg("weight", {c.filters, c.channels / c.groups, c.size, c.size}, false, types.dtype)};
    if (c.bias) args.push_back(arg("bias", {c.filters}, false, types.sum()));
    args.push_back(arg("out", c.shape(c.filters, c.rows(), c.columns()), true, types.out()));
    PackTask t = task(c.key(), args, answer(c));
    t.check = types.check();
    t.candidates.push_back(candidate(args, c.kernel() + more));
    return t;
  }
  static std::vector<double> answer(const Image& c) {
    const int64_t per_group = c.channels / c.groups, taps = c.size * c.size;
    const DType dtype = c.types.dtype;
    const std::vector<float> data =
        random_values(kSeed, 0, c.batch * c.channels * c.height * c.width, c.types.left());
    const std::vector<float> weight = random_values(kSeed, 1, c.filters * per_group * taps, dtype);
    const std::vector<float> bias = random_values(kSeed, 2, c.filters, c.types.sum());
    std::vector<double> out(static_cast<size_t>(c.batch * c.filters * c.rows() * c.columns()));
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t f = 0; f < c.filters; ++f)
        for (int64_t y = 0; y < c.rows(); ++y)
          for (int64_t x = 0; x < c.columns(); ++x) {
            double sum = c.bias ? bias[f] : 0;
            for (int64_t i = 0; i < per_group; ++i)
              for (int64_t k = 0; k < taps; ++k) {
                const int64_t row = y * c.stride + k / c.size - c.padding,
                              column = x * c.stride + k % c.size - c.padding;
                if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
                const int64_t channel = f / (c.filters / c.groups) * per_group + i;
                sum += double{data[c.at(n, channel, row, column, c.channels, c.height, c.width)]} *
                       weight[(f * per_group + i) * taps + k];
              }
            out[c.at(n, f, y, x, c.filters, c.rows(), c.columns())] = c.relu ? std::max(sum, 0.0) : sum;
          }
    return out;
  }
  static std::vector<double> answer(const Product& p) {
    const std::vector<float> a = random_values(kSeed, 0, p.batch * p.m * p.k, p.types.left());
    const std::vector<float> b = random_values(kSeed, 1, p.batch * p.k * p.n, p.types.dtype);
    const std::vector<float> bias = random_values(kSeed, 2, p.n, p.types.sum());
    std::vector<double> out;
    for (int64_t t = 0; t < p.batch; ++t)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = p.bias ? bias[j] : 0;
          for (int64_t x = 0; x < p.k; ++x)
            sum += double{a[t * p.m * p.k + (p.transpose_a ? x * p.m + i : i * p.k + x)]} *
                   b[t * p.k * p.n + (p.transpose_b ? j * p.k + x : x * p.n + j)];
          out.push_back(p.relu ? std::max(sum, 0.0) : sum);
        }
    return out;
  }

 private:
  const std::filesystem::path dir_;
  ReferenceKind kind_ = ReferenceKind::kFull;
};

}  // namespace tuner
