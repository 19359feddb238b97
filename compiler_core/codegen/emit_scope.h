// Scope: what is open where the emitter stands. That is its function, the loops around, and what is known of
// their variables. Private to codegen.
#pragma once

#include <map>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/stmt.h"
#include "llvm/IR/IRBuilder.h"

namespace tuner::codegen {

// A loop of the machine: where addresses that follow its variable are computed, once each.
struct OpenLoop {
  llvm::PHINode* variable;
  llvm::BasicBlock* before;  // runs just before the loop
  llvm::Instruction* last;   // of the instructions at the head of the body that make addresses
  struct Sum {
    llvm::Value* pointer;
    llvm::Type* element;
    int64_t coefficient;
    Expr term;
    llvm::Value* value;  // pointer + term * coefficient
  };
  std::vector<Sum> sums;
  struct Step {
    llvm::PHINode* pointer;
    llvm::Type* element;
    int64_t coefficient;
  };
  std::vector<Step> steps;  // pointers that move along with the variable
};

// The function that is written.
struct Region {
  llvm::Function* function = nullptr;
  std::map<const BufferNode*, llvm::Value*> buffers;
  std::map<const BufferNode*, llvm::Value*> fragments;  // in vectors; only intrinsics know how they lie
  llvm::Value* runtime = nullptr;
  bool in_parallel = false;
  bool has_tiles = false;        // its own statements use tile registers
  std::vector<OpenLoop*> loops;  // outermost first
};

struct Scope {
  struct LoopVar {
    llvm::Value* value;
    int depth;
  };
  Region region;
  std::map<const VarNode*, LoopVar> vars;  // of open loops, but for the one that lanes run along
  int depth = 0;                           // loops of the machine around
  RangeMap ranges;
};

}  // namespace tuner::codegen
