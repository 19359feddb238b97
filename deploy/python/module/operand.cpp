#include "deploy/python/module/operand.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tuner::python {
namespace {

constexpr uintptr_t kBorder = 64;
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMostRank = 12;

// Of numpy, looked up once. Null without numpy. The array API table is not imported: it is bound to numpy 1
// or 2, while the fields read here are the same in both (set_up_arrays compares them).
PyTypeObject* array_type = nullptr;
PyObject* dtype_type = nullptr;
PyObject* errors = nullptr;
PyObject* dlpack_method = nullptr;

// ---- memory on a 64-byte border, as a buffer for numpy ----
struct MemoryObject {
  PyObject_HEAD void* data;
  Py_ssize_t bytes;
};

void memory_dealloc(PyObject* self) {
  std::free(reinterpret_cast<MemoryObject*>(self)->data);
  Py_TYPE(self)->tp_free(self);
}

int memory_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* memory = reinterpret_cast<MemoryObject*>(self);
  return PyBuffer_FillInfo(view, self, memory->data, memory->bytes, /*readonly=*/0, flags);
}

PyBufferProcs memory_as_buffer = {memory_buffer, nullptr};

PyTypeObject MemoryType = [] {
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "tuner._kernels.Memory";
  type.tp_doc = "Memory on a 64-byte border, behind an array";
  type.tp_basicsize = sizeof(MemoryObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_dealloc = memory_dealloc;
  type.tp_as_buffer = &memory_as_buffer;
  return type;
}();

PyObject* new_memory(size_t bytes) {
  const size_t border = bytes >= kLargePage ? kLargePage : kBorder;
  const size_t rounded = (bytes + border - 1) / border * border;
  void* const data = std::aligned_alloc(border, rounded == 0 ? border : rounded);
  if (data == nullptr) return PyErr_NoMemory();
  // Results are measured on large pages where the system gives them.
  if (border == kLargePage) static_cast<void>(::madvise(data, rounded, MADV_HUGEPAGE));
  auto* memory = PyObject_New(MemoryObject, &MemoryType);
  if (memory == nullptr) {
    std::free(data);
    return nullptr;
  }
  memory->data = data;
  memory->bytes = static_cast<Py_ssize_t>(bytes);
  return reinterpret_cast<PyObject*>(memory);
}

// ---- words for messages ----
std::string name_of(const Operand& operand) { return PyUnicode_AsUTF8(operand.name); }

template <class T>
std::string list(const T* values, size_t count) {
  std::string text = "(";
  for (size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(static_cast<int64_t>(values[i]));
  return text + (count == 1 ? ",)" : ")");
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

std::string text_of(PyObject* object) {
  PyObject* const text = object == nullptr ? nullptr : PyObject_Str(object);
  const char* const utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  std::string result = utf8 == nullptr ? "?" : utf8;
  Py_XDECREF(text);
  PyErr_Clear();
  return result.substr(0, 80);
}

std::string element_text(ElementType t) {
  const char* const kind = t.code == kDlInt      ? "int"
                           : t.code == kDlUInt   ? "uint"
                           : t.code == kDlFloat  ? "float"
                           : t.code == kDlBFloat ? "bfloat"
                           : t.code == kDlBool   ? "bool"
                                                 : "type of code ";
  std::string text = kind;
  if (t.code != kDlBool) text += std::to_string(t.bits);
  return t.lanes == 1 ? text : text + " x " + std::to_string(t.lanes);
}

// What an array says of itself, by whatever way it came.
struct View {
  void* data = nullptr;
  bool type_fits = false, row_major = false, writable = true;
  std::string found_type;  // if it does not fit
  const int64_t* shape = nullptr;
  size_t rank = 0;
  const int64_t* strides = nullptr;  // for the message
  const char* strides_in = "bytes";
};

// The checks in their order, with a message for the first that fails.
void* checked(const Operand& o, const View& v, Border border) {
  if (!v.type_fits) {
    raise_error("DTypeError", name_of(o) + ": expected " + o.dtype + ", found " + v.found_type +
                                  ". Convert it: x.astype(...) in numpy, x.to(...) in torch");
    return nullptr;
  }
  if (v.rank != o.shape.size() || !std::equal(o.shape.begin(), o.shape.end(), v.shape)) {
    raise_error("ShapeError", name_of(o) + ": expected shape " + list(o.shape.data(), o.shape.size()) +
                                  ", found " + list(v.shape, v.rank) +
                                  ". A kernel is for one shape: reshape the array, or tune that shape");
    return nullptr;
  }
  if (!v.row_major) {
    raise_error("StridesError", name_of(o) + ": expected rows one after the other (C order), found strides " +
                                    list(v.strides, v.rank) + " " + v.strides_in +
                                    ". tuner.aligned(x) makes such a copy");
    return nullptr;
  }
  if (o.is_result() && !v.writable) {
    raise_error("ReadOnlyError",
                name_of(o) + ": expected an array that may be written, found a read-only one");
    return nullptr;
  }
  if (border == Border::k64 && reinterpret_cast<uintptr_t>(v.data) % kBorder != 0) {
    raise_error("AlignmentError", name_of(o) +
                                      ": expected an address that is a multiple of 64, found one that is " +
                                      std::to_string(reinterpret_cast<uintptr_t>(v.data) % kBorder) +
                                      " more. tuner.empty() makes such arrays, tuner.aligned(x) a copy");
    return nullptr;
  }
  return v.data;
}

// ---- numpy ----
bool is_native(const PyArray_Descr* descr) { return descr->byteorder != '>'; }

void* place_numpy(const Operand& o, PyArrayObject* a, Border border) {
  const int type = PyArray_TYPE(a), flags = PyArray_FLAGS(a);
  const bool type_fits =
      (type == o.numpy_types[0] || type == o.numpy_types[1]) && is_native(PyArray_DESCR(a));
  const auto rank = static_cast<size_t>(PyArray_NDIM(a));
  const npy_intp* const shape = PyArray_DIMS(a);
  void* const data = PyArray_DATA(a);
  bool fits = type_fits && rank == o.shape.size() && (flags & NPY_ARRAY_C_CONTIGUOUS) != 0 &&
              (!o.is_result() || (flags & NPY_ARRAY_WRITEABLE) != 0) &&
              (border == Border::kAny || reinterpret_cast<uintptr_t>(data) % kBorder == 0);
  for (size_t i = 0; fits && i < rank; ++i) fits = shape[i] == o.shape[i];
  if (fits) return data;
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  View view{.data = data,
            .type_fits = type_fits,
            .row_major = (flags & NPY_ARRAY_C_CONTIGUOUS) != 0,
            .writable = (flags & NPY_ARRAY_WRITEABLE) != 0,
            .shape = reinterpret_cast<const int64_t*>(shape),
            .rank = rank,
            .strides = reinterpret_cast<const int64_t*>(PyArray_STRIDES(a))};
  if (!type_fits) view.found_type = text_of(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
  return checked(o, view, border);
}

// ---- DLPack ----
bool is_row_major(const DlTensor& t) {
  if (t.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

// Whether the tensor's elements are those of the operand. Bits of a bfloat16 may also come as uint16.
bool same_elements(const Operand& o, ElementType t) {
  if (t == o.type) return true;
  if (o.type.code == kDlBFloat) return t == ElementType{kDlUInt, 16, 1};
  return o.type.code == kDlBool && t == ElementType{kDlUInt, 8, 1};
}

void* place_capsule(const Operand& o, PyObject* capsule, Border border) {
  if (PyCapsule_IsValid(capsule, kUsedCapsule)) {
    raise_error("ArrayError", name_of(o) +
                                  ": this DLPack capsule was used by another library. Make a new one "
                                  "with x.__dlpack__()");
    return nullptr;
  }
  auto* const managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (managed == nullptr) {
    PyErr_Clear();
    raise_error("ArrayError",
                name_of(o) + ": expected a DLPack capsule named \"dltensor\", found another one");
    return nullptr;
  }
  const DlTensor& t = managed->tensor;
  if (t.device.type != kDlCpu && t.device.type != kDlCudaHost) {
    raise_error("DeviceError", name_of(o) +
                                   ": expected memory of the CPU, found that of a device (DLPack's type " +
                                   std::to_string(t.device.type) + ", number " + std::to_string(t.device.id) +
                                   "). Kernels called from Python run on the CPU: x.cpu() in torch");
    return nullptr;
  }
  if (t.ndim < 0 || static_cast<size_t>(t.ndim) > 64 || (t.ndim > 0 && t.shape == nullptr)) {
    raise_error("ArrayError", name_of(o) + ": this DLPack capsule is damaged");
    return nullptr;
  }
  return checked(o,
                 {.data = static_cast<char*>(t.data) + t.byte_offset,
                  .type_fits = same_elements(o, t.dtype),
                  .row_major = is_row_major(t),
                  .found_type = element_text(t.dtype),
                  .shape = t.shape,
                  .rank = static_cast<size_t>(t.ndim),
                  .strides = t.strides,
                  .strides_in = "elements"},
                 border);
}

// Compares the fields that are read here with what numpy itself says of an array.
bool fields_agree(PyObject* numpy) {
  PyObject* const array = PyObject_CallMethod(numpy, "zeros", "((iii)s)", 2, 3, 5, "float32");
  if (array == nullptr) return false;
  auto* const a = reinterpret_cast<PyArrayObject*>(array);
  PyObject* const ctypes = PyObject_GetAttrString(array, "__array_interface__");
  PyObject* const data = ctypes == nullptr ? nullptr : PyDict_GetItemString(ctypes, "data");
  PyObject* const address = data == nullptr ? nullptr : PyTuple_GetItem(data, 0);
  const bool agree = address != nullptr && PyLong_AsVoidPtr(address) == PyArray_DATA(a) &&
                     PyArray_NDIM(a) == 3 && PyArray_DIMS(a)[0] == 2 && PyArray_DIMS(a)[2] == 5 &&
                     PyArray_STRIDES(a)[0] == 60 && PyArray_TYPE(a) == NPY_FLOAT &&
                     (PyArray_FLAGS(a) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE)) ==
                         (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE);
  Py_XDECREF(ctypes);
  Py_DECREF(array);
  return agree;
}

struct Known {
  const char* name;
  ElementType type;
  int numpy[2];
};
constexpr Known kKnown[] = {
    {"float32", {kDlFloat, 32}, {NPY_FLOAT, -1}},
    {"float64", {kDlFloat, 64}, {NPY_DOUBLE, -1}},
    {"float16", {kDlFloat, 16}, {NPY_HALF, -1}},
    {"bfloat16", {kDlBFloat, 16}, {NPY_USHORT, -1}},
    {"int8", {kDlInt, 8}, {NPY_BYTE, -1}},
    {"uint8", {kDlUInt, 8}, {NPY_UBYTE, -1}},
    {"int16", {kDlInt, 16}, {NPY_SHORT, -1}},
    {"uint16", {kDlUInt, 16}, {NPY_USHORT, -1}},
    {"int32", {kDlInt, 32}, {NPY_INT, -1}},
    {"uint32", {kDlUInt, 32}, {NPY_UINT, -1}},
    {"int64", {kDlInt, 64}, {NPY_LONG, NPY_LONGLONG}},
    {"uint64", {kDlUInt, 64}, {NPY_ULONG, NPY_ULONGLONG}},
    {"bool", {kDlBool, 8}, {NPY_BOOL, -1}},
};

}  // namespace

void raise_error(const char* class_name, const std::string& text) {
  PyObject* const type = PyObject_GetAttrString(errors, class_name);
  if (type == nullptr) return;
  PyErr_SetString(type, text.c_str());
  Py_DECREF(type);
}

bool read_operand(const tuner_operand& from, Operand& to) {
  to.name = PyUnicode_InternFromString(from.name);
  if (to.name == nullptr) return false;
  const std::optional<BufferRole> role = buffer_role_from_name(from.role);
  if (!role) {
    raise_error("Error", "operand " + std::string(from.name) + ": the role " + from.role +
                             " is not known here. Install the wheel of the same release");
    return false;
  }
  to.role = *role;
  to.dtype = from.dtype;
  to.bytes = from.bytes;
  to.shape.assign(from.shape, from.shape + from.rank);
  for (const Known& known : kKnown) {
    if (to.dtype != known.name) continue;
    to.type = known.type;
    to.numpy_types[0] = known.numpy[0], to.numpy_types[1] = known.numpy[1];
    return true;
  }
  raise_error("Error", "operand " + std::string(from.name) + ": the type " + to.dtype +
                           " is not known here. Install the wheel of the same release");
  return false;
}

void* place(const Operand& operand, PyObject* given, Border border, Held& held) {
  if (Py_TYPE(given) == array_type || (array_type != nullptr && PyObject_TypeCheck(given, array_type)))
    return place_numpy(operand, reinterpret_cast<PyArrayObject*>(given), border);
  if (PyCapsule_CheckExact(given)) return place_capsule(operand, given, border);
  PyObject* const capsule = PyObject_CallMethodNoArgs(given, dlpack_method);
  if (capsule != nullptr && PyCapsule_CheckExact(capsule)) {
    held.keep(capsule);
    return place_capsule(operand, capsule, border);
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const bool has_method = PyObject_HasAttr(given, dlpack_method) != 0;
  const std::string why = value == nullptr ? "no capsule" : text_of(value);
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace), Py_XDECREF(capsule);
  if (has_method)
    raise_error("ArrayError",
                name_of(operand) + ": the " + type_name(given) + " gives no DLPack capsule: " + why);
  else
    raise_error("DTypeError", name_of(operand) +
                                  ": expected a numpy array, a torch tensor or a DLPack capsule, "
                                  "found " +
                                  type_name(given));
  return nullptr;
}

PyObject* allocate_array(PyObject* shape, PyObject* dtype) {
  if (array_type == nullptr) {
    raise_error("ArrayError", "arrays need numpy, and it is not installed: pip install numpy");
    return nullptr;
  }
  PyObject* const wanted = PyObject_CallOneArg(dtype_type, dtype);
  if (wanted == nullptr) return nullptr;
  PyObject* const item_size = PyObject_GetAttrString(wanted, "itemsize");
  size_t bytes = item_size == nullptr ? 0 : PyLong_AsSize_t(item_size);
  Py_XDECREF(item_size);
  PyObject* const extents = PyLong_Check(shape) ? PyTuple_Pack(1, shape) : PySequence_Tuple(shape);
  bool good = extents != nullptr && PyErr_Occurred() == nullptr;
  if (good && PyTuple_GET_SIZE(extents) > static_cast<Py_ssize_t>(kMostRank)) {
    raise_error("ShapeError",
                "shape: expected at most 12 extents, found " + std::to_string(PyTuple_GET_SIZE(extents)));
    good = false;
  }
  for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(extents); ++i) {
    const Py_ssize_t extent = PyNumber_AsSsize_t(PyTuple_GET_ITEM(extents, i), PyExc_OverflowError);
    good = !PyErr_Occurred();
    if (good && (extent < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes) ||
                 bytes > SIZE_MAX / 4)) {
      raise_error("ShapeError",
                  "shape: expected extents of at least 0 that fit memory, found " + text_of(extents));
      good = false;
    }
  }
  PyObject* const memory = good ? new_memory(bytes) : nullptr;
  PyObject* array = nullptr;
  if (memory != nullptr) {
    PyObject* const args[] = {extents, wanted, memory};
    array = PyObject_Vectorcall(reinterpret_cast<PyObject*>(array_type), args, 3, nullptr);
    Py_DECREF(memory);
  }
  Py_XDECREF(extents);
  Py_DECREF(wanted);
  return array;
}

PyObject* allocate(const Operand& operand) {
  PyObject* const shape = PyTuple_New(static_cast<Py_ssize_t>(operand.shape.size()));
  if (shape == nullptr) return nullptr;
  for (size_t i = 0; i < operand.shape.size(); ++i)
    PyTuple_SET_ITEM(shape, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(operand.shape[i]));
  PyObject* const dtype =
      PyUnicode_FromString(operand.dtype == "bfloat16" ? "uint16" : operand.dtype.c_str());
  PyObject* const array = dtype == nullptr ? nullptr : allocate_array(shape, dtype);
  Py_XDECREF(dtype);
  Py_DECREF(shape);
  return array;
}

bool set_up_arrays(PyObject* module) {
  errors = PyImport_ImportModule("tuner.errors");
  dlpack_method = PyUnicode_InternFromString("__dlpack__");
  if (errors == nullptr || dlpack_method == nullptr || PyType_Ready(&MemoryType) < 0) return false;
  PyObject* const numpy = PyImport_ImportModule("numpy");
  if (numpy == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) return false;
    PyErr_Clear();  // torch alone, or capsules alone, are enough
    return PyModule_AddIntConstant(module, "has_numpy", 0) == 0;
  }
  if (!fields_agree(numpy)) {
    PyErr_Clear();
    PyErr_SetString(
        PyExc_ImportError,
        "tuner: this numpy lays its arrays out in another way than numpy 1 and 2. Install numpy 1 or 2");
    Py_DECREF(numpy);
    return false;
  }
  array_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(numpy, "ndarray"));
  dtype_type = PyObject_GetAttrString(numpy, "dtype");
  Py_DECREF(numpy);
  return array_type != nullptr && dtype_type != nullptr &&
         PyModule_AddIntConstant(module, "has_numpy", 1) == 0;
}

}  // namespace tuner::python
