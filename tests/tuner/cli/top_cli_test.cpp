// A daemon seen from outside, by the programs as they are: tuner top at a terminal and in a pipe, tuner jobs
// --daemon, the status pages and the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/tuner/command_line.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::EndsWith;
using testing::eventually;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr char kEnter[] = "\x1b[?1049h", kLeave[] = "\x1b[?1049l";

// The program at a terminal of that size.
class AtTerminal {
 public:
  AtTerminal(const std::string& command, int columns, int rows) {
    winsize size{};
    size.ws_col = static_cast<uint16_t>(columns);
    size.ws_row = static_cast<uint16_t>(rows);
    child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    ::setenv("TERM", "xterm", 1);
    ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  ~AtTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(terminal_);
  }
  AtTerminal(const AtTerminal&) = delete;
  // Reads until `so`, or for half a minute at most.
  bool shows(const std::function<bool(const std::string&)>& so) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!so(shown)) {
      if (std::chrono::steady_clock::now() >= end) return false;
      pollfd polled{terminal_, POLLIN, 0};
      if (::poll(&polled, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
      if (n <= 0) return so(shown);
      shown.append(buffer, static_cast<size_t>(n));
    }
    return true;
  }
  bool shows(const std::string& text) {
    return shows([&](const std::string& all) { return all.find(text) != std::string::npos; });
  }
  void type(const std::string& keys) const {
    EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), std::ssize(keys));
  }
  void resize(int columns, int rows) const {
    winsize size{};
    size.ws_col = static_cast<uint16_t>(columns);
    size.ws_row = static_cast<uint16_t>(rows);
    EXPECT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  bool echoes() const {
    termios settings{};
    return ::tcgetattr(terminal_, &settings) == 0 && (settings.c_lflag & (ECHO | ICANON)) == (ECHO | ICANON);
  }
  void signal(int number) const { ::kill(child_, number); }
  // Exit code, or 128 + signal; -1: it still runs after half a minute.
  int wait() {
    shows([](const std::string&) { return false; });  // to the end: a full terminal would hold it
    int status = 0;
    if (!eventually(30s, [&] { return ::waitpid(child_, &status, WNOHANG) == child_; })) return -1;
    child_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // The lines of the latest whole frame, without what draws them.
  std::vector<std::string> frame() const {
    std::string text = shown;
    text = std::regex_replace(text.substr(0, text.rfind("\x1b[J")), std::regex("\x1b\\[[0-9?]*[KhlmJ]"), "");
    std::istringstream in(text.substr(text.rfind("\x1b[H") + 3));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      std::erase(line, '\r');
      lines.push_back(line);
    }
    return lines;
  }

  std::string shown;

 private:
  pid_t child_ = -1;
  int terminal_ = -1;
};

class TopCli : public ::testing::Test {
 protected:
  TopCli() {
    shell_.write(
        "job.json",
        R"({"op":"matmul","a":[8,8],"b":[8,8],"trials":4,"search":"random","target":"llvm -mcpu=haswell -threads=1"})");
    daemon_ = std::make_unique<testing::Process>(
        std::vector<std::string>{"/bin/sh", "-c",
                                 str("cd ", folder(), " && XDG_RUNTIME_DIR=", folder(), " exec ",
                                     TUNER_BIN_DIR, "/tuner serve -v --db t.db --listen ", address(),
                                     " --metrics 127.0.0.1:0 --log-format json")},
        folder() + "/serve");
    EXPECT_TRUE(eventually(30s, [&] { return daemon_->out().find("workers:") != std::string::npos; }))
        << daemon_->err();
    // A job that waits for a worker; the command is left, the job stays.
    submit_ = std::make_unique<testing::Process>(
        std::vector<std::string>{
            "/bin/sh", "-c",
            str("cd ", folder(), " && exec ", TUNER_BIN_DIR, "/tuner submit job.json --daemon ", address())},
        folder() + "/submit");
    EXPECT_TRUE(eventually(30s, [&] {
      const CommandResult top = run("top --json");
      if (top.exit_code != 0) return false;
      const auto json = nlohmann::json::parse(top.out);
      return json["jobs"].size() == 1 && json["daemon"]["queued"] == 4;
    })) << submit_->err();
  }
  std::string folder() const { return shell_.folder().string(); }
  std::string address() const { return "unix:" + folder() + "/d.sock"; }
  std::string top() const { return str(TUNER_BIN_DIR, "/tuner top --daemon ", address()); }
  CommandResult run(const std::string& words) const {
    return shell_.run("tuner " + words + " --daemon " + address());
  }
  std::string page(const std::string& path) const {
    std::smatch port;
    const std::string out = daemon_->out();
    if (!std::regex_search(out, port, std::regex("metrics on http://127.0.0.1:([0-9]+)/metrics"))) return out;
    return shell_
        .run(str("exec 3<>/dev/tcp/127.0.0.1/", port[1].str(), "\nprintf 'GET ", path,
                 " HTTP/1.0\\r\\n\\r\\n' >&3\ntimeout 30 cat <&3\n"))
        .out;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
  std::unique_ptr<testing::Process> daemon_, submit_;
};

TEST_F(TopCli, OneFrameInAPipeAndAsJson) {
  for (const char* words : {"top", "top --once"}) {
    const CommandResult r = run(words);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    EXPECT_THAT(r.out, AllOf(HasSubstr("tuner top"), HasSubstr("4 queued"), HasSubstr("j1"),
                             HasSubstr("no worker is connected")));
    EXPECT_EQ(r.out.find('\x1b'), std::string::npos);
  }
  const auto json = nlohmann::json::parse(run("top --json").out);
  EXPECT_EQ(json["jobs"][0]["job"], "j1");
  EXPECT_EQ(json["jobs"][0]["state"], "running");
  EXPECT_EQ(json["jobs"][0]["trials_total"], 4);
  EXPECT_EQ(json["daemon"]["leased"], 0);
  EXPECT_EQ(json["workers"].size(), 0u);
}

TEST_F(TopCli, QuitsByKeyAndLeavesTheTerminalAsItWas) {
  AtTerminal top80(top(), 80, 24);
  ASSERT_TRUE(top80.shows("q quit")) << top80.shown;
  EXPECT_FALSE(top80.echoes());
  EXPECT_EQ(top80.frame().size(), 24u);
  EXPECT_THAT(top80.shown, HasSubstr(kEnter));
  top80.type("jjk\x1b[Bq");
  EXPECT_EQ(top80.wait(), 0) << top80.shown;
  EXPECT_THAT(top80.shown, EndsWith(kLeave));
  EXPECT_TRUE(top80.echoes());
}

TEST_F(TopCli, SignalsLeaveTheTerminalAsItWas) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    AtTerminal terminal(top(), 80, 24);
    ASSERT_TRUE(terminal.shows("q quit")) << terminal.shown;
    number == SIGINT ? terminal.type("\x03") : terminal.signal(number);
    EXPECT_EQ(terminal.wait(), 128 + number);
    EXPECT_THAT(terminal.shown, EndsWith(kLeave)) << "signal " << number;
    EXPECT_TRUE(terminal.echoes()) << "signal " << number;
  }
}

