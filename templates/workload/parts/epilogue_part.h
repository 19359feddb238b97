// The parts of what follows the sum of a product.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuner {

// In the usual order.
enum class EpiloguePart : uint8_t { kBias, kScale, kResidual, kActivation };
inline constexpr EpiloguePart kEpilogueParts[] = {EpiloguePart::kBias, EpiloguePart::kScale,
                                                  EpiloguePart::kResidual, EpiloguePart::kActivation};
std::string_view epilogue_part_name(EpiloguePart p);  // "bias", "scale", "residual", "activation"

}  // namespace tuner
