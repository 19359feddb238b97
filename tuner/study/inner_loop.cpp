#include "tuner/study/inner_loop.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace tuner {

namespace {

struct Line {
  std::string_view label;               // of a line that is one
  std::string_view mnemonic, operands;  // of an instruction
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// True for the label of a function, or of a part of one: "NAME", "NAME.body".
bool is_of(std::string_view label, std::string_view function) {
  return !function.empty() && label.starts_with(function) &&
         (label.size() == function.size() || label[function.size()] == '.');
}

// Labels and instructions, without those of the function `not_of`; directives and comments are left out.
std::vector<Line> lines_of(std::string_view assembly, std::string_view not_of) {
  std::vector<Line> lines;
  bool left_out = false;
  while (!assembly.empty()) {
    const size_t end = assembly.find('\n');
    std::string_view text = assembly.substr(0, end);
    assembly.remove_prefix(end == std::string_view::npos ? assembly.size() : end + 1);
    // "#" begins a comment of x86; of AArch64 "//" does, where "#" is a number.
    for (const std::string_view comment : {"//", "\t#", " #"}) {
      const size_t at = text.find(comment);
      if (at == std::string_view::npos) continue;
      const bool number = comment != "//" && at + comment.size() < text.size() &&
                          (std::isalnum(text[at + comment.size()]) != 0 || text[at + comment.size()] == '-' ||
                           text[at + comment.size()] == ':');
      if (!number) text = text.substr(0, at);
    }
    text = trimmed(text);
    if (text.empty() || text[0] == '#') continue;
    if (text.back() == ':' && text[0] != '.') left_out = is_of(text.substr(0, text.size() - 1), not_of);
    if (left_out) continue;
    if (text.back() == ':') {
      lines.push_back({.label = text.substr(0, text.size() - 1)});
    } else if (text[0] != '.') {
      const size_t space = text.find_first_of(" \t");
      lines.push_back(
          {.mnemonic = text.substr(0, space),
           .operands = space == std::string_view::npos ? std::string_view() : trimmed(text.substr(space))});
    }
  }
  return lines;
}

bool is_branch(std::string_view m) {
  return m.starts_with("j") || m == "b" || m.starts_with("b.") || m.starts_with("cb") || m.starts_with("tb");
}

bool is_multiply_add(std::string_view m) {
  return m.starts_with("vfmadd") || m.starts_with("vfnmadd") || m.starts_with("vfmsub") ||
         m.starts_with("vdp") || m.starts_with("vpdp") || m == "fmla" || m == "fmls" || m == "fmadd" ||
         m == "sdot" || m == "udot" || m == "usdot" || m == "sudot" || m == "bfdot" || m.ends_with("mmla");
}

bool is_multiply(std::string_view m) {
  return m == "mulps" || m == "vmulps" || m == "mulss" || m == "vmulss" || m == "fmul" || m == "pmaddwd" ||
         m == "vpmaddwd";
}

bool is_broadcast(std::string_view m) {
  return m == "dup" || m.starts_with("ld1r") || m.starts_with("vbroadcast") || m.starts_with("vpbroadcast");
}

// AT&T: the last operand is written, and only a mov-like instruction writes memory.
void count_x86(const Line& line, InnerLoop& loop) {
  const size_t open = line.operands.find('(');
  if (open == std::string_view::npos || line.mnemonic.starts_with("lea") ||
      line.mnemonic.starts_with("prefetch") || line.mnemonic.starts_with("nop"))
    return;
  // Written when no operand follows the address; a mask may.
  const size_t close = line.operands.find(')', open);
  const bool written =
      line.mnemonic.find("mov") != std::string_view::npos &&
      line.operands.find(',', std::min(close, line.operands.size())) == std::string_view::npos;
  ++(written ? loop.stores : loop.loads);
  const std::string_view address = line.operands.substr(open, close - open);
  if (address.starts_with("(%rsp") || address.starts_with("(%rbp")) ++loop.spills;
}

void count_aarch64(const Line& line, InnerLoop& loop) {
  const bool load = line.mnemonic.starts_with("ld"), store = line.mnemonic.starts_with("st");
  if (!load && !store) return;
  const int moved = line.mnemonic == "ldp" || line.mnemonic == "stp" ? 2 : 1;
  (load ? loop.loads : loop.stores) += moved;
  if (line.operands.find("[sp") != std::string_view::npos) loop.spills += moved;
}

}  // namespace

InnerLoop busiest_inner_loop(std::string_view assembly, std::string_view not_of) {
  const std::vector<Line> lines = lines_of(assembly, not_of);
  std::map<std::string_view, size_t> labels;
  std::map<size_t, size_t> loops;  // from a label to the last branch back to it
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].label.empty()) labels[lines[i].label] = i;
    if (!is_branch(lines[i].mnemonic)) continue;
    const std::string_view operands = lines[i].operands;
    const std::string_view target = trimmed(operands.substr(operands.find_last_of(", \t") + 1));
    if (const auto at = labels.find(target); at != labels.end()) loops[at->second] = i;
  }
  InnerLoop best;
  for (const auto& [begin, end] : loops) {
    const bool innermost = std::none_of(
        loops.begin(), loops.end(),
        [&, b = begin, e = end](const auto& other) { return other.first > b && other.second <= e; });
    if (!innermost) continue;
    InnerLoop loop{.label = std::string(lines[begin].label)};
    int multiplies = 0;
    for (size_t i = begin; i <= end; ++i) {
      if (lines[i].mnemonic.empty()) continue;
      ++loop.instructions;
      loop.multiply_adds += is_multiply_add(lines[i].mnemonic);
      multiplies += is_multiply(lines[i].mnemonic);
      loop.broadcasts += is_broadcast(lines[i].mnemonic);
      if (lines[i].operands.find('[') != std::string_view::npos)
        count_aarch64(lines[i], loop);
      else
        count_x86(lines[i], loop);
    }
    if (loop.multiply_adds == 0) loop.multiply_adds = multiplies;
    if (best.label.empty() ||
        std::tuple(loop.multiply_adds, loop.loads) > std::tuple(best.multiply_adds, best.loads))
      best = std::move(loop);
  }
  return best;
}

}  // namespace tuner
