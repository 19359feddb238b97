#include "tuner/text/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace tuner {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J", kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr std::array<int, 6> kEndings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV};

// Of the one screen there is, for signal handlers. What they use is async-signal-safe.
termios before{}, raw{};
volatile sig_atomic_t entered = 0;
int news[2] = {-1, -1};  // a pipe: a byte says that the frame must be drawn anew

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd out{STDOUT_FILENO, POLLOUT, 0};
      if (poll(&out, 1, 1'000) <= 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

void enter() {
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  write_all(kEnter);
  entered = 1;
}

void leave() {
  if (entered == 0) return;
  entered = 0;
  write_all(kLeave);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_NODEFER;
  sigaction(number, &action, nullptr);
}

void on_ending(int number) {
  leave();
  set_handler(number, SIG_DFL);
  raise(number);
}

void draw_anew() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t n = write(news[1], &byte, 1);
}

void on_size(int) {
  const int error = errno;
  draw_anew();
  errno = error;
}

// Somebody else has had the terminal meanwhile.
void on_continue(int) {
  const int error = errno;
  enter();
  draw_anew();
  errno = error;
}

// The program stops in the middle of this, and goes on here; where nobody could let it go on, it does not
// stop.
void on_stop(int) {
  leave();
  set_handler(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  set_handler(SIGTSTP, on_stop);
  on_continue(SIGCONT);
}

winsize size_now() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

bool Screen::possible() {
  const char* const term = std::getenv("TERM");
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != 0 &&
         std::string_view(term) != "dumb";
}

Screen::Screen() {
  tcgetattr(STDIN_FILENO, &before);
  raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // signals stay: Ctrl-C, Ctrl-Z
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (pipe2(news, O_CLOEXEC | O_NONBLOCK) != 0) news[0] = news[1] = -1;
  for (const int number : kEndings) set_handler(number, on_ending);
  set_handler(SIGTSTP, on_stop);
  set_handler(SIGCONT, on_continue);
  set_handler(SIGWINCH, on_size);
  enter();
}

Screen::~Screen() {
  leave();
  for (const int number : kEndings) set_handler(number, SIG_DFL);
  for (const int number : {SIGTSTP, SIGCONT, SIGWINCH}) set_handler(number, SIG_DFL);
  for (int& end : news) close(std::exchange(end, -1));
}

int Screen::width() const {
  const int columns = size_now().ws_col;
  return columns > 0 ? columns : 80;
}

int Screen::height() const {
  const int rows = size_now().ws_row;
  return rows > 0 ? rows : 24;
}

void Screen::draw(const std::vector<ScreenLine>& lines) { write_all(frame_text(lines, height())); }

Screen::Key Screen::key(int wait_ms) {
  pollfd polled[2] = {{STDIN_FILENO, POLLIN, 0}, {news[0], POLLIN, 0}};
  if (poll(polled, 2, wait_ms) <= 0) return Key::kNone;
  char buffer[64];
  if (polled[1].revents != 0) {
    while (read(news[0], buffer, sizeof buffer) > 0) {
    }
    return Key::kRedraw;
  }
  const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN ? Key::kNone : Key::kQuit;
  if (n == 0) return (polled[0].revents & POLLHUP) != 0 ? Key::kQuit : Key::kNone;
  std::string bytes(buffer, static_cast<size_t>(n));
  Key key = Key::kNone;
  while (!bytes.empty() && key != Key::kQuit)
    if (const Key next = take_key(bytes); next != Key::kNone) key = next;
  return key;
}

Screen::Key take_key(std::string& bytes) {
  using Key = Screen::Key;
  constexpr std::array<std::pair<std::string_view, Key>, 15> kKeys = {{{"\x1b[A", Key::kUp},
                                                                       {"\x1b[B", Key::kDown},
                                                                       {"\x1bOA", Key::kUp},
                                                                       {"\x1bOB", Key::kDown},
                                                                       {"\x1b[5~", Key::kPageUp},
                                                                       {"\x1b[6~", Key::kPageDown},
                                                                       {"\x1b[H", Key::kTop},
                                                                       {"\x1b[F", Key::kBottom},
                                                                       {"q", Key::kQuit},
                                                                       {"Q", Key::kQuit},
                                                                       {"k", Key::kUp},
                                                                       {"j", Key::kDown},
                                                                       {" ", Key::kPageDown},
                                                                       {"g", Key::kTop},
                                                                       {"G", Key::kBottom}}};
  for (const auto& [sequence, key] : kKeys)
    if (bytes.starts_with(sequence)) {
      bytes.erase(0, sequence.size());
      return key;
    }
  // An unknown sequence ends with its first letter or "~"; nothing of it is a key.
  size_t end = 1;
  if (bytes.starts_with("\x1b[")) {
    end = 2;
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    end = std::min(end + 1, bytes.size());
  } else if (bytes.starts_with("\x1bO")) {
    end = std::min<size_t>(3, bytes.size());
  }
  bytes.erase(0, end);
  return Key::kNone;
}

std::string frame_text(const std::vector<ScreenLine>& lines, int height) {
  std::string text = "\x1b[H";
  const size_t n = std::min(lines.size(), static_cast<size_t>(std::max(height, 0)));
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) text += "\r\n";  // none behind the last line: it would scroll
    text += lines[i].bold ? "\x1b[1m" + lines[i].text + "\x1b[0m" : lines[i].text;
    text += "\x1b[K";
  }
  return text + "\x1b[J";
}

}  // namespace tuner
