#include "compiler_core/base/c_names.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr size_t kLongestName = 200;

// Of C11 and C++20, a blank around each.
constexpr std::string_view kKeywords =
    " alignas alignof and asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit "
    "continue decltype default delete do double dynamic_cast else enum explicit export extern false "
    "float for friend goto if inline int long main mutable namespace new noexcept not nullptr "
    "operator or private protected public register reinterpret_cast requires restrict return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t "
    "while xor ";

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_part(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

bool is_keyword(std::string_view name) {
  return kKeywords.find(" " + std::string(name) + " ") != std::string_view::npos;
}

}  // namespace

Status check_c_name(std::string_view name) {
  constexpr std::string_view kExpected =
      "expected a name for C: letters, digits and underscores, starting with a letter";
  if (name.empty()) return invalid_argument(kExpected, ", found nothing");
  if (name.size() > kLongestName)
    return invalid_argument("expected a name of at most ", kLongestName, " letters, found ", name.size());
  if (!is_letter(name[0]) || !std::ranges::all_of(name, is_part)) return invalid_argument(kExpected);
  if (is_keyword(name)) return invalid_argument("\"", name, "\" is a keyword of C or C++");
  if (name.starts_with("tuner_")) return invalid_argument("names that start with tuner_ are taken");
  return Status::ok();
}

std::string as_c_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kLongestName - 2)) name += is_part(c) ? c : '_';
  if (name.empty() || !is_letter(name[0]) || name.starts_with("tuner_")) name = "k_" + name;
  return is_keyword(name) ? name + "_" : name;
}

std::string as_macro(std::string_view name) {
  std::string macro(name);
  for (char& c : macro) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return macro;
}

}  // namespace tuner
