#include "compiler_core/codegen/near_addresses.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

namespace tuner::codegen {
namespace {

struct Access {
  llvm::Instruction* instruction;
  int64_t offset, bytes;  // from the pointer; of what is loaded or stored
};

bool is_held(int64_t displacement, int64_t bytes) {
  constexpr int64_t kMostScaled = 4095, kLeast = -256, kMost = 255;
  if (displacement >= kLeast && displacement <= kMost) return true;
  return displacement >= 0 && displacement % bytes == 0 && displacement / bytes <= kMostScaled;
}

using Accesses = llvm::MapVector<llvm::Value*, std::vector<Access>>;

// What the block accesses, by the pointers that it has in registers.
Accesses accesses_of(llvm::BasicBlock& block) {
  const llvm::DataLayout& layout = block.getModule()->getDataLayout();
  Accesses all;
  for (llvm::Instruction& i : block) {
    llvm::Value* p = llvm::getLoadStorePointerOperand(&i);
    if (p == nullptr) continue;
    const auto bytes =
        static_cast<int64_t>(layout.getTypeStoreSize(llvm::getLoadStoreType(&i)).getFixedValue());
    llvm::APInt offset(64, 0);
    llvm::Value* base = p->stripAndAccumulateConstantOffsets(layout, offset, true);
    if (!llvm::isa<llvm::Constant>(base) && !llvm::isa<llvm::AllocaInst>(base))
      all[base].push_back({&i, offset.getSExtValue(), std::max<int64_t>(bytes, 1)});
  }
  return all;
}

llvm::Value* plus(llvm::IRBuilder<>& b, llvm::Value* pointer, int64_t bytes) {
  return bytes == 0 ? pointer : b.CreateGEP(b.getInt8Ty(), pointer, b.getInt64(static_cast<uint64_t>(bytes)));
}

// The step of a pointer that moves along with a loop of one block, in bytes; 0 if it is something else.
int64_t step_of(llvm::PHINode& pointer) {
  llvm::BasicBlock* loop = pointer.getParent();
  if (pointer.getNumIncomingValues() != 2 || pointer.getBasicBlockIndex(loop) < 0) return 0;
  llvm::APInt step(64, 0);
  const llvm::Value* next = pointer.getIncomingValueForBlock(loop)->stripAndAccumulateConstantOffsets(
      loop->getModule()->getDataLayout(), step, true);
  return next == &pointer ? step.getSExtValue() : 0;
}

// pointer + bytes, as a pointer of its own.
llvm::Value* another(llvm::Value* pointer, int64_t bytes, llvm::Function& function) {
  auto* phi = llvm::dyn_cast<llvm::PHINode>(pointer);
  const int64_t step = phi == nullptr ? 0 : step_of(*phi);
  if (step != 0) {
    llvm::BasicBlock* loop = phi->getParent();
    llvm::BasicBlock* before = phi->getIncomingBlock(phi->getIncomingBlock(0) == loop ? 1 : 0);
    llvm::IRBuilder<> start(before->getTerminator()), head(loop, loop->begin()), end(loop->getTerminator());
    llvm::PHINode* moved = head.CreatePHI(phi->getType(), 2);
    moved->addIncoming(plus(start, phi->getIncomingValueForBlock(before), bytes), before);
    moved->addIncoming(plus(end, moved, step), loop);
    return moved;
  }
  if (auto* made = llvm::dyn_cast<llvm::Instruction>(pointer); made != nullptr) {
    llvm::IRBuilder<> b(made->getParent(), phi != nullptr ? made->getParent()->getFirstInsertionPt()
                                                          : std::next(made->getIterator()));
    return plus(b, pointer, bytes);
  }
  llvm::IRBuilder<> b(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
  return plus(b, pointer, bytes);
}

void bring_near(llvm::Value* pointer, std::vector<Access> accesses, llvm::Function& function) {
  std::ranges::stable_sort(accesses, {}, &Access::offset);
  std::vector<std::pair<int64_t, llvm::Value*>> near;  // what is held from where
  for (const Access& a : accesses) {
    auto from =
        std::ranges::find_if(near, [&](const auto& n) { return is_held(a.offset - n.first, a.bytes); });
    if (from == near.end()) from = near.insert(near.end(), {a.offset, another(pointer, a.offset, function)});
    llvm::IRBuilder<> b(a.instruction);
    llvm::Value* old = llvm::getLoadStorePointerOperand(a.instruction);
    llvm::Value* p = plus(b, from->second, a.offset - from->first);
    a.instruction->replaceUsesOfWith(old, p);
    if (old != pointer) llvm::RecursivelyDeleteTriviallyDeadInstructions(old);
  }
}

}  // namespace

void bring_pointers_near(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    std::vector<llvm::PHINode*> left;
    for (auto& [pointer, accesses] : accesses_of(block)) {
      // One far access takes one instruction, and a pointer of its own takes one, too.
      const auto far =
          std::ranges::count_if(accesses, [](const Access& a) { return !is_held(a.offset, a.bytes); });
      if (far < 2) continue;
      bring_near(pointer, accesses, function);
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(pointer)) left.push_back(phi);
    }
    for (llvm::PHINode* phi : left) llvm::RecursivelyDeleteDeadPHINode(phi);
  }
}

}  // namespace tuner::codegen
