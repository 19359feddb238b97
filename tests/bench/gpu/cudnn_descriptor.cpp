#include "tests/bench/gpu/cudnn_descriptor.h"

#include <algorithm>

namespace tuner::cudnn {
namespace {

Status answered(int code, const char* call, Attribute attribute) {
  return code == kSuccess ? Status::ok()
                          : checked(code, str(call, " of attribute ", static_cast<int>(attribute)).c_str());
}

}  // namespace

Result<CudnnDescriptor> CudnnDescriptor::make(Object kind) {
  CudnnDescriptor made;
  RETURN_IF_ERROR(checked(loaded()->create_descriptor(static_cast<int>(kind), &made.object_),
                          "cudnnBackendCreateDescriptor"));
  return made;
}

CudnnDescriptor::~CudnnDescriptor() {
  if (object_ != nullptr) loaded()->destroy_descriptor(object_);
}

Status CudnnDescriptor::set(Attribute attribute, Type type, int64_t count, const void* elements) {
  return answered(
      loaded()->set(object_, static_cast<int>(attribute), static_cast<int>(type), count, elements),
      "cudnnBackendSetAttribute", attribute);
}

Status CudnnDescriptor::finalize() { return checked(loaded()->finalize(object_), "cudnnBackendFinalize"); }

Result<int64_t> CudnnDescriptor::get(Attribute attribute, Type type, int64_t most, void* elements) const {
  int64_t count = 0;
  RETURN_IF_ERROR(answered(
      loaded()->get(object_, static_cast<int>(attribute), static_cast<int>(type), most, &count, elements),
      "cudnnBackendGetAttribute", attribute));
  return std::clamp<int64_t>(count, 0, most);
}

Result<int64_t> CudnnDescriptor::count(Attribute attribute, Type type) const {
  int64_t count = 0;
  RETURN_IF_ERROR(answered(
      loaded()->get(object_, static_cast<int>(attribute), static_cast<int>(type), 0, &count, nullptr),
      "cudnnBackendGetAttribute", attribute));
  return count;
}

Result<int64_t> CudnnDescriptor::get_number(Attribute attribute) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, get<int64_t>(attribute, Type::kInt64, 1));
  if (numbers.empty()) return failed("cuDNN: attribute ", static_cast<int>(attribute), " has no number");
  return numbers[0];
}

Result<std::vector<CudnnDescriptor>> CudnnDescriptor::get_objects(Attribute attribute, Object kind,
                                                                  int64_t most) const {
  std::vector<CudnnDescriptor> objects;
  std::vector<void*> pointers;
  for (int64_t i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(CudnnDescriptor object, make(kind));
    pointers.push_back(object.get());
    objects.push_back(std::move(object));
  }
  ASSIGN_OR_RETURN(const int64_t count, get(attribute, Type::kObject, most, pointers.data()));
  objects.resize(static_cast<size_t>(count));
  return objects;
}

}  // namespace tuner::cudnn
