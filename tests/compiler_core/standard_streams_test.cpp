// Programs that are started with descriptors 0 to 2 closed or non-blocking, and with small limits.
#include "compiler_core/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "compiler_core/base/input_file.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

// In a process of its own: `started` makes its descriptors as a caller would leave them, `program` says
// whether all is well.
bool holds(const std::function<void()>& started, const std::function<bool()>& program) {
  const pid_t child = ::fork();
  if (child == 0) {
    started();
    prepare_standard_streams();
    ::_exit(program() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void close_all() {
  for (const int fd : {0, 1, 2}) ::close(fd);
}

TEST(StandardStreams, AClosedOneIsNoOtherFileOfTheProgram) {
  const TemporaryFolder folder;
  const std::string path = folder.file("db");
  EXPECT_TRUE(holds(close_all, [&] { return ::open(path.c_str(), O_CREAT | O_RDWR, 0600) > 2; }));
}

TEST(StandardStreams, UsingAClosedOneIsAnError) {
  char c = 0;
  EXPECT_TRUE(holds(close_all, [&] { return ::read(0, &c, 1) < 0 && errno == EBADF; }));
  EXPECT_TRUE(holds(close_all, [&] { return ::write(1, &c, 1) < 0 && errno == EBADF; }));
  EXPECT_TRUE(holds(close_all, [&] { return ::write(2, &c, 1) < 0 && errno == EBADF; }));
}

TEST(StandardStreams, AClosedInputIsCalledClosed) {
  EXPECT_TRUE(holds(close_all, [] {
    const Result<std::string> text = read_file("-", "a job file", 100);
    return text.status().code() == StatusCode::kInvalidArgument &&
           text.message() == "standard input: is closed. Expected a job file";
  }));
}

// What is written 50 ms after the program began to read.
bool reads_late(int type, bool is_socket) {
  int ends[2];
  EXPECT_EQ(is_socket ? ::socketpair(AF_UNIX, type, 0, ends) : ::pipe(ends), 0);
  std::thread writer([&] {
    ::usleep(50'000);
    EXPECT_EQ(::write(ends[1], "late", 4), 4);
    ::close(ends[1]);
  });
  const bool right = holds(
      [&] {
        ::close(ends[1]);
        ::fcntl(ends[0], F_SETFL, ::fcntl(ends[0], F_GETFL) | O_NONBLOCK);
        ::dup2(ends[0], 0);
        ::close(ends[0]);
      },
      [] {
        const Result<std::string> text = read_file("-", "text", 100);
        return text.is_ok() && *text == "late";
      });
  writer.join();
  ::close(ends[0]);
  return right;
}
TEST(StandardStreams, ANonBlockingInputIsWaitedFor) {
  EXPECT_TRUE(reads_late(0, false)) << "a pipe";
  EXPECT_TRUE(reads_late(SOCK_STREAM, true)) << "a socket";
}

// 1 MiB into a pipe of 64 KiB, whose reader is slow.
TEST(StandardStreams, ANonBlockingOutputLosesNothing) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  constexpr size_t kBytes = size_t{1} << 20;
  size_t read = 0;
  std::thread reader([&] {
    char piece[1 << 15];
    for (ssize_t n = 0; read < kBytes && (n = ::read(ends[0], piece, sizeof(piece))) > 0;) {
      read += static_cast<size_t>(n);
      ::usleep(1'000);
    }
  });
  EXPECT_TRUE(holds(
      [&] {
        ::fcntl(ends[1], F_SETFL, ::fcntl(ends[1], F_GETFL) | O_NONBLOCK);
        ::dup2(ends[1], 1);
      },
      [&] {
        const std::string text(kBytes, 'x');
        return ::write(1, text.data(), text.size()) == static_cast<ssize_t>(kBytes);
      }));
  EXPECT_NE(::fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0) << "who shares the pipe keeps the flag";
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  EXPECT_EQ(read, kBytes);
}

TEST(StandardStreams, AWriteBeyondTheLimitFailsAndEndsNobody) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  EXPECT_TRUE(holds(
      [] {
        std::signal(SIGXFSZ, SIG_DFL);
        const rlimit limit{10, 10};
        ::setrlimit(RLIMIT_FSIZE, &limit);
      },
      [&] {
        const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
        return ::write(fd, "0123456789", 10) == 10 && ::write(fd, "x", 1) < 0 && errno == EFBIG;
      }));
}

}  // namespace
}  // namespace tuner
