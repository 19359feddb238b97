// What completion offers where a command line expects a value. An option says it once, at its declaration
// (Option::offers() in arguments.h); completion.h reads it for every shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct Offers {
  std::vector<std::string> words;    // suggestions: other values may be right, too
  bool list = false;                 // several words, joined by commas
  bool files = false;                // names of files...
  std::vector<std::string> endings;  // ...that end so: ".json". Without a match, and if empty: any file
  bool folders = false;              // names of folders
  bool after_name = false;           // the value is behind a name: NAME=FILE
  std::string names;                 // names of a kind, looked up when asked: "job", "target", "strategy"

  bool nothing() const { return words.empty() && !files && !folders && names.empty(); }
};

inline Offers offer_words(std::vector<std::string> words) { return {.words = std::move(words)}; }
inline Offers offer_list(std::vector<std::string> words) { return {.words = std::move(words), .list = true}; }
// Of an enumeration in prose: "NCHW, NHWC or NCHW16c".
Offers offer_words_in(std::string_view prose);
inline Offers offer_files(std::vector<std::string> endings) {
  return {.files = true, .endings = std::move(endings)};
}

}  // namespace tuner
