#include "compiler_core/codegen_cuda/sass/flow.h"

#include <algorithm>
#include <map>

namespace tuner::sass {
namespace {

// Far beyond what the kernels here have; the work grows with their product.
constexpr size_t kMostBlocks = 16384, kMostLoops = 1024;

std::vector<Block> cut_into_blocks(const std::vector<Instruction>& code) {
  const auto size = static_cast<int>(code.size());
  std::vector<bool> begins(code.size() + 1, false);
  if (size > 0) begins[0] = true;
  for (int at = 0; at < size; ++at) {
    const Instruction& i = code[static_cast<size_t>(at)];
    if (i.jump == Jump::kNone) continue;
    begins[static_cast<size_t>(at) + 1] = true;
    if (i.target >= 0 && i.target < size) begins[static_cast<size_t>(i.target)] = true;
  }
  std::vector<Block> blocks;
  for (int at = 0; at < size; ++at) {
    if (begins[static_cast<size_t>(at)]) blocks.push_back({.begin = at, .end = at});
    blocks.back().end = at + 1;
  }
  return blocks;
}

int block_at(const std::vector<Block>& blocks, int instruction) {
  const auto after = std::ranges::upper_bound(blocks, instruction, {}, &Block::begin);
  return static_cast<int>(after - blocks.begin()) - 1;
}

void connect(const std::vector<Instruction>& code, std::vector<Block>& blocks) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Instruction& last = code[static_cast<size_t>(blocks[b].end) - 1];
    const bool jumps = last.target >= 0 && static_cast<size_t>(last.target) < code.size();
    const bool leaves = last.jump != Jump::kNone && last.jump != Jump::kCall && last.always;
    if (jumps) blocks[b].next.push_back(block_at(blocks, last.target));
    const int following = static_cast<int>(b) + 1;
    if (!leaves && b + 1 < blocks.size() && !std::ranges::count(blocks[b].next, following))
      blocks[b].next.push_back(following);
  }
}

// What dominates what: Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
class Dominators {
 public:
  // From block `root` along `next`; a block that is not reached has no dominator.
  Dominators(const std::vector<std::vector<int>>& next, int root)
      : place_(next.size(), -1), above_(next.size(), -1), before_(next.size()) {
    order(next, root);
    for (size_t b = 0; b < next.size(); ++b)
      for (const int to : next[b]) before_[static_cast<size_t>(to)].push_back(static_cast<int>(b));
    above_[static_cast<size_t>(root)] = root;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto b = order_.rbegin(); b != order_.rend(); ++b)
        if (*b != root) changed |= update(*b);
    }
  }
  bool reached(int b) const { return place_[static_cast<size_t>(b)] >= 0; }
  const std::vector<int>& before(int b) const { return before_[static_cast<size_t>(b)]; }
  // True if every way to b leads over `over`.
  bool dominates(int over, int b) const {
    if (!reached(over) || !reached(b)) return false;
    while (place_[static_cast<size_t>(b)] < place_[static_cast<size_t>(over)])
      b = above_[static_cast<size_t>(b)];
    return b == over;
  }

 private:
  // Depth first, without recursion: a block gets its place when all behind it have theirs.
  void order(const std::vector<std::vector<int>>& next, int root) {
    std::vector<std::pair<int, size_t>> way = {{root, 0}};
    std::vector<bool> seen(next.size(), false);
    seen[static_cast<size_t>(root)] = true;
    while (!way.empty()) {
      auto& [b, i] = way.back();
      const std::vector<int>& of = next[static_cast<size_t>(b)];
      if (i == of.size()) {
        place_[static_cast<size_t>(b)] = static_cast<int>(order_.size());
        order_.push_back(b);
        way.pop_back();
        continue;
      }
      const int to = of[i++];
      if (seen[static_cast<size_t>(to)]) continue;
      seen[static_cast<size_t>(to)] = true;
      way.emplace_back(to, 0);
    }
  }
  bool update(int b) {
    int common = -1;
    for (const int p : before(b))
      if (above_[static_cast<size_t>(p)] >= 0) common = common < 0 ? p : meet(common, p);
    if (above_[static_cast<size_t>(b)] == common) return false;
    above_[static_cast<size_t>(b)] = common;
    return true;
  }
  int meet(int a, int b) const {
    while (a != b) {
      int& behind = place_[static_cast<size_t>(a)] < place_[static_cast<size_t>(b)] ? a : b;
      behind = above_[static_cast<size_t>(behind)];
    }
    return a;
  }

  std::vector<int> place_, above_, order_;
  std::vector<std::vector<int>> before_;
};

std::vector<std::vector<int>> ways(const std::vector<Block>& blocks) {
  std::vector<std::vector<int>> next;
  next.reserve(blocks.size());
  for (const Block& b : blocks) next.push_back(b.next);
  return next;
}

struct Found {
  std::vector<int> blocks, latches;  // latches jump back to the head
};

