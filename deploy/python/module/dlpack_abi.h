// The structs of DLPack 0.8, by which array libraries hand memory to each other
// (https://dmlc.github.io/dlpack). Their layout is the standard's. A capsule named "dltensor" holds a
// DlManagedTensor.
#pragma once

#include <cstdint>

namespace tuner::python {

inline constexpr char kCapsule[] = "dltensor", kUsedCapsule[] = "used_dltensor";

struct DlDevice {
  int32_t type = 0;
  int32_t id = 0;
};
// Devices whose memory this process reads like any other.
inline constexpr int32_t kDlCpu = 1, kDlCudaHost = 3;

// `code`: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool.
struct ElementType {
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
  bool operator==(const ElementType&) const = default;
};
inline constexpr uint8_t kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBFloat = 4, kDlBool = 6;

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  ElementType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* manager;
  void (*deleter)(DlManagedTensor*);
};

}  // namespace tuner::python
