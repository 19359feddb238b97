#include "tuner/client/daemon_client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "proto/convert.h"
#include "proto/grpc_access.h"
#include "proto/grpc_status.h"
#include "tuner/client/job_events.h"
#include "tuner/daemon/daemon_host.h"
#include "tuning.grpc.pb.h"

namespace tuner {

struct DaemonClient::Connection {
  std::string name;
  std::unique_ptr<DaemonHost> host;  // set when the daemon is this process
  DaemonAccess access;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;
};

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kPatience{10};       // until somebody answers
constexpr milliseconds kLook{1'000};   // how often it is asked meanwhile why nobody does
constexpr seconds kCallLimit{60};      // of a call that only looks things up
constexpr seconds kMeasureLimit{330};  // of one that measures; the daemon answers within 300
constexpr std::array<milliseconds, 2> kPauses{milliseconds(100), milliseconds(300)};  // before trying again

std::shared_ptr<grpc::Channel> channel_to(const DaemonAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  arguments.SetMaxSendMessageSize(16 << 20);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A daemon that came back is a new one, not a backed-off old one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (access.tls()) quieten_grpc();
  const std::shared_ptr<grpc::ChannelCredentials> credentials = channel_credentials(access, arguments);
  return grpc::CreateCustomChannel(access.address, credentials, arguments);
}

bool answers(grpc::Channel& channel, milliseconds patience) {
  return channel.WaitForConnected(std::chrono::system_clock::now() + patience);
}

// What gRPC tells of the last attempt to connect; a call that does not wait for a connection hears of it.
std::string last_attempt(v1::Jobs::Stub& jobs) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLook);
  v1::ListWorkersReply ignored;
  const grpc::Status status = jobs.ListWorkers(&context, v1::ListWorkersRequest(), &ignored);
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ? status.error_message() : "";
}

// Waits until somebody answers, and returns why nobody does; empty: there is a connection. No more waiting
// helps where TLS fails twice, a second apart, because of who listens there.
std::string nobody_answers(grpc::Channel& channel, v1::Jobs::Stub& jobs, const DaemonAccess& access) {
  const steady_clock::time_point end = steady_clock::now() + kPatience;
  std::string before;
  while (steady_clock::now() < end) {
    if (answers(channel, kLook)) return "";
    if (!access.tls()) continue;
    std::string trouble = tls_trouble(access, last_attempt(jobs));
    if (!trouble.empty() && trouble == before) return trouble;
    before = std::move(trouble);
  }
  return access.tls() ? "nobody answers that the farm's authority vouches for" : "nobody answers";
}

// One call with a deadline: `call(context, reply)` is the stub's method with its request.
template <class Reply, class Connection, class Call>
Result<Reply> call_once(const Connection& connection, milliseconds limit, const Call& call) {
  Reply reply;
  grpc::ClientContext context;
  add_token(connection.access, context);
  context.set_deadline(std::chrono::system_clock::now() + limit);
  RETURN_IF_ERROR(from_grpc(call(&context, &reply), connection.name));
  return reply;
}

// The same for a call that may be made again: within the same deadline, where the connection broke.
template <class Reply, class Connection, class Call>
Result<Reply> call_again(const Connection& connection, milliseconds limit, const Call& call) {
  const steady_clock::time_point end = steady_clock::now() + limit;
  const auto left = [&] { return std::chrono::duration_cast<milliseconds>(end - steady_clock::now()); };
  Result<Reply> reply = call_once<Reply>(connection, limit, call);
  for (const milliseconds pause : kPauses) {
    if (reply || reply.status().code() != StatusCode::kUnavailable || left() <= pause) break;
    std::this_thread::sleep_for(pause);
    reply = call_once<Reply>(connection, left(), call);
  }
  return reply;
}

