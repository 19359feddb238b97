// The process of a function on trial: loads it, calls it once with fresh operands, times it, calls it once
// more.
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/statistics.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/runtime/tuner_kernel.h"
#include "measure_server/runner/function_trial.h"
#include "measure_server/runner/guarded_memory.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

constexpr unsigned char kPoison = 0xff;  // a NaN of every type of floats
constexpr int kRounds = 15;
constexpr int64_t kMostCalls = 1 << 20;  // a sample
constexpr double kSampleNs = 2e6;        // filled with calls
constexpr double kMostNs = 4e9;          // then no further round begins

int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<FunctionTrial> read_request(const json& document, std::string& results) {
  FunctionTrial trial;
  Reader in(document, "");
  in.read("threads", trial.threads, 1, 4096, kRequired);
  in.read("results", results, kRequired);
  in.read_objects("buffers", [&](Reader& each) {
    FunctionTrial::Buffer& b = trial.buffers.emplace_back();
    each.read("file", b.file, kRequired);
    each.read("bytes", b.bytes, 1, INT64_MAX, kRequired);
    each.read("given", b.given, kRequired);
    each.read("result", b.result, kRequired);
  });
  const auto most = static_cast<int64_t>(trial.buffers.size()) - 1;
  in.read_objects("functions", [&](Reader& each) {
    FunctionTrial::Function& f = trial.functions.emplace_back();
    each.read("library", f.library, kRequired);
    each.read("symbol", f.symbol, kRequired);
    each.read("workspace_bytes", f.workspace_bytes, 0, INT64_MAX, kRequired);
    each.read("workspace_bytes_per_thread", f.workspace_bytes_per_thread, 0, INT64_MAX, kRequired);
    each.read_objects("args", [&](Reader& arg) {
      FunctionTrial::Argument& a = f.args.emplace_back();
      arg.read("buffer", a.buffer, int64_t{0}, most, kRequired);
      arg.read("offset", a.offset, 0, INT64_MAX, kRequired);
    });
  });
  RETURN_IF_ERROR(in.status());
  if (trial.functions.empty()) return invalid_argument("no function");
  return trial;
}

// One function, loaded, with its arguments.
struct Loaded {
  tuner_entry entry = nullptr;
  std::vector<void*> args;
  GuardedBuffer workspace;
};

class TrialProcess {
 public:
  explicit TrialProcess(FunctionTrial trial) : trial_(std::move(trial)), pool_(trial_.threads) {}

  Result<std::vector<double>> run() {
    RETURN_IF_ERROR(make_buffers());
    for (const FunctionTrial::Function& f : trial_.functions) RETURN_IF_ERROR(load(f));
    RETURN_IF_ERROR(call_checked(".first"));
    if (loaded_.size() == 1) return std::vector<double>();
    std::vector<double> times = time_all();
    RETURN_IF_ERROR(call_checked(".last"));
    return times;
  }

 private:
  Status make_buffers() {
    for (const FunctionTrial::Buffer& b : trial_.buffers) {
      ASSIGN_OR_RETURN(GuardedBuffer buffer,
                       GuardedBuffer::create(b.bytes, GuardedBuffer::Sharing::kPrivate));
      contents_.emplace_back();
      if (b.given) {
        ASSIGN_OR_RETURN(contents_.back(), read_whole(b.file));
        if (static_cast<int64_t>(contents_.back().size()) != b.bytes)
          return failed(b.file, ": has ", contents_.back().size(), " bytes, expected ", b.bytes);
        std::memcpy(buffer.data(), contents_.back().data(), contents_.back().size());
        if (!b.result) buffer.make_read_only();
      }
      buffers_.push_back(std::move(buffer));
    }
    return Status::ok();
  }

