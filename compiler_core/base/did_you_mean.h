// The word that somebody probably meant: for commands, options and keys of job files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// The nearest of `known` when it is near: at most one edit for every three letters, where an edit adds, drops
// or replaces a letter, or swaps two neighbours. Empty when none is; the first of equals.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// "; did you mean WORD?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace tuner
