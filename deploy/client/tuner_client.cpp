#include "deploy/client/tuner_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "proto/grpc_access.h"
#include "tuning.grpc.pb.h"

namespace tuner::client {

namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr double kPause_s = 0.2;  // before a call is made again
constexpr int kMaxMessageBytes = 64 << 20;

double seconds_since(steady_clock::time_point start) {
  return duration<double>(steady_clock::now() - start).count();
}

// A time limit of a call and its repetitions.
class Deadline {
 public:
  explicit Deadline(double seconds) : end_(steady_clock::now() + to_clock(seconds)) {
    if (!(seconds > 0))
      throw InvalidRequest("timeout_s: expected seconds above 0, found " + std::to_string(seconds));
  }
  double left() const { return std::max(0.0, -seconds_since(end_)); }
  // Until a call is made again. gRPC connects while somebody waits for that; only asleep it would look at its
  // sockets every five seconds.
  void pause(grpc::Channel& channel) const {
    const auto pause = std::chrono::microseconds(static_cast<int64_t>(1e6 * std::min(kPause_s, left())));
    if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY)
      std::this_thread::sleep_for(pause);
    else
      channel.WaitForConnected(std::chrono::system_clock::now() + pause);
  }
  void set(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::microseconds(static_cast<int64_t>(1e6 * left())));
  }

 private:
  static steady_clock::duration to_clock(double seconds) {
    return std::chrono::duration_cast<steady_clock::duration>(duration<double>(std::min(seconds, 1e9)));
  }
  steady_clock::time_point end_;
};

[[noreturn]] void fail(const grpc::Status& status, const DaemonAccess& access) {
  const std::string text = status.error_message();
  const std::string& address = access.address;
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      throw InvalidRequest(text);
    case grpc::StatusCode::NOT_FOUND:
      throw NotFound(text);
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      throw Refused(text);
    case grpc::StatusCode::UNAVAILABLE: {
      const std::string trouble = tls_trouble(access, text);
      throw Unavailable(str(address, ": ", text.empty() ? "no answer" : text, trouble.empty() ? "" : "; ",
                            trouble, ". Is a daemon there? tuner serve --listen ", access.tls() ? "tls:" : "",
                            address));
    }
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      throw Denied(text);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      throw DeadlineExceeded(address + ": no answer within the time limit (" + text + ")");
    case grpc::StatusCode::UNIMPLEMENTED:
      throw Error(address + ": is no tuner daemon of this version: " + text);
    default:
      throw Error(address + ": " + text);
  }
}

// The words of the Python client.
[[noreturn]] void fail_waiting(const std::string& job_id, const std::string& state, double timeout_s) {
  throw DeadlineExceeded(str(job_id, " is still ", state.empty() ? "open" : state, " after ", timeout_s,
                             " s and goes on. To see what it waits for: tuner jobs; to end it: tuner cancel ",
                             job_id));
}

std::string random_id() {
  std::random_device random;
  std::ostringstream id;
  id << std::hex;
  for (int i = 0; i < 4; ++i) id << random() << '-';
  return id.str();
}

