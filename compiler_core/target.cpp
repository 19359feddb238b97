#include "compiler_core/target.h"

#include <algorithm>
#include <charconv>

#include "compiler_core/host_spelling.h"

namespace tuner {
namespace {

std::string usage() {
  std::string text = R"(expected "cpu", "cpu -threads=N")";
  const std::vector<const TargetFamily*>& families = target_families();
  for (size_t i = 0; i < families.size(); ++i)
    text += str(i + 1 < families.size() ? ", " : " or ", families[i]->usage());
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Status parse_option(std::string_view word, Target& t, std::vector<std::string_view>& seen) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (std::find(seen.begin(), seen.end(), key) != seen.end())
    return invalid_argument("target: ", key, " is given twice");
  seen.push_back(key);
  for (const std::string_view option : t.family->options()) {
    if (option == word && !option.ends_with('=')) return t.family->set_option(key, {}, t);
    if (!option.ends_with('=') || option.substr(0, option.size() - 1) != key) continue;
    if (value.empty()) return invalid_argument("target: ", key, " needs a value: ", key, "=...");
    return t.family->set_option(key, value, t);
  }
  return invalid_argument("target: unknown option \"", word, "\"; ", usage());
}

}  // namespace

Status check_target_word(std::string_view key, std::string_view value) {
  constexpr std::string_view kAlso = "-._+";
  const bool good = std::all_of(value.begin(), value.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kAlso.find(c) != std::string_view::npos;
  });
  if (good && !value.empty()) return Status::ok();
  return invalid_argument("target: ", key, ": \"", value, "\" is not a name");
}

Result<int64_t> target_number(std::string_view key, std::string_view value, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size() && number >= low && number <= high)
    return number;
  return invalid_argument("target: ", key, ": expected a number in ", low, "..", high, ", found \"", value,
                          "\"");
}

bool means_gpu_of_host(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  return words == std::vector<std::string_view>{"cuda", "-arch=native"} || means_class_of_host(text);
}

bool means_class_of_host(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  return words == std::vector<std::string_view>{"cuda", "-arch=native", "-device=native"} ||
         words == std::vector<std::string_view>{"cuda", "-device=native", "-arch=native"};
}

bool means_host(std::string_view text) {
  return text == "cpu" || text.starts_with("cpu ") || means_gpu_of_host(text);
}

Result<Target> parse_target(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) return invalid_argument("target: empty; ", usage());
  Target t;
  t.family = find_target_family(words[0]);
  if (t.family == nullptr && words[0] == "cpu")
    return invalid_argument(
        "target: \"cpu\" means this host and is resolved where kernels are compiled; "
        "here expected \"llvm -mcpu=NAME\" or \"cuda -arch=sm_NN\"");
  if (t.family == nullptr) return invalid_argument("target: unknown kind \"", words[0], "\"; ", usage());
  std::vector<std::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) RETURN_IF_ERROR(parse_option(words[i], t, seen));
  RETURN_IF_ERROR(t.family->complete(t));
  return t;
}

}  // namespace tuner
