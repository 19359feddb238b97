#include "deploy/python/module/callee.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

namespace tuner::python {
namespace {

void raise_last(tuner_code code) {
  const char* const kind = code == TUNER_INVALID     ? "InvalidRequest"
                           : code == TUNER_NOT_FOUND ? "NotFound"
                                                     : "Error";
  raise_error(kind, tuner_last_error());
}

// Puts a text into the dict; false with an exception.
bool put(PyObject* dict, const char* key, const char* text) {
  PyObject* const value = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
  const bool good = value != nullptr && PyDict_SetItemString(dict, key, value) == 0;
  Py_XDECREF(value);
  return good;
}
bool put(PyObject* dict, const char* key, long number) {
  PyObject* const value = PyLong_FromLong(number);
  const bool good = value != nullptr && PyDict_SetItemString(dict, key, value) == 0;
  Py_XDECREF(value);
  return good;
}

struct Close {
  void operator()(tuner_source* source) const { tuner_close(source); }
  void operator()(tuner_function* function) const { tuner_release(function); }
  void operator()(tuner_packed* packed) const { tuner_free_packed(packed); }
  void operator()(tuner_loaded_model* model) const { tuner_model_close(model); }
  void operator()(tuner_model_context* context) const { tuner_model_free_context(context); }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

class KernelCallee final : public Callee {
 public:
  KernelCallee(std::shared_ptr<tuner_function> function, Owned<tuner_packed> packed)
      : function_(std::move(function)), packed_(std::move(packed)) {}

  bool read_operands() {
    const int32_t count = tuner_num_operands(function_.get());
    for (int32_t i = 0; i < count; ++i) {
      tuner_operand from;
      if (const tuner_code code = tuner_get_operand(function_.get(), i, &from); code != TUNER_OK) {
        raise_last(code);
        return false;
      }
      operands.emplace_back();
      if (!read_operand(from, operands.back())) return false;
    }
    order_operands();
    if (packed_ != nullptr) has_constants = false;
    return true;
  }

  tuner_code run(void* const* pointers) const override {
    return tuner_run(function_.get(), packed_.get(), pointers);
  }

  std::shared_ptr<const Callee> with_constants(const void* const* pointers) const override {
    tuner_packed* packed = nullptr;
    tuner_code code = TUNER_OK;
    Py_BEGIN_ALLOW_THREADS;
    code = tuner_pack(function_.get(), pointers, &packed);
    Py_END_ALLOW_THREADS;
    if (code != TUNER_OK) {
      raise_last(code);
      return nullptr;
    }
    auto made = std::make_shared<KernelCallee>(function_, Owned<tuner_packed>(packed));
    return made->read_operands() ? made : nullptr;
  }

  PyObject* describe() const override {
    tuner_answer answer = {.struct_bytes = sizeof answer};
    if (const tuner_code code = tuner_describe(function_.get(), &answer); code != TUNER_OK) {
      raise_last(code);
      return nullptr;
    }
    PyObject* const dict = PyDict_New();
    if (dict == nullptr) return nullptr;
    if (put(dict, "workload", answer.workload) && put(dict, "target", answer.target) &&
        put(dict, "kind", answer.kind) && put(dict, "template", answer.template_name) &&
        put(dict, "config", answer.config) && put(dict, "algorithm", answer.algorithm) &&
        put(dict, "digest", answer.digest) && put(dict, "note", answer.note) &&
        put(dict, "threads", answer.threads))
      return dict;
    Py_DECREF(dict);
    return nullptr;
  }

 private:
  const std::shared_ptr<tuner_function> function_;
  const Owned<tuner_packed> packed_;  // null: without constants, or not put in yet
};

// Contexts are made when calls need them: one for each call that runs at once.
class ModelCallee final : public Callee {
 public:
  ModelCallee(Owned<tuner_loaded_model> model, int threads) : model_(std::move(model)), threads_(threads) {}

