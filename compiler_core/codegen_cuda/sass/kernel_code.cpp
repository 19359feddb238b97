#include <algorithm>
#include <cstring>
#include <tuple>

#include "compiler_core/codegen_cuda/sass/copies.h"
#include "compiler_core/codegen_cuda/sass/cubin_text.h"
#include "compiler_core/codegen_cuda/sass/flow.h"

namespace tuner::sass {
namespace {

constexpr size_t kBytes = 16;  // of an instruction
// Share of unknown instructions above which nothing is said of a kernel.
constexpr double kMostUnknown = 0.01;
constexpr int kOldest = 70;  // before it, instructions have eight bytes

std::string hexadecimal(int opcode) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 8; shift >= 0; shift -= 4) text += kDigits[static_cast<size_t>(opcode >> shift & 15)];
  return text;
}

// The compiler fills the section with jumps to themselves and NOPs; nothing is behind the last of anything
// else.
void cut_filler(std::vector<Instruction>& code) {
  while (!code.empty() &&
         (code.back().op == Op::kNop || (code.back().jump == Jump::kBranch && code.back().always &&
                                         code.back().target == static_cast<int>(code.size()) - 1)))
    code.pop_back();
}

void note_unknown(KernelCode& code) {
  for (const Instruction& i : code.instructions)
    if (i.op == Op::kUnknown && !std::ranges::count(code.unknown, i.opcode()))
      code.unknown.push_back(i.opcode());
}

// Most products of tiles, then most multiply-adds and dot products, then most loads, then the deepest: of
// equal ones the first.
int hot_loop(const std::vector<Loop>& loops) {
  const auto heat = [](const Loop& l) {
    return std::tuple(l.own[Op::kMma], l.own[Op::kFfma] + l.own[Op::kDot],
                      l.own.shared_loads() + l.own.global_loads(), l.depth, l.own.all());
  };
  int hot = -1;
  for (size_t l = 0; l < loops.size(); ++l)
    if (hot < 0 || heat(loops[l]) > heat(loops[static_cast<size_t>(hot)])) hot = static_cast<int>(l);
  return hot;
}

}  // namespace

int Mix::all() const {
  int sum = 0;
  for (const int n : counts) sum += n;
  return sum - (*this)[Op::kNop];
}

namespace {

double ratio(int a, int b) { return b > 0 ? static_cast<double>(a) / b : 0; }

}  // namespace

double Mix::ffma_share() const { return ratio((*this)[Op::kFfma], all()); }
double Mix::ffma_a_shared_load() const { return ratio((*this)[Op::kFfma], shared_loads()); }
double Mix::dot_share() const { return ratio((*this)[Op::kDot], all()); }
double Mix::dot_a_shared_load() const { return ratio((*this)[Op::kDot], shared_loads()); }
double Mix::mma_share() const { return ratio((*this)[Op::kMma], all()); }
double Mix::mma_a_load() const { return ratio((*this)[Op::kMma], (*this)[Op::kLdsm]); }

const Mix& KernelCode::hot_mix() const { return hot < 0 ? mix : loops[static_cast<size_t>(hot)].own; }

Status KernelCode::verdict() const {
  const int n = mix[Op::kUnknown];
  if (n <= kMostUnknown * mix.all()) return Status::ok();
  std::string names;
  for (const int opcode : unknown) names += (names.empty() ? "" : ", ") + hexadecimal(opcode);
  return failed("machine code of ", name, " (sm_", sm, "): ", n, " of ", mix.all(),
                " instructions are unknown, opcodes ", names, "; no verdict");
}

Result<KernelCode> read_code(std::string name, std::string_view bytes, int sm) {
  constexpr size_t kMostInstructions = size_t{1} << 20;
  if (bytes.size() % kBytes != 0 || bytes.size() / kBytes > kMostInstructions)
    return invalid_argument("machine code of ", name, ": ", bytes.size(),
                            " bytes, expected a multiple of 16 up to ", kMostInstructions * kBytes);
  KernelCode code{.name = std::move(name), .sm = sm};
  code.instructions.reserve(bytes.size() / kBytes);
  for (size_t at = 0; at < bytes.size(); at += kBytes) {
    std::array<uint64_t, 2> words{};
    std::memcpy(words.data(), bytes.data() + at, kBytes);
    code.instructions.push_back(decode(words[0], words[1], static_cast<int>(at / kBytes), sm));
  }
  cut_filler(code.instructions);
  for (const Instruction& i : code.instructions) ++code.mix[i.op];
  note_unknown(code);
  RETURN_IF_ERROR(find_flow(code));
  code.hot = hot_loop(code.loops);
  code.copies = find_copies(code);
  return code;
}

Result<std::vector<KernelCode>> read_kernel_code(std::string_view cubin) {
  ASSIGN_OR_RETURN(const CubinTexts texts, cubin_texts(cubin));
  if (texts.sm < kOldest)
    return invalid_argument("cubin: for sm_", texts.sm, "; machine code is read from sm_", kOldest, " on");
  std::vector<KernelCode> kernels;
  for (const CubinText& text : texts.texts) {
    ASSIGN_OR_RETURN(KernelCode code, read_code(text.name, text.bytes, texts.sm));
    kernels.push_back(std::move(code));
  }
  return kernels;
}

}  // namespace tuner::sass
