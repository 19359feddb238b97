// farm_load: what a daemon carries. Simulated workers over real connections measure nothing, so all of the
// time is the daemon's (and theirs: give them a core of their own with taskset).
//
//   tuner serve --db load.db --listen 127.0.0.1:7171 &
//   farm_load --daemon 127.0.0.1:7171 --workers 1000 --seconds 20 --submit 1000000 --ledger acks.txt
//   farm_load --check load.db --ledger acks.txt
//
// Prints durable trials a second, the time from results to the next leases (p50, p99, largest), and how many
// calls failed; with --metrics HOST:PORT (the daemon's) also how many results a commit stores. --check
// compares the ledger with the database: every acknowledged result is stored, none twice.
//
// The same over mTLS; the workers share one certificate, and both it and the token to submit with are revoked
// at the end:
//
//   tuner admin ca --db load.db && tuner serve --db load.db --listen tls:127.0.0.1:7171 &
//   farm_load --daemon 127.0.0.1:7171 --identity load.db.identity --workers 1000 ...
//
// To see how a farm comes back, restart the daemon meanwhile: the last lines say when all had registered
// again.
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "db/store.h"
#include "proto/grpc_access.h"
#include "tests/bench/load/simulated_workers.h"
#include "tests/support/text_client.h"
#include "tuner/identity/identity_folder.h"
#include "tuning.grpc.pb.h"

namespace tuner::bench {
namespace {

struct Options {
  WorkersPlan plan{.daemon = {.address = "127.0.0.1:7070"}, .target = "llvm -mcpu=haswell -threads=1"};
  // One that a machine of the target could do in the simulated time: else the daemon believes nothing.
  std::string workload = "v1 matmul b=1 m=256 n=256 k=256 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
  std::string search = "random", check, metrics, identity;
  int trials = 0, jobs = 1;
  DaemonAccess submitter;  // how jobs are submitted
};

// Lets the workers and the submitter in. The daemon looks at its folder once a second.
Status let_in(Options& options) {
  const std::string address = options.plan.daemon.address;
  options.submitter = options.plan.daemon;
  if (options.identity.empty()) return Status::ok();
  ASSIGN_OR_RETURN(const identity::IdentityFolder folder, identity::IdentityFolder::open(options.identity));
  ASSIGN_OR_RETURN(const auto worker, folder.let_in_worker(options.plan.name, address, 1));
  ASSIGN_OR_RETURN(const auto person, folder.let_in_person(options.plan.name + "-submits",
                                                           identity::Role::kSubmit, "", address, 1));
  ASSIGN_OR_RETURN(options.plan.daemon, parse_credentials(worker.credentials, "the workers"));
  ASSIGN_OR_RETURN(options.submitter, parse_credentials(person.credentials, "the submitter"));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return Status::ok();
}

void let_out(const Options& options) {
  if (options.identity.empty()) return;
  const Result<identity::IdentityFolder> folder = identity::IdentityFolder::open(options.identity);
  for (const std::string& name : {options.plan.name, options.plan.name + "-submits"})
    if (folder) (void)folder->revoke(name);
}

Status submit(const Options& options, int number) {
  grpc::ChannelArguments arguments;
  const auto credentials = channel_credentials(options.submitter, arguments);
  const auto stub =
      v1::Jobs::NewStub(grpc::CreateCustomChannel(options.submitter.address, credentials, arguments));
  v1::SubmitRequest request;
  request.set_request_id(str("farm_load ", options.plan.name, " ", number));
  v1::TaskSpec* const task = request.add_tasks();
  task->set_workload_key(options.workload);
  task->set_target(options.plan.target);
  request.set_trials(options.trials);
  request.set_search(options.search);
  request.set_seed(static_cast<uint64_t>(number) + 1);
  v1::SubmitReply reply;
  grpc::ClientContext context;
  add_token(options.submitter, context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const grpc::Status status = stub->Submit(&context, request, &reply);
  if (!status.ok()) return failed("submit to ", options.submitter.address, ": ", status.error_message());
  std::printf("job %s: %d trials, %s\n", reply.job_id().c_str(), options.trials, options.search.c_str());
  return Status::ok();
}

double at_fraction(std::vector<double>& sorted, double fraction) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1))];
}

// What the daemon's metrics page says of `name`; 0 where it says nothing. With labels: their sum.
double metric(const std::string& address, const std::string& name) {
  testing::TextClient client(address);
  client.send_text("GET /metrics HTTP/1.0\r\n\r\n");
  std::istringstream page(client.rest());
  double sum = 0;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with(name + " ") || line.starts_with(name + "{"))
      sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  return sum;
}

struct Commits {
  double results = 0, commits = 0;
};
Commits commits(const std::string& metrics) {
  return {metric(metrics, "tuner_results_total"), metric(metrics, "tuner_result_commit_seconds_count")};
}

