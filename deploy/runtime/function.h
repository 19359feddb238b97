// Function: the kernel of one workload with the operands that the workload has, whatever the kernel wants of
// them. Immutable; run() and pack() may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel.h"
#include "deploy/runtime/pools.h"
#include "templates/workload/workload.h"

namespace tuner::runtime {

// A kernel for a workload and how it came about: what a source answers.
struct Choice {
  Kernel kernel;
  std::string target;  // that it is made for, canonical
  std::string kind;    // answer_kind_name()
  std::string template_name, config, algorithm;
  std::string note;  // for people; empty when exact
  bool compiled = false;
};

class Function;

// Constants as one function wants them.
class Packed {
 public:
  explicit Packed(const Function& owner) : owner_(&owner) {}
  bool is_of(const Function& f) const { return owner_ == &f; }

 private:
  friend class Function;
  const Function* owner_;
  std::vector<AlignedBuffer> of_args_;  // by the kernel's arguments; empty where they are no constants
};

class Function {
 public:
  // Failed when the kernel's arguments are not those of the workload.
  static Result<std::shared_ptr<const Function>> make(const Workload& workload, Choice choice,
                                                      std::shared_ptr<Pool> pool);

  struct Operand {
    std::string name;
    std::string role;  // input | constant | output
    DType dtype;
    std::vector<int64_t> shape;
    int64_t bytes;
  };
  const std::vector<Operand>& operands() const { return operands_; }
  bool has_constants() const { return has_constants_; }
  const Choice& choice() const { return choice_; }
  const std::string& workload_key() const { return key_; }

  // Copies or packs the constants among `operands`. InvalidArgument: a null pointer, or there is no memory.
  Result<std::unique_ptr<Packed>> pack(const void* const* operands) const;
  // InvalidArgument, naming the operand: null, not aligned to 64 bytes, overlapping an output; constants that
  // are missing or of another function. `packed` may be null without constants.
  Status run(const Packed* packed, void* const* operands) const;
  // Calls of run() so far: what shape capture counts.
  std::shared_ptr<const std::atomic<uint64_t>> calls() const { return calls_; }

 private:
  Function() = default;
  Status map_arguments();
  Status check(void* const* operands) const;
  int operand_named(const std::string& name) const;  // -1: none

  std::string key_;
  Choice choice_;
  std::shared_ptr<Pool> pool_;
  std::vector<Operand> operands_;
  bool has_constants_ = false;
  // For each argument of the kernel: the operand it is; -1: packed. For each of the packing entry likewise.
  std::vector<int> arg_operand_, pack_operand_;
  std::vector<int>
      packed_arg_;  // for each argument of the packing entry that is packed: the kernel's; else -1
  std::shared_ptr<std::atomic<uint64_t>> calls_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace tuner::runtime
