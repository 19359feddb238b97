// Commands with input that is none, as rows of a table. Each must end soon with the right exit code and one
// line that says why, and leave the folder it ran in as it was.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "db/store.h"
#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner::testing {

// Exit codes: wrong input; a write that failed, or nothing found.
inline constexpr int kWrongInput = 2, kFailed = 1;

struct BadInputRow {
  std::string command;  // without "tuner"; a whole command line when it begins with "runner"
  std::string says;     // part of the one line on stderr
  int exit_code = kWrongInput;
};

// The folder they run in: bad files of every kind, and what a command needs besides.
class BadInputFolder {
 public:
  BadInputFolder() {
    make_files_of_any_kind();
    make_job_files();
    make_databases();
    make_tables_and_models();
  }

  // Runs every row; says which one was the slowest.
  void check(const std::vector<BadInputRow>& rows) {
    double slowest_s = 0;
    std::string slowest;
    for (const BadInputRow& row : rows) {
      const auto start = std::chrono::steady_clock::now();
      check(row);
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (s > slowest_s) slowest = row.command;
      slowest_s = std::max(slowest_s, s);
    }
    std::printf("%zu rows; the slowest took %.2f s: %s\n", rows.size(), slowest_s, slowest.c_str());
  }

  const CommandLine& line() const { return line_; }

 private:
  void check(const BadInputRow& row) {
    SCOPED_TRACE(row.command);
    if (row.command.find("unreadable") != std::string::npos && ::geteuid() == 0) {
      std::printf("skipped, since root may read anything: %s\n", row.command.c_str());
      return;
    }
    const std::set<std::string> before = files();
    const std::string program = row.command.starts_with("runner ") ? "" : "tuner ";
    constexpr int kHangs = 124;  // of timeout: the only bound on time that a loaded machine allows
    const CommandResult r = line_.run("timeout -k 1 10 " + program + row.command);
    ASSERT_NE(r.exit_code, kHangs) << "it hangs";
    EXPECT_EQ(r.exit_code, row.exit_code) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(files(), before) << "something was left behind";
    // A wrong option is followed by where help is.
    const size_t end = std::min(r.err.find('\n'), r.err.size());
    const std::string why = r.err.substr(0, end), rest = r.err.substr(std::min(end + 1, r.err.size()));
    EXPECT_TRUE(rest.empty() || rest == "Run with --help for more information.\n") << r.err;
    EXPECT_TRUE(one_line(why)) << r.err;
    EXPECT_THAT(why, ::testing::HasSubstr(row.says));
    EXPECT_LT(why.size(), 400u) << why;
  }

