// A program of a user's as a candidate: it is run again and again, each time anew, and says itself what it
// took, or its wall clock is taken. Nothing is checked.
//
// It runs as builds of users' code do (compiler_core/foreign/confined_program.h): in a folder of its own,
// which is there as long as this, without network, for a limited time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/artifact/command_bundle.h"
#include "compiler_core/base/scratch_folder.h"
#include "measure_server/runner/heat.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

class CommandRun final : public Contestant {
 public:
  static bool takes(const Manifest& manifest) { return manifest.kind == binary_kind::kCommand; }

  // `socket`: where a cancellation arrives.
  CommandRun(int socket, RunRequest request, Artifact artifact);

  // Does everything: takes samples, each of one run, as sampling.h says, and none after half of the time
  // limit.
  RunReply run();

  // The same in turns: the first only makes the folder, each later one has one run.
  bool take_turn() override;
  bool turn_was_calm() const override { return true; }
  RunReply finish() override;
  const std::vector<double>& other_ns() const override { return none_; }
  const std::vector<double>& pulses_ns() const override { return no_pulses_; }
  bool peer_gone() const override { return peer_gone_; }

 private:
  bool begin();
  bool once(Sample& sample);
  bool end_with(Outcome outcome, const std::string& message);
  bool in_trouble(const std::string& why, bool refused = false);
  bool stop_asked();

  const int socket_;
  const RunRequest r_;
  const Artifact artifact_;
  CommandBundle bundle_;
  std::string program_;  // path
  std::unique_ptr<ScratchFolder> folder_;
  std::chrono::steady_clock::time_point begun_{};
  RunReply reply_;
  bool peer_gone_ = false, cancelled_ = false;
  const std::vector<double> none_;
  std::vector<double> no_pulses_;  // a 0 for each sample
};

// A heat of such candidates, as race.h says.
RaceReply run_command_heat(int socket, const RaceRequest& request, bool& go_on);

}  // namespace tuner
