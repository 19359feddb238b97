// `tuner admin` as a user types it: a farm made, callers let in, listed and revoked; wrong input changes
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::one_line;
using ::testing::StartsWith;

constexpr int kWrongUse = 2, kFailed = 1;

class AdminTest : public ::testing::Test {
 protected:
  CommandResult admin(const std::string& words) {
    return shell_.run("tuner admin " + words + " --db farm.db");
  }
  // Of an act that should work: what it says.
  std::string done(const std::string& words) {
    const CommandResult r = admin(words);
    EXPECT_EQ(r.exit_code, 0) << words << ": " << r.err;
    EXPECT_EQ(r.err, "") << words;
    return r.out;
  }
  // Of one that should not: one line, and nothing has changed.
  void refused(const std::string& words, const std::string& says, int exit_code = kWrongUse) {
    SCOPED_TRACE(words);
    const auto before = files();
    const CommandResult r = admin(words);
    EXPECT_EQ(r.exit_code, exit_code) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    const size_t end = std::min(r.err.find('\n'), r.err.size());
    const std::string rest = r.err.substr(std::min(end + 1, r.err.size()));
    EXPECT_TRUE(rest.empty() || rest == "Run with --help for more information.\n") << r.err;
    EXPECT_TRUE(one_line(r.err.substr(0, end))) << r.err;
    EXPECT_THAT(r.err, HasSubstr(says));
    EXPECT_EQ(files(), before) << "something has changed";
  }
  // Each file but those of the shell's own home.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all = shell_.tree(".");
    std::erase_if(all, [](const auto& file) { return file.first.starts_with(".home"); });
    return all;
  }
  void SetUp() override {
    shell_.write("small.json",
                 R"({"op": "matmul", "a": [24, 32], "b": [32, 48], "target": "cpu", "trials": 2})");
  }
  int mode_of(const std::string& name) const {
    struct stat info {};
    return stat((shell_.folder() / name).c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
  }
  CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(AdminTest, AFarmIsMadeOnceAndSaysWhatComesNext) {
  const std::string made = done("ca");
  EXPECT_THAT(
      made,
      HasSubstr("farm.db.identity: an authority of this farm, and the daemon's certificate for 825 days"));
  EXPECT_THAT(made, HasSubstr("next: tuner serve --listen tls:0.0.0.0:7070"));
  EXPECT_EQ(mode_of("farm.db.identity"), 0700);
  EXPECT_EQ(mode_of("farm.db.identity/authority.key"), 0600);
  refused("ca", "there is an identity already. `tuner admin ca --db farm.db --renew`", kFailed);
  const std::string before = shell_.read("farm.db.identity/daemon.pem");
  const std::string authority = shell_.read("farm.db.identity/authority.pem");
  EXPECT_THAT(done("ca --renew --days 10"), HasSubstr("the daemon has a new certificate for 10 days"));
  EXPECT_NE(shell_.read("farm.db.identity/daemon.pem"), before);
  EXPECT_EQ(shell_.read("farm.db.identity/authority.pem"), authority);
}

// How docs/farm.md begins a farm of several hosts, where nothing of ours was ever run.
TEST_F(AdminTest, ItIsTheFirstCommandOnANewHost) {
  const CommandResult r = shell_.run("tuner admin ca && tuner admin list");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(mode_of(".home/data/tuner/tuner.db.identity"), 0700);
}

TEST_F(AdminTest, ItLiesWhereItIsToldTo) {
  EXPECT_EQ(shell_.run("tuner admin ca --identity elsewhere").exit_code, 0);
  EXPECT_EQ(mode_of("elsewhere/register.json"), 0600);
  EXPECT_EQ(shell_.run("tuner admin list --identity elsewhere").exit_code, 0);
  refused("list", "there is no farm's identity yet", kFailed);
}

TEST_F(AdminTest, WorkersAndPeopleGetAFileOfTheirOwn) {
  (void)done("ca");
  const std::string worker = done("worker gpu1 --address farm.example:7070 -o gpu1.credentials");
  EXPECT_THAT(worker, ContainsRegex("gpu1.credentials: worker gpu1 until 20..-..-.. ..:.. UTC\n"));
  EXPECT_THAT(worker,
              HasSubstr("bring it there secretly (scp), then: measure_server --daemon gpu1.credentials\n"));
  EXPECT_EQ(mode_of("gpu1.credentials"), 0600);
  EXPECT_THAT(shell_.read("gpu1.credentials"),
              HasSubstr("daemon: farm.example:7070\nworker: gpu1\n-----BEGIN"));

  const std::string token =
      done("token alice --address farm.example:7070 -o alice.credentials --tenant vision");
  EXPECT_THAT(token, HasSubstr("alice.credentials: a token of alice until "));
  EXPECT_THAT(token, HasSubstr("tuner submit FILE --daemon alice.credentials\n"));
  EXPECT_THAT(token, Not(HasSubstr("tuner_"))) << "it stands in the file only";
  EXPECT_EQ(mode_of("alice.credentials"), 0600);
  EXPECT_THAT(shell_.read("alice.credentials"), StartsWith("# alice may query,submit until "));

  const std::string piped = done("token bob --address farm.example:7070 -o - --roles query");
  EXPECT_THAT(piped, StartsWith("# bob may query until "));
  EXPECT_THAT(piped, HasSubstr("\ntoken: tuner_"));
  for (const auto& [name, text] : shell_.tree("farm.db.identity")) {
    EXPECT_THAT(text, Not(HasSubstr("tuner_"))) << name << " holds a token";
    EXPECT_EQ(mode_of("farm.db.identity/" + name), 0600) << name;
  }
}

TEST_F(AdminTest, TheListIsForPeopleAndAsJson) {
  (void)done("ca");
  (void)done("worker gpu1 --address farm:1 -o gpu1.credentials");
  (void)done("token alice --address farm:1 -o alice.credentials --tenant vision");
  (void)done(
      "token robot-of-the-nightly-builds --address farm:1 -o robot.credentials --roles query,submit,work");
  (void)done("revoke gpu1");
  const std::string listed = done("list");
  EXPECT_THAT(listed, HasSubstr("farm.db.identity: the daemon's certificate ends "));
  EXPECT_THAT(listed, ContainsRegex("gpu1 +worker +work .*revoked"));
  EXPECT_THAT(listed, ContainsRegex("alice +token +query,submit +vision .*good"));

  const nlohmann::json json = nlohmann::json::parse(done("list --json"));
  EXPECT_THAT(json.at("identity").get<std::string>(), HasSubstr("farm.db.identity"));
  EXPECT_THAT(json.at("daemon_until").get<std::string>(), HasSubstr(" UTC"));
  ASSERT_EQ(json.at("let_in").size(), 3u);
  EXPECT_EQ(json["let_in"][0].at("kind"), "worker");
  EXPECT_EQ(json["let_in"][0].at("state"), "revoked");
  EXPECT_EQ(json["let_in"][1].at("name"), "alice");
  EXPECT_EQ(json["let_in"][1].at("roles"), "query,submit");
  EXPECT_EQ(json["let_in"][1].at("tenant"), "vision");
  EXPECT_EQ(json["let_in"][1].at("state"), "good");
}

// No listening beyond loopback without TLS, and no TLS without an identity.
TEST_F(AdminTest, ADaemonServesOtherHostsOnlyByTls) {
  const auto serve = [&](const std::string& address) {
    return shell_.run("timeout -k 1 20 tuner serve --db farm.db --listen " + address);
  };
  const CommandResult plain = serve("0.0.0.0:0");
  EXPECT_EQ(plain.exit_code, kWrongUse);
  EXPECT_EQ(
      plain.err,
      "tuner: listen 0.0.0.0:0: only loopback (127.0.0.1, [::1], localhost) is served without TLS: whoever "
      "reaches the daemon can run code on its workers. With it: `tuner admin ca --db farm.db`, then --listen "
      "tls:0.0.0.0:0\n");
  const CommandResult unknown = serve("tls:127.0.0.1:0");
  EXPECT_EQ(unknown.exit_code, kFailed);
  EXPECT_THAT(unknown.err,
              HasSubstr("there is no farm's identity yet. `tuner admin ca --db farm.db` makes it\n"));
  (void)done("ca");
  shell_.write("farm.db.identity/daemon.key", "none\n");
  const CommandResult damaged = serve("tls:127.0.0.1:0");
  EXPECT_EQ(damaged.exit_code, kWrongUse);
  EXPECT_THAT(damaged.err, HasSubstr("the daemon's key: expected PEM that belongs to its certificate: "));
}

TEST_F(AdminTest, RevokingIsDoneOnce) {
  (void)done("ca");
  (void)done("token alice --address farm:1 -o a.credentials");
  (void)done("token alice --address farm:1 -o b.credentials");
  EXPECT_THAT(done("revoke alice"), StartsWith("alice: 2 revoked. "));
  refused("revoke alice",
          "nothing was given out to alice that is still good. See `tuner admin list --db farm.db`", kFailed);
  refused("revoke bob", "nothing was given out to bob", kFailed);
}

TEST_F(AdminTest, WrongInputIsOneLineAndChangesNothing) {
  refused("worker gpu1 --address farm:1 -o x",
          "there is no farm's identity yet. `tuner admin ca --db farm.db` makes it", kFailed);
  refused("ca --renew", "there is no farm's identity yet", kFailed);
  refused("ca --days 0", "--days");
  refused("ca --identity none/x", "none/x: cannot be made: No such file or directory", kFailed);
  refused("ca --days 4000", "--days");
  (void)done("ca");
  shell_.write("taken", "mine\n");
  EXPECT_EQ(shell_.run("tuner admin").exit_code, kWrongUse);
  refused("worker", "NAME");
  refused("worker gpu1 -o x", "--address is required");
  refused("worker gpu1 --address farm:1", "--output is required");
  refused("worker gpu1 --address farm -o x", "--address: expected HOST:PORT");
  refused("worker gpu1 --address unix:/x -o x", "--address: expected HOST:PORT");
  refused("worker gpu.1 --address farm:1 -o x", "name: expected 1 to 64 letters, digits, - and _");
  refused("worker ../x --address farm:1 -o x", "name: expected 1 to 64 letters, digits, - and _");
  refused("worker gpu1 --address farm:1 -o taken", "taken: there is such a file already");
  refused("worker gpu1 --address farm:1 -o none/x", "does not exist");
  refused("worker gpu1 --address farm:1 -o x --roles query", "--roles");
  refused("token a --address farm:1 -o x --roles root",
          "--roles: expected words of query, submit, work and admin");
  refused("token a --address farm:1 -o x --roles ''", "--roles");
  refused("token a --address farm:1 -o x --tenant 'a b'", "tenant: name: expected 1 to 64");
  refused("token a --address farm:1 -o x --days -1", "--days");
  refused("revoke", "NAME");
  refused("list --identity taken", "there is no farm's identity yet", kFailed);
}

TEST_F(AdminTest, ADiskThatIsFullLetsNobodyIn) {
  (void)done("ca");
  const CommandResult r = shell_.run("tuner admin token alice --address farm:1 -o - --db farm.db >/dev/full");
  EXPECT_EQ(r.exit_code, kFailed) << r.err;
  EXPECT_TRUE(one_line(r.err.substr(0, r.err.find('\n')))) << r.err;
  EXPECT_THAT(r.err, HasSubstr("No space left on device"));
  const nlohmann::json json = nlohmann::json::parse(done("list --json"));
  ASSERT_EQ(json.at("let_in").size(), 1u);
  EXPECT_EQ(json["let_in"][0].at("state"), "revoked") << "nobody has it";
}

TEST_F(AdminTest, TheAuditHasALineForEachAct) {
  (void)done("ca");
  (void)done("worker gpu1 --address farm:1 -o gpu1.credentials");
  (void)done("token alice --address farm:1 -o alice.credentials");
  (void)done("revoke alice");
  (void)done("ca --renew");
  (void)done("list");
  refused("revoke alice", "nothing was given out", kFailed);
  std::istringstream lines(shell_.read("farm.db.identity/audit.log"));
  std::vector<std::string> acts;
  for (std::string line; std::getline(lines, line);)
    acts.push_back(nlohmann::json::parse(line).at("act").get<std::string>());
  EXPECT_THAT(acts, ::testing::ElementsAre("ca", "worker", "token", "revoke", "ca renewed"));
}

TEST_F(AdminTest, ATenantIsGivenItsShare) {
  (void)done("ca");
  EXPECT_EQ(done("tenant vision --weight 3 --leases 40 --jobs 10"),
            "tenant vision: weight 3, at most 40 leases at once, at most 10 unfinished jobs, "
            "at most 256 MiB of sources\n");
  EXPECT_THAT(done("list"),
              HasSubstr("tenant vision: weight 3, at most 40 leases at once, at most 10 unfinished jobs, "
                        "at most 256 MiB of sources\n"));
  const auto listed = nlohmann::json::parse(done("list --json"));
  EXPECT_EQ(listed.at("tenants"),
            nlohmann::json::parse(
                R"([{"tenant":"vision","weight":3,"most_leases":40,"most_jobs":10,"most_source_mib":256}])"));
  const std::string light =
      "tenant vision: weight 0.5, at most 40 leases at once, at most 10 unfinished jobs, "
      "at most 256 MiB of sources\n";
  EXPECT_EQ(done("tenant vision --weight 0.5"), light) << "what is not named stays";
  EXPECT_EQ(done("tenant vision"), light) << "and is printed";
  EXPECT_EQ(done("tenant vision --jobs 0 --sources 64"),
            "tenant vision: weight 0.5, at most 40 leases at once, at most 64 MiB of sources\n");
  EXPECT_EQ(done("tenant sound"), "tenant sound: weight 1, at most 256 MiB of sources\n");
  EXPECT_THAT(done("list"), Not(HasSubstr("sound"))) << "asking makes nothing";
  EXPECT_EQ(done("tenant sound --sources 0"), "tenant sound: weight 1\n");
  EXPECT_EQ(done("tenant sound --sources 256"), "tenant sound: weight 1, at most 256 MiB of sources\n");
  EXPECT_THAT(
      shell_.read("farm.db.identity/audit.log"),
      HasSubstr(
          R"("act":"tenant","name":"vision","detail":"weight 0.5, at most 40 leases, 0 jobs and 64 MiB)"));
  refused("tenant vision --weight 0", "--weight");
  refused("tenant vision --weight nan", "--weight");
  refused("tenant vision --leases -1", "--leases");
  refused("tenant 'no name'", "tenant: name: expected 1 to 64 letters");
}

TEST_F(AdminTest, UsageIsReadFromTheDatabase) {
  refused("usage", "farm.db", kFailed);
  const char* const submit = "TUNER_RACE_LIMIT_S=0.001 tuner submit small.json --db farm.db --trials 2";
  ASSERT_EQ(shell_.run(submit).exit_code, 0);
  EXPECT_THAT(done("usage"), ContainsRegex("TENANT.*DEVICE S\n\\(none\\) +1 +2 +[0-9.]+\n"));
  const auto rows = nlohmann::json::parse(done("usage --json"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("tenant"), "");
  EXPECT_EQ(rows[0].at("jobs"), 1);
  EXPECT_EQ(rows[0].at("trials"), 2);
  EXPECT_GT(rows[0].at("device_s").get<double>(), 0);
}

TEST_F(AdminTest, DrainingNobodyIsSaid) {
  refused("drain gpu1 --daemon unix:nobody.sock", "nobody answers", kFailed);
}

}  // namespace
}  // namespace tuner
