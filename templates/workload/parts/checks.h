// What operators check of their workloads beyond single fields.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "templates/workload/parts/activation.h"

namespace tuner {

// A tensor takes fewer than 2^40 bytes.
Status shape_fits(std::string_view name, std::initializer_list<int64_t> shape, DType dtype);
// Twice the product of the factors is at most 2^62: flops() must not overflow.
Status countable(std::initializer_list<int64_t> factors);
Status float32_only(DType dtype);
Status check_activation_numbers(const Activation& activation);

}  // namespace tuner
