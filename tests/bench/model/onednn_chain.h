// A model as somebody chains it by hand in oneDNN: a primitive a step, what follows a convolution in its
// post-operations, weights laid out ahead, layouts the library's own choice with reorders only where two
// steps differ, and memory that is used again, the latest first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/onednn.h"
#include "tuner/model/partition.h"

namespace tuner {

class OnednnChain {
 public:
  // Steps are those that ours runs, so both do the same work. `winograd`: 3x3 convolutions of stride 1 by it
  // where the library has it. NotFound: built without oneDNN, or a step that is not chained here, with its
  // name. `library` and `model` must outlive the chain.
  static Result<std::unique_ptr<OnednnChain>> make(const Onednn& library, const ModelSteps& model,
                                                   bool winograd);
  ~OnednnChain();
  OnednnChain(const OnednnChain&) = delete;
  OnednnChain& operator=(const OnednnChain&) = delete;

  void* input(size_t i) const;         // elements as the model has them
  const void* output(size_t i) const;  // after run()
  void run() const;

 private:
  class Maker;
  OnednnChain();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tuner
