#include "tests/measure_server/fake_cuda/fake_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/runtime/cuda_driver_api.h"

namespace fake_cuda {

using tuner::cuda::DevicePtr;
using tuner::cuda::kInvalidValue;
using tuner::cuda::kSuccess;

using tuner::DType;
using Numbers = std::vector<double>;

namespace {

// Types of a product: `type` of the kernel counts them.
struct Types {
  DType left, right, sum, narrow;
};
Types types_of(const Kernel& kernel) {
  static constexpr Types kTypes[] = {{DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32},
                                     {DType::kBFloat16, DType::kBFloat16, DType::kFloat32, DType::kBFloat16},
                                     {DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat16},
                                     {DType::kUInt8, DType::kInt8, DType::kInt32, DType::kInt32}};
  return kTypes[kernel.type];
}

Numbers load(const void* at, int64_t count, DType type) {
  return at != nullptr ? tuner::load_elements(at, count, type) : Numbers(static_cast<size_t>(count));
}

// Stores sums, after relu where it is asked for, rounded to the type of out.
void store(const Kernel& kernel, Numbers sums, void* out) {
  const Types types = types_of(kernel);
  const DType to = kernel.narrow != 0 ? types.narrow : types.sum;
  for (double& x : sums) {
    if (kernel.relu != 0 && x < 0) x = 0;
    if (to == DType::kBFloat16) x = tuner::rounded_to_bfloat16(static_cast<float>(x));
    if (to == DType::kFloat16) x = tuner::rounded_to_float16(static_cast<float>(x));
  }
  tuner::store_elements(sums.data(), static_cast<int64_t>(sums.size()), to, out);
}

}  // namespace

void multiply(const Kernel& kernel, const void* a_at, const void* b_at, const void* bias_at, void* out) {
  const auto [batch, m, n, k] = std::array{kernel.b, kernel.m, kernel.n, kernel.k};
  const Types types = types_of(kernel);
  const Numbers left = load(a_at, batch * m * k, types.left), right = load(b_at, batch * k * n, types.right),
                bias = load(bias_at, n, types.sum);
  Numbers sums;
  for (int64_t t = 0; t < batch; ++t)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double *a = left.data() + t * m * k, *b = right.data() + t * k * n;
        double sum = bias[static_cast<size_t>(j)];
        for (int64_t x = 0; x < k; ++x)
          sum += (kernel.ta ? a[x * m + i] : a[i * k + x]) * (kernel.tb ? b[j * k + x] : b[x * n + j]);
        sums.push_back(sum);
      }
  store(kernel, std::move(sums), out);
}

namespace {

// Where an element of an image of so many channels, rows and columns lies.
size_t place(const Kernel& q, int64_t image, int64_t channel, int64_t row, int64_t column, int64_t channels,
             int64_t rows, int64_t columns) {
  return static_cast<size_t>(q.last != 0 ? ((image * rows + row) * columns + column) * channels + channel
                                         : ((image * channels + channel) * rows + row) * columns + column);
}

}  // namespace

void convolve(const Kernel& q, const void* data_at, const void* weight_at, const void* bias_at, void* out) {
  const int64_t rows = (q.h + 2 * q.p - q.k) / q.s + 1, columns = (q.w + 2 * q.p - q.k) / q.s + 1,
                per_group = q.c / q.g;
  const Types types = types_of(q);
  const Numbers data = load(data_at, q.b * q.c * q.h * q.w, types.left),
                weight = load(weight_at, q.m * per_group * q.k * q.k, types.right),
                bias = load(bias_at, q.m, types.sum);
  Numbers sums(static_cast<size_t>(q.b * q.m * rows * columns));
  for (int64_t i = 0; i < q.b * q.m * rows * columns; ++i) {
    const int64_t x = i % columns, y = i / columns % rows, filter = i / columns / rows % q.m,
                  image = i / columns / rows / q.m;
    double sum = bias[static_cast<size_t>(filter)];
    for (int64_t j = 0; j < per_group * q.k * q.k; ++j) {
      const int64_t channel = filter / (q.m / q.g) * per_group + j / (q.k * q.k);
      const int64_t row = y * q.s + j / q.k % q.k - q.p, column = x * q.s + j % q.k - q.p;
      if (row >= 0 && row < q.h && column >= 0 && column < q.w)
        sum += data[place(q, image, channel, row, column, q.c, q.h, q.w)] *
               weight[static_cast<size_t>(filter * per_group * q.k * q.k + j)];
    }
    sums[place(q, image, filter, y, x, q.m, rows, columns)] = q.relu != 0 ? std::max(sum, 0.0) : sum;
  }
  store(q, std::move(sums), out);
}

std::string check_behaviour(const std::string& name) {
  for (const char* what : {"check_sums", "check_samples", "check_equal", "check_hash"})
    if (name.starts_with(std::string("tuner_") + what)) return what;
  return {};
}

namespace {

DType type_at_end(const std::string& name) {
  static const std::map<std::string, DType> kTypes = {{"f16", DType::kFloat16},
                                                      {"bf16", DType::kBFloat16},
                                                      {"i32", DType::kInt32},
                                                      {"i8", DType::kInt8},
                                                      {"u8", DType::kUInt8}};
  const auto found = kTypes.find(name.substr(name.rfind('_') + 1));
  return found == kTypes.end() ? DType::kFloat32 : found->second;
}

}  // namespace

int run_check(const Kernel& kernel, void** params) {
  const std::string& name = kernel.behaviour;
  const DType type = type_at_end(kernel.name);
  const auto at = [params](int i) { return reinterpret_cast<void*>(parameter<DevicePtr>(params, i)); };
  if (name == "check_sums") {
    auto *rows = static_cast<double*>(at(1)), *columns = static_cast<double*>(at(2));
    const auto count = parameter<uint64_t>(params, 3), n_columns = parameter<uint64_t>(params, 4);
    const Numbers out = load(at(0), static_cast<int64_t>(count), type);
    for (uint64_t i = 0; i < count; ++i) rows[i / n_columns] += out[i], columns[i % n_columns] += out[i];
  } else if (name == "check_samples") {
    const auto* indices = static_cast<const uint64_t*>(at(1));
    const auto size = static_cast<size_t>(tuner::dtype_bytes(type));
    for (uint64_t i = 0; i < parameter<uint64_t>(params, 3); ++i)
      static_cast<double*>(at(2))[i] = load(static_cast<const char*>(at(0)) + indices[i] * size, 1, type)[0];
  } else if (name == "check_equal") {
    if (std::memcmp(at(0), at(1), parameter<uint64_t>(params, 2)) != 0) *static_cast<uint32_t*>(at(3)) = 1;
  } else if (name == "check_hash") {
    const auto* bytes = static_cast<const unsigned char*>(at(0));
    auto& hash = *static_cast<uint64_t*>(at(2));
    for (uint64_t i = 0; i < parameter<uint64_t>(params, 1); ++i) hash += (bytes[i] + 1) * (2 * i + 1);
  } else if (name == "probe_clocks") {
    *static_cast<uint64_t*>(at(0)) = static_cast<uint64_t>(kernel.n) * parameter<uint64_t>(params, 2);
  } else if (!name.starts_with("probe_")) {
    return kInvalidValue;
  }
  return kSuccess;
}

}  // namespace fake_cuda
