// A real browser (Chromium) under test control: keys, mouse and touch as of a person, and questions to the
// page.
// It talks the DevTools protocol over two pipes, so no port and no other program is needed.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace tuner::testing {

// The path of Chromium; empty: there is none here.
inline std::string chromium() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
    if (access(path, X_OK) == 0) return path;
  return "";
}

// Throws std::runtime_error, which ends the test, if the browser does not answer or the page's script fails.
class Browser {
 public:
  using Json = nlohmann::json;

  // `folder`: for its profile and its log.
  explicit Browser(const std::string& folder) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    in_ = to[1], out_ = from[0];
    // The browser reads its descriptor 3 and writes 4. First copies above them: one may be in the other's
    // place.
    const int read_end = fcntl(to[0], F_DUPFD_CLOEXEC, 10), write_end = fcntl(from[1], F_DUPFD_CLOEXEC, 10);
    close(to[0]), close(from[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, read_end, 3);
    posix_spawn_file_actions_adddup2(&actions, write_end, 4);
    const std::string log = folder + "/chromium.log";
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    std::vector<std::string> words = {chromium(),
                                      "--headless",
                                      "--no-sandbox",
                                      "--disable-gpu",
                                      "--disable-dev-shm-usage",
                                      "--disable-quic",
                                      "--no-first-run",
                                      "--disable-background-networking",
                                      "--disable-component-update",
                                      "--disable-sync",
                                      "--hide-scrollbars",
                                      "--remote-debugging-pipe",
                                      "--user-data-dir=" + folder + "/profile"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ) != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(read_end), close(write_end);
    if (pid_ == 0) throw std::runtime_error(words[0] + " does not start");
    const Json target = call("Target.createTarget", {{"url", "about:blank"}});
    session_ =
        call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}})["sessionId"];
    call("Page.enable");
    call("Runtime.enable");
  }
  ~Browser() {
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(in_), close(out_);
  }
  Browser(const Browser&) = delete;

  // The window's size, whether it is dark, and whether it is touched with fingers.
  void window(int width, int height, bool dark = false, bool touch = false) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", touch}});
    call("Emulation.setEmulatedMedia",
         {{"features", {{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}}}});
    call("Emulation.setTouchEmulationEnabled", {{"enabled", touch}});
  }
  void scripts(bool run) { call("Emulation.setScriptExecutionDisabled", {{"value", !run}}); }
  void open(const std::string& path) {
    loaded_ = false;
    call("Page.navigate", {{"url", "file://" + path}});
    while (!loaded_) take();
  }

  // The value of a JavaScript expression.
  Json ask(const std::string& expression) {
    const Json answer = call("Runtime.evaluate",
                             {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
    if (answer.contains("exceptionDetails"))
      throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
    return answer["result"].value("value", Json());
  }
  // "Tab", "ArrowRight", "Escape" ...
  void key(const std::string& name) {
    const int code = name == "Tab"          ? 9
                     : name == "Escape"     ? 27
                     : name == "PageUp"     ? 33
                     : name == "PageDown"   ? 34
                     : name == "End"        ? 35
                     : name == "Home"       ? 36
                     : name == "ArrowLeft"  ? 37
                     : name == "ArrowUp"    ? 38
                     : name == "ArrowRight" ? 39
                     : name == "ArrowDown"  ? 40
                                            : 0;
    for (const char* type : {"rawKeyDown", "keyUp"})
      call("Input.dispatchKeyEvent",
           {{"type", type}, {"key", name}, {"code", name}, {"windowsVirtualKeyCode", code}});
  }
  void move_mouse(double x, double y) { mouse("mouseMoved", x, y, 0); }
  void click(double x, double y) {
    mouse("mousePressed", x, y, 1);
    mouse("mouseReleased", x, y, 1);
  }
  void tap(double x, double y) {
    call("Input.dispatchTouchEvent", {{"type", "touchStart"}, {"touchPoints", {{{"x", x}, {"y", y}}}}});
    call("Input.dispatchTouchEvent", {{"type", "touchEnd"}, {"touchPoints", Json::array()}});
  }
  // What the page's script complained of, and each address it asked for, since the start.
  const std::vector<std::string>& errors() const { return errors_; }

  Json call(const std::string& method, const Json& parameters = Json::object()) {
    Json message{{"id", ++last_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    const std::string text = message.dump() + '\0';
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = write(in_, text.data() + sent, text.size() - sent);
      if (n <= 0) throw std::runtime_error("the browser reads no more");
      sent += static_cast<size_t>(n);
    }
    while (true) {
      const Json got = take();
      if (got.value("id", 0) != last_) continue;
      if (got.contains("error")) throw std::runtime_error(method + ": " + got["error"].dump());
      return got["result"];
    }
  }

 private:
  void mouse(const char* type, double x, double y, int clicks) {
    call("Input.dispatchMouseEvent", {{"type", type},
                                      {"x", x},
                                      {"y", y},
                                      {"button", clicks > 0 ? "left" : "none"},
                                      {"clickCount", clicks}});
  }

  // The next message of the browser, which also tells of what happened.
  Json take() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    size_t at = 0;
    while ((at = got_.find('\0')) == std::string::npos) {
      pollfd wait{.fd = out_, .events = POLLIN, .revents = 0};
      char part[65536];
      if (poll(&wait, 1, 1000) > 0) {
        const ssize_t n = read(out_, part, sizeof part);
        if (n <= 0) throw std::runtime_error("the browser has ended");
        got_.append(part, static_cast<size_t>(n));
      } else if (std::chrono::steady_clock::now() > end) {
        throw std::runtime_error("no answer of the browser in 60 s");
      }
    }
    Json message = Json::parse(got_.substr(0, at));
    got_.erase(0, at + 1);
    const std::string method = message.value("method", "");
    if (method == "Page.loadEventFired") loaded_ = true;
    if (method == "Runtime.exceptionThrown") errors_.push_back(message["params"].dump());
    if (method == "Runtime.consoleAPICalled") errors_.push_back(message["params"].dump());
    return message;
  }

  pid_t pid_ = 0;
  int in_ = -1, out_ = -1, last_ = 0;
  bool loaded_ = false;
  std::string session_, got_;
  std::vector<std::string> errors_;
};

}  // namespace tuner::testing
