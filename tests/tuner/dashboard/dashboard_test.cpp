// What the dashboard tells of a database, part by part, and what it refuses: foreign pages, paths that lead
// outside, words that are none, visitors without the right.
#include "tuner/dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "tests/support/wait_until.h"
#include "tests/tuner/dashboard/dashboard_fixture.h"
#include "tuner/dashboard/fact_json.h"
#include "tuner/dashboard/request_words.h"
#include "tuner/dashboard/task_work.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::DashboardTest;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::kMatmul;
using testing::kNasty;
using testing::kOwnHost;
using testing::kSoftmax;
using testing::kTarget;
using ::testing::Not;
using ::testing::StartsWith;

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
const std::string kTask = "?workload=" + encoded(kMatmul) + "&target=" + encoded(kTarget);

class Dashboard : public DashboardTest {
 protected:
  void SetUp() override {
    add_job("j1", "bayesian", {{kMatmul, kTarget}, {kSoftmax, kTarget, "", 3}});
    ids_ = measure("j1", 0, 90, 1);
    race("j1", 0, {ids_[0], ids_[1], ids_[2]});
    measure("j1", 1, 40, 5);
    add_job("j2", "annealing", {{kMatmul, kTarget}});
  }
  std::vector<std::string> ids_;
};

TEST_F(Dashboard, JobsComeNewestFirstAndInParts) {
  const Json all = told("/api/jobs");
  EXPECT_EQ(all["total"], 2);
  EXPECT_EQ(all["jobs"][0]["job"], "j2");
  EXPECT_EQ(all["jobs"][1]["job"], "j1");
  EXPECT_EQ(all["jobs"][1]["trials_done"], 130);
  EXPECT_EQ(all["jobs"][1]["trials_total"], 128) << "64 a task";
  EXPECT_EQ(all["jobs"][0]["state"], "queued");
  store_.reset();
  EXPECT_EQ(told("/api/jobs")["jobs"][0]["state"], "interrupted") << "as tuner jobs says: nobody writes";
  const Json part = told("/api/jobs?from=1&count=1");
  ASSERT_EQ(part["jobs"].size(), 1);
  EXPECT_EQ(part["jobs"][0]["job"], "j1");
  EXPECT_EQ(told("/api/jobs?from=7")["jobs"].size(), 0);
}

TEST_F(Dashboard, AJobTellsItsTasksWithDefaultAndRaces) {
  const Json job = told("/api/jobs/j1");
  ASSERT_EQ(job["tasks"].size(), 2);
  const Json& answer = job["tasks"][0]["answer"];
  EXPECT_EQ(answer["certified"], true);
  EXPECT_EQ(answer["time_ns"], 1900) << "the race's";
  EXPECT_EQ(answer["time_high_ns"], 1915);
  EXPECT_EQ(answer["default_time_ns"], 2400);
  EXPECT_NEAR(answer["gain"].get<double>(), 2400.0 / 1900, 1e-9);
  EXPECT_EQ(job["tasks"][1]["answer"]["certified"], false);
  EXPECT_FALSE(job["tasks"][1]["answer"].contains("gain")) << "one trial claims none";
  ASSERT_EQ(job["races"].size(), 1);
  EXPECT_EQ(job["races"][0]["finalists"], 3);
}

TEST_F(Dashboard, ACurveHasEveryResultInOrderAndGoesOnWhereItEnded) {
  const Json whole = told("/api/jobs/j1/curve");
  ASSERT_EQ(whole["points"].size(), 130);
  EXPECT_EQ(whole["more"], false);
  std::vector<int64_t> order;
  for (const Json& p : whole["points"]) order.push_back(p[0]);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(whole["points"][8][2], nullptr) << "each ninth fails, and has no time";
  EXPECT_EQ(whole["points"][8][3], "build_error");
  EXPECT_EQ(whole["points"][0][4], ids_[0]);
  EXPECT_EQ(whole["points"][100][1], 1) << "the second task";

  std::vector<Json> in_parts;
  int64_t next = 0;
  for (bool more = true; more;) {
    const Json part = told(str("/api/jobs/j1/curve?count=33&after=", next));
    EXPECT_LE(part["points"].size(), 33);
    for (const Json& p : part["points"]) in_parts.push_back(p);
    next = part["next"], more = part["more"];
    ASSERT_LE(in_parts.size(), 130);
  }
  EXPECT_EQ(Json(in_parts), whole["points"]);
  measure("j2", 0, 3, 9);
  EXPECT_EQ(told("/api/jobs/j2/curve?after=" + whole["next"].dump())["points"].size(), 3) << "what is new";
}

