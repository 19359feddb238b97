// Single results that a daemon gives out: the same as its database tells, in parts, of jobs that the caller
// sees; and what becomes of it beside a daemon that does not know the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/served_daemon.h"
#include "tests/tuner/dashboard/dashboard_fixture.h"
#include "tuner/daemon/edge/record_calls.h"
#include "tuner/dashboard/daemon_facts.h"

namespace tuner {
namespace {

using dashboard::FactSource;
using testing::DashboardTest;
using ::testing::HasSubstr;
using testing::kMatmul;
using testing::kSoftmax;
using testing::kTarget;
using Json = nlohmann::ordered_json;

const dashboard::TaskName kTask{.workload = kMatmul, .target = kTarget};

class DaemonRecords : public DashboardTest {
 protected:
  void SetUp() override {
    add_job("j1", "bayesian", {{kMatmul, kTarget}, {kSoftmax, kTarget, "", 3}});
    ids_ = measure("j1", 0, 90, 1);
    race("j1", 0, {ids_[0], ids_[1], ids_[2]});
    measure("j1", 1, 40, 5);
    add_job("j2", "annealing", {{kMatmul, kTarget}});
    measure("j2", 0, 12, 7);
    race("j2", 0, ids_of("j2"));
  }
  std::vector<std::string> ids_of(const std::string& job) {
    std::vector<std::string> ids;
    const std::vector<TrialWithRecord> trials = store_->trials(job).value();
    for (const TrialWithRecord& t : trials)
      if (ids.size() < 3) ids.push_back(t.trial.id);
    return ids;
  }
  // A daemon on the database, which must have no other writer then.
  std::unique_ptr<FactSource> facts_by_daemon() {
    store_.reset();
    daemon_ = std::make_unique<testing::Daemon>(folder_.file("db"));
    const std::string address = daemon_->server->addresses()[0];
    return dashboard::facts_of_daemon(address, dashboard::LiveDaemon::at(address));
  }
  // What `ask` gives of the rows `key`, asked for in parts of `count`.
  template <class Ask>
  static Json in_parts(const char* key, int64_t count, const Ask& ask) {
    Json rows = Json::array();
    int64_t after = 0;
    for (bool more = true; more && rows.size() <= 1'000;) {
      const Result<std::string> text = ask(dashboard::After{.id = after, .count = count});
      EXPECT_TRUE(text.is_ok()) << text.message();
      if (!text) return rows;
      const Json part = Json::parse(*text);
      EXPECT_LE(part[key].size(), static_cast<size_t>(count));
      for (const Json& row : part[key]) rows.push_back(row);
      after = part["next"], more = part["more"];
    }
    return rows;
  }
  static Json told(const Result<std::string>& text) {
    EXPECT_TRUE(text.is_ok()) << text.message();
    return text ? Json::parse(*text) : Json();
  }

