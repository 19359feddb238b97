// libtuner_client: the C++ client against a daemon and a worker that run as processes, a daemon that goes
// away and comes back, and the program of its README.
#include "deploy/client/tuner_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using client::Answer;
using client::Client;
using client::Event;
using client::Job;
using client::JobFile;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::read_text;

constexpr char kJob[] = R"({"op":"matmul","a":[24,32],"b":[32,40],"measure":{"min_repeat_ms":0.05}})";

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    ::setenv("XDG_DATA_HOME", folder_.file("data").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1);
  }
  static std::string program(const std::string& name) { return std::string(TUNER_BIN_DIR) + "/" + name; }
  // A private socket: the same address when the daemon is started again.
  std::string address() const { return "unix:" + folder_.file("socket"); }
  std::unique_ptr<Process> daemon() {
    return std::make_unique<Process>(std::vector<std::string>{program("tuner"), "serve", "--listen",
                                                              address(), "--db", folder_.file("t.db")},
                                     folder_.file("serve"));
  }
  std::unique_ptr<Process> worker() {
    return std::make_unique<Process>(
        std::vector<std::string>{program("measure_server"), "--daemon", address(), "--worker-id", "w1",
                                 "--work-dir", folder_.file("worker")},
        folder_.file("worker_log"));
  }
  static void expect_worker(const Client& client) {
    ASSERT_TRUE(eventually(60s, [&] { return !client.workers().empty(); }));
  }

  TemporaryFolder folder_;
};

TEST_F(ClientTest, AJobIsSubmittedFollowedAndAskedFor) {
  const auto serve = daemon(), measure = worker();
  const Client client(address(), 60);
  expect_worker(client);
  EXPECT_EQ(client.workers().at(0).id, "w1");
  EXPECT_FALSE(client.workers().at(0).targets.empty());

  const std::vector<Job> jobs = client.submit({kJob}, {.trials = 12, .search = "random", .seed = 7});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].state, "queued");
  ASSERT_EQ(jobs[0].tasks.size(), 1u);
  EXPECT_THAT(jobs[0].tasks[0].workload, HasSubstr("v1 matmul b=1 m=24 n=40 k=32"));

  int64_t last_seq = 0, most_done = 0;
  std::vector<Answer> told;
  client.wait(jobs[0], 300, [&](const Event& event) {
    EXPECT_GE(event.seq, last_seq);
    last_seq = event.seq;
    if (event.progress) most_done = std::max(most_done, event.progress->trials_done);
    if (event.answer) told.push_back(*event.answer);
  });
  EXPECT_GE(most_done, 12);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].found());

  const std::vector<Answer> answers = client.query(JobFile{kJob});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, "exact");
  EXPECT_EQ(answers[0].config, told[0].config);
  EXPECT_GT(answers[0].time_ns, 0);
  EXPECT_LE(answers[0].time_low_ns, answers[0].time_ns);
  EXPECT_GT(answers[0].time_high_ns, answers[0].time_low_ns) << "an interval of a race";
  EXPECT_EQ(client.query(jobs[0].tasks).at(0).config, answers[0].config);

  // The same again is the stored job; what is not tuned has a fallback.
  const std::vector<Job> again = client.submit({kJob}, {.trials = 12, .search = "random", .seed = 7});
  EXPECT_TRUE(again.at(0).already_finished);
  EXPECT_EQ(again.at(0).id, jobs[0].id);
  client.wait(again.at(0), 1);
  EXPECT_FALSE(client.query(JobFile{R"({"op":"matmul","a":[3,5],"b":[5,7]})"}).at(0).found());
  const std::vector<Job> listed = client.jobs();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].state, "finished");
}

