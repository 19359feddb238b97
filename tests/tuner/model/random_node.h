// One node of any operator of the table, with operands of a type and of random shapes: extents that are odd,
// 1, or longer than a vector.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "compiler_core/graph/graph.h"

namespace tuner::testing {

struct RandomNode {
  std::optional<graph::Graph> graph;  // nothing: the operator does not take this type
  std::string refusal;
};
// `dtype`: of the first input. The refusal of anything but a type is a fault of the form below.
RandomNode random_node(const std::string& op, DType dtype, std::mt19937& random);

}  // namespace tuner::testing
