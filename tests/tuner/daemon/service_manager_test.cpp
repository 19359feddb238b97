// What a service manager hears, and the sockets that it hands over: as systemd does, without systemd.
#include "tuner/daemon/service_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "compiler_core/base/status.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tuner/transport/inherited.h"
#include "tuner/transport/listener.h"

namespace tuner {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(name.sun_path, path_.c_str(), sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  void TearDown() override { ::close(fd_); }
  std::string heard() {
    char text[256];
    const ssize_t n = ::recv(fd_, text, sizeof text, 0);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("n");
  int fd_ = -1;
};

TEST_F(ServiceManagerTest, HearsThatTheDaemonIsReadyAndAlive) {
  ::setenv("WATCHDOG_USEC", "60000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  ServiceManager manager;
  EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr) << "workers that it starts would speak for it";
  EXPECT_EQ(::getenv("WATCHDOG_USEC"), nullptr);
  manager.tell("READY=1");
  EXPECT_EQ(heard(), "READY=1");
  manager.alive();
  EXPECT_EQ(heard(), "WATCHDOG=1");
  manager.alive();
  EXPECT_EQ(heard(), "") << "a third of the limit has not passed";
  EXPECT_TRUE(wait_until(std::chrono::seconds(20), [&] {
    manager.alive();
    return heard() == "WATCHDOG=1";
  }));
}

TEST_F(ServiceManagerTest, AWatchdogOfAnotherProcessIsNotFed) {
  ::setenv("WATCHDOG_USEC", "3", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  ServiceManager manager;
  manager.alive();
  EXPECT_EQ(heard(), "");
}

TEST(WithoutAServiceManager, NothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager manager;
  manager.tell("READY=1");
  manager.alive();
}

// The variables are read once in a process, so this is one test.
TEST(InheritedListener, IsTakenByItsAddressOnce) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  socklen_t size = sizeof name;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  // A manager hands sockets over from number 3 on. What the test has there is moved aside.
  const int aside = ::fcntl(3, F_DUPFD_CLOEXEC, 100);
  ASSERT_EQ(::dup2(fd, 3), 3);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "1", 1);
  sockaddr_in other = name;
  other.sin_port = htons(static_cast<uint16_t>(ntohs(name.sin_port) ^ 1));
  EXPECT_EQ(transport::take_inherited(reinterpret_cast<sockaddr*>(&other)), -1);
  const std::string address = str("127.0.0.1:", ntohs(name.sin_port));
  {
    const auto listening = transport::listen_on("tls:" + address);
    ASSERT_TRUE(listening.is_ok()) << listening.message();
    EXPECT_EQ(listening->address, address);
    EXPECT_EQ(listening->listeners.at(0).fd(), 3);
    EXPECT_TRUE(listening->listeners.at(0).is_tls());
  }
  EXPECT_FALSE(transport::listen_on(address).is_ok()) << "it is taken once, and the port is in use";
  if (aside >= 0) {
    ::dup2(aside, 3);
    ::close(aside);
  }
  ::close(fd);
}

}  // namespace
}  // namespace tuner
