// Objects of the graph interface of the cuDNN for tests: attributes are checked against a table as they are
// set, and may not be set once the object is finalized.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace fake_cudnn {

enum Code : int {
  kOk = 0,
  kBadParameter = 2000,
  kNotFinalized = 2004,
  kOutOfBound = 2005,
  kMisaligned = 2003,
  kDuplicated = 2009,
  kAttributeType = 2010,
  kNotSupported = 3000,
};

// cudnnBackendAttributeType_t
enum Type : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kKnob = 9,
  kNote = 11,
  kPointwiseMode = 14,
  kObject = 15,
  kInt32 = 23,
  kChar = 24,
};
// cudnnBackendDescriptorType_t
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kKnobChoice = 7,
  kForward = 10,
  kPointwiseOperation = 13,
  kGraph = 15,
  kOperands = 16,
  kTensor = 17,
  kDevice = 38,
};

struct Object {
  uint32_t magic = 0xCD;
  Kind kind{};
  bool is_final = false;
  std::map<int, std::vector<unsigned char>> attributes;

  bool has(int attribute) const { return attributes.contains(attribute); }
  template <class T>
  std::vector<T> all(int attribute) const {
    std::vector<T> elements;
    const auto it = attributes.find(attribute);
    if (it == attributes.end()) return elements;
    elements.resize(it->second.size() / sizeof(T));
    std::memcpy(elements.data(), it->second.data(), elements.size() * sizeof(T));
    return elements;
  }
  template <class T>
  T one(int attribute) const {
    const std::vector<T> elements = all<T>(attribute);
    return elements.empty() ? T{} : elements[0];
  }
  const Object* object(int attribute) const { return one<const Object*>(attribute); }
  template <class T>
  void put(int attribute, const std::vector<T>& elements) {
    std::vector<unsigned char>& bytes = attributes[attribute];
    bytes.resize(elements.size() * sizeof(T));
    std::memcpy(bytes.data(), elements.data(), bytes.size());
  }
};

// Makes an object. All live until the process ends: others may point at one that its maker has destroyed.
Object& make_object(Kind kind);

// Answers with a code, and keeps why for cudnnGetLastErrorString.
int refuse(int code, const std::string& why);
const std::string& why_refused();

// What an attribute takes: its kind of object, its type, how many elements; of objects, of which kind they
// are.
int check_attribute(const Object& object, int attribute, int type, int64_t count, const void* elements);
size_t element_bytes_of(int type);

// Checks an object whose attributes are all there, and fills in what the library finds out.
int finalize(Object& object);

// A tensor, read out of its object.
struct Tensor {
  int64_t id = 0;
  int type = 0;  // cudnnDataType_t
  bool is_virtual = false;
  std::vector<int64_t> shape, strides;
  int64_t alignment = 0;

  explicit Tensor(const Object& o)
      : id(o.one<int64_t>(906)),
        type(o.one<int>(901)),
        is_virtual(o.one<unsigned char>(907) != 0),
        shape(o.all<int64_t>(902)),
        strides(o.all<int64_t>(903)),
        alignment(o.one<int64_t>(900)) {}
  int64_t elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
};

// The engines that there are, by index.
inline constexpr int64_t kEngines = 7, kRefusing = 2, kWrong = 3, kWinograd = 4, kDirect = 5, kCompiled = 6,
                         kReadyMade = 1, kFallback = 0;
inline constexpr size_t kWorkspaceBytes = 4096;

}  // namespace fake_cudnn
