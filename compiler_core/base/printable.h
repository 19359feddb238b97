// Text from elsewhere on its way to a terminal, which would obey what is not text: workers, imported files,
// names of files and words of a command line are somebody else's.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

// The text with its control characters written out ("\\x1b"): those below a blank, DEL, and U+0080 to U+009F,
// which begin commands in eight bits.
std::string printable(std::string_view text);
// The same, where lines and tabs are meant.
std::string printable_lines(std::string_view text);

}  // namespace tuner
