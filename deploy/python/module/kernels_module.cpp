// tuner._kernels: kernels and models that are called with arrays.
//
// Written against CPython itself, not with pybind11: pybind11 2.10 takes about a microsecond for a call with
// keywords, since it makes a tuple and a dict and tries its casters. A type with vectorcall gets the
// arguments as they lie on the interpreter's stack. `deploy/python/README.md` has the figures.
#include "deploy/python/module/callee.h"

// Behind Python.h.
#include <structmember.h>

#include <new>

namespace tuner::python {
namespace {

struct KernelObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  std::shared_ptr<const Callee> callee;
  // Whether a call gives up the GIL. It costs a few tens of nanoseconds, and others may then hold it for
  // milliseconds; so short kernels keep it.
  char releases_gil;
};

extern PyTypeObject KernelType;
PyTypeObject* operand_type = nullptr;
PyObject* out_word = nullptr;

constexpr size_t kFew = 16;

std::string word(PyObject* text) {
  const char* const utf8 = PyUnicode_AsUTF8(text);
  return utf8 == nullptr ? "?" : utf8;
}

// "kernel(data, weight, out=None)".
std::string signature(const Callee& c) {
  std::string text = "kernel(";
  for (size_t i = 0; i < c.positional.size(); ++i) {
    const Operand& o = c.operands[static_cast<size_t>(c.positional[i])];
    text += (i == 0 ? "" : ", ") + word(o.name) + (o.role == BufferRole::kOutput ? "=None" : "");
  }
  return text + ")";
}

void refuse(const Callee& c, const std::string& what) {
  raise_error("CallError", what + "; expected " + signature(c));
}

// ---- a call ----
// Finds which operand each argument is for. False with an exception.
bool assign(const Callee& c, PyObject* const* args, size_t count, PyObject* names, PyObject** given) {
  if (count > c.positional.size()) {
    refuse(c, "found " + std::to_string(count) + " arrays");
    return false;
  }
  for (size_t i = 0; i < count; ++i) given[c.positional[i]] = args[i];
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* const name = PyTuple_GET_ITEM(names, k);
    PyObject* const value = args[count + static_cast<size_t>(k)];
    size_t place = c.operands.size();
    for (size_t i = 0; i < c.operands.size() && place == c.operands.size(); ++i)
      if (c.operands[i].name == name) place = i;
    // A keyword of ** may be no interned text; and the only result is `out`, whatever its name.
    for (size_t i = 0; i < c.operands.size() && place == c.operands.size(); ++i)
      if (PyUnicode_Compare(c.operands[i].name, name) == 0) place = i;
    if (place == c.operands.size() && c.positional.size() == c.inputs + 1 &&
        PyUnicode_Compare(out_word, name) == 0)
      place = static_cast<size_t>(c.positional[c.inputs]);
    if (place == c.operands.size() || c.operands[place].role == BufferRole::kConstant) {
      refuse(c, "there is no argument " + word(name).substr(0, 80) +
                    (place == c.operands.size() ? "" : ": it is constant, and given once by pack()"));
      return false;
    }
    if (given[place] != nullptr) {
      refuse(c, word(name) + " is given twice");
      return false;
    }
    given[place] = value;
  }
  return true;
}

PyObject* results_of(const Callee& c, PyObject* const* given) {
  const size_t count = c.positional.size() - c.inputs;
  if (count == 1) return Py_NewRef(given[c.positional[c.inputs]]);
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; tuple != nullptr && i < count; ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(given[c.positional[c.inputs + i]]));
  return tuple;
}

PyObject* call_with(const KernelObject* self, PyObject* const* args, size_t count, PyObject* names,
                    PyObject** given, void** pointers) {
  const Callee& c = *self->callee;
  if (c.has_constants) {
    std::string constants;
    for (const Operand& o : c.operands)
      if (o.role == BufferRole::kConstant)
        constants += (constants.empty() ? "" : ", ") + word(o.name) + "=...";
    raise_error("CallError",
                "the kernel has constants. Pack them once, and call what that returns: kernel.pack(" +
                    constants + ")");
    return nullptr;
  }
  if (!assign(c, args, count, names, given)) return nullptr;
  Held held;
  for (const int place_of : c.positional) {
    const Operand& o = c.operands[static_cast<size_t>(place_of)];
    PyObject*& object = given[place_of];
    if (o.role == BufferRole::kOutput && (object == nullptr || object == Py_None)) {
      object = allocate(o);
      if (object == nullptr) return nullptr;
      held.keep(object);
    } else if (object == nullptr) {
      refuse(c, word(o.name) + " is missing");
      return nullptr;
    }
    pointers[place_of] = place(o, object, Border::k64, held);
    if (pointers[place_of] == nullptr) {
      if (PyErr_Occurred() != nullptr) return nullptr;
      refuse(c, word(o.name) + ": the array has no memory");
      return nullptr;
    }
  }
  tuner_code code = TUNER_OK;
  if (self->releases_gil != 0) {
    // The callee stays: the caller holds `self`, and packing makes another one.
    PyThreadState* const state = PyEval_SaveThread();
    code = c.run(pointers);
    PyEval_RestoreThread(state);
  } else {
    code = c.run(pointers);
  }
  if (code != TUNER_OK) {
    raise_error(code == TUNER_INVALID ? "ArrayError" : "Error", tuner_last_error());
    return nullptr;
  }
  return results_of(c, given);
}