// Of calls that older daemons do not know.
constexpr std::string_view kOlder = "the daemon is of an older version, which ";
template <class Reply>
Result<Reply> or_older(Result<Reply> reply) {
  if (reply || reply.status().code() != StatusCode::kFailed ||
      reply.message().find(kOtherVersion) == std::string::npos)
    return reply;
  return failed(kOlder, "gives out no single records. On its own host: tuner dashboard --db FILE");
}

}  // namespace

bool is_of_older_daemon(const Status& status) {
  return status.code() == StatusCode::kFailed && status.message().starts_with(kOlder);
}

DaemonClient::DaemonClient(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
DaemonClient::DaemonClient(DaemonClient&&) noexcept = default;
DaemonClient& DaemonClient::operator=(DaemonClient&&) noexcept = default;
DaemonClient::~DaemonClient() = default;

const std::string& DaemonClient::name() const { return connection_->name; }
bool DaemonClient::hosts() const { return connection_->host != nullptr; }
Status DaemonClient::worker_state() const {
  return hosts() ? connection_->host->worker_state() : Status::ok();
}
bool DaemonClient::wait_until_learned(double limit_s) const {
  return !hosts() || connection_->host->wait_until_learned(limit_s);
}
void DaemonClient::stop_host(const std::string& reason) const {
  if (hosts()) connection_->host->stop(reason);
}

Result<DaemonClient> DaemonClient::connect(const ConnectOptions& options) {
  const auto dial = [](DaemonAccess access, std::string name) {
    auto made = std::make_unique<Connection>();
    made->name = std::move(name);
    made->channel = channel_to(access);
    made->access = std::move(access);
    made->jobs = v1::Jobs::NewStub(made->channel);
    return made;
  };
  if (!options.daemon.empty()) {
    ASSIGN_OR_RETURN(DaemonAccess access, find_daemon(options.daemon));
    const std::string address = access.address;
    const bool tls = access.tls();
    std::unique_ptr<Connection> made = dial(std::move(access), address);
    if (const std::string why = nobody_answers(*made->channel, *made->jobs, made->access); !why.empty())
      return unavailable(
          "daemon ", address, ": ", why, ". Expected there: tuner serve --listen ", tls ? "tls:" : "",
          address,
          tls || address.starts_with("unix:") ? "" : ". If it asks for TLS: --daemon FILE, with credentials");
    return DaemonClient(std::move(made));
  }
  if (!options.own_worker && access(options.db.c_str(), F_OK) != 0)
    return not_found(
        options.db,
        ": there is no database yet. The first `tuner submit FILE` makes it; or give another file with --db");
  const steady_clock::time_point limit = steady_clock::now() + kPatience;
  while (true) {
    Result<std::unique_ptr<DaemonHost>> host =
        DaemonHost::start({.db = options.db, .own_worker = options.own_worker});
    if (host) {
      std::unique_ptr<Connection> made = dial({.address = (*host)->addresses().back()}, "this command");
      made->host = std::move(*host);
      if (!answers(*made->channel, kPatience))
        return unavailable(made->name, ": its own socket does not answer");
      return DaemonClient(std::move(made));
    }
    if (host.status().code() != StatusCode::kAborted) return host.status();
    ASSIGN_OR_RETURN(const std::string socket, private_socket(options.db));
    std::unique_ptr<Connection> made = dial({.address = socket}, "the daemon on " + options.db);
    if (answers(*made->channel, milliseconds(1'000))) return DaemonClient(std::move(made));
    if (steady_clock::now() >= limit)
      return unavailable(host.message(), ", and that process does not answer on ", socket);
    std::this_thread::sleep_for(milliseconds(100));
  }
}

Result<v1::SubmitReply> DaemonClient::submit(const JobRow& job, bool fresh) const {
  v1::SubmitRequest request;
  to_proto(job, fresh, &request);
  // A daemon in this process knows what this process has read.
  if (connection_->host) request.clear_documents();
  RETURN_IF_ERROR(documents_fit(request));
  if (request.request_id().empty()) request.set_request_id(new_request_id());
  return call_again<v1::SubmitReply>(*connection_, kCallLimit,
                                     [&](grpc::ClientContext* context, auto* reply) {
                                       return connection_->jobs->Submit(context, request, reply);
                                     });
}

Result<v1::ReadJobFileReply> DaemonClient::read_job_file(const std::string& text,
                                                         const std::string& name) const {
  v1::ReadJobFileRequest request;
  request.set_text(text);
  request.set_name(name);
  return call_again<v1::ReadJobFileReply>(*connection_, kCallLimit,
                                          [&](grpc::ClientContext* context, auto* reply) {
                                            return connection_->jobs->ReadJobFile(context, request, reply);
                                          });
}

Result<v1::QueryReply> DaemonClient::query(const JobRow::Task& task) const {
  v1::QueryRequest request;
  to_proto(task, request.mutable_task());
  return call_again<v1::QueryReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* reply) {
    return connection_->jobs->Query(context, request, reply);
  });
}

Result<std::optional<TunedConfig>> DaemonClient::tuned(const JobRow::Task& task) const {
  ASSIGN_OR_RETURN(const v1::QueryReply reply, query(task));
  if (!reply.found()) return std::optional<TunedConfig>();
  ASSIGN_OR_RETURN(TunedConfig tuned, from_proto(reply.tuned()));
  return std::optional(std::move(tuned));
}

Result<v1::CancelReply> DaemonClient::cancel(const std::string& job_id, double limit_s) const {
  const milliseconds limit(static_cast<int64_t>(1000 * limit_s));
  v1::CancelRequest request;
  request.set_job_id(job_id);
  return call_again<v1::CancelReply>(*connection_, limit, [&](grpc::ClientContext* context, auto* reply) {
    return connection_->jobs->Cancel(context, request, reply);
  });
}

Result<MeasureRecord> DaemonClient::rerun(const std::string& trial_id) const {
  v1::RerunRequest request;
  request.set_trial_id(trial_id);
  const auto call = [&](grpc::ClientContext* context, auto* reply) {
    return connection_->jobs->Rerun(context, request, reply);
  };
  ASSIGN_OR_RETURN(const v1::MeasureRecord reply,
                   call_once<v1::MeasureRecord>(*connection_, kMeasureLimit, call));
  return from_proto(reply);
}

Result<RaceRow> DaemonClient::remeasure(const std::string& trial_id, int processes,
                                        Constants constants) const {
  v1::RemeasureRequest request;
  request.set_trial_id(trial_id);
  request.mutable_options()->set_processes(processes);
  request.mutable_options()->set_constants(std::string(constants_name(constants)));
  const auto call = [&](grpc::ClientContext* context, auto* reply) {
    return connection_->jobs->Remeasure(context, request, reply);
  };
  ASSIGN_OR_RETURN(const v1::RaceResult reply, call_once<v1::RaceResult>(*connection_, kMeasureLimit, call));
  return from_proto(reply, "remeasurement");
}

Result<v1::ListWorkersReply> DaemonClient::workers(double limit_s) const {
  return call_again<v1::ListWorkersReply>(*connection_, milliseconds(static_cast<int64_t>(1000 * limit_s)),
                                          [&](grpc::ClientContext* context, auto* reply) {
                                            return connection_->jobs->ListWorkers(context, {}, reply);
                                          });
}

Result<int> DaemonClient::drain(const std::string& worker_id) const {
  v1::DrainRequest request;
  request.set_worker_id(worker_id);
  const std::unique_ptr<v1::Admin::Stub> admin = v1::Admin::NewStub(connection_->channel);
  ASSIGN_OR_RETURN(
      const v1::DrainReply reply,
      call_again<v1::DrainReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* out) {
        return admin->Drain(context, request, out);
      }));
  return reply.leases();
}