TEST_F(Dashboard, ARaceTellsEverySampleOfEachFinalist) {
  const std::string id = told("/api/jobs/j1")["races"][0]["race"].dump();
  const Json race = told("/api/jobs/j1/races/" + id);
  ASSERT_EQ(race["finalists"].size(), 3);
  const Json& second = race["finalists"][1];
  EXPECT_EQ(second["trial"], ids_[1]);
  EXPECT_EQ(second["samples_ns"].size(), 12);
  EXPECT_EQ(second["samples_ns"][4], 1941);
  EXPECT_EQ(second["process"][11], 2);
  EXPECT_EQ(race["finalists"][0]["winner"], true);
  EXPECT_EQ(race["finalists"][2]["default"], true);
  EXPECT_EQ(ask({.path = "/api/jobs/j2/races/" + id}).status, 404) << "of another job";
}

TEST_F(Dashboard, AnswersAreOneRowATask) {
  const Json answers = told("/api/answers");
  ASSERT_EQ(answers["total"], 2);
  std::set<std::string> tasks;
  for (const Json& a : answers["answers"]) tasks.insert(a["workload"]);
  EXPECT_EQ(tasks, (std::set<std::string>{kMatmul, kSoftmax}));
  EXPECT_EQ(told("/api/answers?count=1")["answers"].size(), 1);
}

TEST_F(Dashboard, ATaskTellsItsRecordsWithTheirKnobs) {
  const Json task = told("/api/task" + kTask);
  EXPECT_EQ(task["answer"]["time_ns"], 1900);
  EXPECT_EQ(task["outcomes"]["build_error"], 5);
  ASSERT_EQ(task["races"].size(), 1);
  EXPECT_EQ(task["races"][0]["job"], "j1");
  const Json first = told("/api/task/records" + kTask + "&count=50");
  ASSERT_EQ(first["records"].size(), 50);
  EXPECT_EQ(first["more"], true);
  EXPECT_TRUE(first["records"][0]["config"].is_object());
  EXPECT_EQ(first["records"][8]["time_ns"], nullptr);
  const Json rest = told("/api/task/records" + kTask + "&after=" + first["next"].dump());
  EXPECT_EQ(rest["records"].size(), 40);
  EXPECT_EQ(rest["more"], false);
  EXPECT_EQ(ask({.path = "/api/task?workload=v1%20none&target=cpu"}).status, 404);
  EXPECT_EQ(ask({.path = "/api/task" + kTask + "&constants=hot"}).status, 400);
}

TEST_F(Dashboard, WithoutADaemonWorkersSayWhatToDo) {
  const Json workers = told("/api/workers");
  EXPECT_EQ(workers["workers"].size(), 0);
  EXPECT_THAT(workers["why"].get<std::string>(), HasSubstr("tuner serve"));
}

// Names, hosts and messages come from elsewhere. They are text in JSON; the type says that it is no page.
TEST_F(Dashboard, NastyTextStaysText) {
  const http::Reply reply = ask({.path = "/api/task/records" + kTask});
  const Json records = Json::parse(reply.body);
  std::string expected = kNasty;
  expected.replace(expected.find('\xff'), 1, "\xef\xbf\xbd");  // what is not UTF-8 is replaced
  EXPECT_EQ(records["records"][8]["message"], expected);
  EXPECT_THAT(reply.type, StartsWith("application/json"));
  const http::Reply error = ask({.path = "/api/jobs/" + encoded(kNasty)});
  EXPECT_EQ(error.status, 404);
  EXPECT_TRUE(Json::accept(error.body)) << error.body;
}

