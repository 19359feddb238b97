// What a digest and a package need to know of C and C++ text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// The text without what changes nothing: comments are gone, but for those with %RANGE%, which declare knobs;
// all tokens are one blank apart; lines are kept around preprocessor directives only. Literals stay as they
// are, raw ones, too. Two texts that differ in white space or comments agree; two of different meanings do
// not, as far as they neither read __LINE__ nor make strings of their own text.
std::string normalized_source(std::string_view text);

// An `#include "name"` of the text.
struct SourceInclude {
  std::string name;
  int line = 1;
};
// Those outside comments, in their order. Includes by <name> or by a macro are not among them.
std::vector<SourceInclude> quoted_includes(std::string_view text);

}  // namespace tuner
