// A part of a graph as an ONNX model of its own, which `tuner compile` reads; and whether it would.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deploy/onnxruntime/parts.h"

namespace tuner::ort {

// Large constants lie in a file of their own, kWeightsFile beside the model.
struct PartModel {
  struct Weights {
    int64_t offset = 0;  // in the file, a multiple of 64
    std::span<const std::byte> bytes;
  };
  std::string bytes;             // a ModelProto
  std::vector<Weights> weights;  // by offset; they view what the graph's values view
};
inline constexpr char kWeightsFile[] = "part.weights";

// Bytes of all its elements; 0 for a type that is not served.
int64_t bytes_of(const GraphValue& value);

// Requires that all values of the part have types.
PartModel model_of(const NodeGraph& graph, const Part& part);

// SHA-256 of all that is in it, 64 hexadecimal digits.
std::string digest_of(const PartModel& model);

// Writes MODEL and kWeightsFile beside it. Failed: the disk.
Status write_model(const PartModel& model, const std::string& folder, const std::string& file);

// OK if `tuner compile` serves this node with the types that it has here. InvalidArgument with the reason.
Status check_served(const NodeGraph& graph, size_t node);

}  // namespace tuner::ort
