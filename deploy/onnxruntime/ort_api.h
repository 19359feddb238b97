// The part of ONNX Runtime's C interface that an execution provider needs, declared here: building the
// provider needs no header of the library.
//
// The interface is two tables of functions and some structs of function pointers. A function never changes
// its position, and structs grow at their end only, behind what `version` tells. Names here are ours.
// Positions and types are those of the documentation (onnxruntime.ai/docs, "Plugin Execution Provider
// Libraries", and the C API's reference). A function returns null for success, or a status that its caller
// releases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "compiler_core/base/status.h"

namespace tuner::ort {

// The version of the interface that is asked for: that of ONNX Runtime 1.24.
inline constexpr uint32_t kApiVersion = 24;

// Objects of the library. OrtValue: a tensor. OrtValueInfo: a value of a graph.
struct OrtDataTransferImpl;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtTensorInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;
struct OrtEp;
struct OrtEpFactory;
struct OrtNodeFusionOptions;

enum ErrorCode : int { kInvalidArgument = 2, kProviderFailed = 11 };
enum Severity : int { kInfo = 1, kWarning = 2 };
enum class DeviceType : int { kCpu = 0 };
enum class AttributeType : int {
  kInt = 1,
  kInts = 2,
  kFloat = 3,
  kFloats = 4,
  kString = 5,
  kStrings = 6,
  kGraph = 7,
  kTensor = 8
};

// Position in the table, name, type.
#define TUNER_ORT_FUNCTIONS(X)                                                                              \
  X(0, create_status, OrtStatus*(int code, const char* message))                                            \
  X(2, error_message, const char*(const OrtStatus*))                                                        \
  X(51, mutable_data, OrtStatus*(OrtValue*, void** data))                                                   \
  X(55, tensor_info, OrtStatus*(const OrtTypeInfo*, const OrtTensorInfo**))                                 \
  X(60, element_type, OrtStatus*(const OrtTensorInfo*, int* type))                                          \
  X(61, rank, OrtStatus*(const OrtTensorInfo*, size_t* rank))                                               \
  X(62, extents, OrtStatus*(const OrtTensorInfo*, int64_t* extents, size_t rank))                           \
  X(65, tensor_info_of_value, OrtStatus*(const OrtValue*, OrtTensorInfo**))                                 \
  X(90, kernel_input, OrtStatus*(const OrtKernelContext*, size_t index, const OrtValue**))                  \
  X(91, kernel_output,                                                                                      \
    OrtStatus*(OrtKernelContext*, size_t index, const int64_t* extents, size_t rank, OrtValue**))           \
  X(93, release_status, void(OrtStatus*))                                                                   \
  X(96, release_value, void(OrtValue*))                                                                     \
  X(99, release_tensor_info, void(OrtTensorInfo*))                                                          \
  X(247, log,                                                                                               \
    OrtStatus*(const OrtLogger*, int severity, const char* message, const char* file, int line,             \
               const char* function))                                                                       \
  X(272, read_attribute, OrtStatus*(const OrtOpAttr*, int type, void* data, size_t bytes, size_t* needed))  \
  X(289, value_name, OrtStatus*(const OrtValueInfo*, const char** name))                                    \
  X(290, value_type, OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**))                                  \
  X(298, pairs,                                                                                             \
    void(const OrtKeyValuePairs*, const char* const** keys, const char* const** values, size_t* count))     \
  X(300, release_pairs, void(OrtKeyValuePairs*))                                                            \
  X(307, device_type, int(const OrtHardwareDevice*))                                                        \
  X(317, provider_table, const void* const*())                                                              \
  X(318, value_bytes, OrtStatus*(const OrtValue*, size_t* bytes))                                           \
  X(326, initializer, OrtStatus*(const OrtValueInfo*, const OrtValue**))                                    \
  X(331, is_constant, OrtStatus*(const OrtValueInfo*, bool*))                                               \
  X(336, count_operator_sets, OrtStatus*(const OrtGraph*, size_t*))                                         \
  X(337, operator_sets, OrtStatus*(const OrtGraph*, const char** domains, int64_t* versions, size_t count)) \
  X(340, count_outputs, OrtStatus*(const OrtGraph*, size_t*))                                               \
  X(341, outputs, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t count))                          \
  X(344, count_nodes, OrtStatus*(const OrtGraph*, size_t*))                                                 \
  X(345, nodes, OrtStatus*(const OrtGraph*, const OrtNode**, size_t count))                                 \
  X(346, parent_node, OrtStatus*(const OrtGraph*, const OrtNode**))                                         \
  X(349, node_name, OrtStatus*(const OrtNode*, const char**))                                               \
  X(350, node_operator, OrtStatus*(const OrtNode*, const char**))                                           \
  X(351, node_domain, OrtStatus*(const OrtNode*, const char**))                                             \
  X(353, count_node_inputs, OrtStatus*(const OrtNode*, size_t*))                                            \
  X(354, node_inputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t count))                       \
  X(355, count_node_outputs, OrtStatus*(const OrtNode*, size_t*))                                           \
  X(356, node_outputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t count))                      \
  X(357, count_implicit_inputs, OrtStatus*(const OrtNode*, size_t*))                                        \
  X(358, implicit_inputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t count))                   \
  X(359, count_attributes, OrtStatus*(const OrtNode*, size_t*))                                             \
  X(360, attributes, OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t count))                           \
  X(362, tensor_attribute, OrtStatus*(const OrtOpAttr*, OrtValue**))                                        \
  X(363, attribute_type, OrtStatus*(const OrtOpAttr*, int* type))                                           \
  X(364, attribute_name, OrtStatus*(const OrtOpAttr*, const char**))                                        \
  X(365, count_subgraphs, OrtStatus*(const OrtNode*, size_t*))                                              \
  X(368, node_provider, OrtStatus*(const OrtNode*, const char**))                                           \
  X(378, data, OrtStatus*(const OrtValue*, const void**))                                                   \
  X(379, session_entries, OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**))                         \
  X(390, has_shape, bool(const OrtTensorInfo*))

