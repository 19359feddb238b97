// query_bench: what a question costs when the database is large: in process, and through a daemon over a
// local socket.
//
//   query_bench [--db FILE] [--records 1000000] [--tasks 1000] [--queries 20000] [--json]
//
// Makes the database first where FILE is not there: matrix products of different shapes, each with as many
// records and one race of 12 finalists. Then asks for tuned tasks drawn at random, and for shapes that were
// never tuned (fallback). Times are of the wall clock and of one question at a time. Exit status: 0; 1 a
// question failed or was not answered exactly; 2 wrong use.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "db/learning/knowledge.h"
#include "db/resolve/resolve.h"
#include "db/sqlite/rows.h"
#include "db/sqlite/sqlite.h"
#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "tests/bench/common/statistics.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

using std::chrono::steady_clock;
constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";
constexpr int kConfigsOfATask = 64;
constexpr int kFinalists = 12, kRaceSamples = 45;

struct Options {
  std::string db;
  int records = 1'000'000, tasks = 1000, queries = 20'000;
  bool json = false;
};

Workload workload_of(int i) {
  MatmulWorkload w;
  w.m = 16 + 8 * (i % 40);
  w.n = 16 * (1 + i / 40 % 40);
  w.k = 64 * (1 + i / 1600);
  return w;
}

MeasureRecord record_of(const std::string& trial, double ns, std::mt19937_64& random) {
  MeasureRecord r{.trial_id = trial};
  for (int i = 0; i < 9; ++i)
    r.run_ns.push_back(ns * (1 + 1e-9 * static_cast<double>(random() % 10'000'000)));
  r.cpu_ns = r.run_ns;
  r.sentinel_before_ns = 87932.5;
  r.sentinel_after_ns = 88012.25;
  r.build_ms = 21.5;
  r.run_ms = 30.25;
  r.artifact_digest = std::string(64, 'a');
  r.max_error = 0.1;
  r.peak_gflops = 230;
  r.environment = {
      "Some CPU | 2 cpus | L1d 32K L2 1024K L3 32768K", "llvm 22.1.8 codegen 4", 1, "w1", "inc1", "host1"};
  r.finished_at_us = 1'700'000'001'000'000;
  return r;
}

std::string insert(const char* table, const char* columns) {
  return str("INSERT INTO ", table, " (", columns, ") VALUES (", db::placeholders(columns), ")");
}

// Rows as the store would write them, without its queue: a million in half a minute.
class Filler {
 public:
  explicit Filler(db::Connection& c) : c_(c) {}