// At a terminal without a shell nobody could let it go on, so Ctrl-Z does not stop it; it leaves the screen
// and comes back all the same.
TEST_F(TopCli, ComesBackAfterCtrlZ) {
  AtTerminal terminal(top(), 80, 24);
  ASSERT_TRUE(terminal.shows("q quit")) << terminal.shown;
  terminal.shown.clear();
  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("q quit")) << terminal.shown;
  const size_t left = terminal.shown.find(kLeave);
  ASSERT_NE(left, std::string::npos) << terminal.shown;
  EXPECT_NE(terminal.shown.find(kEnter, left), std::string::npos);
  EXPECT_FALSE(terminal.echoes());
  terminal.type("q");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(TopCli, FollowsTheSizeOfTheTerminal) {
  AtTerminal terminal(top(), 80, 24);
  ASSERT_TRUE(terminal.shows("q quit")) << terminal.shown;
  terminal.shown.clear();
  terminal.resize(40, 10);
  ASSERT_TRUE(terminal.shows([&](const std::string& all) {
    return all.find("\x1b[J") != std::string::npos && all.find("\x1b[H") != std::string::npos &&
           terminal.frame().size() == 10;
  })) << terminal.shown;
  for (const std::string& line : terminal.frame()) EXPECT_LE(line.size(), 40u) << line;
}

TEST_F(TopCli, ADaemonThatGoesAwayIsSaidAndKeysStillWork) {
  AtTerminal terminal(top(), 80, 24);
  ASSERT_TRUE(terminal.shows("q quit")) << terminal.shown;
  daemon_->signal(SIGKILL);
  EXPECT_TRUE(terminal.shows("no answer, trying on")) << terminal.shown;
  terminal.type("q");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_THAT(terminal.shown, EndsWith(kLeave));
}

TEST_F(TopCli, JobsOfADaemonAreThoseOfItsDatabase) {
  for (const char* words : {"jobs", "jobs --json"}) {
    const CommandResult remote = run(words), file = shell_.run(str("tuner ", words, " --db t.db"));
    EXPECT_EQ(remote.exit_code, 0) << remote.err;
    EXPECT_THAT(remote.out, HasSubstr("j1"));
    EXPECT_EQ(remote.out, file.out);
  }
}

TEST_F(TopCli, TheStatusPagesTell) {
  EXPECT_THAT(page("/healthz"), EndsWith("ok\n"));
  EXPECT_TRUE(eventually(60s, [&] { return page("/readyz").ends_with("\nready\n"); })) << page("/readyz");
  EXPECT_THAT(page("/metrics"),
              AllOf(HasSubstr("tuner_ready 1\n"), HasSubstr("tuner_trials{state=\"queued\"} 4\n"),
                    HasSubstr("tuner_jobs{state=\"running\"} 1\n")));
  EXPECT_THAT(page("/"), HasSubstr("404"));
}

TEST_F(TopCli, EachLineOfTheLogIsJsonAndNamesItsJobAndRequest) {
  std::istringstream lines(daemon_->err());
  std::string request;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(json.is_object()) << line;
    if (json["message"].get<std::string>().find("is submitted") == std::string::npos) continue;
    EXPECT_EQ(json["job"], "j1");
    request = json["request"];
  }
  EXPECT_NE(request, "") << daemon_->err();
}

TEST_F(TopCli, WithoutADaemonItSaysSo) {
  const CommandResult none = shell_.run("tuner top --daemon unix:" + folder() + "/nobody.sock");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("nobody answers"));
}

TEST_F(TopCli, MetricsOfAnOpenAddressAreRefused) {
  const CommandResult open = shell_.run("tuner serve --db other.db --metrics 0.0.0.0:9470");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("HOST:PORT on loopback"));
}

}  // namespace
}  // namespace tuner
