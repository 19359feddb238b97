// BuilderClient: starts the builder process and sends it requests. Restarts it when it dies or has to be
// killed. Used by one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure_server/worker/builder_protocol.h"
#include "measure_server/worker/maker.h"

namespace tuner {

class BuilderClient final : public Maker {
 public:
  // `program`: measure_server itself. `cpus`: where the builder may run; empty: anywhere. Failed: it does not
  // answer.
  static Result<std::unique_ptr<BuilderClient>> start(std::string program, std::vector<int> cpus);
  ~BuilderClient() override;
  BuilderClient(const BuilderClient&) = delete;
  BuilderClient& operator=(const BuilderClient&) = delete;

  // DeadlineExceeded: it did not answer within `limit` and was killed. Failed: it died; the message says how.
  // In both cases the next request starts a new one. Unavailable: it cannot be started now, or somebody else
  // ended it (is_from_outside()) twice: the system in want of memory, a batch system or a person. That is no
  // fault of the request's. A compiler that wants too much meets a limit of its own before (builder.cpp).
  Result<BuildReply> ask(const BuildRequest& request, std::chrono::milliseconds limit) override;
  // Returns what the builder said about this host when it started.
  const BuildReply& hello() const override { return hello_; }
  pid_t pid() const { return pid_; }

 private:
  BuilderClient(std::string program, std::vector<int> cpus)
      : program_(std::move(program)), cpus_(std::move(cpus)) {}
  Status spawn();
  // `from_outside` becomes true if somebody else ended it.
  Result<BuildReply> ask_once(const BuildRequest& request, std::chrono::milliseconds limit,
                              bool& from_outside);
  int stop();  // kills and reaps it; returns how it ended, as waitpid() does

  std::string program_;
  std::vector<int> cpus_;
  BuildReply hello_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

// Starts builder processes of that program: WorkerOptions::make_maker of a full worker.
std::function<Result<std::unique_ptr<Maker>>(const std::vector<int>& cpus)> local_builders(
    std::string program);

}  // namespace tuner
