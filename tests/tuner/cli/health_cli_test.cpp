// `tuner health` as a probe calls it: on a database, an address and a farm with TLS; what it says of a daemon
// that is not there, is somebody else's, or hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::CommandLine;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::one_line;

// Each script ends its daemon itself.
class HealthCli : public ::testing::Test {
 protected:
  // A daemon with these words, then `script` with $address and $pid of it.
  CommandResult beside_daemon(const std::string& words, const std::string& script) const {
    return shell_.run(
        "tuner serve --db farm.db " + words +
        " >serve.out 2>serve.err & pid=$!\n"
        "trap 'kill -CONT $pid; kill $pid; wait $pid || true' EXIT\n"
        "for i in $(seq 600); do grep -q '^database' serve.out && break; sleep 0.05; done\n"
        "address=$(sed -n 's/^listening on //p' serve.out | head -1)\n"
        "for i in $(seq 600); do tuner health --db farm.db >/dev/null 2>&1 && break; sleep 0.05; done\n" +
        script);
  }
  CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(HealthCli, WithoutADaemonItFailsInOneLine) {
  const CommandResult r = shell_.run("tuner health --db farm.db");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_THAT(r.err, HasSubstr("the daemon on farm.db: no answer within 3 s"));
  EXPECT_EQ(shell_.tree(".").contains("farm.db"), false) << "asking makes no database";
}

TEST_F(HealthCli, ADaemonIsFoundByItsDatabaseAndByItsAddress) {
  const CommandResult r = beside_daemon("--listen 127.0.0.1:0",
                                        "tuner health --db farm.db\n"
                                        "tuner health --daemon $address\n");
  EXPECT_EQ(r.exit_code, 0) << r.err << shell_.read("serve.err");
  EXPECT_EQ(r.out, "ready\nready\n");
}

TEST_F(HealthCli, OverTlsTheFarmsAuthorityIsAllAProbeNeeds) {
  ASSERT_EQ(shell_.run("tuner admin ca --db farm.db; tuner admin ca --db other.db").exit_code, 0);
  const CommandResult r = beside_daemon(
      "--listen tls:127.0.0.1:0",
      "tuner admin token alice --roles query --address $address -o alice --db farm.db >/dev/null\n"
      "grep -v ^token: alice >nobody\n"
      "tuner admin token eve --roles query --address $address -o eve --db other.db >/dev/null\n"
      "tuner health --daemon alice\n"
      "tuner health --daemon nobody\n"
      "echo eve: $(tuner health --daemon eve 2>&1) ${PIPESTATUS[0]}\n"
      "tuner health --daemon eve 2>/dev/null || echo eve fails with $?\n"
      "tuner health --daemon $address --limit 1 2>/dev/null || echo without TLS it fails with $?\n");
  EXPECT_EQ(r.exit_code, 0) << r.err << shell_.read("serve.err");
  EXPECT_THAT(r.out, AllOf(HasSubstr("ready\nready\neve: "), HasSubstr("eve fails with 1\n"),
                           HasSubstr("without TLS it fails with 1\n")));
}

TEST_F(HealthCli, ADaemonThatHangsIsWaitedForAsLongAsIsSaid) {
  const CommandResult r = beside_daemon("--listen 127.0.0.1:0",
                                        "kill -STOP $pid\n"
                                        "date +%s%N >before\n"
                                        "tuner health --db farm.db --limit 1.5 || echo $?\n"
                                        "date +%s%N >after\n");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "1\n");
  EXPECT_THAT(r.err, HasSubstr("no answer within 1.5 s"));
  const double waited_s = (std::stod(shell_.read("after")) - std::stod(shell_.read("before"))) / 1e9;
  EXPECT_GT(waited_s, 1.4);
  EXPECT_LT(waited_s, 20);
}

TEST_F(HealthCli, WrongUseIsSaid) {
  for (const char* words :
       {"--limit 0", "--limit x", "--daemon nosuchfile", "--daemon 127.0.0.1:99999", "extra"})
    EXPECT_EQ(shell_.run(str("tuner health ", words)).exit_code, 2) << words;
}

}  // namespace
}  // namespace tuner
