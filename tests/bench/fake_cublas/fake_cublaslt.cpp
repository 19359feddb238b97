// libfakecublaslt.so: as much of cuBLASLt as bench_gpu asks for, by its definition (matrices by columns,
// plain loops), so that how we call it is tested for real. Works on the memory and the clock of
// libfakecuda.so. What the library would not forgive is refused: attributes of another size, an epilogue that
// is none, operands that do not lie on the device, an algorithm that was not configured as its id asks for.
//
// Its heuristic offers six algorithms. The first takes twice as long as TUNER_FAKE_CUBLASLT_NS (default
// 8000), the third so long, with a workspace of which it uses all, the sixth three times as long. The second
// is offered with a state that says it cannot run, the fourth refuses when it is called, and the fifth is the
// fastest and wrong. Of id 21 alone the heuristic offers the first once more, of id 66 one that splits k and
// takes 1.5 times as long. By tiles, stages and clusters there are more, which take four times as long, but
// one: id 66, tile 256x128, stages 64xauto, cluster 2x1 takes TUNER_FAKE_CUBLASLT_BEST_NS.
//
// With TUNER_FAKE_CUBLASLT_WRONG all are wrong; with TUNER_FAKE_CUBLASLT_NONE there is nothing; with
// TUNER_FAKE_CUBLASLT_NO_EPILOGUE nothing for products with an epilogue; with TUNER_FAKE_CUBLASLT_NO_CAPTURE
// nothing can be recorded. As the library does, it takes bytes only where the left matrix is transposed, the
// right one is not, and the left one's sizes are multiples of four.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "compiler_core/base/elements.h"
#include "tests/measure_server/fake_cuda/fake_queue.h"

namespace {

using tuner::DType;

constexpr int kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15;
constexpr size_t kWorkspaceBytes = 8192;
constexpr uint32_t kMagic = 0x17A160;
constexpr uint32_t kRelu = 2, kBias = 4;

struct Product {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct Layout {
  DType type = DType::kFloat32;
  int64_t rows = 0, columns = 0, leading = 0, stride = 0;
  int32_t batch = 1;

  int64_t elements() const { return stride * (batch - 1) + leading * columns; }
  size_t bytes() const { return static_cast<size_t>(elements() * tuner::dtype_bytes(type)); }
};
struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t search = 0;
};
// cublasLtMatmulAlgo_t
struct Algorithm {
  uint32_t magic = kMagic;
  int32_t id = 0, split_k = 1;
  uint32_t tile = 0, reduction = 0, swizzle = 0, custom = 0, stages = 0;
  uint16_t inner = 0, cluster = 0;
  uint32_t place = 0;  // in the heuristic's order; 0: elsewhere
  std::array<uint32_t, 6> unused{};

  bool same_config(const Algorithm& o) const {
    return id == o.id && tile == o.tile && stages == o.stages && cluster == o.cluster && split_k == o.split_k;
  }
};
static_assert(sizeof(Algorithm) == 64);
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

const std::array<Algorithm, 6>& by_heuristic() {
  static const std::array<Algorithm, 6> all = {{{.id = 21, .tile = 20, .stages = 15, .place = 1},
                                                {.id = 21, .tile = 20, .stages = 16, .place = 2},
                                                {.id = 66, .tile = 23, .stages = 35, .place = 3},
                                                {.id = 21, .tile = 23, .stages = 15, .place = 4},
                                                {.id = 6, .custom = 5, .place = 5},
                                                {.id = 21, .tile = 23, .stages = 16, .place = 6}}};
  return all;
}

struct Id {
  std::vector<uint32_t> tiles, stages;
  std::vector<uint16_t> clusters;
};
const std::map<int32_t, Id>& ids() {
  static const std::map<int32_t, Id> all = {
      {6, {{}, {}, {0}}}, {21, {{20, 23}, {15, 16}, {0}}}, {66, {{23, 24}, {22, 35}, {0, 3, 5}}}};
  return all;
}

template <class T>
bool holds(const std::vector<T>& list, T value) {
  return list.empty() ? value == 0 : std::ranges::find(list, value) != list.end();
}
// Whether an id was configured as it asks for.
bool is_configured(const Algorithm& a) {
  const auto id = ids().find(a.id);
  return a.magic == kMagic && id != ids().end() && holds(id->second.tiles, a.tile) &&
         holds(id->second.stages, a.stages) && holds(id->second.clusters, a.cluster);
}

double time_ns(const Algorithm& a) {
  const auto setting = [](const char* name, double otherwise) {
    const char* given = std::getenv(name);
    return given != nullptr ? std::atof(given) : otherwise;
  };
  const double ns = setting("TUNER_FAKE_CUBLASLT_NS", 8000);
  if (a.place == 5) return ns / 10;
  for (const auto& [place, times] : {std::pair(1, 2), {3, 1}, {6, 3}})
    if (a.same_config(by_heuristic()[static_cast<size_t>(place - 1)])) return times * ns;
  if (a.split_k > 1) return 1.5 * ns;
  return a.same_config({.id = 66, .tile = 24, .stages = 35, .cluster = 3})
             ? setting("TUNER_FAKE_CUBLASLT_BEST_NS", 4 * ns)
             : 4 * ns;
}

size_t workspace_of(const Algorithm& a) { return a.id == 66 ? kWorkspaceBytes : 0; }

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
  if (std::getenv("TUNER_FAKE_CUBLASLT_NONE") != nullptr || a.type != b.type) return false;
  if (p.epilogue != 1 && std::getenv("TUNER_FAKE_CUBLASLT_NO_EPILOGUE") != nullptr) return false;
  // What lies at the pointer is not read before the product is, but its alignment counts.
  if ((p.epilogue & kBias) != 0 && p.bias == nullptr) return false;
  if (a.type == DType::kInt8)
    return p.compute == 72 && p.scale == 10 && out.type == DType::kInt32 && p.transpose_a == 1 &&
           p.transpose_b == 0 && a.rows % 4 == 0 && a.columns % 4 == 0 && p.epilogue == 1;
  const bool computes = p.compute == 68 || (p.compute == 77 && a.type == DType::kFloat32);
  return computes && p.scale == 0 && (out.type == DType::kFloat32 || out.type == a.type);
}