// The same of the table for providers.
#define TUNER_ORT_PROVIDER_FUNCTIONS(X)                                                   \
  X(0, create_device,                                                                     \
    OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata, \
               const OrtKeyValuePairs* options, OrtEpDevice**))                           \
  X(2, fuse,                                                                              \
    OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const* nodes, size_t count,         \
               const OrtNodeFusionOptions*))

struct OrtApiBase {
  const void* const* (*table)(uint32_t version);  // null: it has no such version
  const char* (*version)();                       // of the library, "1.30.0"
};

// Both tables. A value; what it points to lives as long as the library.
class Api {
 public:
#define TUNER_ORT_MEMBER(position, name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  TUNER_ORT_FUNCTIONS(TUNER_ORT_MEMBER)
  TUNER_ORT_PROVIDER_FUNCTIONS(TUNER_ORT_MEMBER)
#undef TUNER_ORT_MEMBER

  // InvalidArgument: the library is older than kApiVersion, or built without providers.
  static Result<Api> open(const OrtApiBase& base);

  // Takes the status. `what` was tried: "read a node".
  Status ok(OrtStatus* status, const char* what) const {
    return status == nullptr ? Status::ok() : told(status, what);
  }
  // One line of the provider's, for the library: null if it is OK.
  OrtStatus* to_library(const Status& status) const;

 private:
  Status told(OrtStatus* status, const char* what) const;
};

// ---- what a provider gives the library: `version` is kApiVersion, null functions are not called ----

using Unused = void (*)();
inline constexpr int kRoom = 24;  // for functions of later versions: more than there are

struct OrtNodeFusionOptions {
  uint32_t version;
  bool drop_constants;  // the fused node is not given constants again: the library may free them
};

// How a fused node is computed.
struct OrtNodeComputeInfo {
  uint32_t version;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);  // from any thread
  void (*release_state)(OrtNodeComputeInfo*, void* state);
};

// The provider of one session.
struct OrtEp {
  uint32_t version;
  const char* (*name)(const OrtEp*);
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  void (*release_infos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  Unused others[kRoom];
};

struct OrtEpFactory {
  uint32_t version;
  const char* (*name)(const OrtEpFactory*);
  const char* (*vendor)(const OrtEpFactory*);
  OrtStatus* (*supported_devices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count,
                                  OrtEpDevice** made, size_t most, size_t* made_count);
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                          const OrtKeyValuePairs* const* metadata, size_t count, const OrtSessionOptions*,
                          const OrtLogger*, OrtEp**);
  void (*release_ep)(OrtEpFactory*, OrtEp*);
  uint32_t (*vendor_id)(const OrtEpFactory*);
  const char* (*provider_version)(const OrtEpFactory*);
  Unused validate_compiled_model, create_allocator, release_allocator;
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*is_stream_aware)(const OrtEpFactory*);
  Unused others[kRoom];
};

}  // namespace tuner::ort
