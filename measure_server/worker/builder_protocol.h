// The messages between the worker and its builder process: frames of JSON (runner/frame.h) over a socket
// pair, one answer per request. The builder is this same executable (`measure_server --builder`), so a
// compiler that aborts, hangs or eats memory costs one candidate, never the worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/outcome.h"
#include "compiler_core/base/status.h"

namespace tuner {

inline constexpr int kBuilderFd = 3;  // the builder's end

struct BuildRequest {
  std::string kind;  // hello | compilers | sources | build | data
  // hello: of back ends whose device only the runner may touch, which (TargetFamily::word), and the device's
  // fingerprint; empty: of those that need none.
  std::string family, device;
  std::string directory;                   // the shared cache: artifacts/, cubins/, references/
  int64_t cache_bytes = int64_t{4} << 30;  // limit for all of these together
  std::string workload_key, target, template_name, config;
  int template_version = 0;
  uint64_t input_seed = 0;
  std::string trial_id;  // the lease it is for
  int candidate = 0;     // of a race: which of its finalists
  int threads = 0;       // data: at most so many compute it; 0: as many as the builder has CPUs
};

struct BuildReply {
  BuildOutcome outcome = BuildOutcome::kUnable;
  std::string message;
  std::string digest;  // build: digest of the artifact saved in directory/artifacts
  double build_ms = 0;
  std::string toolchain;  // build: that made it
  bool direct = false;    // build: the template computes the sums as they are written
  int found = 0;          // kOtherVersion: the version of the template that this release has; 0: none
  // What a back end is on this machine.
  struct BackendHere {
    std::string family, toolchain;
    std::string unable;                          // why it cannot compile here; empty: it can
    std::vector<std::string> targets, features;  // Backend::targets_of_host(), host_features()
  };
  std::vector<BackendHere> backends;  // hello
  struct Compiler {
    std::string family, toolchain;
  };
  std::vector<Compiler> compilers;  // compilers: what it compiles for, whatever this machine is
  struct SourceCompiler {
    std::string name, toolchain;
  };
  std::vector<SourceCompiler> source_compilers;  // sources: those that may compile users' sources here
  struct Template {
    std::string name;
    int version = 0;
  };
  std::vector<Template> templates;  // hello of no family: all of this release
  // Tolerance of the answer: build: of the template's algorithm; data: of the direct sums.
  double absolute = 0, relative = 0;
  struct Data {
    std::string arg, path;
  };
  std::vector<Data> inputs, references;  // data
  struct Set {
    std::vector<Data> inputs, references;
    uint64_t seed = 0;
  };
  std::vector<Set> others;  // data: see task_data.h
};

std::string to_json(const BuildRequest& request);
std::string to_json(const BuildReply& reply);
// InvalidArgument: the text is not such a message; the reason is the JSON library's.
Result<BuildRequest> parse_build_request(std::string_view json);
Result<BuildReply> parse_build_reply(std::string_view json);

}  // namespace tuner