TEST_F(ClientTest, AWatchSurvivesADaemonThatIsKilled) {
  auto serve = daemon();
  const auto measure = worker();
  const Client client(address(), 60);
  expect_worker(client);
  const std::vector<Job> jobs = client.submit({kJob}, {.trials = 48, .search = "random", .seed = 1});
  std::atomic<int> events = 0;
  std::thread killer([&] {
    EXPECT_TRUE(eventually(60s, [&] { return events > 4; }));
    serve.reset();
    serve = daemon();
  });
  // A daemon that is started again puts running jobs back; submitting the same continues one. What "cpu" is,
  // it knows when the worker is back.
  client::SubmitOptions same;
  same.trials = 48, same.search = "random", same.seed = 1;
  same.target = jobs.at(0).tasks.at(0).target;
  client::WatchOptions options;
  options.timeout_s = 240;
  std::thread resubmitter([&] {
    killer.join();
    const std::vector<Job> again = client.submit({kJob}, same);
    EXPECT_EQ(again.at(0).id, jobs.at(0).id) << "no second job";
  });
  int64_t latest = 0;
  client.watch(
      jobs.at(0).id,
      [&](const Event& event) {
        ++events;
        EXPECT_GE(event.seq, latest) << "told again after the break";
        latest = std::max(latest, event.seq);
        return true;
      },
      options);
  EXPECT_GT(latest, 0);
  resubmitter.join();
  client.wait(client.submit({kJob}, same).at(0), 240);
  EXPECT_EQ(client.jobs().at(0).state, "finished");
  EXPECT_EQ(client.jobs().size(), 1u);
}

