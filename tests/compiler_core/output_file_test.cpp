// A file that is written appears whole or not at all; what is no regular file is written to and stays.
#include "compiler_core/base/output_file.h"
#include "tests/support/temporary_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

namespace tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutputFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_ / name; }
  void put(const std::string& name, std::string_view text) const { std::ofstream(file(name)) << text; }
  std::string text_of(const std::string& name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(OutputFileTest, AFileAppearsWhenItIsFinished) {
  {
    OutputFile out = OutputFile::open(file("a")).value();
    ASSERT_TRUE(out.write("one ").is_ok());
    EXPECT_FALSE(fs::exists(file("a")));
    ASSERT_TRUE(out.write("two").is_ok());
    ASSERT_TRUE(out.finish().is_ok());
  }
  EXPECT_EQ(text_of("a"), "one two");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, WhatIsNotFinishedLeavesTheFormerFileAndNothingElse) {
  put("a", "former");
  {
    OutputFile out = OutputFile::open(file("a")).value();
    ASSERT_TRUE(out.write("half of").is_ok());
  }
  EXPECT_EQ(text_of("a"), "former");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, AProcessThatIsKilledLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    Result<OutputFile> out = OutputFile::open(file("a"));
    if (out) (void)out->write("half of");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const int fd = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(fd);
  EXPECT_THAT(names(), IsEmpty());
}

// An unnamed file gets its name by way of /proc.
TEST_F(OutputFileTest, WithoutProcAFileIsWrittenWholeAllTheSame) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::umount2("/proc", MNT_DETACH) != 0)
      ::_exit(2);
    {
      const Result<OutputFile> left = OutputFile::open(file("unfinished"));
      if (!left.is_ok()) ::_exit(1);
    }
    ::_exit(write_file(file("a"), "whole").is_ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "only root unmounts /proc";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of("a"), "whole");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, AReplacedFileKeepsItsMode) {
  put("a", "former");
  fs::permissions(file("a"), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file(file("a"), "new").is_ok());
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_EQ(fs::status(file("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, LinksAreFollowedAndStay) {
  fs::create_directory(file("there"));
  put("there/target", "former");
  fs::create_symlink("there/target", file("second"));
  fs::create_symlink("second", file("first"));
  ASSERT_TRUE(write_file(file("first"), "new").is_ok());
  EXPECT_TRUE(fs::is_symlink(file("first")));
  EXPECT_TRUE(fs::is_symlink(file("second")));
  EXPECT_EQ(text_of("there/target"), "new");

  fs::create_symlink("there/made", file("dangling"));
  ASSERT_TRUE(write_file(file("dangling"), "made").is_ok());
  EXPECT_TRUE(fs::is_symlink(file("dangling")));
  EXPECT_EQ(text_of("there/made"), "made");
}

TEST_F(OutputFileTest, DevicesAndFifosAreWrittenToAndStay) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = text_of("fifo"); });
  EXPECT_TRUE(write_file(file("fifo"), "through").is_ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(file("fifo")));

  // The same through a link: as root, replacing /dev/null would make a file of it.
  fs::create_symlink("/dev/null", file("null"));
  EXPECT_TRUE(write_file(file("null"), "gone").is_ok());
  EXPECT_TRUE(fs::is_symlink(file("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, AFullDeviceIsAFailureAndStays) {
  fs::create_symlink("/dev/full", file("full"));
  for (const std::string& path : {std::string("/dev/full"), file("full")}) {
    const Status s = write_file(path, "bytes");
    EXPECT_EQ(s.code(), StatusCode::kFailed);
    EXPECT_EQ(s.message(), path + ": No space left on device");
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(fs::is_symlink(file("full")));
}

// A limit on the size of files stands for a full disk.
TEST_F(OutputFileTest, AFailedWriteLeavesTheFormerFileAndNothingElse) {
  put("a", "former");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status s = write_file(file("a"), std::string(5000, 'x'));
    ::_exit(s.code() == StatusCode::kFailed && s.message().ends_with("File too large") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of("a"), "former");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, RefusesWhatCannotBeAFileBeforeAnythingIsWritten) {
  fs::create_symlink("loop", file("loop"));
  const auto refused = [&](const std::string& path) {
    const Result<OutputFile> out = OutputFile::open(path);
    EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(check_output(path).message(), out.message());
    return out.message();
  };
  EXPECT_THAT(refused(folder_), HasSubstr(": is a folder, expected the name of a file to write"));
  EXPECT_THAT(refused(file("none/a")), HasSubstr("its folder " + file("none") + " does not exist"));
  EXPECT_THAT(refused(file("loop")), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(refused(""), HasSubstr("expected the name of a file"));
  put("a", "a");
  EXPECT_THAT(refused(file("a/b")), HasSubstr("Not a directory"));
  EXPECT_THAT(names(), ElementsAre("a", "loop"));
}

// `tuner records export -o tuner.db`, where `records merge -o` means a database.
TEST_F(OutputFileTest, ADatabaseIsNeverReplaced) {
  const std::string database("SQLite format 3\0 and pages", 26);
  put("t.db", database);
  fs::create_symlink("t.db", file("link"));
  for (const char* const name : {"t.db", "link"}) {
    EXPECT_THAT(write_file(file(name), "text").message(), HasSubstr("is an SQLite database")) << name;
    EXPECT_EQ(check_output(file(name)).code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(text_of("t.db"), database);
  put("t.txt", "SQLite format 3");
  EXPECT_TRUE(write_file(file("t.txt"), "text").is_ok()) << "a text about them is none";
}

TEST_F(OutputFileTest, WhatIsReadIsNotReplaced) {
  put("job.json", "{}"), put("other.json", "{}");
  fs::create_symlink("job.json", file("link"));
  fs::create_hard_link(file("job.json"), file("hard"));
  const std::vector<std::string> read = {file("none"), file("job.json")};
  for (const char* const name : {"job.json", "link", "hard"})
    EXPECT_THAT(check_output(file(name), read).message(),
                HasSubstr("would replace a file that this command reads"))
        << name;
  EXPECT_TRUE(check_output(file("other.json"), read).is_ok());
  EXPECT_TRUE(check_output(file("new.json"), read).is_ok());
  EXPECT_TRUE(check_output("-", read).is_ok());
}

TEST_F(OutputFileTest, AFileOfOursIsReplacedWholeWhoeverWritesAtTheSameTime) {
  const std::vector<std::string> texts = {std::string(100'000, 'a'), std::string(100'000, 'b')};
  ASSERT_TRUE(replace_file(file("ours"), texts[0], Durability::kSynced).is_ok());
  std::vector<std::thread> writers;
  for (const std::string& text : texts)
    writers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(replace_file(file("ours"), text).is_ok());
    });
  for (int i = 0; i < 50; ++i) EXPECT_THAT(texts, ::testing::Contains(text_of("ours")));
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(names(), ElementsAre("ours")) << "nothing beside it stays";
}

TEST_F(OutputFileTest, AFileOfOursThatCannotBeWrittenLeavesTheFormerOne) {
  put("full", "former");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = replace_file(file("full"), std::string(2000, 'x'));
    const bool right = status.code() == StatusCode::kFailed &&
                       status.message() == file("full") + ": cannot be written: File too large";
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "not refused, or with other words";
  EXPECT_EQ(text_of("full"), "former");
  EXPECT_THAT(names(), ElementsAre("full"));
  EXPECT_EQ(replace_file(file("none/a"), "").message(),
            file("none/a") + ": cannot be written: No such file or directory");
  EXPECT_EQ(make_folders(file("full/a")).message(), file("full/a") + ": cannot be made: Not a directory");
  ASSERT_TRUE(make_folders(file("b/c")).is_ok());
  ASSERT_TRUE(make_folders(file("b/c")).is_ok()) << "twice is once";
  EXPECT_TRUE(fs::is_directory(file("b/c")));
}

}  // namespace
}  // namespace tuner
