// libfakecublaslt.so: as much of cuBLASLt as bench_gpu asks for, by its definition (matrices by columns, plain loops), so that
// how we call it is tested for real. Works on the memory and the clock of libfakecuda.so.
//
// Its heuristic offers six algorithms. The first takes twice as long as TUNER_FAKE_CUBLASLT_NS (default 8000), the third so
// long, with a workspace of which it uses all, the sixth three times as long. The second is offered with a state that says it
// cannot run, the fourth refuses when it is called, and the fifth is the fastest and wrong. With TUNER_FAKE_CUBLASLT_WRONG all
// are wrong; with TUNER_FAKE_CUBLASLT_NONE the heuristic has nothing. As the library does, it takes bytes only where the left
// matrix is transposed, the right one is not, and the left one's sizes are multiples of four.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "compiler_core/base/elements.h"

namespace {

using tuner::DType;

constexpr int kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15;
constexpr size_t kWorkspaceBytes = 8192;

struct Product {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0;
};
struct Layout {
  DType type = DType::kFloat32;
  int64_t rows = 0, columns = 0, leading = 0, stride = 0;
  int32_t batch = 1;
};
struct Preference {
  uint64_t workspace_bytes = 0;
};
struct HeuristicResult {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

// False: a type that no product here has.
bool type_of(int code, DType& type) {
  switch (code) {
    case 0:
      return type = DType::kFloat32, true;
    case 2:
      return type = DType::kFloat16, true;
    case 3:
      return type = DType::kInt8, true;
    case 10:
      return type = DType::kInt32, true;
    case 14:
      return type = DType::kBFloat16, true;
    default:
      return false;
  }
}

// Whether there is a product of these types.
bool fits(const Product& p, const Layout& a, const Layout& b, const Layout& out) {
  if (a.type != b.type) return false;
  if (a.type == DType::kInt8)
    return p.compute == 72 && p.scale == 10 && out.type == DType::kInt32 && p.transpose_a == 1 &&
           p.transpose_b == 0 && a.rows % 4 == 0 && a.columns % 4 == 0;
  const bool computes = p.compute == 68 || (p.compute == 77 && a.type == DType::kFloat32);
  return computes && p.scale == 0 && (out.type == DType::kFloat32 || out.type == a.type);
}

// What tensor cores see of a float32: 10 bits of fraction.
double as_tf32(double x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x1000) & 0xffffe000);
}

std::vector<double> numbers(const void* at, const Layout& l) {
  const int64_t last = l.stride * (l.batch - 1) + l.leading * l.columns;
  return tuner::load_elements(at, last, l.type);
}

void multiply(const Product& p, const void* a_at, const Layout& a, const void* b_at, const Layout& b,
              void* out_at, const Layout& out) {
  std::vector<double> left = numbers(a_at, a), right = numbers(b_at, b), sums = numbers(out_at, out);
  if (p.compute == 77)
    for (std::vector<double>* operand : {&left, &right})
      for (double& x : *operand) x = as_tf32(x);
  const int64_t k = p.transpose_a != 0 ? a.rows : a.columns;
  for (int64_t t = 0; t < out.batch; ++t)
    for (int64_t i = 0; i < out.rows; ++i)
      for (int64_t j = 0; j < out.columns; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += left[t * a.stride + (p.transpose_a != 0 ? x + i * a.leading : i + x * a.leading)] *
                 right[t * b.stride + (p.transpose_b != 0 ? j + x * b.leading : x + j * b.leading)];
        if (out.type == DType::kBFloat16) sum = tuner::rounded_to_bfloat16(static_cast<float>(sum));
        if (out.type == DType::kFloat16) sum = tuner::rounded_to_float16(static_cast<float>(sum));
        sums[t * out.stride + i + j * out.leading] = sum;
      }
  tuner::store_elements(sums.data(), static_cast<int64_t>(sums.size()), out.type, out_at);
}

// An attribute of so many bytes.
template <class T>
int set(T& member, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(&member, value, bytes);
  return 0;
}

}  // namespace