  std::vector<std::string> ids_;
  std::unique_ptr<testing::Daemon> daemon_;
};

TEST_F(DaemonRecords, ADaemonTellsWhatItsDatabaseTells) {
  const auto by_daemon = facts_by_daemon();
  const auto by_store = facts_here();
  for (const int64_t count : {2'000, 33, 1}) {
    const auto records_of = [&](const FactSource& facts) {
      return in_parts("records", count, [&](const auto& after) { return facts.records(kTask, after, {}); });
    };
    const auto curve_of = [&](const FactSource& facts) {
      return in_parts("points", count, [&](const auto& after) { return facts.curve("j1", after, {}); });
    };
    const Json records = records_of(*by_store);
    EXPECT_EQ(records.size(), 102u);
    EXPECT_EQ(records_of(*by_daemon), records) << count;
    const Json curve = curve_of(*by_store);
    EXPECT_EQ(curve.size(), 130u);
    EXPECT_EQ(curve_of(*by_daemon), curve) << count;
  }
  const Json job = told(by_store->job("j1", {}));
  ASSERT_EQ(job["races"].size(), 1u);
  EXPECT_EQ(told(by_daemon->job("j1", {}))["races"], job["races"]);
  const Json task = told(by_store->task(kTask, {}));
  ASSERT_EQ(task["races"].size(), 2u);
  EXPECT_EQ(task["races"][0]["job"], "j2") << "the newest first";
  EXPECT_EQ(told(by_daemon->task(kTask, {}))["races"], task["races"]);
  const int64_t id = job["races"][0]["race"];
  const Json race = told(by_store->race("j1", id, {}));
  ASSERT_EQ(race["finalists"][1]["samples_ns"].size(), 12u);
  EXPECT_EQ(told(by_daemon->race("j1", id, {})), race);
  EXPECT_EQ(by_daemon->race("j2", id, {}).status().code(), StatusCode::kNotFound) << "it is of another job";
  EXPECT_EQ(by_daemon->curve("j9", {}, {}).status().code(), StatusCode::kNotFound);
}

// Workers answer in another order than they were asked.
TEST_F(DaemonRecords, PartsLoseNothingWhereResultsComeInAnotherOrder) {
  add_job("j3", "random", {{kSoftmax, kTarget, "", 3}});
  std::vector<TrialRow> trials;
  for (int i = 0; i < 7; ++i)
    trials.push_back(
        {.job_id = "j3", .task_index = 0, .template_name = "softmax_cpu", .config = str("a=", i)});
  ASSERT_TRUE(store_->add_trials(trials));
  for (const size_t i : {6, 2, 4, 0, 5, 1, 3}) {
    MeasureRecord r{.trial_id = trials[i].id};
    r.run_ns = r.cpu_ns = {1000.0 + static_cast<double>(i)};
    ASSERT_TRUE(store_->add_records({r}));
  }
  const auto by_daemon = facts_by_daemon();
  const auto by_store = facts_here();
  for (const FactSource* facts : {by_daemon.get(), by_store.get()})
    for (const int64_t count : {1, 3, 100}) {
      std::vector<double> times;
      for (const Json& row : in_parts("records", count, [&](const auto& after) {
             return facts->records({.workload = kSoftmax, .target = kTarget}, after, {});
           }))
        if (row["job"] == "j3") times.push_back(row["time_ns"]);
      EXPECT_EQ(times, (std::vector<double>{1006, 1002, 1004, 1000, 1005, 1001, 1003})) << count;
      const Json points =
          in_parts("points", count, [&](const auto& after) { return facts->curve("j3", after, {}); });
      ASSERT_EQ(points.size(), 7u) << count;
      EXPECT_EQ(points[0][4], trials[6].id);
    }
}

v1::RecordsRequest of_task(int64_t after = 0, int32_t most = 0) {
  v1::RecordsRequest request;
  request.mutable_task()->set_workload_key(kMatmul);
  request.mutable_task()->set_target(kTarget);
  request.set_after(after);
  request.set_most(most);
  return request;
}

TEST_F(DaemonRecords, ATenantIsToldOfItsOwnJobsAlone) {
  JobRow theirs{
      .id = "j3", .request_id = "j3", .tasks = {{kMatmul, kTarget}}, .trials = 4, .search = "random"};
  theirs.tenant = "blue";
  ASSERT_TRUE(store_->add_job(theirs));
  const std::vector<std::string> ids = measure("j3", 0, 5, 3);
  race("j3", 0, {ids[0], ids[1], ids[2]});
  for (const auto& [scope, results, races] :
       std::vector<std::tuple<Scope, int, int>>{{std::nullopt, 107, 3}, {"blue", 5, 1}, {"red", 0, 0}}) {
    v1::RecordsReply reply;
    ASSERT_TRUE(list_records(*store_, of_task(), scope, &reply));
    EXPECT_EQ(reply.results_size(), results);
    EXPECT_FALSE(reply.more());
    v1::RacesRequest request;
    *request.mutable_task() = of_task().task();
    v1::RacesReply raced;
    ASSERT_TRUE(list_races(*store_, request, scope, &raced));
    EXPECT_EQ(raced.races_size(), races);
  }
  v1::RecordsRequest of_job;
  of_job.set_job_id("j3");
  v1::RacesRequest races_of_job;
  races_of_job.set_job_id("j3");
  v1::RecordsReply reply;
  v1::RacesReply raced;
  EXPECT_EQ(list_records(*store_, of_job, "red", &reply).code(), StatusCode::kNotFound);
  EXPECT_EQ(list_races(*store_, races_of_job, "red", &raced).code(), StatusCode::kNotFound);
  EXPECT_TRUE(list_records(*store_, of_job, "blue", &reply));
  EXPECT_EQ(reply.results_size(), 5);
}

TEST_F(DaemonRecords, RequestsAreBoundedAndWrongOnesAreNamed) {
  const auto expect_refused = [&](const v1::RecordsRequest& request, const char* says) {
    v1::RecordsReply reply;
    const Status refused = list_records(*store_, request, {}, &reply);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(says));
  };
  expect_refused(of_task(0, 2'001), "most: expected 0 to 2000, found 2001");
  expect_refused(of_task(-1), "after: expected a number >= 0, found -1");
  expect_refused({}, "expected one of task and job_id, found neither");
  v1::RecordsRequest both = of_task();
  both.set_job_id("j1");
  expect_refused(both, "found both");
  v1::RecordsRequest long_key = of_task();
  long_key.mutable_task()->set_workload_key(std::string(size_t{2} << 20, 'x'));
  expect_refused(long_key, "at most 1 MiB");
  v1::RacesReply raced;
  v1::RacesRequest wrong;
  wrong.set_job_id("j1");
  wrong.set_race_id(-1);
  EXPECT_EQ(list_races(*store_, wrong, {}, &raced).code(), StatusCode::kInvalidArgument);

  // Long messages make short parts.
  add_job("j3", "random", {{kMatmul, kTarget}});
  std::vector<TrialRow> trials(300, {.job_id = "j3", .task_index = 0, .template_name = "t", .config = "a=1"});
  for (size_t i = 0; i < trials.size(); ++i) trials[i].config = str("a=", i);
  ASSERT_TRUE(store_->add_trials(trials));
  std::vector<MeasureRecord> records;
  for (const TrialRow& t : trials) {
    MeasureRecord r{.trial_id = t.id};
    r.outcome = Outcome::kCrashed;
    r.message = std::string(20'000, 'm');
    records.push_back(r);
  }
  ASSERT_TRUE(store_->add_records(records));
  v1::RecordsRequest of_job;
  of_job.set_job_id("j3");
  int rows = 0, parts = 0;
  for (bool more = true; more && parts < 50; ++parts) {
    v1::RecordsReply reply;
    ASSERT_TRUE(list_records(*store_, of_job, {}, &reply));
    EXPECT_LT(reply.ByteSizeLong(), size_t{3} << 20);
    rows += reply.results_size();
    of_job.set_after(reply.next());
    more = reply.more();
  }
  EXPECT_EQ(rows, 300);
  EXPECT_GT(parts, 2);
}

// A daemon of before: it lists jobs and workers, and knows nothing of single results. Its job is one trial
// further each time, and faster each second time.
class OlderDaemon final : public v1::Jobs::Service {
  grpc::Status List(grpc::ServerContext*, const v1::ListRequest*, v1::ListReply* reply) override {
    reply->set_with_tuned(true);
    v1::JobSummary* const job = reply->add_jobs();
    job->set_job_id("j1");
    job->set_state(v1::JOB_RUNNING);
    job->add_tasks()->set_workload_key(kMatmul);
    job->mutable_tasks(0)->set_target(kTarget);
    job->set_trials(4);
    job->set_search("random");
    const int told = told_.fetch_add(1);
    job->mutable_progress()->set_best_ns(500 - told / 2);
    job->mutable_progress()->set_trials_done(2 + told);
    return grpc::Status::OK;
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersReply*) override {
    return grpc::Status::OK;
  }
  std::atomic<int> told_ = 0;
};

TEST(OlderDaemons, GiveOutNoResultsAndSoTheySay) {
  OlderDaemon service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const std::string address = str("127.0.0.1:", port);
  const auto facts = dashboard::facts_of_daemon(address, dashboard::LiveDaemon::at(address));
  for (const Status& refused : {facts->records(kTask, {}, {}).status(), facts->race("j1", 1, {}).status()}) {
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("older version"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("tuner dashboard --db FILE"));
  }
  // A curve of what it says while the page is open; a job without races.
  const auto curve = facts->curve("j1", {}, {});
  ASSERT_TRUE(curve.is_ok()) << curve.message();
  EXPECT_EQ(Json::parse(*curve)["points"].size(), 1u);
  // It grows, and is told in parts.
  Json points;
  wait_until(std::chrono::seconds(20), [&] {
    points = Json::parse(facts->curve("j1", {}, {}).value())["points"];
    return points.size() >= 4;
  });
  ASSERT_GE(points.size(), 4u);
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_GT(points[i][0], points[i - 1][0]) << points;
    EXPECT_LE(points[i][2], points[i - 1][2]) << points;
    EXPECT_GT(points[i][5], points[i - 1][5]) << "results so far: " << points;
  }
  const Json part = Json::parse(facts->curve("j1", {.id = 0, .count = 2}, {}).value());
  EXPECT_EQ(part["points"], Json({points[0], points[1]}));
  EXPECT_EQ(part["next"], points[1][0]);
  EXPECT_EQ(part["more"], true);
  const Json rest = Json::parse(facts->curve("j1", {.id = part["next"], .count = 1'000}, {}).value());
  EXPECT_EQ(rest["points"][0], points[2]);
  EXPECT_EQ(rest["more"], false);
  const auto job = facts->job("j1", {});
  ASSERT_TRUE(job.is_ok()) << job.message();
  EXPECT_EQ(Json::parse(*job)["races"].size(), 0u);
  server->Shutdown();
}

}  // namespace
}  // namespace tuner
