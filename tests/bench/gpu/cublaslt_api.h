// What we call of cuBLASLt, written down after the documented ABI of cublasLt.h and library_types.h, the same
// in 12 and 13: no CUDA header is needed to build. Matrices lie by columns there. For cublaslt.cpp and
// cublaslt_search.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_driver_api.h"

namespace tuner::cublaslt {

inline constexpr int kSuccess = 0, kNotTransposed = 0, kTransposed = 1;
// cudaDataType_t, cublasComputeType_t
inline constexpr int kReal32F = 0, kReal16F = 2, kReal8I = 3, kReal32I = 10, kReal16Bf = 14;
inline constexpr int kCompute32F = 68, kCompute32I = 72, kCompute32FFastTf32 = 77;

// cublasLtMatmulDescAttributes_t: int32_t twice, cublasLtEpilogue_t (uint32_t), a pointer on the device.
inline constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kDescEpilogue = 7, kDescBiasPointer = 8;
inline constexpr uint32_t kEpilogueRelu = 2, kEpilogueBias = 4;  // both: 6; neither: 1
inline constexpr uint32_t kEpilogueNone = 1;
// cublasLtMatrixLayoutAttribute_t: int32_t, int64_t.
inline constexpr int kLayoutBatch = 5, kLayoutBatchStride = 6;
// cublasLtMatmulPreferenceAttributes_t: uint32_t, uint64_t.
inline constexpr int kPreferenceSearch = 0, kPreferenceWorkspace = 1;
inline constexpr uint32_t kSearchOfOneId = 1;  // CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID
// cublasLtMatmulAlgoCapAttributes_t: arrays of uint32_t twice, uint64_t.
inline constexpr int kCapTiles = 6, kCapStages = 13, kCapNumerics = 15;
inline constexpr uint64_t kNumericsOfTensorCores = 0x0E;  // HMMA, IMMA, DMMA
// cublasLtMatmulAlgoConfigAttributes_t.
inline constexpr int kConfigId = 0, kConfigTile = 1, kConfigSplitK = 2, kConfigReduction = 3,
                     kConfigSwizzle = 4, kConfigCustom = 5, kConfigStages = 6, kConfigInner = 7,
                     kConfigCluster = 8;

using Opaque = std::array<uint64_t, 8>;  // cublasLtMatmulAlgo_t

// cublasLtMatmulHeuristicResult_t
struct HeuristicResult {
  Opaque algorithm;
  size_t workspace_bytes;
  int state;  // anything but 0: the rest says nothing
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

#define TUNER_CUBLASLT_SYMBOLS(X)                                                                       \
  X(create, int, "cublasLtCreate", (void** handle))                                                     \
  X(destroy, int, "cublasLtDestroy", (void* handle))                                                    \
  X(version, size_t, "cublasLtGetVersion", ())                                                          \
  X(create_product, int, "cublasLtMatmulDescCreate", (void** product, int compute, int scale))          \
  X(destroy_product, int, "cublasLtMatmulDescDestroy", (void* product))                                 \
  X(set_product, int, "cublasLtMatmulDescSetAttribute",                                                 \
    (void* product, int attribute, const void* value, size_t bytes))                                    \
  X(create_layout, int, "cublasLtMatrixLayoutCreate",                                                   \
    (void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                        \
  X(destroy_layout, int, "cublasLtMatrixLayoutDestroy", (void* layout))                                 \
  X(set_layout, int, "cublasLtMatrixLayoutSetAttribute",                                                \
    (void* layout, int attribute, const void* value, size_t bytes))                                     \
  X(create_preference, int, "cublasLtMatmulPreferenceCreate", (void** preference))                      \
  X(destroy_preference, int, "cublasLtMatmulPreferenceDestroy", (void* preference))                     \
  X(set_preference, int, "cublasLtMatmulPreferenceSetAttribute",                                        \
    (void* preference, int attribute, const void* value, size_t bytes))                                 \
  X(heuristic, int, "cublasLtMatmulAlgoGetHeuristic",                                                   \
    (void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,       \
     HeuristicResult* results, int* found))                                                             \
  X(ids, int, "cublasLtMatmulAlgoGetIds",                                                               \
    (void* handle, int compute, int scale, int a, int b, int c, int d, int most, int* ids, int* found)) \
  X(init, int, "cublasLtMatmulAlgoInit",                                                                \
    (void* handle, int compute, int scale, int a, int b, int c, int d, int id, Opaque* algorithm))      \
  X(check, int, "cublasLtMatmulAlgoCheck",                                                              \
    (void* handle, void* product, void* a, void* b, void* c, void* d, const Opaque* algorithm,          \
     HeuristicResult* result))                                                                          \
  X(capability, int, "cublasLtMatmulAlgoCapGetAttribute",                                               \
    (const Opaque* algorithm, int attribute, void* value, size_t bytes, size_t* written))               \
  X(set_config, int, "cublasLtMatmulAlgoConfigSetAttribute",                                            \
    (Opaque * algorithm, int attribute, const void* value, size_t bytes))                               \
  X(get_config, int, "cublasLtMatmulAlgoConfigGetAttribute",                                            \
    (const Opaque* algorithm, int attribute, void* value, size_t bytes, size_t* written))               \
  X(multiply, int, "cublasLtMatmul",                                                                    \
    (void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b,      \
     void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,          \
     const void* algorithm, void* workspace, size_t workspace_bytes, cuda::Stream stream))

struct Api {
#define TUNER_CUBLASLT_MEMBER(member, result, symbol, parameters) \
  result(*member) parameters = nullptr;  // NOLINT
  TUNER_CUBLASLT_SYMBOLS(TUNER_CUBLASLT_MEMBER)
#undef TUNER_CUBLASLT_MEMBER
};

// The library, once in the life of the process: it cannot be unloaded safely.
const Result<Api>& loaded();

Status checked(int code, const char* call);

}  // namespace tuner::cublaslt