  // Names, sizes and kinds: what a command may have made, grown or replaced.
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(line_.folder())) {
      const std::string name = entry.path().lexically_relative(line_.folder()).string();
      struct stat info {};
      // good.db itself is looked at; its log comes and goes with whoever reads it.
      if (name.starts_with(".home") || name.starts_with("good.db-") ||
          ::lstat(entry.path().c_str(), &info) != 0)
        continue;
      names.insert(str(name, " ", info.st_mode, " ", S_ISDIR(info.st_mode) ? 0 : info.st_size));
    }
    return names;
  }

  std::string path(const std::string& name) const { return line_.folder() / name; }
  void link(const std::string& to, const std::string& name) const {
    std::filesystem::create_symlink(to, path(name));
  }

  void make_files_of_any_kind() {
    std::filesystem::create_directory(path("folder"));
    std::ofstream(path("folder/file")) << "x";
    link("loop", "loop");
    link("/dev/full", "full");
    link("/dev/full", "full.gz");
    CHECK(::mkfifo(path("fifo").c_str(), 0600) == 0) << "no FIFO";
    line_.write("empty", "");
    line_.write("text", "this is a line of text\n");
    line_.write("nul", std::string("{\"op\": \"mat\0mul\"}\n", 18));
    line_.write("utf8", "{\"op\": \"mat\xff\xfemul\"}\n");
    line_.write("deep", std::string(100'000, '[') + std::string(100'000, ']'));
    line_.write("binary", std::string("\x7f"
                                      "ELF\x02\x01\x01\0\0\0\0\0",
                                      12));
    line_.write("unreadable", "{}");
    ::chmod(path("unreadable").c_str(), 0);
  }

  void make_job_files() {
    const auto matmul = [](const std::string& more, const std::string& a = "[8, 8]") {
      return R"({"op": "matmul", "a": )" + a + R"(, "b": [8, 8], "target": "llvm -mcpu=haswell -threads=1")" +
             more + "}";
    };
    line_.write("good.json", matmul(""));
    line_.write("cut.json", matmul("").substr(0, 40));
    line_.write("type.json", matmul("", "\"eight\""));
    line_.write("key.json", matmul(R"(, "colour": "red")"));
    line_.write("word.json", matmul(R"(, "search": "guess")"));
    line_.write("huge.json", matmul("", "[1e30, 8]"));
    line_.write("overflow.json", matmul("", "[99999999999999999999, 8]"));
    line_.write("negative.json", matmul("", "[-8, 8]"));
    line_.write("odds.json", matmul("", "[8, 9]"));
    line_.write("none.json", "[]");
    line_.write("target.json", R"({"op": "matmul", "a": [8, 8], "b": [8, 8], "target": "abacus"})");
    line_.write("op.json", R"({"op": "matmull", "a": [8, 8], "b": [8, 8]})");
  }

  // good.db: a finished job of one trial. Others: a first page that is SQLite's and nothing else, another
  // program's.
  void make_databases() {
    {
      const auto store = Store::open(path("good.db"), Store::Mode::kWrite).value();
      JobRow job;
      job.id = job.request_id = "j1";
      job.tasks = {{"v1 softmax rows=16 columns=64 dtype=float32", "llvm -mcpu=haswell -threads=1"}};
      job.trials = 1;
      job.search = "random";
      CHECK(store->add_job(job).is_ok());
      CHECK(store->set_job_state("j1", JobState::kFinished, "").is_ok());
    }
    line_.write("damaged.db", line_.read("good.db").replace(100, 8000, std::string(8000, 'Z')));
    line_.write("cut.db", line_.read("good.db").substr(0, 5000));
    // The version of the schema stands in bytes 60 to 63.
    line_.write("older.db", line_.read("good.db").replace(63, 1, "\5"));
    line_.write("empty.db", "");
  }

  void make_tables_and_models() {
    line_.write("space.csv", "tile,time_ms,status\n4,0.5,ok\n8,0.4,ok\n");
    line_.write("space2.csv", "tile,time_ms,status\n4,0.4,ok\n8,0.5,ok\n");
    line_.write("time.csv", "tile,time_ms,status\n4,fast,ok\n");
    line_.write("status.csv", "tile,time_ms,status\n4,0.5,splendid\n");
    line_.write("fields.csv", "tile,time_ms,status\n4,0.5\n");
    line_.write("header.csv", "tile,time_ms,status\n");
    line_.write("untimed.csv", "tile,status\n4,ok\n");
    line_.write("cut.csv.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x2b\xc9", 12));
    line_.write("garbage.gz", std::string("\x1f\x8b garbage", 10));
    line_.write("cut.jsonl", R"({"format": 2, "kind": "trial", "job_uid": "j1)");
    line_.write("version.pack", std::string("TUNERPAK\xff\xff\xff\x7f", 12) + std::string(100, '\0'));
    line_.write("cut.pack", "TUNERPAK");
    line_.write("index.pack", std::string("TUNERPAK\x03\0\0\0\0\0\0\0", 16) + std::string(8, '\x7f') +
                                  std::string(100, '\0'));
  }

  CommandLine line_{TUNER_BIN_DIR};
};

}  // namespace tuner::testing