TEST_F(ClientTest, ADaemonThatWasAwayForSomeTimeIsFoundAgain) {
  auto serve = daemon();
  const Client client(address(), 30);
  for (const auto away : {500ms, 4'000ms}) {
    EXPECT_TRUE(client.jobs().empty());
    serve->signal(SIGKILL);
    EXPECT_TRUE(serve->wait(10s).has_value());
    std::thread again([&] {
      let_pass(away);
      serve = daemon();
    });
    EXPECT_TRUE(client.jobs().empty()) << "within the time limit of a call";
    again.join();
  }
}

TEST_F(ClientTest, WhatIsWrongIsToldByItsKind) {
  const auto serve = daemon();
  const Client client(address(), 30);
  ASSERT_TRUE(client.workers().empty());  // waits for the daemon
  EXPECT_THROW(
      {
        try {
          client.submit(
              {R"({"op":"matmul","a":[24,32],"b":[31,40],"target":"llvm -mcpu=haswell"})", "mine.json"});
        } catch (const client::InvalidRequest& wrong) {
          EXPECT_THAT(wrong.what(), HasSubstr("mine.json: b: expected K = 32"));
          throw;
        }
      },
      client::InvalidRequest);
  EXPECT_THROW(client.submit({kJob}), client::InvalidRequest) << "\"cpu\", and no worker says which";
  EXPECT_THROW(client.cancel("j99"), client::NotFound);
  EXPECT_THROW(client.watch("j99", [](const Event&) { return true; }), client::NotFound);
  EXPECT_THROW(client::read_file(folder_.file("none.json")), client::InvalidRequest);
  EXPECT_THROW(Client("127.0.0.1:1", 0), client::InvalidRequest);

  const std::vector<Job> waiting =
      client.submit({R"({"op":"matmul","a":[8,8],"b":[8,8],"target":"llvm -mcpu=haswell"})"}, {.trials = 4});
  try {
    client.wait(waiting.at(0), 0.5);
    ADD_FAILURE() << "nobody measures it";
  } catch (const client::DeadlineExceeded& over) {
    EXPECT_THAT(over.what(),
                ::testing::MatchesRegex(
                    str(waiting.at(0).id,
                        " is still (queued|running) after 0.5 s and goes on. To see what it waits for: "
                        "tuner jobs; to end it: tuner cancel ",
                        waiting.at(0).id)));
  }
  EXPECT_EQ(client.cancel(waiting.at(0).id), "cancelled");
  try {
    client.wait(waiting.at(0), 10);
    ADD_FAILURE() << "a cancelled job is not finished";
  } catch (const client::JobFailed& ended) {
    EXPECT_EQ(ended.state, "cancelled");
    EXPECT_EQ(ended.job_id, waiting.at(0).id);
  }
}

// Nobody measures, so what a submission says is seen in which job it becomes and in what is refused.
TEST_F(ClientTest, EachOptionOfASubmissionReachesTheDaemon) {
  const auto serve = daemon();
  const Client client(address(), 30);
  const JobFile file{R"({"op":"matmul","a":[8,8],"b":[8,8]})"};
  client::SubmitOptions options;
  options.target = "llvm -mcpu=haswell";
  options.trials = 4;
  options.search = "random";
  options.seed = 7;
  const auto submit = [&] { return client.submit(file, options).at(0); };
  const Job first = submit();
  EXPECT_EQ(first.tasks.at(0).target, "llvm -mcpu=haswell -threads=1");
  EXPECT_FALSE(first.continued);
  const Job same = submit();
  EXPECT_EQ(same.id, first.id);
  EXPECT_TRUE(same.continued);
  options.seed = 8;
  EXPECT_NE(submit().id, first.id) << "another seed is another search";
  options.seed = 7;
  options.search = "grid";
  EXPECT_NE(submit().id, first.id);
  options.search = "random";
  options.fresh = true;
  const Job anew = submit();
  EXPECT_NE(anew.id, first.id);
  EXPECT_FALSE(anew.continued);
  options.fresh = false;
  options.stop_below_percent = 50;
  options.time_limit_s = 1e9;
  EXPECT_NO_THROW(submit()) << "per cent here, a share on the wire";
  options.stop_below_percent = 101;
  EXPECT_THROW(submit(), client::InvalidRequest);
  options.stop_below_percent.reset();
  options.time_limit_s = 2e9;
  EXPECT_THROW(submit(), client::InvalidRequest);
  options.time_limit_s.reset();
  options.trials = 20'000'000;
  EXPECT_THROW(submit(), client::InvalidRequest);

  // Events are told from the one asked for on.
  EXPECT_EQ(client.cancel(first.id), "cancelled");
  std::vector<int64_t> all, later;
  client.watch(first.id, [&](const Event& event) { return all.push_back(event.seq), true; });
  ASSERT_GE(all.size(), 3u);
  client.watch(first.id, [&](const Event& event) { return later.push_back(event.seq), true; },
               {.after_seq = all[all.size() - 2]});
  EXPECT_LT(later.size(), all.size());
  EXPECT_GE(later.front(), all[all.size() - 2]);
  int seen = 0;
  client.watch(first.id, [&](const Event&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2) << "until the caller has enough";
}

// What a job file says of its constants goes with its task, whichever way the task is asked about.
TEST_F(ClientTest, ATaskWithColdConstantsIsAskedAboutAsOne) {
  const auto serve = daemon();
  const Client client(address(), 30);
  const auto file = [](const std::string& constants) {
    return JobFile{R"({"op":"matmul","a":[8,8],"b":[8,8],"constant":["b"],"target":"llvm -mcpu=haswell",)"
                   R"("measure":{"constants":")" +
                   constants + "\"}}"};
  };
  for (const std::string constants : {"warm", "cold"}) {
    const std::vector<Job> jobs = client.submit(file(constants), {.trials = 4});
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].tasks.at(0).constants, constants == "cold" ? "cold" : "");
    for (const Answer& answer : {client.query(file(constants)).at(0), client.query(jobs[0].tasks).at(0)})
      EXPECT_EQ(answer.note.find("with cold constants") != std::string::npos, constants == "cold")
          << answer.note;
  }
}

