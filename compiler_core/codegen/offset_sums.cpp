#include "compiler_core/codegen/offset_sums.h"

#include <map>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/PatternMatch.h"

namespace tuner::codegen {
namespace {

using llvm::PatternMatch::m_Add;
using llvm::PatternMatch::m_Shl;
using llvm::PatternMatch::m_SpecificInt;
using llvm::PatternMatch::m_Value;
using llvm::PatternMatch::match;

bool is_dot(const llvm::Value* v) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::aarch64_neon_sdot;
}

// The dot product from zero whose value times 128 this is; null if it is something else.
llvm::IntrinsicInst* offset_of(llvm::Value* v) {
  llvm::Value* dot = nullptr;
  if (!match(v, m_Shl(m_Value(dot), m_SpecificInt(7))) || !is_dot(dot)) return nullptr;
  auto* call = llvm::cast<llvm::IntrinsicInst>(dot);
  const auto* from = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(0));
  return from != nullptr && from->isNullValue() ? call : nullptr;
}

// One sum that a loop carries, and the additions of offsets to it, last first.
struct Chain {
  llvm::PHINode* sum;
  std::vector<llvm::BinaryOperator*> additions;
  std::vector<llvm::IntrinsicInst*> offsets;
};

// Nothing in `additions`: the sum is no such chain.
Chain chain_of(llvm::PHINode& sum, llvm::BasicBlock& loop) {
  Chain chain{&sum, {}, {}};
  llvm::Value* at = sum.getIncomingValueForBlock(&loop);
  bool is_last = true;  // whose value is used behind the loop, too
  while (at != &sum) {
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(at);
    if (instruction == nullptr || instruction->getParent() != &loop || !(is_last || at->hasOneUse()))
      return {&sum, {}, {}};
    is_last = false;
    llvm::Value *rest = nullptr, *added = nullptr;
    if (match(at, m_Add(m_Value(rest), m_Value(added)))) {
      llvm::IntrinsicInst* offset = offset_of(added);
      if (offset == nullptr || offset->getParent() != &loop) return {&sum, {}, {}};
      chain.additions.push_back(llvm::cast<llvm::BinaryOperator>(at));
      chain.offsets.push_back(offset);
      at = rest;
    } else if (is_dot(at)) {
      at = llvm::cast<llvm::IntrinsicInst>(at)->getArgOperand(0);
    } else {
      return {&sum, {}, {}};
    }
  }
  return sum.hasOneUse() ? chain : Chain{&sum, {}, {}};
}

// The sum of the offsets in all iterations, as the loop carries it; its value behind the loop.
llvm::Value* carry(const std::vector<llvm::IntrinsicInst*>& offsets, llvm::BasicBlock& loop) {
  llvm::Type* type = offsets.front()->getType();
  llvm::IRBuilder<> head(&loop, loop.begin());
  llvm::PHINode* carried = head.CreatePHI(type, 2);
  llvm::Value* sum = carried;
  for (auto it = offsets.rbegin(); it != offsets.rend(); ++it) {
    auto* added = llvm::cast<llvm::IntrinsicInst>((*it)->clone());
    added->setArgOperand(0, sum);
    added->insertAfter((*it)->getIterator());
    sum = added;
  }
  for (llvm::BasicBlock* before : llvm::predecessors(&loop))
    carried->addIncoming(before == &loop ? sum : llvm::Constant::getNullValue(type), before);
  return sum;
}

// Where a loop of one block goes on; null if other blocks go there, too.
llvm::BasicBlock* behind(llvm::BasicBlock& loop) {
  llvm::BasicBlock* found = nullptr;
  bool repeats = false;
  for (llvm::BasicBlock* next : llvm::successors(&loop)) {
    repeats = repeats || next == &loop;
    if (next != &loop) found = next;
  }
  return repeats && found != nullptr && found->getSinglePredecessor() == &loop ? found : nullptr;
}

void add_behind(const Chain& chain, llvm::Value* offset, llvm::BasicBlock& loop, llvm::BasicBlock& next) {
  llvm::Value* last = chain.sum->getIncomingValueForBlock(&loop);
  for (llvm::BinaryOperator* addition : chain.additions) {
    llvm::Value* rest = addition->getOperand(0);
    if (addition == last) last = rest;
    addition->replaceAllUsesWith(rest);
    addition->eraseFromParent();
  }
  llvm::IRBuilder<> b(&next, next.getFirstInsertionPt());
  llvm::Value* whole = b.CreateAdd(last, b.CreateShl(offset, 7));
  last->replaceUsesWithIf(whole, [&](const llvm::Use& use) {
    const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
    return user->getParent() != &loop && user != whole;
  });
}

}  // namespace

void add_offsets_behind_loops(llvm::Function& function) {
  for (llvm::BasicBlock& loop : function) {
    llvm::BasicBlock* next = behind(loop);
    if (next == nullptr || llvm::isa<llvm::PHINode>(next->front())) continue;
    std::vector<Chain> chains;
    for (llvm::PHINode& sum : loop.phis())
      if (Chain chain = chain_of(sum, loop); !chain.additions.empty()) chains.push_back(std::move(chain));
    std::map<std::vector<llvm::IntrinsicInst*>, llvm::Value*> carried;  // asked for by key only
    for (const Chain& chain : chains) {
      const auto [at, fresh] = carried.try_emplace(chain.offsets, nullptr);
      if (fresh) at->second = carry(chain.offsets, loop);
      add_behind(chain, at->second, loop, *next);
    }
  }
}

}  // namespace tuner::codegen