PyObject* call(PyObject* object, PyObject* const* args, size_t count_and_flag, PyObject* names) {
  const auto* self = reinterpret_cast<KernelObject*>(object);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(count_and_flag));
  const size_t operands = self->callee->operands.size();
  if (operands <= kFew) {
    PyObject* given[kFew] = {};
    void* pointers[kFew] = {};
    return call_with(self, args, count, names, given, pointers);
  }
  std::vector<PyObject*> given(operands, nullptr);
  std::vector<void*> pointers(operands, nullptr);
  return call_with(self, args, count, names, given.data(), pointers.data());
}

// ---- the object ----
PyObject* wrap(std::shared_ptr<const Callee> callee, bool releases_gil) {
  if (callee == nullptr) return nullptr;
  PyObject* const object = KernelType.tp_alloc(&KernelType, 0);
  if (object == nullptr) return nullptr;
  auto* self = reinterpret_cast<KernelObject*>(object);
  new (&self->callee) std::shared_ptr<const Callee>(std::move(callee));
  self->vectorcall = call;
  self->releases_gil = releases_gil ? 1 : 0;
  return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<KernelObject*>(object)->dict);
  return 0;
}

int clear(PyObject* object) {
  Py_CLEAR(reinterpret_cast<KernelObject*>(object)->dict);
  return 0;
}

void dealloc(PyObject* object) {
  auto* self = reinterpret_cast<KernelObject*>(object);
  PyObject_GC_UnTrack(object);
  if (self->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->dict);
  self->callee.~shared_ptr();
  Py_TYPE(object)->tp_free(object);
}

PyObject* pack(PyObject* object, PyObject* args, PyObject* keywords) {
  const auto* self = reinterpret_cast<KernelObject*>(object);
  const Callee& c = *self->callee;
  if (PyTuple_GET_SIZE(args) != 0) {
    raise_error("CallError", "pack: expected the constants by their names, as pack(weight=w)");
    return nullptr;
  }
  std::vector<const void*> pointers(c.operands.size(), nullptr);
  Held held;
  Py_ssize_t used = 0;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Operand& o = c.operands[i];
    if (o.role != BufferRole::kConstant) continue;
    PyObject* const value = keywords == nullptr ? nullptr : PyDict_GetItemWithError(keywords, o.name);
    if (value == nullptr) {
      if (PyErr_Occurred() == nullptr)
        raise_error("CallError", "pack: the constant " + word(o.name) + " is missing");
      return nullptr;
    }
    ++used;
    pointers[i] = place(o, value, Border::kAny, held);
    if (pointers[i] == nullptr) return nullptr;
  }
  if (keywords != nullptr && PyDict_GET_SIZE(keywords) != used) {
    raise_error("CallError", "pack: found an argument that is no constant of the kernel");
    return nullptr;
  }
  PyObject* const packed = wrap(c.with_constants(pointers.data()), self->releases_gil != 0);
  if (packed == nullptr || self->dict == nullptr) return packed;
  // What is known of the kernel is known of the packed one.
  auto* const made = reinterpret_cast<KernelObject*>(packed);
  made->dict = PyDict_Copy(self->dict);
  if (made->dict != nullptr) return packed;
  Py_DECREF(packed);
  return nullptr;
}

PyObject* empty_for(PyObject* object, PyObject* name) {
  const Callee& c = *reinterpret_cast<KernelObject*>(object)->callee;
  if (PyUnicode_Check(name))
    for (const Operand& o : c.operands)
      if (PyUnicode_Compare(o.name, name) == 0) return allocate(o);
  refuse(c, "empty: there is no such operand");
  return nullptr;
}

PyObject* describe(PyObject* object, PyObject*) {
  return reinterpret_cast<KernelObject*>(object)->callee->describe();
}

PyObject* get_operands(PyObject* object, void*) {
  const Callee& c = *reinterpret_cast<KernelObject*>(object)->callee;
  PyObject* const all = PyTuple_New(static_cast<Py_ssize_t>(c.operands.size()));
  for (size_t i = 0; all != nullptr && i < c.operands.size(); ++i) {
    const Operand& o = c.operands[i];
    PyObject* const entry = PyStructSequence_New(operand_type);
    PyObject* const shape = PyTuple_New(static_cast<Py_ssize_t>(o.shape.size()));
    if (entry == nullptr || shape == nullptr) return nullptr;
    for (size_t d = 0; d < o.shape.size(); ++d)
      PyTuple_SET_ITEM(shape, static_cast<Py_ssize_t>(d), PyLong_FromLongLong(o.shape[d]));
    PyStructSequence_SetItem(entry, 0, Py_NewRef(o.name));
    PyStructSequence_SetItem(entry, 1, PyUnicode_FromString(buffer_role_name(o.role).data()));
    PyStructSequence_SetItem(entry, 2, PyUnicode_FromString(o.dtype.c_str()));
    PyStructSequence_SetItem(entry, 3, shape);
    PyStructSequence_SetItem(entry, 4, PyLong_FromLongLong(o.bytes));
    PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), entry);
  }
  return all;
}

