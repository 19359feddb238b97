// The one line on stderr that a long command rewrites. All commands draw it here, so that whatever is printed
// next, and a second Ctrl-C, leaves it behind and not in the middle of a line.
#pragma once

#include <string_view>

namespace tuner {

// Rewrites the line. `text` has no newline and is narrower than the terminal.
void draw_progress(std::string_view text);
// What is printed next takes the line's place.
void erase_progress();
// What is printed next begins below the line.
void leave_progress();
// The same as leave_progress(), for a signal handler that ends the process.
void leave_progress_now();

}  // namespace tuner
