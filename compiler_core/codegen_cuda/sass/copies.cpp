// Instructions are taken in the order of their addresses, which is the order in which they run but for blocks
// that the compiler moved away. A load has been waited for when an instruction waits for the scoreboard it
// releases: whoever reads its register must do that.
#include "compiler_core/codegen_cuda/sass/copies.h"

#include <algorithm>
#include <utility>

namespace tuner::sass {
namespace {

bool is_global_load(Op op) { return op == Op::kLdg32 || op == Op::kLdg64 || op == Op::kLdg128; }
bool is_shared_store(Op op) { return op == Op::kSts32 || op == Op::kSts64 || op == Op::kSts128; }

// The copies of one loop, or of what is in no loop: a walk over its instructions. Those of loops inside are
// passed too: they may wait for a load, but their own loads are another walk's.
class Walk {
 public:
  Walk(const KernelCode& code, int loop) : code_(code), loop_(loop) {}

  std::vector<Copy> run() {
    if (loop_ < 0) {
      for (int at = 0; at < static_cast<int>(code_.instructions.size()); ++at) step(at);
    } else {
      for (const int b : loop().blocks) {
        const Block& block = code_.blocks[static_cast<size_t>(b)];
        for (int at = block.begin; at < block.end; ++at) step(at);
      }
    }
    close();
    if (loop_ >= 0) look_around();
    return std::move(copies_);
  }

 private:
  const Loop& loop() const { return code_.loops[static_cast<size_t>(loop_)]; }
  const Instruction& instruction(int at) const { return code_.instructions[static_cast<size_t>(at)]; }

  void step(int at) {
    const Instruction& i = instruction(at);
    if (awaited_ >= 0 && (i.waits >> awaited_ & 1) != 0) waited_ = true;
    if (i.op == Op::kBarrier && copy_.shared_stores > 0) close();
    if (code_.loop_of[static_cast<size_t>(at)] != loop_) return;
    if (is_global_load(i.op)) load(at, i);
    if (is_shared_store(i.op) && copy_.loads > 0) store(at);
    if (i.jump == Jump::kBranch || i.jump == Jump::kCall) ++branches_;
  }

  void load(int at, const Instruction& i) {
    if (copy_.loads == 0) {
      copy_ = {.loop = loop_, .begin = at};
      branches_ = 0;
    } else if (waited_) {
      ++copy_.serial;
    }
    ++copy_.loads;
    copy_.branches += std::exchange(branches_, 0);
    copy_.end = at + 1;
    awaited_ = i.write_scoreboard;
    waited_ = false;
  }

  // A branch before the first store leads around all of them: what is stored is for the next step, if there
  // is one.
  void store(int at) {
    if (copy_.shared_stores++ > 0) copy_.branches += branches_;
    branches_ = 0;
    copy_.end = at + 1;
  }

  void close() {
    if (copy_.loads > 0) copies_.push_back(copy_);
    copy_ = {};
    awaited_ = -1;
    waited_ = false;
  }

  // A loop whose only copy goes on in the next iteration without a barrier: its last load may wait for the
  // first.
  void look_around() {
    if (copies_.size() != 1 || loop().mix[Op::kBarrier] > 0) return;
    Copy& copy = copies_.front();
    int last = copy.end - 1;
    while (!is_global_load(instruction(last).op) || code_.loop_of[static_cast<size_t>(last)] != loop_) --last;
    const int scoreboard = instruction(last).write_scoreboard;
    const auto waits = [&](int at) {
      return scoreboard >= 0 && (instruction(at).waits >> scoreboard & 1) != 0;
    };
    bool waited = false;
    for (const int b : loop().blocks) {
      const Block& block = code_.blocks[static_cast<size_t>(b)];
      for (int at = block.begin; at < block.end; ++at)
        if (at > last || at <= copy.begin) waited |= waits(at);
    }
    if (waited) ++copy.serial;
  }

  const KernelCode& code_;
  const int loop_;
  std::vector<Copy> copies_;
  Copy copy_;
  int branches_ = 0;  // since the copy's last load or store
  int awaited_ = -1;  // scoreboard of the copy's last load
  bool waited_ = false;
};

}  // namespace

std::vector<Copy> find_copies(const KernelCode& code) {
  std::vector<Copy> copies;
  for (int loop = -1; loop < static_cast<int>(code.loops.size()); ++loop) {
    const std::vector<Copy> own = Walk(code, loop).run();
    copies.insert(copies.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(copies, {}, &Copy::begin);
  return copies;
}

}  // namespace tuner::sass
