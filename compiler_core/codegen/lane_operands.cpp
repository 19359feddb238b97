#include "compiler_core/codegen/lane_operands.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace tuner::codegen {
namespace {

constexpr int64_t kBytes = 4, kLanes = 4;

// A number of memory that is only broadcast.
struct Broadcast {
  llvm::LoadInst* load;
  int64_t offset;  // from what its address has in common with others, in bytes
  int place;       // of the load in its block
  int last_use;    // place of the last instruction that takes a broadcast of it
};

// A vector in place of some of them.
struct Window {
  int64_t offset, lanes;
  std::vector<Broadcast> numbers;

  int begin() const { return std::ranges::min(numbers, {}, &Broadcast::place).place; }
  int end() const { return std::ranges::max(numbers, {}, &Broadcast::last_use).last_use; }
};

bool is_broadcast(const llvm::ShuffleVectorInst& shuffle) { return shuffle.isZeroEltSplat(); }

// The broadcasts of a loaded number; empty when it has other uses.
std::vector<llvm::ShuffleVectorInst*> broadcasts_of(llvm::LoadInst& load) {
  std::vector<llvm::ShuffleVectorInst*> found;
  for (llvm::User* user : load.users()) {
    auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(user);
    const auto* at = insert == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
    if (at == nullptr || !at->isZero() || !llvm::isa<llvm::UndefValue>(insert->getOperand(0))) return {};
    for (llvm::User* next : insert->users()) {
      auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(next);
      if (shuffle == nullptr || !is_broadcast(*shuffle) || shuffle->getOperand(0) != insert) return {};
      found.push_back(shuffle);
    }
  }
  return found;
}

bool writes(const llvm::Instruction& i) {
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  const bool only_asks = intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch;
  return i.mayWriteToMemory() && !only_asks;
}

// The numbers from all[at] on that a vector of `lanes` numbers can have; `all` is sorted by offset.
Window window_at(const std::vector<Broadcast>& all, size_t at, int64_t lanes) {
  const int64_t end = all.back().offset + kBytes;
  Window window{std::min(all[at].offset, end - lanes * kBytes), lanes, {}};
  if (window.offset < all.front().offset) return window;
  for (size_t i = at; i < all.size(); ++i) {
    const int64_t from = all[i].offset - window.offset;
    if (from % kBytes == 0 && from < lanes * kBytes) window.numbers.push_back(all[i]);
  }
  return window;
}

std::vector<Window> windows_of(std::vector<Broadcast> all) {
  std::ranges::stable_sort(all, {}, &Broadcast::offset);
  std::vector<Window> windows;
  for (size_t at = 0; at < all.size();) {
    Window window = window_at(all, at, kLanes);
    Window half = window_at(all, at, kLanes / 2);
    if (half.numbers.size() >= window.numbers.size()) window = std::move(half);
    const size_t taken = window.numbers.size();
    if (taken >= 2) windows.push_back(std::move(window));
    // Numbers that no vector takes stay where they are; those of a window need not follow each other.
    if (taken < 2) {
      ++at;
      continue;
    }
    const auto is_taken = [&](const Broadcast& b) {
      return std::ranges::any_of(windows.back().numbers,
                                 [&](const Broadcast& n) { return n.load == b.load; });
    };
    all.erase(std::remove_if(all.begin() + static_cast<std::ptrdiff_t>(at), all.end(), is_taken), all.end());
  }
  return windows;
}

// How many of them are needed at once.
int most_alive(const std::vector<Window>& windows) {
  int most = 0;
  for (const Window& w : windows) {
    const auto is_alive = [&](const Window& other) {
      return other.begin() <= w.begin() && w.begin() <= other.end();
    };
    most = std::max(most, static_cast<int>(std::ranges::count_if(windows, is_alive)));
  }
  return most;
}

void load_at_once(const Window& window) {
  llvm::LoadInst* first = std::ranges::min(window.numbers, {}, &Broadcast::place).load;
  const int64_t first_offset = std::ranges::min(window.numbers, {}, &Broadcast::place).offset;
  llvm::IRBuilder<> b(first);
  auto* type = llvm::FixedVectorType::get(first->getType(), static_cast<unsigned>(window.lanes));
  llvm::Value* p = first->getPointerOperand();
  if (window.offset != first_offset)
    p = b.CreateGEP(b.getInt8Ty(), p,
                    llvm::ConstantInt::getSigned(b.getInt64Ty(), window.offset - first_offset));
  llvm::Value* vector = b.CreateAlignedLoad(type, p, std::min(first->getAlign(), llvm::Align(kBytes)));
  for (const Broadcast& number : window.numbers) {
    const auto lane = static_cast<int>((number.offset - window.offset) / kBytes);
    for (llvm::ShuffleVectorInst* shuffle : broadcasts_of(*number.load)) {
      llvm::IRBuilder<> at(shuffle);
      const auto lanes = llvm::cast<llvm::FixedVectorType>(shuffle->getType())->getNumElements();
      const llvm::SmallVector<int> mask(lanes, lane);
      auto* insert = llvm::cast<llvm::Instruction>(shuffle->getOperand(0));
      shuffle->replaceAllUsesWith(at.CreateShuffleVector(vector, mask));
      shuffle->eraseFromParent();
      if (insert->use_empty()) insert->eraseFromParent();
    }
    number.load->eraseFromParent();
  }
}

using Runs = llvm::MapVector<std::pair<llvm::Value*, llvm::Type*>, std::vector<Broadcast>>;

// The numbers of a block that are only broadcast, by what their addresses have in common. Those before and
// after a store are apart.
std::vector<Runs> runs_of(llvm::BasicBlock& block) {
  std::map<const llvm::Instruction*, int> places;
  for (const llvm::Instruction& i : block) places.emplace(&i, static_cast<int>(places.size()));
  std::vector<Runs> all(1);
  for (llvm::Instruction& i : block) {
    if (writes(i)) all.emplace_back();
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
    if (load == nullptr || !load->isSimple() || load->getType()->isVectorTy() ||
        load->getType()->getPrimitiveSizeInBits() != 8 * kBytes)
      continue;
    int last_use = 0;
    bool is_here = true;
    const std::vector<llvm::ShuffleVectorInst*> broadcasts = broadcasts_of(*load);
    for (const llvm::ShuffleVectorInst* shuffle : broadcasts)
      for (const llvm::User* user : shuffle->users()) {
        const auto at = places.find(llvm::cast<llvm::Instruction>(user));
        is_here = is_here && at != places.end();
        if (at != places.end()) last_use = std::max(last_use, at->second);
      }
    if (broadcasts.empty() || !is_here) continue;
    const llvm::DataLayout& layout = block.getModule()->getDataLayout();
    llvm::APInt offset(64, 0);
    llvm::Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    all.back()[{base, load->getType()}].push_back({load, offset.getSExtValue(), places.at(load), last_use});
  }
  return all;
}

}  // namespace

void broadcast_from_lanes(llvm::Function& function, int registers) {
  for (llvm::BasicBlock& block : function) {
    int sums = 0;
    for (const llvm::PHINode& phi : block.phis()) sums += phi.getType()->isVectorTy() ? 1 : 0;
    for (const Runs& runs : runs_of(block)) {
      std::vector<Window> windows;
      for (const auto& run : runs) std::ranges::move(windows_of(run.second), std::back_inserter(windows));
      // Two more: the other operand and what the scheduler loads ahead.
      if (sums + most_alive(windows) + 2 > registers) continue;
      for (const Window& window : windows) load_at_once(window);
    }
  }
}

}  // namespace tuner::codegen