TEST_F(ClientTest, NobodyThereIsUnavailableAfterTheTimeLimit) {
  const auto start = std::chrono::steady_clock::now();
  const Client client("unix:" + folder_.file("nobody"), 1);
  EXPECT_THROW(client.jobs(), client::Unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// A farm as `tuner admin` makes it, on a TLS port of this machine.
class FarmTest : public ClientTest {
 protected:
  FarmTest() {
    admin("ca");
    serve_ =
        std::make_unique<Process>(std::vector<std::string>{program("tuner"), "serve", "--listen",
                                                           "tls:127.0.0.1:0", "--db", folder_.file("t.db")},
                                  folder_.file("serve"));
    EXPECT_TRUE(eventually(30s, [&] {
      std::smatch found;
      const std::string text = serve_->out() + serve_->err();
      if (std::regex_search(text, found, std::regex("listening on (?:tls:)?(\\S+)"))) address_ = found[1];
      return !address_.empty();
    })) << serve_->err();
  }
  void admin(const std::string& words) {
    Process act(split("admin " + words + " --db " + folder_.file("t.db")), folder_.file("admin"));
    EXPECT_EQ(act.wait(30s), 0) << act.err();
  }
  // Returns the name of the credentials file, once the daemon knows it: it looks once a second.
  std::string token(const std::string& name, const std::string& more = "") {
    const std::string file = folder_.file(name + ".credentials");
    admin("token " + name + " --address " + address_ + " -o " + file + " " + more);
    EXPECT_TRUE(wait_until(30s, [&] {
      return says<client::Denied>(file).find("the token is not known here") == std::string::npos;
    }));
    return file;
  }
  // The same credentials with other words.
  std::string changed(const std::string& file, const std::string& from, const std::string& to) {
    const std::string name = file + ".changed";
    std::ofstream(name) << std::regex_replace(read_text(file), std::regex(from), to);
    return name;
  }
  template <class Wrong>
  static std::string says(const std::string& file, double timeout_s = 5) {
    try {
      (void)Client(file, timeout_s).jobs();
    } catch (const Wrong& wrong) {
      return wrong.what();
    } catch (const client::Error& other) {
      return std::string("another kind: ") + other.what();
    }
    return "nothing is wrong";
  }

 private:
  static std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> words{program("tuner")};
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }
  std::unique_ptr<Process> serve_;

 protected:
  std::string address_;
};

TEST_F(FarmTest, IsCalledByACredentialsFile) {
  const std::string alice = token("alice");
  const Client client(alice, 30);
  EXPECT_TRUE(client.jobs().empty());
  const std::vector<Job> jobs =
      client.submit({R"({"op":"matmul","a":[8,8],"b":[8,8],"target":"llvm -mcpu=haswell"})"}, {.trials = 4});
  EXPECT_THROW(client.wait(jobs.at(0), 0.5), client::DeadlineExceeded) << "a watch has the token, too";
  EXPECT_EQ(client.cancel(jobs.at(0).id), "cancelled");
}

// The four commands of README.md.
TEST_F(FarmTest, AWorkerIsLetInByItsCertificateAndMeasures) {
  const std::string gpu1 = folder_.file("gpu1.credentials");
  admin("worker gpu1 --address " + address_ + " -o " + gpu1);
  const Client client(token("alice"), 60);
  Process measure({program("measure_server"), "--daemon", gpu1, "--work-dir", folder_.file("worker")},
                  folder_.file("worker_log"));
  expect_worker(client);
  EXPECT_EQ(client.workers().at(0).id, "gpu1") << "the name in its certificate";
  for (const Job& job : client.submit({kJob}, {.trials = 8, .search = "random", .seed = 7}))
    client.wait(job, 300);
  EXPECT_EQ(client.query(JobFile{kJob}).at(0).kind, "exact");
}

TEST_F(FarmTest, DeniesWhoMayNotByItsWords) {
  const std::string alice = token("alice"), clerk = token("clerk", "--roles work");
  const std::string ask =
      ": ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE";
  EXPECT_EQ(says<client::Denied>(alice), "nothing is wrong");
  EXPECT_EQ(says<client::Denied>(clerk), "clerk may work; List needs the role query");
  EXPECT_EQ(says<client::Denied>(changed(alice, "token: .*\n", "")),
            "this daemon answers nobody it does not know" + ask);
  EXPECT_EQ(says<client::Denied>(changed(alice, "token: tuner_.", "token: tuner_x")),
            "the token is not known here" + ask);
  admin("revoke alice");
  EXPECT_TRUE(wait_until(30s, [&] { return says<client::Denied>(alice) != "nothing is wrong"; }));
  EXPECT_EQ(says<client::Denied>(alice), "the token of alice was revoked" + ask);
}

TEST_F(FarmTest, WhatIsNoCredentialsFileIsToldAtOnce) {
  const std::string alice = token("alice");
  EXPECT_THAT(says<client::InvalidRequest>(folder_.file("none")),
              HasSubstr("none: cannot be read: No such file"));
  EXPECT_THAT(says<client::InvalidRequest>(changed(alice, "daemon:", "demon:")),
              HasSubstr(".changed:2: expected `daemon:`, `token:`, `worker:`, a comment or PEM"));
  EXPECT_THAT(says<client::Unavailable>(changed(alice, "[0-9]+\n", "1\n")),
              HasSubstr("Is a daemon there? tuner serve --listen tls:127.0.0.1:1"));
  // Without the authority's certificate it would be plain text, which the daemon does not speak.
  EXPECT_THAT(
      says<client::Unavailable>(changed(alice, "-----BEGIN[^]*-----\n", "")),
      HasSubstr("; who listens there may ask for TLS: give a credentials file, not an address. Is a daemon"));

  // Nor does a daemon without TLS speak that.
  const Process plain(
      {program("tuner"), "serve", "--listen", "127.0.0.1:0", "--db", folder_.file("plain.db")},
      folder_.file("plain"));
  std::smatch found;
  std::string text;
  ASSERT_TRUE(eventually(30s, [&] {
    text = plain.out() + plain.err();
    return std::regex_search(text, found, std::regex("listening on (127.0.0.1:[0-9]+)"));
  })) << text;
  const std::string address = found[1],
                    trouble = "who listens there ends the TLS handshake: it may not speak TLS";
  const std::string file = changed(alice, "daemon: .*\n", "daemon: " + address + "\n");
  EXPECT_THAT(says<client::Unavailable>(file, 1), HasSubstr("; " + trouble));
  const auto begun = std::chrono::steady_clock::now();
  Process jobs({program("tuner"), "jobs", "--daemon", file}, folder_.file("jobs"));
  EXPECT_EQ(jobs.wait(30s), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 8s) << "it waits ten for somebody who may still come";
  EXPECT_THAT(jobs.err(), HasSubstr("daemon " + address + ": " + trouble));
}

// The first C++ block of the README, compiled as C++20, and the header alone as C++17 with every warning.
TEST_F(ClientTest, TheProgramOfItsReadmeRuns) {
  const std::string readme = read_text(std::string(TUNER_SOURCE_DIR) + "/deploy/client/README.md");
  std::smatch block;
  ASSERT_TRUE(std::regex_search(readme, block, std::regex("```cpp\n([^`]*)```")));
  std::string text = block[1];
  text = std::regex_replace(text, std::regex("127\\.0\\.0\\.1:7070"), address());
  std::ofstream(folder_.file("app.cpp")) << text;
  std::ofstream(folder_.file("header.cpp")) << "#include <tuner_client.h>\nint main() { return 0; }\n";
  std::ofstream(folder_.file("conv2d.json")) << kJob;
  const auto shell = [&](const std::string& line) {
    return std::system(("cd " + folder_.file("") + " && { " + line + "; } >out.txt 2>err.txt").c_str());
  };
  const std::string flags = " -Wall -Wextra -Wpedantic -Werror -I " TUNER_SOURCE_DIR "/deploy/client ";
  EXPECT_EQ(shell(TUNER_CXX " -std=c++17 -c header.cpp -o header.o" + flags), 0)
      << read_text(folder_.file("err.txt"));
#ifdef TUNER_SANITIZED
  GTEST_SKIP() << "a plain program cannot link a library with sanitizers";
#endif
  ASSERT_EQ(shell(TUNER_CXX " -std=c++20 app.cpp -o app" + flags + TUNER_CLIENT_SO " -Wl,-rpath," +
                  std::string(TUNER_CLIENT_SO).substr(0, std::string(TUNER_CLIENT_SO).rfind('/'))),
            0)
      << read_text(folder_.file("err.txt"));
  const auto serve = daemon(), measure = worker();
  expect_worker(Client(address(), 60));
  ASSERT_EQ(shell("./app"), 0) << read_text(folder_.file("err.txt"));
  EXPECT_THAT(read_text(folder_.file("out.txt")), HasSubstr("v1 matmul b=1 m=24 n=40 k=32"));
}

}  // namespace
}  // namespace tuner