  Status task(int index, int records) {
    const Workload w = workload_of(index);
    const Target target = parse_target(kTarget).value();
    ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance,
                     find_template("matmul_cpu")->apply(w, target));
    const int64_t task_id = ++next_, job_seq = ++next_;
    RETURN_IF_ERROR(c_.run(kTask_, db::to_row(db::StoredTask{task_id, {w.key(), kTarget}})));
    JobRow job{
        .id = str("j", job_seq), .tasks = {{w.key(), kTarget}}, .trials = records, .search = "bayesian"};
    job.state = JobState::kFinished;
    RETURN_IF_ERROR(c_.run(kJob_, db::to_row(db::StoredJob{job_seq, job})));
    std::vector<std::string> configs;
    for (int i = 0; i < kConfigsOfATask; ++i)
      configs.push_back(instance->space().at(instance->space().sample(random_)).to_text());
    std::vector<RaceFinalist> finalists;
    for (int i = 0; i < records; ++i) {
      TrialRow trial{.job_id = job.id,
                     .template_name = "matmul_cpu",
                     .template_version = find_template("matmul_cpu")->version(),
                     .config = configs[static_cast<size_t>(i % kConfigsOfATask)],
                     .state = TrialState::kDone,
                     .attempt = 1,
                     .worker_id = "w1",
                     .seq = ++next_};
      trial.id = db::trial_id_text(trial.seq);
      RETURN_IF_ERROR(c_.run(kTrial_, db::to_row(db::StoredTrial{trial, job_seq, task_id})));
      const double ns = 1e4 * (1 + static_cast<double>((i * 7919) % records) / records);
      const MeasureRecord record = record_of(trial.id, ns, random_);
      RETURN_IF_ERROR(
          c_.run(kRecord_, db::to_row(db::StoredRecord{++next_, trial.seq, task_id, true, record})));
      if (ns < 1e4 * (1 + static_cast<double>(kFinalists) / records))
        finalists.push_back({.trial_id = trial.id});
    }
    return race(job, job_seq, task_id, std::move(finalists));
  }

 private:
  Status race(const JobRow& job, int64_t job_seq, int64_t task_id, std::vector<RaceFinalist> finalists) {
    for (RaceFinalist& f : finalists)
      for (int i = 0; i < kRaceSamples; ++i) {
        f.samples_ns.push_back(1e4 + static_cast<double>(random_() % 1000) / 3);
        f.sentinel_ns.push_back(8.8e4 + static_cast<double>(random_() % 1000) / 3);
        f.process.push_back(i / 5);
      }
    RaceRow race{.id = ++next_, .job_id = job.id, .winner_trial_id = finalists.front().trial_id};
    race.tie_set = {race.winner_trial_id};
    race.finalists = std::move(finalists);
    race.time_ns = 1e4;
    race.time_low_ns = 9.9e3;
    race.time_high_ns = 1.01e4;
    race.environment = {
        "Some CPU | 2 cpus | L1d 32K L2 1024K L3 32768K", "llvm 22.1.8 codegen 4", 1, "w1", "inc1", "host1"};
    race.finished_at_us = 1'700'000'002'000'000;
    ASSIGN_OR_RETURN(const db::SqlRow row, db::to_row(db::StoredRace{race, job_seq, task_id}));
    return c_.run(kRace_, row);
  }

  db::Connection& c_;
  int64_t next_ = 0;
  std::mt19937_64 random_{1};
  const std::string kTask_ = insert("task", db::kTaskColumns), kJob_ = insert("job", db::kJobColumns),
                    kTrial_ = insert("trial", db::kTrialColumns),
                    kRecord_ = insert("record", db::record_columns().c_str()),
                    kRace_ = insert("race", db::kRaceColumns);
};

Status fill(const Options& o) {
  { ASSIGN_OR_RETURN(const std::unique_ptr<Store> made, Store::open(o.db, Store::Mode::kWrite)); }
  ASSIGN_OR_RETURN(const std::unique_ptr<db::Connection> c,
                   db::Connection::open(o.db, db::Connection::Access::kReadWrite));
  Filler filler(*c);
  for (int i = 0; i < o.tasks; ++i) {
    if (i % 20 == 0) {
      if (i > 0) RETURN_IF_ERROR(c->exec("COMMIT"));
      RETURN_IF_ERROR(c->exec("BEGIN"));
      std::fprintf(stderr, "\rquery_bench: task %d of %d", i, o.tasks);
    }
    RETURN_IF_ERROR(filler.task(i, o.records / o.tasks));
  }
  std::fprintf(stderr, "\n");
  return c->exec("COMMIT");
}

struct Times {
  double p50 = 0, p99 = 0, most = 0;  // microseconds
};

// `ask(i)` asks the i-th question.
template <class F>
Result<Times> time_questions(int count, F ask) {
  std::vector<double> us;
  for (int i = -count / 10; i < count; ++i) {  // the first tenth fills caches
    const auto begin = steady_clock::now();
    RETURN_IF_ERROR(ask(i));
    if (i >= 0) us.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count());
  }
  return Times{quantile(us, 0.5), quantile(us, 0.99), quantile(us, 1)};
}

class Asker {
 public:
  explicit Asker(const Options& options) : options_(options) {
    for (int i = 0; i < options.tasks; ++i) tuned_.push_back(workload_of(i));
  }

  Result<Times> in_process(const Resolver& resolver) {
    return time_questions(options_.queries, [&](int) -> Status {
      const Workload& w = tuned_[random_() % tuned_.size()];
      ASSIGN_OR_RETURN(const Answer answer, resolver.resolve(w, target_));
      return answer.kind == AnswerKind::kExact ? Status::ok() : failed("no exact answer for ", w.key());
    });
  }

