// tuner dashboard and tuner serve --http as programs: what a daemon tells at its own address, to a dashboard
// beside it and to one that reaches it as a client; wrong use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/dashboard/pages.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::Pages;

constexpr char kJob[] =
    R"({"op":"matmul","a":[8,8],"b":[8,8],"trials":4,"search":"random","target":"llvm -mcpu=haswell -threads=1"})";

// As encodeURIComponent() of a browser.
std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%%%02X", int{0} + static_cast<unsigned char>(c));
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : hex;
  }
  return out;
}

class DashboardCli : public ::testing::Test {
 protected:
  std::string socket() const { return "unix:" + shell_.folder().string() + "/d.sock"; }
  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(DashboardCli, ADaemonAndTheDashboardsAboutItTellTheSame) {
  Pages daemon(shell_, "serve --db t.db --http 127.0.0.1:0 --listen " + socket(), "serve");
  EXPECT_EQ(daemon.token(), "") << "each caller has his own";
  EXPECT_THAT(daemon.said("GET /healthz"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("ok\n")));
  EXPECT_TRUE(eventually(30s, [&] { return daemon.said("GET /readyz").starts_with("HTTP/1.1 200 "); }));
  EXPECT_THAT(daemon.said("GET /metrics"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("# TYPE ")));

  // Of its user, through a dashboard beside it: a job file with a mistake, then one without.
  Pages beside(shell_, "dashboard --no-open --db t.db", "beside");
  EXPECT_THAT(beside.said("POST /api/jobs?check=1", R"({"op":"matmul","a":[0,8],"b":[8,8]})"),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("job file: a")));
  EXPECT_THAT(beside.said("POST /api/jobs?check=1", kJob),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"tasks\":1")));
  EXPECT_EQ(beside.told("/api/jobs")["total"], 0) << "it was only checked";
  EXPECT_THAT(beside.said("POST /api/jobs", kJob),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"job\":\"j1\"")));
  EXPECT_THAT(daemon.said("POST /api/jobs", kJob),
              AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("tuner admin token")))
      << "there is no token, so nobody changes anything";

  const Json first = beside.told("/api/jobs/j1");
  EXPECT_THAT(beside.said("POST /api/jobs/j1/tune?trials=6"),
              AllOf(StartsWith("HTTP/1.1 409 "), HasSubstr("job j1 is running")));
  const std::string task = str("workload=", encoded(first["tasks"][0]["workload"]),
                               "&target=", encoded(first["tasks"][0]["target"]));
  EXPECT_THAT(
      beside.said("POST /api/task/tune?trials=9&" + task),
      AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"job\":\"j2\""), HasSubstr("\"continued\":false")));
  EXPECT_EQ(beside.told("/api/jobs/j2")["trials_total"], 9);
  EXPECT_THAT(beside.said("POST /api/jobs/j2/cancel"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(eventually(30s, [&] { return beside.told("/api/jobs")["jobs"][0]["state"] == "cancelled"; }));
  EXPECT_THAT(
      beside.said("POST /api/jobs/j2/tune?trials=20"),
      AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"job\":\"j2\""), HasSubstr("\"continued\":true")));
  EXPECT_EQ(beside.told("/api/jobs/j2")["trials_total"], 20) << "nothing was done of it";
  EXPECT_THAT(beside.said("POST /api/jobs/j2/cancel"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(eventually(30s, [&] { return beside.told("/api/jobs")["jobs"][0]["state"] == "cancelled"; }));

  Pages client(shell_, "dashboard --no-open --daemon " + socket(), "client");
  for (const Pages* pages : {&daemon, &beside, &client}) {
    const Json jobs = pages->told("/api/jobs");
    ASSERT_EQ(jobs["total"], 2) << jobs;
    EXPECT_EQ(jobs["jobs"][1]["job"], "j1");
    EXPECT_EQ(jobs["jobs"][1]["trials_total"], 4);
    EXPECT_EQ(pages->told("/api/jobs/j1")["tasks"][0]["target"], "llvm -mcpu=haswell -threads=1");
    EXPECT_EQ(pages->told("/api/jobs/j1/curve")["points"].size(), 0u);
    EXPECT_EQ(pages->told("/api/answers")["total"], 0);
    EXPECT_EQ(pages->told("/api/workers")["now"]["jobs"][0]["job"], "j1");
    EXPECT_THAT(pages->said("GET /api/jobs/j9"), StartsWith("HTTP/1.1 404 "));
  }
  for (const Pages* pages : {&daemon, &beside, &client}) {
    EXPECT_EQ(pages->told("/api/task/records?" + task)["records"].size(), 0u);
    EXPECT_EQ(pages->told("/api/task/records?workload=x&target=y")["records"].size(), 0u);
    EXPECT_THAT(pages->said("GET /api/jobs/j1/races/1"), StartsWith("HTTP/1.1 404 "));
  }
  EXPECT_THAT(client.said("POST /api/jobs/j1/cancel"), StartsWith("HTTP/1.1 200 "));
  for (const Pages* pages : {&daemon, &beside, &client})
    EXPECT_TRUE(eventually(30s, [&] { return pages->told("/api/jobs")["jobs"][1]["state"] == "cancelled"; }));

  daemon.program().signal(SIGTERM);
  EXPECT_EQ(daemon.program().wait(30s), 0) << daemon.program().err();
  EXPECT_EQ(beside.told("/api/jobs")["total"], 2) << "the database is there";
  EXPECT_THAT(beside.told("/api/workers")["why"].dump(), HasSubstr("tuner serve"));
  EXPECT_THAT(client.said("GET /api/jobs/j9"), Not(StartsWith("HTTP/1.1 200 ")));
  beside.program().signal(SIGINT);
  EXPECT_EQ(beside.program().wait(30s), 0);
}

TEST_F(DashboardCli, WrongUseIsToldInOneLine) {
  const std::map<std::string, std::string> wrong{
      {"dashboard --http 0.0.0.0:0", "expected 127.0.0.1:PORT"},
      {"dashboard --http tls:127.0.0.1:0", "--http tls:HOST:PORT"},
      {"dashboard --http 7071", "expected 127.0.0.1:PORT"},
      {"dashboard --http 127.0.0.1:x", "127.0.0.1:x"},
      {"dashboard --http 127.0.0.1:", "127.0.0.1:"},
      {"dashboard --daemon nothing.credentials", "nothing.credentials"},
      {"serve --http 0.0.0.0:7071", "tuner admin ca"},
      {"serve --http 127.0.0.1:99999", "127.0.0.1:99999"}};
  for (const auto& [words, expected] : wrong) {
    const CommandResult r = shell_.run("tuner " + words + " --db there.db");
    EXPECT_EQ(r.exit_code, 2) << words << ": " << r.err;
    EXPECT_THAT(r.err, HasSubstr(expected)) << words;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << words << ": " << r.err;
    EXPECT_EQ(r.out, "") << words;
  }
  const CommandResult none = shell_.run("tuner dashboard --no-open --db none.db");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("there is no database yet"));
  const CommandResult beside = shell_.run("tuner dashboard --no-open --db none.db --beside old.db");
  EXPECT_EQ(beside.exit_code, 1);
  EXPECT_THAT(beside.err, AllOf(StartsWith("tuner: --beside: "), HasSubstr("there is no database yet")));
  const CommandResult tls = shell_.run("tuner serve --db there.db --listen unix:d --http tls:127.0.0.1:0");
  EXPECT_EQ(tls.exit_code, 1) << "TLS without an identity";
  EXPECT_THAT(tls.err, HasSubstr("tuner admin ca"));
}

}  // namespace
}  // namespace tuner
