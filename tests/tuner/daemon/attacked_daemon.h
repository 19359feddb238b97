// `tuner serve` under attack, and somebody honest beside the attackers.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/processes.h"
#include "tuning.grpc.pb.h"

namespace tuner::testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

inline constexpr int kMostMib = 256;

inline std::chrono::milliseconds attack_time() {
  const char* const seconds = std::getenv("TUNER_ATTACK_SECONDS");
  return seconds == nullptr ? 3s : std::chrono::seconds(std::max(1, std::atoi(seconds)));
}

// `tuner serve`, with a database of its own.
class AttackedDaemon {
 public:
  // `before`: shell commands. `listen`: what the address() will be of; "unix" is a socket in its folder.
  explicit AttackedDaemon(const std::string& before = "", const std::string& listen = "127.0.0.1:0") {
    const std::string where = listen == "unix" ? "unix:" + folder_.file("socket") : listen;
    const std::string command = "cd " + folder_.path().string() + "; " + before + "exec " + TUNER_BIN_DIR +
                                "/tuner serve --listen " + where + " --db " + folder_.file("farm.db");
    serve_.emplace(std::vector<std::string>{"/bin/sh", "-c", command}, folder_.file("serve"));
    EXPECT_TRUE(eventually(60s, [&] { return !address().empty(); })) << serve_->err();
  }
  std::string address() const {
    const std::string text = serve_->out(), start = "listening on ";
    const size_t at = text.find(start), end = text.find('\n', at == std::string::npos ? 0 : at);
    if (at == std::string::npos || end == std::string::npos) return "";
    return text.substr(at + start.size(), end - at - start.size());
  }
  // The most it has ever held, in MiB.
  int most_mib() const { return status_of("VmHWM:") / 1024; }
  int now_mib() const { return status_of("VmRSS:") / 1024; }

  int threads() const { return status_of("Threads:"); }
  std::string log() const { return serve_->err(); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  bool runs() const { return !serve_->tree().empty() && status_of("Threads:") > 0; }

 private:
  int status_of(const std::string& key) const {
    const std::string status = read_text("/proc/" + std::to_string(serve_->tree().at(0)) + "/status");
    const size_t at = status.find(key);
    return at == std::string::npos ? -1 : std::atoi(status.c_str() + at + key.size());
  }
  TemporaryFolder folder_;
  std::optional<Process> serve_;
};

// Somebody honest who asks for the list of workers all the time, over one connection or over a new one each
// time.
class Honest {
 public:
  explicit Honest(const std::string& address, bool anew = false) : address_(address) {
    dial();
    EXPECT_TRUE(ask().ok());
    thread_ = std::thread([this, anew] {
      while (!done_) {
        const auto begin = Clock::now();
        if (anew) dial();
        const grpc::Status status = ask();
        times_ms_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        if (!status.ok()) ++failed_, last_ = status.error_message();
        let_pass(5ms);
      }
    });
  }
  ~Honest() { stop(); }
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // After stop():
  int asked() const { return static_cast<int>(times_ms_.size()); }
  int failed() const { return failed_; }
  const std::string& last_failure() const { return last_; }
  double p99_ms() { return at(0.99); }
  double most_ms() { return at(1); }
  std::string times() {
    std::ostringstream out;
    out << asked() << " calls: p50 " << at(0.5) << " ms, p99 " << at(0.99) << " ms, at most " << at(1)
        << " ms";
    return out.str();
  }

 private:
  double at(double share) {
    std::ranges::sort(times_ms_);
    return times_ms_.at(static_cast<size_t>(share * static_cast<double>(times_ms_.size() - 1)));
  }
  void dial() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    jobs_ =
        v1::Jobs::NewStub(grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
  }
  grpc::Status ask() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    v1::ListWorkersReply reply;
    return jobs_->ListWorkers(&context, {}, &reply);
  }
  const std::string address_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::atomic<bool> done_{false};
  std::vector<double> times_ms_;
  int failed_ = 0;
  std::string last_;
  std::thread thread_;
};

// A sanitizer's own memory is many times the daemon's, and it makes calls slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kLeastAsked = 5;
inline void expect_little_memory(const AttackedDaemon& daemon) {
  std::printf("memory not judged (%d MiB with a sanitizer)\n", daemon.most_mib());
}
#else
inline constexpr int kLeastAsked = 20;
inline void expect_little_memory(const AttackedDaemon& daemon) { EXPECT_LE(daemon.most_mib(), kMostMib); }
#endif

inline void expect_in_peace(const AttackedDaemon& daemon, Honest& honest) {
  honest.stop();
  std::printf("others: %s; the daemon held %d MiB at most, %d threads\n", honest.times().c_str(),
              daemon.most_mib(), daemon.threads());
  EXPECT_EQ(honest.failed(), 0) << "of " << honest.asked() << ": " << honest.last_failure();
  EXPECT_GT(honest.asked(), kLeastAsked);
  expect_little_memory(daemon);
  EXPECT_TRUE(daemon.runs()) << daemon.log();
}

}  // namespace tuner::testing
