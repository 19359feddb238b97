#include "tuner/model/named_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace tuner {
namespace {

template <class IsPlace>
Result<NamedFile> cut(const std::string& word, const char* option, const IsPlace& is_place) {
  size_t place = word.rfind('=');
  for (size_t at = word.find('='); at != std::string::npos; at = word.find('=', at + 1))
    if (is_place(at)) place = at;
  if (place == std::string::npos || place == 0 || place + 1 == word.size())
    return invalid_argument(option, ": expected NAME=FILE, found \"", word, "\"");
  return NamedFile{word.substr(0, place), word.substr(place + 1)};
}

}  // namespace

Result<NamedFile> named_file(const std::string& word, const char* option,
                             const std::vector<std::string>& names) {
  return cut(word, option, [&](size_t at) {
    return std::ranges::find(names, std::string_view(word).substr(0, at)) != names.end();
  });
}

Result<NamedFile> named_existing_file(const std::string& word, const char* option) {
  bool is_found = false;
  return cut(word, option, [&](size_t at) {
    std::error_code ignored;
    const bool is_first = !is_found && at > 0 && std::filesystem::exists(word.substr(at + 1), ignored);
    is_found = is_found || is_first;
    return is_first;
  });
}

Result<std::map<std::string, std::string>> named_files(const std::vector<std::string>& words,
                                                       const char* option,
                                                       const std::vector<std::string>& names) {
  std::map<std::string, std::string> files;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(NamedFile each, named_file(word, option, names));
    if (!files.emplace(each.name, std::move(each.file)).second)
      return invalid_argument(option, ": \"", each.name, "\" is given twice");
  }
  return files;
}

}  // namespace tuner
