// Finds the word that somebody probably meant, among commands, options and keys of job files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// Returns the nearest of `known` if it is near: at most one edit for every three letters. An edit adds, drops
// or replaces a letter, or swaps two neighbours. Empty if none is near; the first if several are equally
// near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// Returns "; did you mean WORD?", or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace tuner