std::string name_of(v1::JobState state) {
  switch (state) {
    case v1::QUEUED:
      return "queued";
    case v1::JOB_RUNNING:
      return "running";
    case v1::FINISHED:
      return "finished";
    case v1::CANCELLED:
      return "cancelled";
    case v1::JOB_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string name_of(v1::AnswerKind kind) {
  std::string name = v1::AnswerKind_Name(kind);  // SAME_FAMILY
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

Task task_of(const v1::TaskSpec& spec) {
  return {spec.workload_key(), spec.target(), spec.algorithms(), std::max<int64_t>(1, spec.uses()),
          spec.constants() == "cold" ? "cold" : ""};
}

template <class Specs>
std::vector<Task> tasks_of(const Specs& specs) {
  std::vector<Task> tasks;
  for (const v1::TaskSpec& spec : specs) tasks.push_back(task_of(spec));
  return tasks;
}

void take_measured(const v1::TunedConfig& t, Answer& answer) {
  answer.time_ns = t.time_ns();
  answer.time_low_ns = t.time_low_ns();
  answer.time_high_ns = t.time_high_ns();
  answer.certified = t.certified();
  answer.trial = t.trial_name().empty() ? t.trial_id() : t.trial_name();
}

Answer answer_of(const v1::TunedConfig& t) {
  Answer answer{.kind = "exact",
                .workload = t.workload_key(),
                .target = t.target(),
                .template_name = t.template_name(),
                .config = t.config(),
                .template_version = t.template_version(),
                .predicted = 1};
  take_measured(t, answer);
  return answer;
}

Answer answer_of(const v1::Answer& a) {
  Answer answer{.kind = name_of(a.kind()),
                .workload = a.workload_key(),
                .target = a.target(),
                .template_name = a.template_name(),
                .config = a.config(),
                .template_version = a.template_version(),
                .predicted = a.predicted(),
                .note = a.note()};
  if (answer.found() && a.has_tuned()) take_measured(a.tuned(), answer);
  return answer;
}

Event event_of(const v1::JobEvent& message) {
  Event event{.seq = message.seq(), .state = name_of(message.state()), .message = message.message()};
  if (message.has_progress()) {
    const v1::Progress& p = message.progress();
    event.progress = Progress{p.task_index(),  p.trials_done(),       p.trials_total(), p.best_ns(),
                              p.best_config(), p.trials_per_second(), p.eta_s()};
  }
  if (message.has_tuned()) event.answer = answer_of(message.tuned());
  return event;
}

void apply(const SubmitOptions& options, v1::SubmitRequest& request) {
  request.set_request_id(random_id());
  request.set_fresh(options.fresh);
  if (options.trials) request.set_trials(*options.trials);
  if (options.search) request.set_search(*options.search);
  if (options.seed) request.set_seed(*options.seed);
  if (options.stop_below_percent) request.mutable_stop()->set_below(*options.stop_below_percent / 100);
  if (options.time_limit_s) request.mutable_stop()->set_time_limit_s(*options.time_limit_s);
}

}  // namespace

struct Client::Connection {
  DaemonAccess access;
  double timeout_s;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;

  // Calls until the daemon answers or the time is over; for calls that may be made twice.
  template <class Request, class Reply>
  Reply repeat(grpc::Status (v1::Jobs::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
               const Request& request, const Deadline& deadline) const {
    for (;;) {
      Reply reply;
      grpc::ClientContext context;
      add_token(access, context);
      deadline.set(context);
      const grpc::Status status = (jobs.get()->*method)(&context, request, &reply);
      if (status.ok()) return reply;
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE || deadline.left() < 1.5 * kPause_s)
        fail(status, access);
      deadline.pause(*channel);
    }
  }

  // The daemon reads job files: there is one reader of them, which says what is wrong in the same words
  // everywhere.
  std::vector<v1::SubmitRequest> read(const JobFile& job, const std::string& target,
                                      const Deadline& deadline) const {
    v1::ReadJobFileRequest request;
    request.set_text(job.text);
    request.set_name(job.name);
    request.set_target(target);
    const v1::ReadJobFileReply reply = repeat(&v1::Jobs::Stub::ReadJobFile, request, deadline);
    return {reply.jobs().begin(), reply.jobs().end()};
  }

  // One connection's worth of events. What the stream ended with; `go_on` is false when the caller has
  // enough.
  grpc::Status follow(const v1::WatchRequest& request, const Deadline& deadline,
                      const std::function<bool(const v1::JobEvent&)>& take, bool& go_on) const {
    grpc::ClientContext context;
    add_token(access, context);
    deadline.set(context);
    const std::unique_ptr<grpc::ClientReader<v1::JobEvent>> stream = jobs->Watch(&context, request);
    v1::JobEvent message;
    while (go_on && stream->Read(&message)) go_on = take(message);
    if (!go_on) context.TryCancel();
    return stream->Finish();
  }
};

JobFailed::JobFailed(std::string id, std::string how, const std::string& message)
    : Error("job " + id + " " + how + (message.empty() ? "" : ": " + message)),
      job_id(std::move(id)),
      state(std::move(how)) {}

JobFile read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  JobFile job{{std::istreambuf_iterator<char>(in), {}}, path};
  if (!in) throw InvalidRequest(path + ": cannot be read");
  return job;
}

Client::Client(const std::string& daemon, double timeout_s) {
  static_cast<void>(Deadline(timeout_s));  // checks it
  Result<DaemonAccess> access = find_daemon(daemon);
  if (!access) throw InvalidRequest(access.message());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (access->tls())
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // these credentials, and no others
  const auto credentials = channel_credentials(*access, arguments);
  auto channel = grpc::CreateCustomChannel(access->address, credentials, arguments);
  auto jobs = v1::Jobs::NewStub(channel);
  connection_ = std::make_unique<Connection>(
      Connection{*std::move(access), timeout_s, std::move(channel), std::move(jobs)});
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

std::vector<Job> Client::submit(const JobFile& job, const SubmitOptions& options) const {
  const Deadline deadline(options.timeout_s.value_or(connection_->timeout_s));
  std::vector<Job> submitted;
  for (v1::SubmitRequest& request : connection_->read(job, options.target, deadline)) {
    apply(options, request);
    const v1::SubmitReply reply = connection_->repeat(&v1::Jobs::Stub::Submit, request, deadline);
    submitted.push_back({reply.job_id(), tasks_of(request.tasks()),
                         reply.already_finished() ? "finished" : "queued", reply.already_finished(),
                         reply.continued()});
  }
  return submitted;
}

void Client::watch(const std::string& job_id, const std::function<bool(const Event&)>& on_event,
                   const WatchOptions& options) const {
  const Deadline deadline(options.timeout_s);
  int64_t after_seq = options.after_seq;
  steady_clock::time_point alive = steady_clock::now();
  bool go_on = true;
  std::string state;
  const auto take = [&](const v1::JobEvent& message) {
    if (message.state() != v1::JOB_STATE_UNSPECIFIED) state = name_of(message.state());
    after_seq = std::max(after_seq, message.seq());
    alive = steady_clock::now();
    return on_event(event_of(message));
  };
  for (;;) {
    v1::WatchRequest request;
    request.set_job_id(job_id);
    request.set_after_seq(after_seq);
    const grpc::Status status = connection_->follow(request, deadline, take, go_on);
    if (status.ok() || !go_on) return;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
      fail_waiting(job_id, state, options.timeout_s);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || seconds_since(alive) > options.reconnect_s ||
        deadline.left() <= 0)
      fail(status, connection_->access);
    deadline.pause(*connection_->channel);
  }
}

void Client::wait(const Job& job, double timeout_s, const std::function<void(const Event&)>& on_event) const {
  if (job.already_finished) return;
  Event last;
  watch(job.id,
        [&](const Event& event) {
          last = event;
          if (on_event) on_event(event);
          return true;
        },
        {.timeout_s = timeout_s});
  // The end of the stream is the end of the job; how it ended stands in the last event, or in the list.
  if (last.state != "finished" && last.state != "cancelled" && last.state != "failed") {
    last = {.state = "unknown", .message = "the daemon ended the stream"};
    for (const Job& each : jobs())
      if (each.id == job.id) last.state = each.state;
  }
  if (last.state != "finished") throw JobFailed(job.id, last.state, last.message);
}

std::string Client::cancel(const std::string& job_id) const {
  v1::CancelRequest request;
  request.set_job_id(job_id);
  return name_of(
      connection_->repeat(&v1::Jobs::Stub::Cancel, request, Deadline(connection_->timeout_s)).state());
}

std::vector<Job> Client::jobs() const {
  const v1::ListReply reply =
      connection_->repeat(&v1::Jobs::Stub::List, v1::ListRequest(), Deadline(connection_->timeout_s));
  std::vector<Job> found;
  for (const v1::JobSummary& j : reply.jobs())
    found.push_back({.id = j.job_id(), .tasks = tasks_of(j.tasks()), .state = name_of(j.state())});
  return found;
}

std::vector<Worker> Client::workers() const {
  const v1::ListWorkersReply reply = connection_->repeat(
      &v1::Jobs::Stub::ListWorkers, v1::ListWorkersRequest(), Deadline(connection_->timeout_s));
  std::vector<Worker> found;
  for (const v1::WorkerSummary& w : reply.workers())
    found.push_back(
        {w.worker_id(), w.host(), {w.targets().begin(), w.targets().end()}, w.trials_done(), w.silent_s()});
  return found;
}

std::vector<Answer> Client::query(const JobFile& job, const std::string& target) const {
  std::vector<Task> tasks;
  for (const v1::SubmitRequest& request : connection_->read(job, target, Deadline(connection_->timeout_s)))
    for (const v1::TaskSpec& spec : request.tasks()) tasks.push_back(task_of(spec));
  return query(tasks);
}

std::vector<Answer> Client::query(const std::vector<Task>& tasks) const {
  const Deadline deadline(connection_->timeout_s);
  std::vector<Answer> answers;
  for (const Task& task : tasks) {
    v1::QueryRequest request;
    request.mutable_task()->set_workload_key(task.workload);
    request.mutable_task()->set_target(task.target);
    request.mutable_task()->set_algorithms(task.algorithms);
    request.mutable_task()->set_uses(task.uses);
    request.mutable_task()->set_constants(task.constants);
    answers.push_back(answer_of(connection_->repeat(&v1::Jobs::Stub::Query, request, deadline).answer()));
  }
  return answers;
}

}  // namespace tuner::client
