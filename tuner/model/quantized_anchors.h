// Anchors of networks in 8 bits, for an accelerator or a CPU: operators of ONNX and of ONNX Runtime that
// compute bit for bit what a requantising workload does.
//
//   QLinearConv                               conv2d: one scale per channel, the image's zero point in the
// bias
//   QLinearMatMul, com.microsoft.QGemm        matmul, the same
//   MaxPool of bytes                          pool2d
//   com.microsoft.QLinearAdd                  a flat program of it
//   com.microsoft.QLinearGlobalAveragePool    a depthwise conv2d with weights of 1
//   com.microsoft.QLinearSoftmax              a program of it on a matrix, whose rows are those of the last
// axis
//   tuner.QLinearLayerNormalization           the same; graph::join_quantized_rows() makes it
#pragma once

#include <optional>

#include "compiler_core/target.h"
#include "tuner/model/anchors.h"

namespace tuner {

// Nothing if the node is another one, needs what the workload has not, or no template of the target serves
// it: of an accelerator on images in NHWC, of a CPU on plain ones. Adds constants to the graph.
std::optional<Anchor> quantized_anchor(graph::Graph& graph, size_t n, const Target& target);

}  // namespace tuner