  Status load(const FunctionTrial::Function& f) {
    void* const library = dlopen(f.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return failed("cannot be loaded: ", dlerror());
    Loaded loaded;
    loaded.entry = reinterpret_cast<tuner_entry>(dlsym(library, f.symbol.c_str()));
    if (loaded.entry == nullptr) return failed("has no function ", f.symbol);
    for (const FunctionTrial::Argument& a : f.args)
      loaded.args.push_back(buffers_[a.buffer].data() + a.offset);
    const int64_t workspace = f.workspace_bytes + trial_.threads * f.workspace_bytes_per_thread;
    if (workspace > 0) {
      ASSIGN_OR_RETURN(loaded.workspace, GuardedBuffer::create(workspace, GuardedBuffer::Sharing::kPrivate));
    }
    loaded_.push_back(std::move(loaded));
    return Status::ok();
  }

  // Results hold what was given for them, or nothing of use.
  void make_ready() const {
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (!trial_.buffers[b].result) continue;
      if (trial_.buffers[b].given)
        std::memcpy(buffers_[b].data(), contents_[b].data(), contents_[b].size());
      else
        buffers_[b].fill(kPoison);
    }
  }

  int32_t call(Loaded& f) {
    const tuner_runtime runtime = pool_.runtime(f.workspace.data());
    return f.entry(f.args.data(), &runtime);
  }

  // Calls the function on trial; its results become files.
  Status call_checked(const char* ending) {
    make_ready();
    if (const int32_t code = call(loaded_[0]); code != 0) return failed("returns ", code, ", expected 0");
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (!buffers_[b].intact()) return failed("writes beside an operand");
      if (trial_.buffers[b].result)
        RETURN_IF_ERROR(replace_file(trial_.buffers[b].file + ending,
                                     {buffers_[b].data(), static_cast<size_t>(trial_.buffers[b].bytes)}));
    }
    return Status::ok();
  }

  double sample(Loaded& f, int64_t calls) {
    make_ready();
    const int64_t begin = steady_ns();
    for (int64_t i = 0; i < calls; ++i) call(f);
    return static_cast<double>(steady_ns() - begin) / static_cast<double>(calls);
  }

  // In turn: what the machine does meanwhile, it does to all.
  std::vector<double> time_all() {
    const int64_t begin = steady_ns();
    std::vector<int64_t> calls;
    for (Loaded& f : loaded_) {
      sample(f, 1);
      const double ns = sample(f, 1);
      calls.push_back(
          std::clamp<int64_t>(static_cast<int64_t>(kSampleNs / std::max(ns, 1.0)), 1, kMostCalls));
    }
    std::vector<std::vector<double>> samples(loaded_.size());
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0 && static_cast<double>(steady_ns() - begin) > kMostNs) break;
      for (size_t f = 0; f < loaded_.size(); ++f) samples[f].push_back(sample(loaded_[f], calls[f]));
    }
    std::vector<double> times;
    for (const std::vector<double>& each : samples) times.push_back(median(each));
    return times;
  }

  const FunctionTrial trial_;
  ThreadPool pool_;
  std::vector<std::string> contents_;  // of the buffers that are given
  std::vector<GuardedBuffer> buffers_;
  std::vector<Loaded> loaded_;
};

}  // namespace

int try_functions_here(const std::string& request) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto complain = [&](const Status& status) {
    std::fprintf(stderr, "runner: --try-function: %s: %s\n", request.c_str(), status.message().c_str());
    return 2;
  };
  const Result<std::string> text = read_whole(request);
  if (!text) return complain(text.status());
  const Result<json> document = json_input::parse(*text);
  if (!document) return complain(document.status());
  std::string results;
  Result<FunctionTrial> trial = read_request(*document, results);
  if (!trial) return complain(trial.status());
  const Result<std::vector<double>> times = TrialProcess(*std::move(trial)).run();
  const json reply = times ? json{{"times_ns", *times}} : json{{"problem", times.message()}};
  const Status written = replace_file(results, reply.dump());
  // Not by exit(): what the function's library does when it goes is no matter of ours.
  _exit(written ? 0 : 1);
}

}  // namespace tuner