Status load(const Options& options) {
  if (!options.metrics.empty() && !testing::TextClient(options.metrics).connected())
    return invalid_argument("--metrics ", options.metrics, ": no daemon answers there");
  const Commits before = options.metrics.empty() ? Commits{} : commits(options.metrics);
  for (int i = 0; i < options.jobs && options.trials > 0; ++i) RETURN_IF_ERROR(submit(options, i));
  ASSIGN_OR_RETURN(WorkersResult result, run_simulated_workers(options.plan));
  std::ranges::sort(result.turn_ms);
  // A job may end, or its space be used up, before the time is over.
  const double busy_s = (result.last_ack_ms - result.first_lease_ms) / 1000;
  std::printf(
      "%d workers, %d slots, %d ms of thinking: %lld acknowledged in %.1f s, %.0f trials/s; %lld calls, %lld "
      "failed, %lld repeated\n",
      options.plan.workers, options.plan.slots, options.plan.think_ms,
      static_cast<long long>(result.acknowledged), busy_s,
      busy_s > 0 ? static_cast<double>(result.acknowledged) / busy_s : 0,
      static_cast<long long>(result.calls), static_cast<long long>(result.failures),
      static_cast<long long>(result.repeated));
  std::printf("results to leases: p50 %.1f ms, p99 %.1f ms, at most %.1f ms; first lease after %.0f ms\n",
              at_fraction(result.turn_ms, 0.5), at_fraction(result.turn_ms, 0.99),
              at_fraction(result.turn_ms, 1), result.first_lease_ms);
  for (const WorkersResult::Arrival& a : result.arrivals)
    std::printf("%d workers registered within %.0f ms from the first on; %s: %.0f ms\n", a.registered,
                a.last_ms - a.first_ms, a.from_ms == 0 ? "from the start" : "from the first call that failed",
                a.last_ms - a.from_ms);
  if (!options.metrics.empty()) {
    const Commits after = commits(options.metrics);
    const double n = after.commits - before.commits;
    std::printf("%.0f commits of results, %.1f results each\n", n,
                n > 0 ? (after.results - before.results) / n : 0);
  }
  return Status::ok();
}

// Every acknowledged result is a record, and no trial has two terminal ones.
Status check(const Options& options) {
  std::ifstream file(options.plan.ledger);
  if (!file) return invalid_argument("--ledger ", options.plan.ledger, ": could not be read");
  std::map<std::string, int> acknowledged;
  std::string trial;
  for (int attempt = 0; file >> trial >> attempt;) acknowledged[trial] = attempt;
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.check, Store::Mode::kRead));
  int64_t records = 0, doubled = 0;
  std::map<std::string, int> lost = acknowledged;
  std::string last;
  RETURN_IF_ERROR(store->for_each_record("", [&](const TrialWithRecord& t) {
    ++records;
    if (t.trial.id == last) ++doubled;
    last = t.trial.id;
    lost.erase(t.trial.id);
    return true;
  }));
  std::printf("%zu acknowledged, %lld records, %zu lost, %lld doubled\n", acknowledged.size(),
              static_cast<long long>(records), lost.size(), static_cast<long long>(doubled));
  if (lost.empty() && doubled == 0) return Status::ok();
  return failed("the database does not agree with the ledger; lost first: ",
                lost.empty() ? "none" : lost.begin()->first);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("What a daemon carries: simulated workers over real connections");
  app.add_option("--daemon", options.plan.daemon.address, "unix:/path or HOST:PORT");
  app.add_option("--workers", options.plan.workers, "each a connection");
  app.add_option("--slots", options.plan.slots, "leases that a worker holds at most");
  app.add_option("--think-ms", options.plan.think_ms, "how long a worker \"measures\"");
  app.add_option("--seconds", options.plan.seconds);
  app.add_option("--name", options.plan.name,
                 "worker ids are NAME-0, NAME-1, ...; with --identity NAME.0, ...");
  app.add_option("--target", options.plan.target);
  app.add_option("--workload", options.workload);
  app.add_option("--search", options.search);
  app.add_option("--submit", options.trials, "submit a job of so many trials first; 0: none");
  app.add_option("--jobs", options.jobs, "so many jobs");
  app.add_option("--wait-ms", options.plan.wait_ms, "how long a Sync waits for news");
  app.add_option("--repeated", options.plan.repeated, "share of Syncs that come once more, later")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--identity", options.identity, "the daemon's identity folder: dial with mTLS and a token");
  app.add_option("--metrics", options.metrics, "HOST:PORT of the daemon's metrics");
  app.add_option("--ledger", options.plan.ledger, "acknowledged results: appended as they come, or checked");
  app.add_option("--check", options.check, "compare this database with the ledger, and do nothing else");
  CLI11_PARSE(app, argc, argv);
  Status status = options.check.empty() ? let_in(options) : check(options);
  if (status && options.check.empty()) {
    status = load(options);
    let_out(options);
  }
  if (status) return 0;
  std::fprintf(stderr, "farm_load: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace
}  // namespace tuner::bench

int main(int argc, char** argv) { return tuner::bench::run(argc, argv); }
