#include "templates/workload/parts/checks.h"

#include "templates/workload/parts/limits.h"

namespace tuner {

Status shape_fits(std::string_view name, std::initializer_list<int64_t> shape, DType dtype) {
  __int128 bytes = dtype_bytes(dtype);
  for (const int64_t extent : shape) {
    bytes *= extent;
    if (bytes >= kMaxTensorBytes)
      return invalid_argument(name, ": expected fewer than 2^40 bytes, the shape asks for more");
  }
  return Status::ok();
}

Status countable(std::initializer_list<int64_t> factors) {
  __int128 product = 2;
  for (const int64_t f : factors) {
    product *= f;
    if (product > (int64_t{1} << 62))
      return invalid_argument("shape: expected at most 2^62 floating-point operations, found more");
  }
  return Status::ok();
}

Status float32_only(DType dtype) {
  if (dtype == DType::kFloat32) return Status::ok();
  return invalid_argument("dtype: expected float32, found ", dtype);
}

Status check_activation_numbers(const Activation& activation) {
  if (has_good_numbers(activation)) return Status::ok();
  return invalid_argument("activation: expected finite numbers, for clip the lower one first, found ",
                          activation_text(activation));
}

}  // namespace tuner