Result<PruneCount> DaemonClient::prune(const JobRow::Task& task, const PruneRules& rules) const {
  constexpr int64_t kAtOnce = 2048;
  v1::PruneRequest request;
  to_proto(task, request.mutable_task());
  request.set_keep(rules.keep);
  request.set_until_record_id(rules.until_record_id);
  request.set_finished_before_us(rules.finished_before_us);
  request.set_most(kAtOnce);
  const std::unique_ptr<v1::Admin::Stub> admin = v1::Admin::NewStub(connection_->channel);
  ASSIGN_OR_RETURN(
      const v1::PruneReply reply,
      call_again<v1::PruneReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* out) {
        return admin->Prune(context, request, out);
      }));
  return PruneCount{.records = reply.records(),
                    .trials = reply.trials(),
                    .kept = reply.kept(),
                    .run_s = reply.run_s(),
                    .more = reply.more()};
}

Result<v1::ListReply> DaemonClient::jobs(bool counted) const {
  v1::ListRequest request;
  request.set_without_best(true);
  request.set_with_tuned(true);
  request.set_without_outcomes(!counted);
  request.set_after("");
  v1::ListReply all;
  while (true) {
    ASSIGN_OR_RETURN(
        v1::ListReply part,
        call_again<v1::ListReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* reply) {
          return connection_->jobs->List(context, request, reply);
        }));
    all.set_with_tuned(part.with_tuned());
    for (v1::JobSummary& job : *part.mutable_jobs()) *all.add_jobs() = std::move(job);
    if (part.next().empty() || part.next() == request.after()) return all;
    request.set_after(part.next());
  }
}

