// CudnnDescriptor: an object of cuDNN's graph interface. It gets attributes, is finalized, and from then on
// is only asked or named by others. Each knows its attributes' types and numbers of elements; the library
// refuses others.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/gpu/cudnn_api.h"

namespace tuner::cudnn {

enum class Object : int {  // cudnnBackendDescriptorType_t
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kKnobChoice = 7,
  kForward = 10,
  kPointwiseOperation = 13,
  kGraph = 15,
  kOperands = 16,  // the variant pack
  kTensor = 17,
  kDevice = 38,
};

enum class Type : int {  // cudnnBackendAttributeType_t
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kKnob = 9,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kObject = 15,
  kInt32 = 23,
  kChar = 24,
};

enum class Attribute : int {  // cudnnBackendAttributeName_t
  kPointwiseMode = 0,
  kPointwiseType = 1,
  kConvolutionType = 100,
  kConvolutionMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPostPaddings = 104,
  kPrePaddings = 105,
  kSpatialDimensions = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kConfigKnobs = 302,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kPlanDevice = 407,
  kKnobType = 600,
  kKnobValue = 601,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardWeight = 703,
  kForwardData = 704,
  kForwardOut = 705,
  kPointwiseOf = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kGraphEngines = 802,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kOperandIds = 1000,
  kOperandPointers = 1001,
  kOperandWorkspace = 1003,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineNotes = 1303,
  kEngineDevice = 1307,
  kDeviceHandle = 2701,
  kDeviceJson = 2702,
};

inline constexpr int kNoteTensorCores = 0, kNoteDownConverts = 1, kNoteFft = 3, kNoteWinograd = 5;
inline constexpr int kMostNotes = 10, kMostKnobs = 44;

class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  static Result<CudnnDescriptor> make(Object kind);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~CudnnDescriptor();
  void* get() const { return object_; }

  Status set(Attribute attribute, Type type, int64_t count, const void* elements);
  template <class T>
  Status set(Attribute attribute, Type type, T value) {
    return set(attribute, type, 1, &value);
  }
  Status set(Attribute attribute, const std::vector<int64_t>& numbers) {
    return set(attribute, Type::kInt64, static_cast<int64_t>(numbers.size()), numbers.data());
  }
  Status set(Attribute attribute, const CudnnDescriptor& other) {
    return set(attribute, Type::kObject, other.get());
  }
  Status finalize();

  // What it has of it, `most` elements at most. T has the size of the type's elements.
  template <class T>
  Result<std::vector<T>> get(Attribute attribute, Type type, int64_t most) const {
    std::vector<T> elements(static_cast<size_t>(most));
    ASSIGN_OR_RETURN(const int64_t count, get(attribute, type, most, elements.data()));
    elements.resize(static_cast<size_t>(count));
    return elements;
  }
  Result<int64_t> get_number(Attribute attribute) const;
  // Objects are made by who asks, and filled by the library: `most` of a kind, fewer where it has fewer.
  Result<std::vector<CudnnDescriptor>> get_objects(Attribute attribute, Object kind, int64_t most) const;
  // How many elements there are.
  Result<int64_t> count(Attribute attribute, Type type) const;

 private:
  Result<int64_t> get(Attribute attribute, Type type, int64_t most, void* elements) const;
  void* object_ = nullptr;
};

}  // namespace tuner::cudnn