PyObject* get_signature(PyObject* object, void*) {
  return PyUnicode_FromString(signature(*reinterpret_cast<KernelObject*>(object)->callee).c_str());
}

PyObject* represent(PyObject* object) {
  return PyUnicode_FromFormat("<tuner %s>",
                              signature(*reinterpret_cast<KernelObject*>(object)->callee).c_str());
}

PyMethodDef methods[] = {
    {"pack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(pack)), METH_VARARGS | METH_KEYWORDS,
     "pack(**constants): a kernel with the constants put in. They are copied."},
    {"empty", empty_for, METH_O,
     "empty(name): a new array for that operand, uninitialised, on a 64-byte border."},
    {"describe", describe, METH_NOARGS, "describe(): which kernel was chosen and why, as a dict."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"operands", get_operands, nullptr, "The arrays of a call, and the constants.", nullptr},
    {"signature", get_signature, nullptr, "How it is called.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"releases_gil", T_BOOL, offsetof(KernelObject, releases_gil), 0, "Whether calls give up the GIL."},
    {nullptr, 0, 0, 0, nullptr}};

PyTypeObject KernelType = [] {
  PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "tuner.Kernel";
  type.tp_doc = "A tuned kernel, or a compiled model, that is called with arrays";
  type.tp_basicsize = sizeof(KernelObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
                  Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_vectorcall_offset = offsetof(KernelObject, vectorcall);
  type.tp_dictoffset = offsetof(KernelObject, dict);
  type.tp_weaklistoffset = offsetof(KernelObject, weak_references);
  type.tp_call = PyVectorcall_Call;
  type.tp_traverse = traverse;
  type.tp_clear = clear;
  type.tp_dealloc = dealloc;
  type.tp_repr = represent;
  type.tp_methods = methods;
  type.tp_getset = attributes;
  type.tp_members = members;
  return type;
}();

// ---- the module ----
PyObject* load_kernel(PyObject*, PyObject* args) {
  const char *folder = nullptr, *key = nullptr;
  int releases_gil = 1;
  if (PyArg_ParseTuple(args, "ssp", &folder, &key, &releases_gil) == 0) return nullptr;
  return wrap(open_kernel(folder, key), releases_gil != 0);
}

PyObject* load_model(PyObject*, PyObject* args) {
  const char* folder = nullptr;
  int threads = 0;
  if (PyArg_ParseTuple(args, "si", &folder, &threads) == 0) return nullptr;
  return wrap(open_model(folder, threads), true);
}

PyObject* empty(PyObject*, PyObject* args) {
  PyObject *shape = nullptr, *dtype = nullptr;
  if (PyArg_ParseTuple(args, "OO", &shape, &dtype) == 0) return nullptr;
  return allocate_array(shape, dtype);
}

PyObject* version(PyObject*, PyObject*) { return PyUnicode_FromString(tuner_version()); }

PyMethodDef functions[] = {
    {"load_kernel", load_kernel, METH_VARARGS, "load_kernel(folder, key, releases_gil)"},
    {"load_model", load_model, METH_VARARGS, "load_model(folder, threads)"},
    {"empty", empty, METH_VARARGS, "empty(shape, dtype)"},
    {"version", version, METH_NOARGS, "version()"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tuner._kernels", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

PyStructSequence_Field operand_fields[] = {
    {"name", "as calls name it"}, {"role", "input, constant, output or inout"},
    {"dtype", "of its elements"}, {"shape", "row-major"},
    {"bytes", "in memory"},       {nullptr, nullptr}};
PyStructSequence_Desc operand_description = {"tuner.Operand", "One array of a kernel", operand_fields, 5};

}  // namespace
}  // namespace tuner::python

PyMODINIT_FUNC PyInit__kernels() {  // NOLINT(bugprone-reserved-identifier): named by the interpreter
  using namespace tuner::python;
  if (PyType_Ready(&KernelType) < 0) return nullptr;
  operand_type = PyStructSequence_NewType(&operand_description);
  out_word = PyUnicode_InternFromString("out");
  PyObject* const module = PyModule_Create(&definition);
  if (operand_type == nullptr || out_word == nullptr || module == nullptr) return nullptr;
  if (PyModule_AddObjectRef(module, "Kernel", reinterpret_cast<PyObject*>(&KernelType)) < 0 ||
      PyModule_AddObjectRef(module, "Operand", reinterpret_cast<PyObject*>(operand_type)) < 0 ||
      !set_up_arrays(module)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