TEST_F(Dashboard, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  for (const char* path : {"/api/jobs", "/api/nothing", "/nothing", "/api/jobs?from=x"}) {
    std::map<std::string, std::string> headers;
    for (const auto& [name, value] : ask({.path = path}).headers) headers[name] = value;
    EXPECT_THAT(headers["Content-Security-Policy"],
                AllOf(StartsWith("default-src 'none'"), HasSubstr("script-src 'self'"),
                      HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))))
        << path;
    EXPECT_EQ(headers["X-Frame-Options"], "DENY") << path;
    EXPECT_EQ(headers["Referrer-Policy"], "no-referrer") << path;
    EXPECT_EQ(headers.count("Access-Control-Allow-Origin"), 0u) << path;
  }
}

TEST_F(Dashboard, ForeignHostsAreRefused) {
  for (const char* host : {"evil.example", "127.0.0.1", "127.0.0.1:7072", "127.0.0.1.evil.example:7071",
                           "localhost:7071.evil.example", "7071", "127.0.0.1:7071 "}) {
    const http::Reply reply = ask({.path = "/api/jobs", .host = host});
    EXPECT_EQ(reply.status, 403) << host;
    EXPECT_THAT(reply.body, AllOf(HasSubstr("Host: found"), Not(HasSubstr("j1")))) << host;
  }
  for (const char* host : {kOwnHost, "localhost:7071", "[::1]:7071"})
    EXPECT_EQ(ask({.path = "/api/jobs", .host = host}).status, 200) << host;
}

TEST_F(Dashboard, RequestsOfOtherPagesAreRefused) {
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:7071", "http://127.0.0.1:7072",
                             "http://localhost:7071"})
    for (const char* method : {"GET", "POST"})
      EXPECT_EQ(ask({.method = method, .path = "/api/jobs", .origin = origin}).status, 403) << origin;
  EXPECT_EQ(ask({.path = "/api/jobs", .origin = "http://127.0.0.1:7071"}).status, 200);
  for (const char* site : {"cross-site", "same-site", "other"}) {
    EXPECT_EQ(ask({.path = "/api/jobs", .fetch_site = site}).status, 403) << site;
    EXPECT_EQ(ask({.method = "POST", .path = "/", .fetch_site = site}).status, 403) << site;
    EXPECT_EQ(ask({.path = "/", .fetch_site = site}).status, 404) << "a link may lead to the page";
  }
  for (const char* site : {"same-origin", "none"})
    EXPECT_EQ(ask({.path = "/api/jobs", .fetch_site = site}).status, 200) << site;
}

TEST_F(Dashboard, ByTlsAnyNameOfTheHostWillDoAndItsPageAlone) {
  const auto status = [&](const std::string& host, const std::string& origin) {
    const http::Request request{.method = "GET", .path = "/api/jobs", .host = host, .origin = origin};
    return whole(dashboard().answer(request, {.address = "0.0.0.0:7071", .tls = true})).status;
  };
  EXPECT_EQ(status("farm.example:7071", ""), 200);
  EXPECT_EQ(status("farm.example:7071", "https://farm.example:7071"), 200);
  EXPECT_EQ(status("farm.example:7071", "https://evil.example"), 403);
  EXPECT_EQ(status("farm.example:7071", "http://farm.example:7071"), 403);
  EXPECT_EQ(status("", ""), 403);
  EXPECT_EQ(status("a b<script>", ""), 403);
}

