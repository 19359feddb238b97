// Words of a request's path and query, decoded and bounded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::dashboard {

// "a%20b" is "a b". InvalidArgument: a '%' without two hexadecimal digits, or a control character.
Result<std::string> decoded(std::string_view text);
// "/api/jobs/j1" is {"api", "jobs", "j1"}. InvalidArgument: as decoded().
Result<std::vector<std::string>> words_of_path(std::string_view path);

class Query {
 public:
  // "a=1&b=x%20y". InvalidArgument: as decoded(), a word twice, or more than 16 words.
  static Result<Query> parse(std::string_view text);
  // Empty if it is not there.
  std::string text(const std::string& name) const;
  // `usual` if it is not there. InvalidArgument names what is no whole number in this range.
  Result<int64_t> number(const std::string& name, int64_t usual, int64_t least, int64_t most) const;

 private:
  std::map<std::string, std::string> words_;
};

}  // namespace tuner::dashboard
