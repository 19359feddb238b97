/// tuner_client.h: a daemon from a C++ program: submit jobs, follow them, ask what was tuned.
///
///   tuner::client::Client daemon("127.0.0.1:7070");
///   const std::vector<tuner::client::Job> jobs = daemon.submit(tuner::client::read_file("conv2d.json"));
///   for (const tuner::client::Job& job : jobs) daemon.wait(job);
///   for (const tuner::client::Answer& answer : daemon.query(tuner::client::read_file("conv2d.json")))
///     std::cout << answer.workload << ": " << answer.config << ", " << answer.time_ns << " ns\n";
///
/// Needs C++17 and nothing but the standard library; link with tuner::tuner_client (find_package(tuner
/// COMPONENTS client)). The Python client (deploy/python) has the same names.
///
/// Deadlines. Every call ends: after its own time limit, else after that of the client. A time limit that is
/// over says nothing of the job: what was submitted goes on in the daemon.
///
/// Retries. A call that breaks is made again until its time limit. That never makes a second job, because a
/// submit carries a request id; watch() comes back where it was, without losing an event.
///
/// Farms of several hosts. What `tuner admin token` writes is given in place of an address:
/// Client("alice.credentials"). The connection is then encrypted, and both sides know each other.
///
/// Errors are exceptions, by what the caller can do about them; what() is one line for people.
///
/// Threads. A Client may be used by several threads at once. Values are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuner::client {

#define TUNER_CLIENT_API __attribute__((visibility("default")))

class TUNER_CLIENT_API Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The job file, a target or an option is wrong: the text names the place. Mend it and call again.
class TUNER_CLIENT_API InvalidRequest : public Error {
  using Error::Error;
};
/// There is no such job.
class TUNER_CLIENT_API NotFound : public Error {
  using Error::Error;
};
/// No daemon answers there, or it is going down. Trying again later may work.
class TUNER_CLIENT_API Unavailable : public Error {
  using Error::Error;
};
/// The call's time limit passed first.
class TUNER_CLIENT_API DeadlineExceeded : public Error {
  using Error::Error;
};
/// The daemon cannot do it now: the job has ended already, its disk is full.
class TUNER_CLIENT_API Refused : public Error {
  using Error::Error;
};
/// The daemon does not know who calls, or this caller may not: the token has ended, was revoked, lacks the
/// role. The text says which. Ask the farm's administrator for other credentials.
class TUNER_CLIENT_API Denied : public Error {
  using Error::Error;
};
/// A job ended without being finished.
class TUNER_CLIENT_API JobFailed : public Error {
 public:
  JobFailed(std::string job_id, std::string state, const std::string& message);
  std::string job_id, state;  ///< "failed", "cancelled"
};

/// The text of a job file, and what it is called in messages.
struct JobFile {
  std::string text;  ///< JSON: one entry, or a list of them
  std::string name = "job";
};
/// InvalidRequest when it cannot be read.
TUNER_CLIENT_API JobFile read_file(const std::string& path);

/// A workload on a target, by their canonical names.
struct Task {
  std::string workload, target;
  std::string algorithms;  ///< that candidates may use, with commas between; empty: any
  int64_t uses = 1;        ///< how often the whole that is tuned runs it
  std::string constants;   ///< "cold": its times mean constants that are not in a cache; empty: warm
};

struct Job {
  std::string id;
  std::vector<Task> tasks;
  std::string state;              ///< "queued", "running", "finished", "cancelled", "failed"
  bool already_finished = false;  ///< the same search was finished before: nothing runs
  bool continued = false;         ///< the stored job of the same search goes on
};

struct Progress {
  int task_index = 0;
  int64_t trials_done = 0, trials_total = 0;  ///< of the job, all tasks
  double best_ns = 0;                         ///< of the task; 0: none yet
  std::string best_config;
  double trials_per_second = 0, eta_s = 0;
};

/// The configuration a task gets.
struct Answer {
  /// How it is known: "exact" (tuned), "same-family", "nearest", "portable", "default".
  std::string kind;
  std::string workload, target, template_name, config;  ///< config: "tile_m=8 tile_n=32"
  int template_version = 0;
  double time_ns = 0, time_low_ns = 0,
         time_high_ns = 0;  ///< measured for the task, with its 95 % interval; 0 unless exact
  bool certified = false;   ///< by a race
  std::string trial;
  double predicted = 0;  ///< speed as a fraction of what tuning would reach; 0: not known
  std::string note;      ///< what is lost and how to mend it; empty when there is nothing to say

  bool found() const { return kind == "exact"; }  ///< the task itself was tuned
};

/// Something that happened to a job.
struct Event {
  int64_t seq = 0;  ///< grows; events that are only progress share it with the one before them
  std::string state, message;
  std::optional<Progress> progress;
  std::optional<Answer> answer;  ///< when a task is finished: what was tuned
};

struct Worker {
  std::string id, host;
  std::vector<std::string> targets;
  int64_t trials_done = 0;
  double silent_s = 0;  ///< since it was last heard
};

/// What goes before the job file's own words.
struct SubmitOptions {
  std::string target;  ///< of all entries
  std::optional<int> trials;
  std::optional<std::string> search;
  std::optional<uint64_t> seed;
  std::optional<double> stop_below_percent, time_limit_s;
  bool fresh = false;               ///< start anew even if such a job exists
  std::optional<double> timeout_s;  ///< of the call
};

struct WatchOptions {
  int64_t after_seq = 0;
  double timeout_s = 3600;
  double reconnect_s = 60;  ///< how long a connection that broke is made again
};

class TUNER_CLIENT_API Client {
 public:
  /// `daemon`: HOST:PORT, unix:/path, or a credentials file as `tuner admin token` writes it, which says
  /// where the daemon is and by what right it is called (TLS); dialled by the first call. `timeout_s`: of
  /// each call that does not say otherwise. InvalidRequest when it is not above 0, or the file cannot be
  /// read.
  explicit Client(const std::string& daemon = "127.0.0.1:7070", double timeout_s = 30);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Returns at once, with one job for each set of entries that is searched and measured alike. The same
  /// search again continues the stored job up to `trials`.
  std::vector<Job> submit(const JobFile& job, const SubmitOptions& options = {}) const;

  /// Calls `on_event` for the job's events after `after_seq`, then live until the job ends or `on_event`
  /// returns false.
  void watch(const std::string& job_id, const std::function<bool(const Event&)>& on_event,
             const WatchOptions& options = {}) const;

  /// Returns when the job is finished. JobFailed when it ends otherwise.
  void wait(const Job& job, double timeout_s = 3600,
            const std::function<void(const Event&)>& on_event = nullptr) const;

  /// Ends a job; its records stay. Returns its state.
  std::string cancel(const std::string& job_id) const;
  std::vector<Job> jobs() const;
  std::vector<Worker> workers() const;

  /// The configuration of each task of a job file, in order; `target` instead of each entry's.
  std::vector<Answer> query(const JobFile& job, const std::string& target = {}) const;
  std::vector<Answer> query(const std::vector<Task>& tasks) const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tuner::client