Result<v1::ListReply> DaemonClient::known_jobs(double limit_s) const {
  v1::ListRequest request;
  request.set_known(true);
  return call_again<v1::ListReply>(*connection_, milliseconds(static_cast<int64_t>(1000 * limit_s)),
                                   [&](grpc::ClientContext* context, auto* reply) {
                                     return connection_->jobs->List(context, request, reply);
                                   });
}

Result<v1::RecordsReply> DaemonClient::records(v1::RecordsRequest request, int64_t after,
                                               int64_t most) const {
  request.set_after(after);
  request.set_most(static_cast<int32_t>(most));
  return or_older(
      call_again<v1::RecordsReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* reply) {
        return connection_->jobs->Records(context, request, reply);
      }));
}

Result<v1::RecordsReply> DaemonClient::records(const JobRow::Task& task, int64_t after, int64_t most) const {
  v1::RecordsRequest request;
  to_proto(task, request.mutable_task());
  return records(std::move(request), after, most);
}

Result<v1::RecordsReply> DaemonClient::records(const std::string& job_id, int64_t after, int64_t most) const {
  v1::RecordsRequest request;
  request.set_job_id(job_id);
  return records(std::move(request), after, most);
}

Result<v1::RacesReply> DaemonClient::races(const v1::RacesRequest& request) const {
  return or_older(
      call_again<v1::RacesReply>(*connection_, kCallLimit, [&](grpc::ClientContext* context, auto* reply) {
        return connection_->jobs->Races(context, request, reply);
      }));
}

Result<v1::RacesReply> DaemonClient::races(const JobRow::Task& task) const {
  v1::RacesRequest request;
  to_proto(task, request.mutable_task());
  return races(request);
}

Result<v1::RacesReply> DaemonClient::races(const std::string& job_id, int64_t race_id) const {
  v1::RacesRequest request;
  request.set_job_id(job_id);
  request.set_race_id(race_id);
  return races(request);
}

std::unique_ptr<JobWatch> DaemonClient::watch(const std::string& job_id, int64_t after_seq) const {
  return std::make_unique<JobWatch>(
      std::make_unique<JobEvents>(*connection_->jobs, connection_->access, name(), job_id, after_seq));
}

std::string new_request_id() {
  std::random_device random;
  return str(std::hex, random(), random(), random(), random());
}

}  // namespace tuner
