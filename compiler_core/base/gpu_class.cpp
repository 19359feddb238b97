#include "compiler_core/base/gpu_class.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tuner {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool all_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_decimal); }

// Letters in lower case, digits, and the point of "1g.5gb"; whatever else stands in between ends a word.
std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> words(1);
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || is_decimal(c) || c == '.')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "80gb", "144g", "hbm3e".
bool is_memory(std::string_view word) {
  if (word.starts_with("hbm")) return true;
  for (const std::string_view unit : {"gb", "g"})
    if (word.ends_with(unit) && all_digits(word.substr(0, word.size() - unit.size()))) return true;
  return false;
}

bool tells_nothing(std::string_view word) {
  constexpr std::array<std::string_view, 6> kNothing = {"nvidia",  "tesla", "quadro",
                                                        "geforce", "gpu",   "generation"};
  return std::ranges::find(kNothing, word) != kNothing.end() || is_memory(word) ||
         (word.starts_with("sxm") && (word.size() == 3 || all_digits(word.substr(3))));
}

}  // namespace

std::string gpu_class(std::string_view name) {
  std::string text;
  std::string_view before;
  const std::vector<std::string> words = words_of_name(name);
  for (const std::string& word : words) {
    if (tells_nothing(word)) continue;
    // People write both "RTX 4090" and "RTX4090".
    const bool joined = (before == "rtx" || before == "gtx") && is_decimal(word[0]);
    if (!text.empty() && !joined) text += '-';
    text += word;
    before = word;
  }
  return text;
}

GpuHardware gpu_of_fingerprint(std::string_view hardware) {
  const size_t end = hardware.find(" | ");
  const std::string_view head = hardware.substr(0, end);
  const size_t blank = head.rfind(' ');
  const std::string_view arch = blank == std::string_view::npos ? head : head.substr(blank + 1);
  if (!arch.starts_with("sm_") || arch.size() == 3 || !is_decimal(arch[3])) return {};
  GpuHardware out{.arch = std::string(arch), .device_class = {}};
  if (blank != std::string_view::npos) out.device_class = gpu_class(head.substr(0, blank));
  return out;
}

}  // namespace tuner
