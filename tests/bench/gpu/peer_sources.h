// What is asked of NVIDIA's libraries for a task, and the ways that they have for it: each question is a
// source of ways for the search (peer_search.h), opened when its turn comes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/gpu/cublas.h"
#include "tests/bench/gpu/cublaslt.h"
#include "tests/bench/gpu/cudnn.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/peer_search.h"

namespace tuner {

// NVIDIA's libraries, each or why it is not here.
struct Libraries {
  Result<Cublas> cublas;
  Result<CublasLt> cublaslt;
  Result<Cudnn> cudnn;
};

struct Question {
  enum class Kind : uint8_t {
    kCounts,  // its ways contend for being the peer
    kIfNone,  // the same, and it is asked only where nothing was right before it
    kBeside,  // told beside the peer: does the same work on other terms (another layout, another algorithm)
  };
  Kind kind = Kind::kCounts;
  std::string library, what;
  // Failed: the library cannot be told of it. Unavailable: the device failed.
  std::function<Result<std::unique_ptr<WaySource>>()> open;
};

// In the order in which they are asked. All outlive the sources. Failed: there is nothing to ask, and why:
// the library is not here, or the task does what no library can be told of.
Result<std::vector<Question>> questions_for(const Libraries& libraries, const MatmulWorkload& w,
                                            DeviceCase& ours);
Result<std::vector<Question>> questions_for(const Libraries& libraries, const Conv2dWorkload& w,
                                            DeviceCase& ours);

}  // namespace tuner
