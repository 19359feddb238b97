#include "templates/source_kernel/flag_rule.h"

#include <algorithm>
#include <array>
#include <regex>

#include "compiler_core/base/printable.h"

namespace tuner {
namespace {

constexpr size_t kLongestFlag = 200;

// What may follow -f or -fno-: optimisations of GCC and Clang, by their first letters. None of them writes a
// file or loads code.
constexpr auto kOptimisations = std::to_array<std::string_view>({"aggressive-loop-optimizations",
                                                                 "align-",
                                                                 "associative-math",
                                                                 "branch-",
                                                                 "caller-saves",
                                                                 "combine-stack-adjustments",
                                                                 "conserve-stack",
                                                                 "cx-",
                                                                 "delete-null-pointer-checks",
                                                                 "devirtualize",
                                                                 "expensive-optimizations",
                                                                 "fast-math",
                                                                 "finite-loops",
                                                                 "finite-math-only",
                                                                 "float-store",
                                                                 "fp-contract",
                                                                 "fp-model",
                                                                 "gcse",
                                                                 "graphite",
                                                                 "hoist-adjacent-loads",
                                                                 "if-conversion",
                                                                 "inline",
                                                                 "ipa-",
                                                                 "ira-",
                                                                 "ivopts",
                                                                 "jump-tables",
                                                                 "keep-inline-functions",
                                                                 "live-",
                                                                 "loop-",
                                                                 "math-errno",
                                                                 "merge-",
                                                                 "modulo-sched",
                                                                 "move-loop-",
                                                                 "non-call-exceptions",
                                                                 "omit-frame-pointer",
                                                                 "openmp",
                                                                 "optimize-sibling-calls",
                                                                 "partial-inlining",
                                                                 "peel-loops",
                                                                 "peephole",
                                                                 "prefetch-loop-arrays",
                                                                 "plt",
                                                                 "reciprocal-math",
                                                                 "rename-registers",
                                                                 "reorder-",
                                                                 "rerun-cse-after-loop",
                                                                 "reschedule-modulo-scheduled-loops",
                                                                 "rounding-math",
                                                                 "sched",
                                                                 "section-anchors",
                                                                 "semantic-interposition",
                                                                 "short-enums",
                                                                 "shrink-wrap",
                                                                 "signed-char",
                                                                 "signed-zeros",
                                                                 "simd-cost-model",
                                                                 "single-precision-constant",
                                                                 "slp-vectorize",
                                                                 "split-",
                                                                 "stack-protector",
                                                                 "strict-",
                                                                 "store-merging",
                                                                 "thread-jumps",
                                                                 "trapping-math",
                                                                 "trapv",
                                                                 "tree-",
                                                                 "unroll-",
                                                                 "unsafe-math-optimizations",
                                                                 "unsigned-char",
                                                                 "unswitch-loops",
                                                                 "vect-cost-model",
                                                                 "vectorize",
                                                                 "visibility",
                                                                 "version-loops-for-strides",
                                                                 "vpt",
                                                                 "web",
                                                                 "wrapv",
                                                                 "exceptions",
                                                                 "rtti",
                                                                 "permissive",
                                                                 "assume-sane-operators-new-delete",
                                                                 "pic",
                                                                 "PIC",
                                                                 "builtin",
                                                                 "freestanding"});

bool is_optimisation(std::string_view name) {
  if (name.starts_with("no-")) name.remove_prefix(3);
  // Those that write files: -ftree-dump of old, -fsched-verbose.
  for (const std::string_view loud :
       {"sched-verbose", "tree-dump", "ipa-dump", "branch-probabilities", "split-dwarf"})
    if (name.starts_with(loud)) return false;
  return std::ranges::any_of(kOptimisations, [&](std::string_view root) {
    return name.starts_with(root) &&
           (root.ends_with("-") || name.size() == root.size() || name[root.size()] == '-' ||
            name[root.size()] == '=' || root == "sched" || root == "inline" || root == "graphite");
  });
}

}  // namespace

Status check_flag(std::string_view flag) {
  static const std::regex plain(
      R"(-O[0-3sgz]?|-Ofast|-std=[a-z0-9+:]+|-m[a-z0-9][A-Za-z0-9._=+-]*|-pthread|-pedantic|-lm)"
      R"(|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?|-U[A-Za-z_][A-Za-z0-9_]*|-W[a-z][A-Za-z0-9=+-]*|-w|--param=[a-z0-9-]+=[0-9]+)");
  static const std::regex optimisation(R"(-f([a-zA-Z][A-Za-z0-9-]*(=[A-Za-z0-9._-]+)?))");
  const std::string text(flag.substr(0, kLongestFlag + 1));
  std::smatch parts;
  if (text.size() <= kLongestFlag &&
      (std::regex_match(text, plain) ||
       (std::regex_match(text, parts, optimisation) && is_optimisation(parts[1].str()))))
    return Status::ok();
  return invalid_argument("the flag ", printable(text.substr(0, 60)),
                          " is not allowed; allowed are -O, -m, -std=, -D, -U, -W, --param=NAME=N, -pthread, "
                          "-lm and those -f that optimise");
}

Status check_cuda_flag(std::string_view flag) {
  static const std::regex plain(
      R"(--?use_fast_math|--?(fmad|ftz|prec-sqrt|prec-div)=(true|false)|--?maxrregcount=[0-9]{1,3})"
      R"(|--?std=c\+\+(11|14|17|20)|--?extra-device-vectorization|--?restrict|--?device-int128)"
      R"(|--?lineinfo|--generate-line-info|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?|-U[A-Za-z_][A-Za-z0-9_]*)"
      R"(|--ptxas-options=(-O[0-3]|--allow-expensive-optimizations=(true|false)|-dlcm=(ca|cg|cv)))");
  const std::string text(flag.substr(0, kLongestFlag + 1));
  if (text.size() <= kLongestFlag && std::regex_match(text, plain)) return Status::ok();
  return invalid_argument(
      "the flag ", printable(text.substr(0, 60)),
      " is not allowed; allowed are those of NVRTC that optimise: --use_fast_math, --fmad=, --ftz=, "
      "--prec-div=, --prec-sqrt=, --maxrregcount=N, --std=, -D, -U, --ptxas-options=-O3");
}

Result<std::vector<std::string>> names_in_flag(std::string_view flag) {
  std::vector<std::string> names;
  for (size_t at = 0; (at = flag.find_first_of("{}", at)) != std::string_view::npos; ++at) {
    const size_t end = flag.find_first_of("{}", at + 1);
    if (flag[at] == '}' || end == std::string_view::npos || flag[end] == '{')
      return invalid_argument("expected {NAME}, found a brace without its other");
    names.emplace_back(flag.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

std::string expanded_flag(std::string_view flag,
                          const std::function<std::string(const std::string&)>& text_of) {
  std::string out;
  for (size_t at = 0; at < flag.size(); ++at) {
    if (flag[at] != '{') {
      out += flag[at];
      continue;
    }
    const size_t end = flag.find('}', at);
    out += text_of(std::string(flag.substr(at + 1, end - at - 1)));
    at = end;
  }
  return out;
}

}  // namespace tuner