TEST_F(Dashboard, PathsLeadNowhereElse) {
  std::ofstream(folder_.file("secret.txt")) << "secret";
  std::filesystem::create_directory(folder_.file("page"));
  std::ofstream(folder_.file("page/index.html")) << "<!doctype html>page";
  std::ofstream(folder_.file("page/app.js")) << "script";
  std::ofstream(folder_.file("page/key.pem")) << "secret";
  std::filesystem::create_symlink(folder_.file("secret.txt"), folder_.file("page/link.txt"));
  const dashboard::Dashboard page({.facts = facts_here(),
                                   .page = dashboard::PageFiles::read(folder_.file("page")).value(),
                                   .visitor = {}});
  const auto get = [&](const std::string& path) {
    return page.answer({.method = "GET", .path = path, .host = kOwnHost}, {.address = kOwnHost});
  };
  EXPECT_EQ(get("/").body, "<!doctype html>page");
  EXPECT_EQ(get("/app.js").type, "text/javascript; charset=utf-8");
  for (const char* path :
       {"/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//secret.txt", "/./app.js",
        "/page/../../secret.txt", "/key.pem", "/app.js/", "/app.js%00.txt", "secret.txt", ""}) {
    const http::Reply reply = get(path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr("secret"))) << path;
  }
  EXPECT_EQ(dashboard::PageFiles::read(folder_.file("none")).status().code(), StatusCode::kNotFound);
}

TEST_F(Dashboard, WordsThatAreNoneAreRefusedInOneLine) {
  for (const char* path :
       {"/api/jobs?from=-1", "/api/jobs?count=0", "/api/jobs?count=1001", "/api/jobs?from=1x",
        "/api/jobs?from=1&from=2", "/api/jobs/j1/curve?count=2001", "/api/jobs/j1/races/x", "/api/jobs/%zz",
        "/api/jobs/%0a", "/api/task", "/api/task?workload=a", "/api/jobs?from=99999999999999999999"}) {
    const http::Reply reply = ask({.path = path});
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_THAT(reply.body, AllOf(HasSubstr("found"), HasSubstr("expected"), EndsWith("}\n"))) << path;
    EXPECT_EQ(std::ranges::count(reply.body, '\n'), 1) << path;
  }
  for (const char* path : {"/api/", "/api/x", "/api/jobs/j1/x", "/api/jobs/j1/curve/x", "/api/workers/x",
                           "/api/task/x?workload=a&target=b", "/api/jobs/j9", "/api/jobs/j9/curve"})
    EXPECT_EQ(ask({.path = path}).status, 404) << path;
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "POST"})
    EXPECT_EQ(ask({.method = method, .path = "/"}).status, 405) << method;
  EXPECT_EQ(ask({.path = "/api/jobs?" + std::string(200, '&')}).status, 400);
  std::string path = "/api";
  for (int i = 0; i < 16; ++i) path += "/x";
  EXPECT_EQ(ask({.path = path}).status, 400) << "17 words";
  path.resize(path.size() - 2);
  EXPECT_EQ(ask({.path = path}).status, 404) << "16 words";
}

TEST_F(Dashboard, WhoMayNotReadIsToldNothing) {
  visitor_ = {.why_not_read = "a token is needed"};
  for (const char* path :
       {"/api/about", "/api/jobs", "/api/jobs/j1", "/api/answers", "/api/events", "/api/x"}) {
    const http::Reply reply = ask({.path = path});
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_FALSE(reply.follows) << path;
    EXPECT_EQ(reply.body, "{\"error\":\"a token is needed\"}\n") << path;
  }
}

TEST_F(Dashboard, WhoMayOnlyReadChangesNothing) {
  visitor_ = {.reads = true, .refused_status = 403, .why_not_change = "changes need a token"};
  for (const char* path : {"/api/jobs", "/api/jobs?check=1", "/api/jobs/j1/cancel"}) {
    const http::Reply reply = ask({.method = "POST", .path = path, .body = "{}"});
    EXPECT_EQ(reply.status, 403) << path;
    EXPECT_THAT(reply.body, HasSubstr("changes need a token")) << path;
  }
  EXPECT_EQ(told("/api/about")["may_change"], false);
}

TEST_F(Dashboard, AChangeWithoutADaemonSaysSo) {
  EXPECT_EQ(ask({.method = "POST", .path = "/api/jobs", .body = "{}"}).status, 503);
  EXPECT_EQ(ask({.method = "POST", .path = "/api/jobs/j1/cancel"}).status, 503);
  EXPECT_EQ(ask({.path = "/api/jobs/j1/cancel"}).status, 404) << "GET changes nothing";
}