extern "C" {

void fake_cuda_advance(double ns);  // libfakecuda.so

int cublasLtCreate(void** handle) {
  *handle = new char;
  return std::getenv("NVIDIA_TF32_OVERRIDE") == nullptr ? 0 : kInvalidValue;
}
int cublasLtDestroy(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
size_t cublasLtGetVersion() { return 130100; }

int cublasLtMatmulDescCreate(void** product, int compute, int scale) {
  *product = new Product{.compute = compute, .scale = scale};
  return 0;
}
int cublasLtMatmulDescDestroy(void* product) {
  delete static_cast<Product*>(product);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, size_t bytes) {
  auto& p = *static_cast<Product*>(product);
  return attribute == 3   ? set(p.transpose_a, value, bytes)
         : attribute == 4 ? set(p.transpose_b, value, bytes)
                          : kInvalidValue;
}
int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  Layout l{.rows = static_cast<int64_t>(rows), .columns = static_cast<int64_t>(columns), .leading = leading};
  if (!type_of(type, l.type) || leading < l.rows) return kInvalidValue;
  *layout = new Layout(l);
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  auto& l = *static_cast<Layout*>(layout);
  return attribute == 5   ? set(l.batch, value, bytes)
         : attribute == 6 ? set(l.stride, value, bytes)
                          : kInvalidValue;
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value, size_t bytes) {
  return attribute == 1 ? set(static_cast<Preference*>(preference)->workspace_bytes, value, bytes)
                        : kInvalidValue;
}

int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void*, void* out, void* preference,
                                   int most, HeuristicResult* results, int* found) {
  *found = 0;
  if (std::getenv("TUNER_FAKE_CUBLASLT_NONE") != nullptr ||
      !fits(*static_cast<Product*>(product), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
            *static_cast<Layout*>(out)))
    return kNotSupported;
  // Without room for its workspace the third would not be offered.
  if (static_cast<Preference*>(preference)->workspace_bytes < (uint64_t{32} << 20)) return kNotSupported;
  for (; *found < 6 && *found < most; ++*found) {
    results[*found] = {};
    results[*found].algorithm[7] = static_cast<uint64_t>(*found) + 1;
    results[*found].workspace_bytes = *found == 2 ? kWorkspaceBytes : 0;
    results[*found].state = *found == 1 ? kNotSupported : 0;
  }
  return 0;
}

int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const void* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  const auto& p = *static_cast<Product*>(product);
  const auto& out = *static_cast<Layout*>(d_layout);
  const uint64_t place = static_cast<const uint64_t*>(algorithm)[7];
  const int32_t integer_one = 1;
  const float one = 1;
  const bool scaled =
      std::memcmp(alpha, p.scale == 10 ? static_cast<const void*>(&integer_one) : &one, 4) != 0;
  const uint32_t zero = 0;
  if (scaled || std::memcmp(beta, &zero, 4) != 0 || c != d || c_layout != d_layout || stream == nullptr)
    return kInvalidValue;
  if (place == 4) return kExecutionFailed;
  if (place == 3) {
    if (workspace == nullptr || workspace_bytes != kWorkspaceBytes) return kInvalidValue;
    std::memset(workspace, 0x5A, kWorkspaceBytes);
  }
  multiply(p, a, *static_cast<Layout*>(a_layout), b, *static_cast<Layout*>(b_layout), d, out);
  if (place == 5 || std::getenv("TUNER_FAKE_CUBLASLT_WRONG") != nullptr) {
    const double wrong = 16384;  // which every type of an answer holds
    tuner::store_elements(&wrong, 1, out.type, d);
  }
  const char* given = std::getenv("TUNER_FAKE_CUBLASLT_NS");
  const double ns = given != nullptr ? std::atof(given) : 8000;
  fake_cuda_advance(place == 1 ? 2 * ns : place == 3 ? ns : place == 6 ? 3 * ns : ns / 10);
  return 0;
}

}  // extern "C"
