#include "templates/source_kernel/operands.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/npy.h"
#include "compiler_core/base/random.h"

namespace tuner {
namespace {

Result<std::string> array_of(const SourceKernel& kernel, const SourceArgument& argument,
                             const std::string& name) {
  const SourceFile* const file = kernel.file(name);
  if (file == nullptr) return invalid_argument("there is no file ", name);
  const Result<NpyArray> array = parse_npy(file->text, argument.dtype);
  if (!array) return array.status().with_context(name + ": ");
  if (array->shape != argument.shape) {
    std::string found, expected;
    for (const int64_t extent : array->shape) found += str(found.empty() ? "" : ", ", extent);
    for (const int64_t extent : argument.shape) expected += str(expected.empty() ? "" : ", ", extent);
    return invalid_argument(name, ": has shape [", found, "], expected [", expected, "] of ", argument.name);
  }
  if (std::ssize(array->bytes) != argument.elements() * dtype_bytes(argument.dtype))
    return invalid_argument(name, ": is cut short, or has more than its elements");
  return std::string(array->bytes);
}

// Smallest and largest integer that an integer of that type may be drawn as, where no range is given: small
// enough for sums.
std::pair<double, double> usual_range(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kInt8:
      return {-128, 127};
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return {-1000, 1000};
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return {0, 1000};
    default:
      return {-1, 1};
  }
}

double rounded(double x, DType dtype) {
  if (dtype == DType::kFloat16) return rounded_to_float16(static_cast<float>(x));
  if (dtype == DType::kBFloat16) return rounded_to_bfloat16(static_cast<float>(x));
  return dtype == DType::kFloat32 ? static_cast<float>(x) : x;
}

// One of [low, high): for floats of 53 random bits; for integers with `high`, too.
double drawn(uint64_t random, double low, double high, DType dtype) {
  if (is_float(dtype))
    return rounded(low + (high - low) * (static_cast<double>(random >> 11) * 0x1p-53), dtype);
  const auto first = static_cast<int64_t>(std::ceil(low)), last = static_cast<int64_t>(std::floor(high));
  const auto choices = static_cast<uint64_t>(last - first) + 1;
  return static_cast<double>(first + static_cast<int64_t>(static_cast<uint64_t>(
                                         (static_cast<unsigned __int128>(random) * choices) >> 64)));
}

}  // namespace

bool follows_seed(const SourceArgument& argument) {
  return !argument.scalar && argument.role != SourceRole::kOut &&
         argument.contents.kind == ContentsKind::kRandom;
}

Result<std::string> operand_bytes(const SourceKernel& kernel, size_t place, uint64_t seed) {
  const SourceArgument& a = kernel.arguments.at(place);
  if (a.contents.kind == ContentsKind::kFile) return array_of(kernel, a, a.contents.file);
  std::vector<double> numbers(static_cast<size_t>(a.elements()), 0);
  if (a.contents.kind == ContentsKind::kIota) {
    // As far as the type counts: then from 0 again.
    const int64_t most = a.dtype == DType::kInt8       ? 128
                         : a.dtype == DType::kBool     ? 2
                         : dtype_bytes(a.dtype) == 1   ? 256
                         : a.dtype == DType::kBFloat16 ? 256
                         : dtype_bytes(a.dtype) == 2   ? 2048
                                                       : int64_t{1} << 24;
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<double>(static_cast<int64_t>(i) % most);
  } else if (a.contents.kind == ContentsKind::kRandom) {
    uint64_t state = seed * 0x2545f4914f6cdd1dU + place + 1;
    const auto [low, high] =
        a.contents.has_range ? std::pair(a.contents.low, a.contents.high) : usual_range(a.dtype);
    for (double& number : numbers) number = drawn(next_random(state), low, high, a.dtype);
  }
  std::string bytes(static_cast<size_t>(a.elements() * dtype_bytes(a.dtype)), '\0');
  store_elements(numbers.data(), a.elements(), a.dtype, bytes.data());
  return bytes;
}

Result<std::string> given_answer(const SourceKernel& kernel, size_t place) {
  const SourceArgument& a = kernel.arguments.at(place);
  return array_of(kernel, a, kernel.reference.arrays.at(a.name));
}

}  // namespace tuner
