// Callee: what a call from Python runs, a kernel or a compiled model, as operands and pointers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deploy/python/module/operand.h"

namespace tuner::python {

class Callee {
 public:
  virtual ~Callee() = default;
  Callee(const Callee&) = delete;
  Callee& operator=(const Callee&) = delete;

  // Computes with the memory of each operand, in their order; those of constants are not read. Any thread,
  // with or without the GIL.
  virtual tuner_code run(void* const* pointers) const = 0;
  // A callee with these constants put in, in the order of the operands; null with an exception.
  virtual std::shared_ptr<const Callee> with_constants(const void* const* pointers) const;
  // Facts for people: a new dict.
  virtual PyObject* describe() const = 0;

  std::vector<Operand> operands;
  // Places in `operands` that a call gives by position: inputs first, then results.
  std::vector<int> positional;
  size_t inputs = 0;           // how many of `positional` are inputs
  bool has_constants = false;  // that are not put in yet

 protected:
  Callee() = default;
  void order_operands();  // fills the three fields above
};

// A kernel of a folder that `tuner build` wrote, by its workload's key; null with an exception.
std::shared_ptr<const Callee> open_kernel(const char* folder, const char* key);
// A folder that `tuner compile` wrote. `threads`: 0 as many as it was compiled for.
std::shared_ptr<const Callee> open_model(const char* folder, int threads);

}  // namespace tuner::python
