// Operand: one array that a callable takes, and the checks of what a caller gives for it.
//
// The checks of a numpy array read its C struct: no Python object is made, so that a call costs tens of
// nanoseconds. Only when one fails are objects made, for the message. Needs the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/buffer_role.h"
#include "deploy/python/module/dlpack_abi.h"
#include "deploy/runtime/tuner_runtime_api.h"

namespace tuner::python {

struct Operand {
  PyObject* name =
      nullptr;  // interned, so that keywords are compared by address; lives as long as the process
  BufferRole role = BufferRole::kInput;
  ElementType type;
  std::string dtype;              // "float32"
  int numpy_types[2] = {-1, -1};  // numbers of numpy's types with these elements
  std::vector<int64_t> shape;
  int64_t bytes = 0;

  bool is_result() const { return tuner::is_result(role); }
};

// Sets an exception and returns false if the runtime names a type or role that is not known here.
bool read_operand(const tuner_operand& from, Operand& to);

// What was borrowed for the time of a call.
class Held {
 public:
  Held() = default;
  ~Held() {
    for (int i = 0; i < few_; ++i) Py_DECREF(some_[i]);
    for (PyObject* object : more_) Py_DECREF(object);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void keep(PyObject* object) {  // steals
    if (few_ < kFew)
      some_[few_++] = object;
    else
      more_.push_back(object);
  }

 private:
  static constexpr int kFew = 4;
  PyObject* some_[kFew];
  int few_ = 0;
  std::vector<PyObject*> more_;
};

// Whether memory must begin on a 64-byte border: constants need not, as they are copied.
enum class Border : uint8_t { kAny, k64 };

// The memory of `given` as the operand; null with an exception of tuner.errors that says what does not fit.
// `given`: a numpy array, a DLPack capsule, or an object with __dlpack__ such as a torch tensor.
void* place(const Operand& operand, PyObject* given, Border border, Held& held);

// A new numpy array for the operand, uninitialised, on a 64-byte border.
PyObject* allocate(const Operand& operand);

// The same for any shape and dtype of numpy. `dtype`: whatever numpy.dtype() takes.
PyObject* allocate_array(PyObject* shape, PyObject* dtype);

// Once: finds numpy if it is there, and compares its structs with those compiled against.
bool set_up_arrays(PyObject* module);

// Raises the class of tuner.errors with the text.
void raise_error(const char* class_name, const std::string& text);

}  // namespace tuner::python