// The loops, by their heads.
std::map<int, Found> natural_loops(const std::vector<Block>& blocks, const Dominators& dominators) {
  std::map<int, Found> loops;
  for (size_t b = 0; b < blocks.size(); ++b)
    for (const int to : blocks[b].next)
      if (dominators.dominates(to, static_cast<int>(b))) loops[to].latches.push_back(static_cast<int>(b));
  if (loops.size() > kMostLoops) return loops;
  std::vector<int> seen(blocks.size(), -1);
  for (auto& [head, loop] : loops) {
    std::vector<int> open = {head};
    seen[static_cast<size_t>(head)] = head;
    const auto add = [&, head = head](int b) {
      if (seen[static_cast<size_t>(b)] == head || !dominators.reached(b)) return;
      seen[static_cast<size_t>(b)] = head;
      open.push_back(b);
    };
    for (const int latch : loop.latches) add(latch);
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i] != head)
        for (const int before : dominators.before(open[i])) add(before);
    std::ranges::sort(open);
    loop.blocks = std::move(open);
  }
  return loops;
}

// Loops inside come after those around them.
void nest(KernelCode& code, std::vector<int>& loop_of_block) {
  for (size_t l = 0; l < code.loops.size(); ++l) {
    Loop& loop = code.loops[l];
    loop.parent = loop_of_block[static_cast<size_t>(loop.blocks.front())];
    // The head of a loop inside need not be its first block, but all its blocks are in the same loops.
    if (loop.parent >= 0) loop.depth = code.loops[static_cast<size_t>(loop.parent)].depth + 1;
    for (const int b : loop.blocks) loop_of_block[static_cast<size_t>(b)] = static_cast<int>(l);
    loop.begin = code.blocks[static_cast<size_t>(loop.blocks.front())].begin;
    loop.end = code.blocks[static_cast<size_t>(loop.blocks.back())].end;
  }
}

void add(const KernelCode& code, const Block& block, Mix& mix) {
  for (int at = block.begin; at < block.end; ++at) ++mix[code.instructions[static_cast<size_t>(at)].op];
}

// True if every iteration passes the block: it lies on all ways from the head to each latch.
bool is_sure(const Found& loop, int block, const Dominators& dominators) {
  return std::ranges::all_of(loop.latches, [&](int latch) { return dominators.dominates(block, latch); });
}

void count(KernelCode& code, const std::vector<const Found*>& found, const std::vector<int>& loop_of_block,
           const Dominators& dominators) {
  for (size_t l = 0; l < code.loops.size(); ++l) {
    Loop& loop = code.loops[l];
    for (const int b : loop.blocks) {
      Block& block = code.blocks[static_cast<size_t>(b)];
      add(code, block, loop.mix);
      if (loop_of_block[static_cast<size_t>(b)] != static_cast<int>(l)) continue;
      add(code, block, loop.own);
      block.sure = is_sure(*found[l], b, dominators);
    }
  }
}

// Blocks outside of loops on every way to every end.
void look_outside(KernelCode& code, const std::vector<int>& loop_of_block, const Dominators& dominators) {
  std::vector<int> ends;
  for (size_t b = 0; b < code.blocks.size(); ++b) {
    const Instruction& last = code.instructions[static_cast<size_t>(code.blocks[b].end) - 1];
    if (dominators.reached(static_cast<int>(b)) && (code.blocks[b].next.empty() || last.jump == Jump::kExit))
      ends.push_back(static_cast<int>(b));
  }
  for (size_t b = 0; b < code.blocks.size(); ++b)
    if (loop_of_block[b] < 0)
      code.blocks[b].sure = !ends.empty() && std::ranges::all_of(ends, [&](int end) {
        return dominators.dominates(static_cast<int>(b), end);
      });
}

}  // namespace

Status find_flow(KernelCode& code) {
  code.loop_of.assign(code.instructions.size(), -1);
  if (code.instructions.empty()) return Status::ok();
  code.blocks = cut_into_blocks(code.instructions);
  if (code.blocks.size() > kMostBlocks)
    return invalid_argument("machine code of ", code.name, ": ", code.blocks.size(),
                            " blocks, expected at most ", kMostBlocks);
  connect(code.instructions, code.blocks);
  for (const Instruction& i : code.instructions) code.indirect |= i.jump == Jump::kIndirect;
  const Dominators dominators(ways(code.blocks), 0);
  const std::map<int, Found> loops = natural_loops(code.blocks, dominators);
  if (loops.size() > kMostLoops)
    return invalid_argument("machine code of ", code.name, ": ", loops.size(), " loops, expected at most ",
                            kMostLoops);
  std::vector<const Found*> found;
  found.reserve(loops.size());
  for (const auto& [head, loop] : loops) found.push_back(&loop);
  std::ranges::stable_sort(found, [](const Found* a, const Found* b) {
    return std::pair(a->blocks.front(), -static_cast<int>(a->blocks.size())) <
           std::pair(b->blocks.front(), -static_cast<int>(b->blocks.size()));
  });
  for (const Found* f : found) code.loops.push_back({.blocks = f->blocks});
  std::vector<int> loop_of_block(code.blocks.size(), -1);
  nest(code, loop_of_block);
  for (size_t b = 0; b < code.blocks.size(); ++b)
    for (int at = code.blocks[b].begin; at < code.blocks[b].end; ++at)
      code.loop_of[static_cast<size_t>(at)] = loop_of_block[b];
  count(code, found, loop_of_block, dominators);
  look_outside(code, loop_of_block, dominators);
  return Status::ok();
}

}  // namespace tuner::sass
