// What can be named as a file to read, and the answer to what cannot: it comes soon.
#include "compiler_core/base/input_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InputFile : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_ / name; }
  std::string refused(const std::string& path) const {
    const Result<std::string> text = read_file(path, "a poem", 100);
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument) << path;
    return text.message();
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(InputFile, IsReadWholeUpToTheLimit) {
  std::ofstream(file("a")) << std::string(100, 'a');
  EXPECT_EQ(read_file(file("a"), "a poem", 100).value(), std::string(100, 'a'));
  std::ofstream(file("b")) << std::string(101, 'b');
  EXPECT_EQ(refused(file("b")), file("b") + ": expected at most 100 bytes, found more");
  fs::resize_file(file("b"), uintmax_t{1} << 40);  // a hole: reading it would take minutes
  EXPECT_EQ(refused(file("b")), file("b") + ": expected at most 100 bytes, found more");
}

TEST_F(InputFile, RefusesWhatHasNoEndOrNoBytes) {
  EXPECT_EQ(refused(file("none")),
            file("none") + ": cannot be read: No such file or directory. Expected a poem");
  EXPECT_EQ(refused(folder_), folder_.string() + ": is a folder, expected a poem");
  EXPECT_EQ(refused("/dev/zero"), "/dev/zero: is a device, expected a poem");
  EXPECT_EQ(read_file("/dev/null", "a poem", 100).value(), "");
  fs::create_symlink("loop", file("loop"));
  EXPECT_THAT(refused(file("loop")), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(InputFile, WaitsForTheWriterOfAFifoAndForNobodyElse) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refused(file("fifo")), file("fifo") + ": is a FIFO that nobody writes to. Expected a poem");

  // A writer that is silent for longer than anybody waits for one to come.
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  std::thread writer([&] {
    let_pass(std::chrono::milliseconds(500));
    EXPECT_EQ(::write(pipe_ends[1], "a rose", 6), 6);
    ::close(pipe_ends[1]);
  });
  EXPECT_EQ(read_file(str("/dev/fd/", pipe_ends[0]), "a poem", 100).value(), "a rose");
  writer.join();
  ::close(pipe_ends[0]);
}

TEST_F(InputFile, AFileOfOursIsReadWholeOrSaysWhy) {
  const std::string bytes(200'000, 'x');
  std::ofstream(file("a")) << bytes;
  EXPECT_EQ(read_whole(file("a")).value(), bytes);
  EXPECT_EQ(read_whole(file("a"), bytes.size()).value(), bytes);
  const Result<std::string> long_one = read_whole(file("a"), bytes.size() - 1);
  EXPECT_EQ(long_one.status().code(), StatusCode::kFailed);
  EXPECT_EQ(long_one.message(), file("a") + ": expected at most 199999 bytes, found more");
  std::ofstream(file("empty")) << "";
  EXPECT_EQ(read_whole(file("empty")).value(), "");
  EXPECT_THAT(read_whole("/proc/self/status").value(), HasSubstr("Name:")) << "whose size the kernel calls 0";
  for (const std::string& path : {file("none"), file("a/b")}) {
    EXPECT_EQ(read_whole(path).status().code(), StatusCode::kNotFound) << path;
    EXPECT_EQ(read_whole(path).message(), path + ": no such file");
  }
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder_.string(), file("pipe"), std::string("/dev/zero")})
    EXPECT_EQ(read_whole(path).status().code(), StatusCode::kFailed) << path;
}

}  // namespace
}  // namespace tuner
