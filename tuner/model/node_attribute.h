// Attributes of a model's nodes: read as the type that the operator wants, or refused. For read_model.cpp
// only.
#pragma once

#include <memory>

#include "compiler_core/graph/graph.h"
#include "tuner/model/tensor_data.h"

namespace tuner {

namespace onnx {
class AttributeProto;  // onnx.proto
}  // namespace onnx

// Reads an attribute into the node, whose operator is known. Types become their names; a tensor becomes its
// one number, with its type as NAME_type. Names that begin with "__" are notes of who made the model, as ONNX
// has it: they are dropped. An operator that is not served gets no check, since it is refused anyway.
// InvalidArgument, with the attribute and both types: stored as another type than the operator's, with a
// value that is not of the type it says, unknown to the operator, or given twice.
Status read_attribute(const onnx::AttributeProto& a, TensorData& data,
                      const std::shared_ptr<const void>& owner, graph::Node& node);

// The same check for the attribute of a Constant.
Status check_constant_attribute(const onnx::AttributeProto& a);

}  // namespace tuner
