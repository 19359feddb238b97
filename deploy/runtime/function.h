// Function: the kernel of one workload. It takes the operands of the workload, whatever the chosen kernel's
// arguments are. Immutable; any thread may call run() and pack().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/buffer_role.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel.h"
#include "deploy/runtime/pools.h"
#include "templates/workload/workload.h"

namespace tuner::runtime {

// A kernel for a workload, with the reasons for its choice: the answer of a Source.
struct Choice {
  Kernel kernel;
  std::string target;  // the canonical target it was made for
  std::string kind;    // answer_kind_name()
  std::string template_name, config, algorithm;
  std::string note;  // for people; empty when exact or locked
  bool compiled = false;
  // What its first use on this machine showed: verdict_name(), or "default" where it has the default config
  // anyway; empty: nobody asked. Times of a call; 0: not timed.
  std::string verdict;
  double raced_ns = 0, raced_default_ns = 0;
};

class Function;

// Constants in the form that one Function needs.
class Packed {
 public:
  explicit Packed(const Function& owner) : owner_(&owner) {}
  bool is_of(const Function& f) const { return owner_ == &f; }

 private:
  friend class Function;
  const Function* owner_;
  std::vector<AlignedBuffer> of_args_;  // one per kernel argument; empty if it is no constant
};

class Function {
 public:
  // Failed if the kernel's arguments do not fit the workload.
  static Result<std::shared_ptr<const Function>> make(const Workload& workload, Choice choice,
                                                      std::shared_ptr<Pool> pool);
  // The same of a user's kernel, whose source nobody here has: its arguments are its operands. Failed if one
  // of them is packed.
  static Result<std::shared_ptr<const Function>> make(std::string key, Choice choice,
                                                      std::shared_ptr<Pool> pool);

  struct Operand {
    std::string name;
    BufferRole role = BufferRole::kInput;  // as ArgInfo
    DType dtype;
    std::vector<int64_t> shape;
    int64_t bytes;
  };
  const std::vector<Operand>& operands() const { return operands_; }
  bool has_constants() const { return has_constants_; }
  const Choice& choice() const { return choice_; }
  const std::string& workload_key() const { return key_; }

  // Copies or packs the constants among `operands`. InvalidArgument: a null pointer, or no memory.
  Result<std::unique_ptr<Packed>> pack(const void* const* operands) const;
  // Computes. InvalidArgument names the operand that is null, not aligned to 64 bytes, or overlaps an output;
  // or says that constants are missing or of another Function. Without constants `packed` may be null.
  Status run(const Packed* packed, void* const* operands) const;
  // Counts the calls of run() so far; Capture reads it.
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
  // The operand behind each argument of the kernel, and of the packing entry; -1 where the argument is
  // packed.
  std::vector<int> arg_operand_, pack_operand_;
  // For each argument of the packing entry: the kernel argument it packs; -1: none.
  std::vector<int> packed_arg_;
  std::shared_ptr<std::atomic<uint64_t>> calls_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace tuner::runtime