// What tensor cores see of a float32: 10 bits of fraction.
double as_tf32(double x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x1000) & 0xffffe000);
}

std::vector<double> numbers(const void* at, const Layout& l) {
  return tuner::load_elements(at, l.elements(), l.type);
}

// out = epilogue(a * b + beta * c); a bias has a value per row, of out's type.
void multiply(const Product& p, const void* a_at, const Layout& a, const void* b_at, const Layout& b,
              bool adds, const void* c_at, void* out_at, const Layout& out) {
  std::vector<double> left = numbers(a_at, a), right = numbers(b_at, b), sums = numbers(out_at, out);
  const std::vector<double> added = adds ? numbers(c_at, out) : std::vector<double>();
  const std::vector<double> bias =
      (p.epilogue & kBias) != 0 ? tuner::load_elements(p.bias, out.rows, out.type) : std::vector<double>();
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
        const int64_t place = t * out.stride + i + j * out.leading;
        if (adds) sum += added[static_cast<size_t>(place)];
        if (!bias.empty()) sum += bias[static_cast<size_t>(i)];
        if ((p.epilogue & kRelu) != 0) sum = std::max(sum, 0.0);
        if (out.type == DType::kBFloat16) sum = tuner::rounded_to_bfloat16(static_cast<float>(sum));
        if (out.type == DType::kFloat16) sum = tuner::rounded_to_float16(static_cast<float>(sum));
        sums[static_cast<size_t>(place)] = sum;
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
template <class T>
int get(const T& member, void* value, size_t bytes, size_t* written) {
  if (bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(value, &member, bytes);
  *written = bytes;
  return 0;
}
// As the library lists numbers: no bytes asks how many there are.
int list(const std::vector<uint32_t>& numbers, void* value, size_t bytes, size_t* written) {
  const size_t size = numbers.size() * sizeof(uint32_t);
  if (bytes != 0 && (value == nullptr || bytes < size)) return kInvalidValue;
  if (bytes != 0) std::memcpy(value, numbers.data(), size);
  *written = size;
  return 0;
}

// Calls f(member) with the member that a number of cublasLtMatmulAlgoConfigAttributes_t names.
template <class AnyAlgorithm, class F>
int with_config(AnyAlgorithm& a, int attribute, const F& f) {
  switch (attribute) {
    case 0:
      return f(a.id);
    case 1:
      return f(a.tile);
    case 2:
      return f(a.split_k);
    case 3:
      return f(a.reduction);
    case 4:
      return f(a.swizzle);
    case 5:
      return f(a.custom);
    case 6:
      return f(a.stages);
    case 7:
      return f(a.inner);
    case 8:
      return f(a.cluster);
    default:
      return kInvalidValue;
  }
}

}  // namespace

extern "C" {

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
  if (attribute == 7) {
    uint32_t epilogue = 0;
    if (set(epilogue, value, bytes) != 0) return kInvalidValue;
    const bool is_one =
        epilogue == 1 || epilogue == kRelu || epilogue == kBias || epilogue == (kRelu | kBias);
    return is_one ? set(p.epilogue, value, bytes) : kInvalidValue;
  }
  return attribute == 3   ? set(p.transpose_a, value, bytes)
         : attribute == 4 ? set(p.transpose_b, value, bytes)
         : attribute == 8 ? set(p.bias, value, bytes)
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
  auto& p = *static_cast<Preference*>(preference);
  return attribute == 0   ? set(p.search, value, bytes)
         : attribute == 1 ? set(p.workspace_bytes, value, bytes)
                          : kInvalidValue;
}

int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void*, void* out, void* preference,
                                   int most, HeuristicResult* results, int* found) {
  *found = 0;
  const auto& how = *static_cast<Preference*>(preference);
  if (!fits(*static_cast<Product*>(product), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
            *static_cast<Layout*>(out)))
    return kNotSupported;
  // Without room for its workspace the third would not be offered.
  if (how.workspace_bytes < (uint64_t{32} << 20)) return kNotSupported;
  const auto offer = [&](const Algorithm& algorithm) {
    if (*found >= most) return;
    HeuristicResult& r = results[(*found)++];
    r = {};
    r.algorithm = algorithm;
    r.workspace_bytes = workspace_of(algorithm);
    r.state = algorithm.place == 2 ? kNotSupported : 0;
  };
  if (how.search == 0) {
    for (const Algorithm& algorithm : by_heuristic()) offer(algorithm);
    return 0;
  }
  const Algorithm asked = results[0].algorithm;  // made by who asks
  if (how.search != 1 || asked.magic != kMagic) return kInvalidValue;
  if (asked.id == 21) offer(by_heuristic()[0]);
  if (asked.id == 66) offer({.id = 66, .split_k = 2, .tile = 24, .reduction = 2, .stages = 22});
  return *found > 0 ? 0 : kNotSupported;
}

