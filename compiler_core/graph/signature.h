// Signatures: what an operator's definition says of its inputs and attributes before any shape is looked at.
// Which inputs have one type, which types those may be, how many dimensions they have, and how the value of
// each attribute is stored.
//
// A table of text (signature.cpp), a row per operator. infer() holds every node against it first, so that no
// row of the operator table meets an operand or an attribute that ONNX does not allow.
#pragma once

#include <string_view>

#include "compiler_core/graph/operator.h"

namespace tuner::graph {

// How the value of an attribute is stored. In a graph a type is its name, and a tensor is its one number with
// its type beside it as the attribute NAME_type.
enum class AttributeKind : uint8_t {
  kInteger,
  kFloat,
  kString,
  kIntegers,
  kFloats,
  kStrings,
  kType,
  kTensor
};
// "an integer", "a list of floats".
std::string_view attribute_kind_name(AttributeKind kind);
// InvalidArgument: the operator, which find_operator() knows, has no attribute of this name.
Result<AttributeKind> attribute_kind(std::string_view op, std::string_view attribute);

// InvalidArgument, in a few words: an input that is not allowed, or not of the type of another one; an
// attribute that the operator does not have, of another kind, or with a word that it does not know.
Status check_signature(const Use& use);

}  // namespace tuner::graph