  Result<Times> over_socket(v1::Jobs::Stub& stub) {
    return time_questions(options_.queries, [&](int) -> Status {
      v1::QueryRequest request;
      request.mutable_task()->set_workload_key(tuned_[random_() % tuned_.size()].key());
      request.mutable_task()->set_target(kTarget);
      request.set_without_outcomes(true);
      v1::QueryReply reply;
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      const grpc::Status status = stub.Query(&context, request, &reply);
      if (!status.ok()) return failed(status.error_message());
      return reply.answer().kind() == v1::EXACT ? Status::ok() : failed("no exact answer");
    });
  }

  // Shapes between the tuned ones.
  Result<Times> fallback(const Resolver& resolver, int count) {
    return time_questions(count, [&](int i) -> Status {
      MatmulWorkload w;
      w.m = 17 + (i + count) % 300;
      w.n = 24 + (i + count) % 500;
      w.k = 64;
      return resolver.resolve(w, target_).status();
    });
  }

 private:
  const Options& options_;
  const Target target_ = parse_target(kTarget).value();
  std::vector<Workload> tuned_;
  std::mt19937_64 random_{2};
};

Status run(const Options& o) {
  std::error_code error;
  if (!std::filesystem::exists(o.db, error)) RETURN_IF_ERROR(fill(o));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(o.db, Store::Mode::kWrite));
  const auto begin = steady_clock::now();
  ASSIGN_OR_RETURN(const bool learned, learn_and_store(*store, "matmul", kTarget));
  const double learn_s = std::chrono::duration<double>(steady_clock::now() - begin).count();
  if (learned) std::fprintf(stderr, "query_bench: learned in %.1f s\n", learn_s);

  Asker asker(o);
  const Resolver resolver(store.get());
  ASSIGN_OR_RETURN(const Times exact, asker.in_process(resolver));
  const int fallbacks = std::max(20, o.queries / 200);
  ASSIGN_OR_RETURN(const Times fallback, asker.fallback(resolver, fallbacks));

  const SteadyClock clock;
  Coordinator coordinator(*store, clock, {.resume_jobs = false});
  RETURN_IF_ERROR(coordinator.start());
  const std::string address = str("unix:/tmp/query-bench-", ::getpid(), ".sock");
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::start(coordinator, {address}));
  const auto stub = v1::Jobs::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  ASSIGN_OR_RETURN(const Times socket, asker.over_socket(*stub));
  server->stop();
  coordinator.stop("the benchmark is over");

  if (o.json) {
    const auto times = [](const Times& t) {
      return nlohmann::ordered_json{{"p50_us", t.p50}, {"p99_us", t.p99}, {"most_us", t.most}};
    };
    std::printf("%s\n", nlohmann::ordered_json{{"records", o.records},
                                               {"tasks", o.tasks},
                                               {"exact_in_process", times(exact)},
                                               {"exact_local_socket", times(socket)},
                                               {"fallback_in_process", times(fallback)}}
                            .dump(2)
                            .c_str());
    return Status::ok();
  }
  std::printf("%d records of %d tasks\n", o.records, o.tasks);
  const auto line = [](const char* name, const Times& t) {
    std::printf("%-22s p50 %8.1f us   p99 %8.1f us   most %8.1f us\n", name, t.p50, t.p99, t.most);
  };
  line("exact, in process", exact);
  line("exact, local socket", socket);
  line("fallback, in process", fallback);
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  tuner::Options options;
  CLI::App app{"What a question costs when the database is large, in process and over a local socket."};
  app.add_option("--db", options.db, "database; made where it is not there")->required();
  app.add_option("--records", options.records, "of a database that is made")
      ->check(CLI::Range(1000, 100'000'000));
  app.add_option("--tasks", options.tasks, "it has; as many as when it was made")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--queries", options.queries, "to ask")->check(CLI::Range(100, 10'000'000));
  app.add_flag("--json", options.json, "print one JSON document");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const tuner::Status status = tuner::run(options);
  if (!status) std::fprintf(stderr, "query_bench: %s\n", status.message().c_str());
  return status ? 0 : status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
