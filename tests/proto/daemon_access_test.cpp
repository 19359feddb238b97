// Credentials files: what is written comes back, and what is none is refused by line.
#include "proto/daemon_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/damaged_text.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

constexpr char kAuthority[] = "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n";
constexpr char kCertificate[] = "-----BEGIN CERTIFICATE-----\nQkJC\n-----END CERTIFICATE-----\n";
constexpr char kKey[] = "-----BEGIN PRIVATE KEY-----\nQ0ND\n-----END PRIVATE KEY-----\n";

DaemonAccess of_person() {
  return {.address = "farm.example:7070", .token = "tuner_12ab", .authority = kAuthority};
}
DaemonAccess of_worker() {
  return {.address = "[2001:db8::1]:7070",
          .worker = "gpu1",
          .authority = kAuthority,
          .certificate = kCertificate,
          .key = kKey};
}

void expect_same(const DaemonAccess& a, const DaemonAccess& b) {
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.worker, b.worker);
  EXPECT_EQ(a.authority, b.authority);
  EXPECT_EQ(a.certificate, b.certificate);
  EXPECT_EQ(a.key, b.key);
}

TEST(DaemonAddress, IsToldFromAFile) {
  for (const char* address :
       {"unix:/run/x", "127.0.0.1:7070", "[::1]:7070", "farm.example:1", "localhost:7070"})
    EXPECT_TRUE(is_daemon_address(address)) << address;
  for (const char* file : {"", "alice.credentials", "./a:7070", "a:7070b", ":7070", "farm:", "/x/a:1"})
    EXPECT_FALSE(is_daemon_address(file)) << file;
}

TEST(Credentials, ComeBackAsTheyWereWritten) {
  for (const DaemonAccess& access : {of_person(), of_worker()}) {
    const std::string text = credentials_text(access, "what it is");
    EXPECT_TRUE(text.starts_with("# what it is\ndaemon: "));
    const Result<DaemonAccess> back = parse_credentials(text, "x.credentials");
    ASSERT_TRUE(back.is_ok()) << back.message();
    expect_same(*back, access);
    EXPECT_EQ(back->file, "x.credentials");
    EXPECT_TRUE(back->tls());
  }
}

TEST(Credentials, MayBeEditedByHand) {
  std::string text = "\r\n  # moved in March\r\n daemon:  other:1 \r\ntoken: t\r\n\r\n";
  for (const char c : std::string(kAuthority)) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Result<DaemonAccess> access = parse_credentials(text, "f");
  ASSERT_TRUE(access.is_ok()) << access.message();
  EXPECT_EQ(access->address, "other:1");
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->authority, kAuthority);
  const Result<DaemonAccess> plain = parse_credentials("daemon: unix:/x\ntoken: t", "f");
  ASSERT_TRUE(plain.is_ok()) << plain.message();
  EXPECT_FALSE(plain->tls());
}

TEST(Credentials, WrongLinesAreNamed) {
  const auto wrong = [](const std::string& text) { return parse_credentials(text, "f").message(); };
  const std::string from = ". Such a file is written by `tuner admin worker` or `tuner admin token`";
  EXPECT_EQ(wrong("# x\ndaemon: farm\n"), "f:2: expected daemon: HOST:PORT" + from);
  EXPECT_EQ(wrong("daemon:\n"), "f:1: expected daemon: HOST:PORT" + from);
  EXPECT_EQ(wrong("daemon: a:1\ntoken:\n"), "f:2: expected token: a word" + from);
  EXPECT_EQ(wrong("daemon: a:1\ntoken: a b\n"), "f:2: expected token: a word" + from);
  EXPECT_EQ(wrong("daemon: a:1\n\nworker: a b\n"), "f:3: expected worker: a name" + from);
  EXPECT_EQ(wrong("daemon: a:1\npassword: x\n"),
            "f:2: expected `daemon:`, `token:`, `worker:`, a comment or PEM" + from);
  EXPECT_EQ(wrong("hello"), "f:1: expected `daemon:`, `token:`, `worker:`, a comment or PEM" + from);
  EXPECT_EQ(wrong(""), "f: expected a line `daemon: HOST:PORT`, found none");
  EXPECT_EQ(wrong("token: x\n"), "f: expected a line `daemon: HOST:PORT`, found none");
  EXPECT_EQ(wrong("daemon: a:1\n-----BEGIN CERTIFICATE-----\nQUFB\n"),
            "f: the file ends inside a PEM block; copy it once more");
  const std::string head = "daemon: a:1\n";
  EXPECT_EQ(wrong(head + kAuthority + kCertificate),
            "f: expected a certificate with its key, found one of them only");
  EXPECT_EQ(wrong(head + kAuthority + kKey),
            "f: expected a certificate with its key, found one of them only");
  EXPECT_THAT(wrong(head + kAuthority + kCertificate + kKey + kKey),
              HasSubstr("at most two certificates and one key"));
  EXPECT_THAT(wrong(head + kAuthority + kCertificate + kKey + kCertificate),
              HasSubstr("at most two certificates and one key"));
}

