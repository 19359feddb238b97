// A library that calls itself ONNX Runtime and is not: its version is that of FAKE_ONNXRUNTIME_VERSION, and
// each function of its table does nothing and returns null.
#include <cstdint>
#include <cstdlib>

namespace {

void* nothing() { return nullptr; }

const void* const* table(uint32_t) {
  constexpr int kFunctions = 200;
  static const void* functions[kFunctions];
  for (const void*& f : functions) f = reinterpret_cast<const void*>(&nothing);
  return functions;
}

const char* version() {
  const char* given = std::getenv("FAKE_ONNXRUNTIME_VERSION");
  return given == nullptr ? "1.0.0" : given;
}

struct ApiBase {
  const void* const* (*table)(uint32_t);
  const char* (*version)();
};

}  // namespace

extern "C" const ApiBase* OrtGetApiBase() {
  static const ApiBase base{table, version};
  return &base;
}
