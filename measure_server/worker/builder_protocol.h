// What the worker and its builder process say to each other: frames of JSON (runner/frame.h) over a socket
// pair, one answer a request. The builder is this very executable (`measure_server --builder`), so a compiler
// that aborts, hangs or eats memory costs one candidate, never the worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

inline constexpr int kBuilderFd = 3;  // the builder's end

struct BuildRequest {
  std::string kind;                        // hello | hello_cuda | build | data
  std::string directory;                   // the shared cache: artifacts/, cubins/, references/
  int64_t cache_bytes = int64_t{4} << 30;  // what these may take
  std::string workload_key, target, template_name, config;
  int template_version = 0;
  uint64_t input_seed = 0;
};

struct BuildReply {
  std::string outcome;  // ok | invalid_config | build_error: of the candidate; unable: this host's or
                        // release's trouble
  std::string message;
  std::string digest;  // build: of the artifact saved in directory/artifacts
  double build_ms = 0;
  std::string host_target, toolchain;     // hello; hello_cuda: toolchain only, or unable and why
  std::vector<std::string> cpu_features;  // hello
  double absolute = 0, relative = 0;      // data: tolerance of the answer
  struct Data {
    std::string arg, path;
  };
  std::vector<Data> inputs, references;  // data
};

std::string to_json(const BuildRequest& request);
std::string to_json(const BuildReply& reply);
Result<BuildRequest> parse_build_request(std::string_view json);
Result<BuildReply> parse_build_reply(std::string_view json);

}  // namespace tuner