// What it says must not show a secret to whoever reads over a shoulder, or a log.
TEST(Credentials, AMessageNeverShowsTheToken) {
  EXPECT_THAT(parse_credentials("daemon: a:1\ntoken: tuner_secret word\n", "f").message(),
              ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(parse_credentials("daemon: a:1\ntokn: tuner_secret\n", "f").message(),
              ::testing::Not(HasSubstr("secret")));
}

TEST(Credentials, DamagedTextIsRefusedInOneLineOrReadWhole) {
  const std::vector<std::string> seeds{credentials_text(of_person(), "alice"),
                                       credentials_text(of_worker(), "gpu1")};
  static constexpr std::string_view kPieces[] = {
      "daemon: a:1\n", "token: t\n",          "worker: w\n", "-----BEGIN CERTIFICATE-----\n",
      "-----BEGIN ",   "-----END KEY-----\n", "# ",          "\r\n"};
  int bad = 0;
  const int good = testing::check_damaged(seeds, kPieces, 42, [&](const std::string& text) {
    const Result<DaemonAccess> read = parse_credentials(text, "f");
    if (!read) {
      ++bad;
      EXPECT_TRUE(testing::one_line(read.message())) << read.message();
      return false;
    }
    const Result<DaemonAccess> again = parse_credentials(credentials_text(*read, "x"), "f");
    EXPECT_TRUE(again.is_ok()) << again.message();
    if (again) expect_same(*again, *read);
    return true;
  });
  EXPECT_GT(good, 1'000);
  EXPECT_GT(bad, 1'000);
}

// gRPC takes a port modulo 65536 and would dial somebody else.
TEST(FindDaemon, RefusesAPortThatThereIsNot) {
  for (const char* port : {"0", "65536", "99999", "18446744073709551617"})
    EXPECT_EQ(find_daemon(str("farm:", port)).message(),
              str("farm:", port, ": expected a port from 1 to 65535, found ", port));
  EXPECT_TRUE(find_daemon("[::1]:65535").is_ok());
  EXPECT_TRUE(find_daemon("unix:/run/99999").is_ok());
  EXPECT_EQ(parse_credentials("# alice\ndaemon: farm:99999\n", "alice").message(),
            "alice:2: farm:99999: expected a port from 1 to 65535, found 99999");
}

TEST(FindDaemon, AsksForTheFileWhereTlsIsNamed) {
  EXPECT_EQ(find_daemon("tls:farm:7070").message(),
            "tls:farm:7070: expected HOST:PORT, unix:/path or a credentials file. Where a daemon listens "
            "with tls:, "
            "give the file of `tuner admin token` or `tuner admin worker`");
}

TEST(FindDaemon, TakesAnAddressOrAFile) {
  const TemporaryFolder folder;
  const Result<DaemonAccess> address = find_daemon("127.0.0.1:7070");
  ASSERT_TRUE(address.is_ok()) << address.message();
  EXPECT_EQ(address->address, "127.0.0.1:7070");
  EXPECT_EQ(address->file, "");
  EXPECT_FALSE(address->tls());
  const std::string file = folder.file("alice.credentials");
  std::ofstream(file) << credentials_text(of_person(), "alice");
  const Result<DaemonAccess> read = find_daemon(file);
  ASSERT_TRUE(read.is_ok()) << read.message();
  expect_same(*read, of_person());
  EXPECT_EQ(read->file, file);
  EXPECT_THAT(
      find_daemon(folder.file("none")).message(),
      HasSubstr("none: cannot be read: No such file or directory. Expected HOST:PORT, unix:/path or a "
                "credentials file"));
  EXPECT_THAT(find_daemon("/dev/zero").message(), HasSubstr("/dev/zero: is a device"));
  std::ofstream(folder.file("long")) << std::string(70'000, '#');
  EXPECT_FALSE(find_daemon(folder.file("long")).is_ok());
}

}  // namespace
}  // namespace tuner
