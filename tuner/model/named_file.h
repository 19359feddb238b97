// "NAME=FILE" of an option. Names of tensors and of files may hold `=` themselves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct NamedFile {
  std::string name, file;
};
// Cuts the word behind the longest of `names` that it begins with, else at its last `=`. InvalidArgument: a
// word without a name, a file or a `=`.
Result<NamedFile> named_file(const std::string& word, const char* option,
                             const std::vector<std::string>& names);
// The same where no name is known yet: cuts at the first `=` behind which a file stands, else at the last
// one.
Result<NamedFile> named_existing_file(const std::string& word, const char* option);

// All words of an option, by name. InvalidArgument: one is given twice.
Result<std::map<std::string, std::string>> named_files(const std::vector<std::string>& words,
                                                       const char* option,
                                                       const std::vector<std::string>& names);

}  // namespace tuner