TEST_F(Dashboard, ATenantSeesItsOwnJobs) {
  JobRow theirs{
      .id = "j3", .request_id = "j3", .tasks = {{kMatmul, kTarget}}, .trials = 1, .search = "random"};
  theirs.tenant = "vision";
  ASSERT_TRUE(store_->add_job(theirs).is_ok());
  visitor_.tenant = "vision";
  const Json all = told("/api/jobs");
  ASSERT_EQ(all["total"], 1);
  EXPECT_EQ(all["jobs"][0]["job"], "j3");
  for (const char* path : {"/api/jobs/j1", "/api/jobs/j1/curve", "/api/jobs/j1/races/1"}) {
    EXPECT_EQ(ask({.path = path}).status, 404) << path;
    EXPECT_THAT(ask({.path = path}).body, HasSubstr("is not here")) << "as for a job that nobody has";
  }
  EXPECT_EQ(told("/api/answers")["total"], 2) << "answers are for everybody";
}

// Single results and races of a task name jobs, configs and messages: each tenant is told of his own.
TEST_F(Dashboard, ATenantSeesResultsOfItsOwnJobs) {
  JobRow theirs{
      .id = "j3", .request_id = "j3", .tasks = {{kMatmul, kTarget}}, .trials = 9, .search = "random"};
  theirs.tenant = "vision";
  ASSERT_TRUE(store_->add_job(theirs).is_ok());
  const std::vector<std::string> ids = measure("j3", 0, 7, 3);
  race("j3", 0, {ids[0], ids[1], ids[2]});
  measure("j2", 0, 30, 4);
  for (const auto& [tenant, jobs, results, races] :
       std::vector<std::tuple<std::optional<std::string>, std::set<std::string>, size_t, size_t>>{
           {std::nullopt, {"j1", "j2", "j3"}, 127, 2}, {"vision", {"j3"}, 7, 1}, {"speech", {}, 0, 0}}) {
    visitor_.tenant = tenant;
    const std::string who = tenant.value_or("everybody");
    for (const int count : {2'000, 40, 3}) {
      std::set<std::string> seen, records;
      int64_t next = 0;
      bool more = true;
      for (int part = 0; more && part < 100; ++part) {
        const Json told_now = told(str("/api/task/records", kTask, "&count=", count, "&after=", next));
        EXPECT_LE(told_now["records"].size(), static_cast<size_t>(count)) << who;
        for (const Json& row : told_now["records"]) seen.insert(row["job"]), records.insert(row["trial"]);
        next = told_now["next"], more = told_now["more"];
      }
      EXPECT_FALSE(more) << who;
      EXPECT_EQ(seen, jobs) << who << count;
      EXPECT_EQ(records.size(), results) << who << count;
    }
    const Json task = told("/api/task" + kTask);
    EXPECT_EQ(task["races"].size(), races) << who;
    for (const Json& row : task["races"]) EXPECT_TRUE(jobs.contains(row["job"])) << who;
  }
}

TEST_F(Dashboard, ThousandsOfAnswersComeInParts) {
  constexpr int kTasks = 350;
  std::vector<JobRow::Task> tasks;
  for (int i = 0; i < kTasks; ++i)
    tasks.push_back({str("v1 softmax rows=", i + 17, " columns=64 dtype=float32"), kTarget});
  add_job("j3", "random", tasks);
  std::vector<MeasureRecord> records;
  for (int i = 0; i < kTasks; ++i) {
    std::vector<TrialRow> trial{
        {.job_id = "j3", .task_index = i, .template_name = "softmax_cpu", .config = "a=1"}};
    ASSERT_TRUE(store_->add_trials(trial).is_ok());
    MeasureRecord r{.trial_id = trial[0].id};
    r.run_ns = r.cpu_ns = {1000.0 + i};
    r.finished_at_us = 1'790'000'000'000'000;
    records.push_back(r);
  }
  ASSERT_TRUE(store_->add_records(records).is_ok());
  const dashboard::Dashboard one = dashboard();  // its list is read once
  std::set<std::string> seen;
  for (int from = 0; from < kTasks + 2; from += 100) {
    const http::Reply reply = whole(one.answer(
        {.method = "GET", .path = "/api/answers", .query = str("count=100&from=", from), .host = kOwnHost},
        {.address = kOwnHost}));
    EXPECT_LT(reply.body.size(), 100u * 700);
    const Json part = Json::parse(reply.body);
    EXPECT_EQ(part["total"], kTasks + 2);
    EXPECT_LE(part["answers"].size(), 100);
    for (const Json& a : part["answers"]) seen.insert(a["workload"]);
  }
  EXPECT_EQ(seen.size(), kTasks + 2u);
}

// The list of answers is kept for two seconds: a page that asks often costs no reading, and one that asks
// later sees what is new.
TEST_F(Dashboard, AnswersThatAreKeptAreReadAgain) {
  const dashboard::Dashboard one = dashboard();
  const auto answers = [&] {
    const http::Reply reply =
        whole(one.answer({.method = "GET", .path = "/api/answers", .host = kOwnHost}, {.address = kOwnHost}));
    return Json::parse(reply.body, nullptr, false);
  };
  EXPECT_EQ(answers()["total"], 2);
  const std::string key = "v1 softmax rows=17 columns=64 dtype=float32";
  add_job("j3", "random", {{key, kTarget}});
  measure("j3", 0, 3, 9);
  EXPECT_TRUE(wait_until(std::chrono::seconds(20), [&] { return answers()["total"] == 3; }));
}

TEST_F(Dashboard, WhatWorkersHaveIsTold) {
  std::vector<TrialRow> trials(3, {.job_id = "j2", .task_index = 0, .template_name = "t"});
  for (size_t i = 0; i < trials.size(); ++i) trials[i].config = str("a=", i);
  ASSERT_TRUE(store_->add_trials(trials));
  ASSERT_EQ(store_->lease_trials({{trials[1].id, "w7", "1"}})->size(), 1u);
  EXPECT_EQ(told("/api/workers")["leases"].size(), 0u) << "its job does not run";
  ASSERT_TRUE(store_->set_job_state("j2", JobState::kRunning, ""));
  const Json leases = told("/api/workers")["leases"];
  ASSERT_EQ(leases.size(), 1u) << leases;
  EXPECT_EQ(leases[0], (Json{{"worker", "w7"},
                             {"job", "j2"},
                             {"trial", trials[1].id},
                             {"workload", kMatmul},
                             {"template", "t"},
                             {"config", "a=1"}}));
  visitor_.tenant = "vision";
  EXPECT_EQ(told("/api/workers")["leases"].size(), 0u) << "of another tenant's job";
}

// Followers hear of it when what they are shown has changed: a result, a job, the state of one.
TEST_F(Dashboard, WhatIsNewChangesTheMark) {
  const auto facts = facts_here();
  std::set<std::string> marks{facts->mark().value()};
  const auto expect_new = [&](const char* what) {
    EXPECT_TRUE(marks.insert(facts->mark().value()).second) << what;
  };
  EXPECT_EQ(facts->mark().value(), *marks.begin()) << "nothing is new";
  measure("j1", 0, 1, 77);
  expect_new("a result");
  add_job("j3", "random", {{kSoftmax, kTarget}});
  expect_new("a job");
  ASSERT_TRUE(store_->set_job_state("j2", JobState::kRunning, ""));
  expect_new("a job that runs");
  ASSERT_TRUE(store_->set_job_state("j2", JobState::kFinished, ""));
  expect_new("a job that has ended");
}

TEST_F(Dashboard, ASourceBesideIsReadAndNeverChanged) {
  EXPECT_EQ(told("/api/about")["beside"], "");
  EXPECT_EQ(ask({.path = "/api/beside/answers"}).status, 404) << "there is none";
  { const auto empty = Store::open(folder_.file("beside.db"), Store::Mode::kWrite).value(); }
  std::shared_ptr<Store> read = Store::open(folder_.file("beside.db"), Store::Mode::kRead).value();
  beside_ = dashboard::facts_of_store(read, dashboard::LiveDaemon::of_database(folder_.file("beside.db")));
  EXPECT_THAT(told("/api/about")["beside"].get<std::string>(), HasSubstr("beside.db"));
  EXPECT_EQ(told("/api/beside/answers")["total"], 0);
  EXPECT_EQ(told("/api/answers")["total"], 2) << "the first is as it was";
  EXPECT_EQ(ask({.path = "/api/beside/jobs/j1"}).status, 404);
  for (const char* path : {"/api/beside", "/api/beside/", "/api/beside/events", "/api/beside/workers",
                           "/api/beside/beside/jobs"})
    EXPECT_EQ(ask({.path = path}).status, 404) << path;
  for (const char* path : {"/api/beside/jobs", "/api/beside/jobs/j1/cancel", "/api/beside/task/verify"})
    EXPECT_EQ(ask({.method = "POST", .path = path, .body = "{}"}).status, 404) << path;
}

TEST_F(Dashboard, WorkForATaskNeedsTheRightAndItsWords) {
  for (const char* path : {"/api/task/tune", "/api/task/verify", "/api/task/library"}) {
    EXPECT_EQ(ask({.path = path + kTask}).status, 404) << path << ": GET changes nothing";
    EXPECT_EQ(ask({.method = "POST", .path = path}).status, 400) << path << ": of which task?";
  }
  EXPECT_EQ(ask({.method = "POST", .path = "/api/task/tune" + kTask + "&trials=0"}).status, 400);
  EXPECT_EQ(ask({.method = "POST", .path = "/api/jobs/j1/tune?trials=1000001"}).status, 400);
  EXPECT_EQ(ask({.method = "POST", .path = "/api/task/tune" + kTask}).status, 503) << "there is no daemon";
  EXPECT_EQ(ask({.method = "POST", .path = "/api/jobs/j1/tune"}).status, 503);
  EXPECT_EQ(ask({.method = "POST", .path = "/api/jobs/j9/tune"}).status, 404);
  visitor_ = {.reads = true, .refused_status = 403, .why_not_change = "changes need a token"};
  for (const std::string& path : {"/api/task/tune" + kTask, "/api/task/verify" + kTask,
                                  "/api/task/library" + kTask, std::string("/api/jobs/j1/tune")})
    EXPECT_EQ(ask({.method = "POST", .path = path}).status, 403) << path;
}

// A program that takes the place of `tuner`.
class TaskWork : public ::testing::Test {
 protected:
  Result<dashboard::Download> library(const std::string& script) { return work(script).library(task_); }
  Result<std::string> verify(const std::string& script) { return work(script).verify(task_); }
  dashboard::TaskWork work(const std::string& script) {
    const std::string program = folder_.file("program");
    std::ofstream(program) << "#!/bin/bash\nprintf '%s|' \"$@\" >" << folder_.file("words") << "\n"
                           << script << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return dashboard::TaskWork("/some.db", program);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_.file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TemporaryFolder folder_;
  JobRow::Task task_{.workload_key = kMatmul, .target = kTarget};
};

TEST_F(TaskWork, ALibraryIsWhatTheCommandWroteAsAnArchive) {
  const auto made =
      library("cp \"$2\" " + folder_.file("job") + "; mkdir -p \"$4\"; echo text >\"$4/kernel.h\"");
  ASSERT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(made->name, "kernel.tar.gz");
  EXPECT_THAT(read("words"), AllOf(StartsWith("build|"), HasSubstr("|--db|/some.db|")));
  EXPECT_THAT(read("job"), HasSubstr("\"op\": \"matmul\""));
  std::ofstream(folder_.file("got.tar.gz"), std::ios::binary) << made->bytes;
  ASSERT_EQ(
      std::system(str("tar -xzf ", folder_.file("got.tar.gz"), " -C ", folder_.path().string()).c_str()), 0);
  EXPECT_EQ(read("kernel/kernel.h"), "text\n");
}

TEST_F(TaskWork, WhatACommandSaysIsTheError) {
  const auto made = library("echo noise; echo 'tuner: nothing is known' >&2; exit 2");
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.message(), "tuner build: nothing is known");
  EXPECT_EQ(verify("echo 'tuner: no certified time' >&2; echo '[]'; exit 1").message(),
            "tuner verify: no certified time");
  // The job file is gone when somebody reads of it.
  EXPECT_EQ(library("echo \"tuner: wrong: $2, to tune: tuner submit $2 --db x\"; exit 2").message(),
            "tuner build: wrong: FILE, to tune: tuner submit FILE --db x");
}

TEST_F(TaskWork, ATimeOutsideOfItsIntervalIsAnAnswer) {
  const char* const print = "echo 'a line [of] words'; printf '[\\n {\"time_ns\": 7}\\n]\\n'; exit ";
  const auto outside = verify(print + std::string("1")), inside = verify(print + std::string("0"));
  ASSERT_TRUE(outside.is_ok()) << outside.message();
  EXPECT_EQ(*outside, R"({"inside":false,"verified":{"time_ns":7}})");
  EXPECT_EQ(*inside, R"({"inside":true,"verified":{"time_ns":7}})");
  EXPECT_FALSE(verify(print + std::string("2")).is_ok());
}

TEST_F(TaskWork, OneCallAtATime) {
  const dashboard::TaskWork slow = work("touch " + folder_.file("began") + "; while [[ ! -e " +
                                        folder_.file("go") + " ]]; do sleep 0.01; done; exit 3");
  std::thread first([&] { EXPECT_FALSE(slow.library(task_).is_ok()); });
  while (!std::filesystem::exists(folder_.file("began"))) std::this_thread::yield();
  EXPECT_EQ(slow.verify(task_).status().code(), StatusCode::kUnavailable);
  std::ofstream(folder_.file("go")) << "1";
  first.join();
  EXPECT_NE(slow.verify(task_).status().code(), StatusCode::kUnavailable);
}

// A job goes on for so many more trials of each task than were done, whatever it was to have before.
TEST(FactJson, AJobGoesOnBehindWhatWasDone) {
  JobRow before{
      .id = "j7", .tasks = {{kMatmul, kTarget}, {kSoftmax, kTarget}}, .trials = 64, .search = "random"};
  before.seed = 5;
  for (const auto& [done, more, trials] :
       std::vector<std::tuple<int64_t, int, int>>{{0, 5, 5}, {6, 5, 8}, {7, 5, 9}, {128, 1, 65}}) {
    const JobRow on = dashboard::job_on(before, done, more);
    EXPECT_EQ(on.trials, trials) << done << " of two tasks, " << more << " more";
    EXPECT_TRUE(dashboard::is_same_search(on, before));
    EXPECT_EQ(on.id, "") << "the daemon says which job it is";
  }
  for (const auto change : std::initializer_list<void (*)(JobRow&)>{
           [](JobRow& j) { j.seed = 6; }, [](JobRow& j) { j.search = "genetic"; },
           [](JobRow& j) { j.tasks.pop_back(); }, [](JobRow& j) { j.tasks[1].workload_key = kMatmul; },
           [](JobRow& j) { j.tasks[0].target = "llvm -mcpu=haswell -threads=2"; },
           [](JobRow& j) { j.tasks[0].constants = Constants::kCold; },
           [](JobRow& j) { j.tasks[0].algorithms = "direct"; }}) {
    JobRow other = before;
    change(other);
    EXPECT_FALSE(dashboard::is_same_search(other, before));
  }
}

TEST(RequestWords, AreDecodedOnce) {
  EXPECT_EQ(dashboard::decoded("a%20b%2Bc+d").value(), "a b+c d");
  EXPECT_EQ(dashboard::decoded("%2525").value(), "%25");
  for (const char* bad : {"%", "%2", "%zz", "%00", "%0a", "%7f", "a%1"})
    EXPECT_FALSE(dashboard::decoded(bad).is_ok()) << bad;
}

}  // namespace
}  // namespace tuner
