// Completion of command lines, the same for every shell: what may stand where the cursor is follows from the
// command line's own description. A shell's script asks the program for it at each press of the tab key
// (`tuner complete`, hidden), so that it never tells of another version's options.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tuner {

using OfferedWord = std::pair<std::string, std::string>;  // a word, and one line about it, which may be empty

// What may stand for the word at the cursor.
struct Completion {
  std::vector<OfferedWord> words;  // that begin as the word does
  // Files that end with one of `endings` (any, if it is empty or none does), and folders. The shell finds
  // them, behind the first `kept` characters of the word: those of "--db=" in "--db=tu".
  bool files = false, folders = false;
  std::vector<std::string> endings;
  size_t kept = 0;
};

// Looks up names of a kind (Offers::names); `db` is what --db says, or empty.
using KnownNames = std::function<std::vector<OfferedWord>(std::string_view kind, const std::string& db)>;

// `words`: those of the command line up to the cursor, without the program's, the last one as far as it is
// typed; quotes are taken off.
Completion complete(const CLI::App& program, const std::vector<std::string>& words, const KnownNames& known);

// What scripts read. The first line: `kept`, "files", "folders" or "-", and endings. Then a line for each
// word: the word, and what is said of it. Tabs divide them.
std::string completion_text(const Completion& completion);

// The shells that a script can be written for: bash, zsh, fish.
const std::vector<std::string>& completion_shells();
// A script that the shell reads (`source`), or finds where packages put such files, for this program by the
// name that it was called by.
std::string completion_script(std::string_view shell);

}  // namespace tuner