int cublasLtMatmulAlgoGetIds(void*, int, int, int a, int b, int c, int d, int most, int* list, int* found) {
  *found = 0;
  if (a != b || c != d || most < 1) return kInvalidValue;
  for (const auto& [id, described] : ids())
    if (*found < most && (a != 3 || id == 21)) list[(*found)++] = id;
  return 0;
}
int cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int id, Algorithm* algorithm) {
  if (!ids().contains(id)) return kNotSupported;
  *algorithm = {.id = id};
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void* product, void* a, void* b, void*, void* out,
                            const Algorithm* algorithm, HeuristicResult* result) {
  if (!fits(*static_cast<Product*>(product), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
            *static_cast<Layout*>(out)) ||
      !is_configured(*algorithm))
    return kNotSupported;
  result->state = 0;
  result->workspace_bytes = workspace_of(*algorithm);
  return 0;
}
int cublasLtMatmulAlgoCapGetAttribute(const Algorithm* algorithm, int attribute, void* value, size_t bytes,
                                      size_t* written) {
  const auto id = ids().find(algorithm->id);
  if (algorithm->magic != kMagic || id == ids().end()) return kInvalidValue;
  const uint64_t on_tensor_cores = algorithm->id == 66 ? 0x02 : 0x01;
  return attribute == 6    ? list(id->second.tiles, value, bytes, written)
         : attribute == 13 ? list(id->second.stages, value, bytes, written)
         : attribute == 15 ? get(on_tensor_cores, value, bytes, written)
                           : kInvalidValue;
}
int cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, int attribute, const void* value,
                                         size_t bytes) {
  if (attribute == 0) return kInvalidValue;  // an id is made, not set
  return with_config(*algorithm, attribute, [&](auto& member) { return set(member, value, bytes); });
}
int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value, size_t bytes,
                                         size_t* written) {
  return with_config(*algorithm, attribute,
                     [&](const auto& member) { return get(member, value, bytes, written); });
}

int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  const Product p = *static_cast<Product*>(product);
  const Layout left = *static_cast<Layout*>(a_layout), right = *static_cast<Layout*>(b_layout),
               out = *static_cast<Layout*>(d_layout);
  const Algorithm how = *algorithm;
  const int32_t integer_one = 1;
  const float one = 1;
  const void* unit = p.scale == 10 ? static_cast<const void*>(&integer_one) : &one;
  const uint32_t zero = 0;
  const bool adds = std::memcmp(beta, unit, 4) == 0;
  if (std::getenv("TUNER_FAKE_CUBLASLT_NO_CAPTURE") != nullptr && fake_cuda_records()) return kNotSupported;
  if (std::memcmp(alpha, unit, 4) != 0 || (!adds && (std::memcmp(beta, &zero, 4) != 0 || c != d)) ||
      c_layout != d_layout || stream == nullptr || !is_configured(how) || !fits(p, left, right, out))
    return kInvalidValue;
  for (const auto& [at, bytes] : {std::pair(a, left.bytes()), {b, right.bytes()}, {c, out.bytes()}})
    if (!fake_cuda_owns(at, bytes)) return kInvalidValue;
  if (!fake_cuda_owns(d, out.bytes())) return kInvalidValue;
  const size_t bias_bytes = static_cast<size_t>(out.rows * tuner::dtype_bytes(out.type));
  if ((p.epilogue & kBias) != 0 && !fake_cuda_owns(p.bias, bias_bytes)) return kInvalidValue;
  if (how.place == 4 || how.same_config(by_heuristic()[3])) return kExecutionFailed;
  const size_t needed = workspace_of(how);
  if (workspace_bytes < needed || (needed > 0 && !fake_cuda_owns(workspace, needed))) return kInvalidValue;
  return fake_cuda_queue([=] {
    if (needed > 0) std::memset(workspace, 0x5A, needed);
    multiply(p, a, left, b, right, adds, c, d, out);
    if (how.place == 5 || std::getenv("TUNER_FAKE_CUBLASLT_WRONG") != nullptr) {
      const double wrong = 16384;  // which every type of an answer holds
      tuner::store_elements(&wrong, 1, out.type, d);
    }
    fake_cuda_advance(time_ns(how));
    return 0;
  });
}

}  // extern "C"
