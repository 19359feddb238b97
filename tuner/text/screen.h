// Screen: a terminal's alternate screen, drawn as whole frames, and the keys that are pressed meanwhile.
//
// The terminal is as it was before, however the program ends: by the destructor, a signal (Ctrl-C, SIGTERM,
// SIGHUP, SIGQUIT, an abort), or while Ctrl-Z has stopped it. A frame is one write, over the frame before, so
// nothing flickers. One at a time; used by one thread.
#pragma once

#include <string>
#include <vector>

namespace tuner {

struct ScreenLine {
  std::string text;  // no control characters, no wider than the screen
  bool bold = false;
};

class Screen {
 public:
  // Whether stdin and stdout are a terminal that has such a screen.
  static bool possible();

  Screen();   // needs possible()
  ~Screen();  // leaves the alternate screen
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int width() const;  // now; they follow the terminal
  int height() const;
  // The first height() lines; the rest of the screen is empty.
  void draw(const std::vector<ScreenLine>& lines);

  enum class Key { kNone, kQuit, kUp, kDown, kPageUp, kPageDown, kTop, kBottom, kRedraw };
  // Waits for a key, at most wait_ms. kNone: the time is over, or the key means nothing. kRedraw: the
  // terminal has another size, or the program was stopped meanwhile. kQuit: q, or the terminal has gone.
  Key key(int wait_ms);
};

// Takes one key off the bytes that a terminal sent: q, arrows, j, k, page up and down, blank, g, G. kNone:
// something else, which is taken off, too.
Screen::Key take_key(std::string& bytes);
// The frame as one text: cursor to the top, each line and the end of the old one cleared, then all below.
std::string frame_text(const std::vector<ScreenLine>& lines, int height);

}  // namespace tuner