  bool read_operands() {
    input_count_ = tuner_model_num_inputs(model_.get());
    const int32_t outputs = tuner_model_num_outputs(model_.get());
    for (int32_t i = 0; i < input_count_ + outputs; ++i) {
      tuner_operand from;
      const tuner_code code = i < input_count_
                                  ? tuner_model_get_input(model_.get(), i, &from)
                                  : tuner_model_get_output(model_.get(), i - input_count_, &from);
      if (code != TUNER_OK) {
        raise_last(code);
        return false;
      }
      operands.emplace_back();
      if (!read_operand(from, operands.back())) return false;
      operands.back().role = i < input_count_ ? BufferRole::kInput : BufferRole::kOutput;
    }
    order_operands();
    return true;
  }

  tuner_code run(void* const* pointers) const override {
    Owned<tuner_model_context> context;
    if (const tuner_code code = take(context); code != TUNER_OK) return code;
    const tuner_code code =
        tuner_model_run(context.get(), const_cast<const void* const*>(pointers), pointers + input_count_);
    const std::lock_guard lock(mutex_);
    if (process_ == ::getpid()) idle_.push_back(std::move(context));
    return code;
  }

  PyObject* describe() const override { return PyDict_New(); }

 private:
  tuner_code take(Owned<tuner_model_context>& context) const {
    {
      const std::lock_guard lock(mutex_);
      // After fork() the contexts' threads are those of the parent: they cannot run here.
      if (process_ != ::getpid()) idle_.clear(), process_ = ::getpid();
      if (!idle_.empty()) {
        context = std::move(idle_.back());
        idle_.pop_back();
        return TUNER_OK;
      }
    }
    tuner_model_context* made = nullptr;
    const tuner_code code = tuner_model_new_context(model_.get(), threads_, &made);
    context.reset(made);
    return code;
  }

  const Owned<tuner_loaded_model> model_;
  const int threads_;
  int32_t input_count_ = 0;
  mutable std::mutex mutex_;
  mutable pid_t process_ = ::getpid();
  mutable std::vector<Owned<tuner_model_context>> idle_;
};

}  // namespace

std::shared_ptr<const Callee> Callee::with_constants(const void* const*) const {
  raise_error("InvalidRequest", "there are no constants to pack here");
  return nullptr;
}

void Callee::order_operands() {
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].role == BufferRole::kInput) positional.push_back(static_cast<int>(i));
  inputs = positional.size();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_result()) positional.push_back(static_cast<int>(i));
    has_constants = has_constants || operands[i].role == BufferRole::kConstant;
  }
}

std::shared_ptr<const Callee> open_kernel(const char* folder, const char* key) {
  tuner_source* opened = nullptr;
  tuner_function* found = nullptr;
  tuner_code code = TUNER_OK;
  // A bundle's answers are told by Python; the library says nothing on stderr.
  const tuner_options options{.struct_bytes = sizeof options, .message = [](void*, const char*) {}};
  Py_BEGIN_ALLOW_THREADS;
  code = tuner_open(folder, &options, &opened);
  if (code == TUNER_OK) code = tuner_find(opened, key, &found);
  Py_END_ALLOW_THREADS;
  const Owned<tuner_source> source(opened);  // a function outlives its source
  if (code != TUNER_OK) {
    raise_last(code);
    return nullptr;
  }
  auto kernel = std::make_shared<KernelCallee>(std::shared_ptr<tuner_function>(found, Close()), nullptr);
  return kernel->read_operands() ? kernel : nullptr;
}

std::shared_ptr<const Callee> open_model(const char* folder, int threads) {
  tuner_loaded_model* opened = nullptr;
  tuner_code code = TUNER_OK;
  Py_BEGIN_ALLOW_THREADS;
  code = tuner_model_open(folder, &opened);
  Py_END_ALLOW_THREADS;
  if (code != TUNER_OK) {
    raise_last(code);
    return nullptr;
  }
  auto model = std::make_shared<ModelCallee>(Owned<tuner_loaded_model>(opened), threads);
  return model->read_operands() ? model : nullptr;
}

}  // namespace tuner::python
