// How far a right answer may be from the double precision one. Measuring, verifying and tests all take it
// from here. It holds for arguments drawn evenly from [-1, 1), which is what this project uses everywhere,
// times drawn_factor().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/rounding.h"
#include "templates/workload/workload.h"

namespace tuner {

struct WinogradTile;  // winograd_math.h

// Returns a tolerance loose enough that no right kernel is refused, whatever its order of sums and its
// rounding of exp and square roots, and as tight as that allows. Exact (0, 0) if nothing is rounded. It is
// for the direct sums; a template that computes differently has its own (AnyTemplate::tolerance).
Tolerance tolerance_of(const Workload& workload);

// Of one output, where outputs are allowed different errors. `place`: of Workload::compute()'s arguments.
std::optional<Tolerance> output_tolerance(const Workload& workload, size_t place);

// True if elements of an output share what they err by, as those of a row that is divided by one sum.
bool shares_errors(const Workload& workload);

// Returns what drawn elements of an operand are multiplied by: 1, or, for the scales of a product that is
// requantised, 2^-12. A sum of n products of drawn bytes is about 11,000 * sqrt(n): results then spread over
// what 8 bits hold, for n from 1 to 2^16, in place of being 0 or saturated all of them.
float drawn_factor(const Workload& workload, std::string_view operand);

// Returns the absolute part (product_sum_tolerance() of parts/rounding.h) for a 3x3 convolution by Winograd's
// F(m, 3), m = 2, 4, 5, 6 in each dimension, over `channels`; and its share of the largest output.
double winograd_tolerance(WinogradTile tile, int64_t channels);
double winograd_relative_error(WinogradTile tile, int64_t channels);
// A template declines if its answers may be further off. The worst of half a million was off by half of it.
constexpr double kMostWinogradError = 1.19e-4;

}  // namespace tuner
