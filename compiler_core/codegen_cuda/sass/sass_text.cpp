#include "compiler_core/codegen_cuda/sass/sass_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "compiler_core/codegen_cuda/sass/opcodes.h"

namespace tuner::sass {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// "FFMA 512, LDS.128 16, ...", all kinds that occur.
std::string mix_text(const Mix& mix) {
  std::string text;
  for (size_t i = 0; i < kOps; ++i)
    if (mix.counts[i] > 0 && static_cast<Op>(i) != Op::kNop)
      text += str(text.empty() ? "" : ", ", op_name(static_cast<Op>(i)), " ", mix.counts[i]);
  return text;
}

std::string name_of(const Instruction& i) {
  const Opcode* opcode = find_opcode(i.opcode());
  if (opcode == nullptr) return formatted("? 0x%03x", i.opcode());
  const bool has_width = i.op >= Op::kLds32 && i.op <= Op::kLdg128;
  if (!has_width) return std::string(opcode->name);
  const std::string_view kind = op_name(i.op);
  return str(opcode->name, kind.substr(kind.find('.')));
}

bool is_plain(const Instruction& i) {
  return i.always && i.jump == Jump::kNone && i.waits == 0 && i.write_scoreboard < 0 && i.read_scoreboard < 0;
}

std::string line_of(int at, const Instruction& i) {
  std::string notes = formatted("stall %d", i.stall);
  if (i.write_scoreboard >= 0) notes += formatted(", result sets %d", i.write_scoreboard);
  if (i.read_scoreboard >= 0) notes += formatted(", operands set %d", i.read_scoreboard);
  if (i.waits != 0) {
    notes += ", waits for";
    for (int s = 0; s < 6; ++s)
      if ((i.waits >> s & 1) != 0) notes += formatted(" %d", s);
  }
  if (i.target >= 0) notes += formatted(", to 0x%04x", i.target * 16);
  return formatted("    0x%04x  %-4s %-12s %s\n", at * 16, i.always ? "" : "@P", name_of(i).c_str(),
                   notes.c_str());
}

std::string listing(const KernelCode& code, const Loop& loop, int index) {
  std::string text;
  for (const int b : loop.blocks) {
    const Block& block = code.blocks[static_cast<size_t>(b)];
    if (code.loop_of[static_cast<size_t>(block.begin)] != index) continue;
    for (int at = block.begin; at < block.end;) {
      const Instruction& i = code.instructions[static_cast<size_t>(at)];
      int end = at + 1;
      const auto same = [&](const Instruction& other) {
        return is_plain(i) && is_plain(other) && other.op == i.op && other.opcode() == i.opcode();
      };
      while (end < block.end && same(code.instructions[static_cast<size_t>(end)])) ++end;
      text += end - at > 1 ? formatted("    0x%04x       %s x %d\n", at * 16, name_of(i).c_str(), end - at)
                           : line_of(at, i);
      at = end;
    }
  }
  return text;
}

// Of what a hot loop is there for.
std::string shares_text(const Mix& mix) {
  if (mix[Op::kMma] > 0)
    return formatted("%.1f %% HMMA, %.1f HMMA an LDSM", 100 * mix.mma_share(), mix.mma_a_load());
  if (mix[Op::kDot] > mix[Op::kFfma])
    return formatted("%.1f %% IDP, %.1f IDP a shared load", 100 * mix.dot_share(), mix.dot_a_shared_load());
  return formatted("%.1f %% FFMA, %.1f FFMA a shared load", 100 * mix.ffma_share(), mix.ffma_a_shared_load());
}

std::string copy_text(const Copy& copy) {
  return str(
      "  copy         ", copy.loads, copy.loads == 1 ? " load, " : " loads, ", copy.serial, " serial; ",
      copy.shared_stores > 0 ? str(copy.shared_stores, " stores to shared memory, ") : "to registers, ",
      copy.branches, copy.branches == 1 ? " branch" : " branches", " in between",
      copy.loop < 0 ? "; not in a loop" : "", "\n");
}

}  // namespace

std::string to_text(const KernelCode& code) {
  std::string text = str("  kernel       ", code.mix.all(), " instructions: ", mix_text(code.mix), "\n");
  if (const Status verdict = code.verdict(); !verdict.is_ok())
    text += str("  no verdict   ", verdict.message(), "\n");
  for (const Copy& copy : code.copies) text += copy_text(copy);
  if (code.hot < 0) return text + "  hot loop     none: the code has no loop\n";
  const Loop& hot = code.loops[static_cast<size_t>(code.hot)];
  text += formatted("  hot loop     0x%04x to 0x%04x, depth %d of %zu loops; %d instructions of its own: ",
                    hot.begin * 16, hot.end * 16, hot.depth, code.loops.size(), hot.own.all());
  text += mix_text(hot.own) + "\n";
  text += "               " + shares_text(hot.own);
  text += formatted(", %d %s an iteration\n", hot.own[Op::kBarrier],
                    hot.own[Op::kBarrier] == 1 ? "barrier" : "barriers");
  return text + listing(code, hot, code.hot);
}

}  // namespace tuner::sass
