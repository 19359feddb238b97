// How the fastest way of a library to do a task is found in a bounded time: each way that it offers is timed
// once, briefly; then the fastest are checked, until enough are right. Which of these is the fastest, rounds
// in turn decide (peers.cpp). Has never heard of a GPU: what timing and checking are, the caller says.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/bench/gpu/device_case.h"

namespace tuner {

// What a reader is told of a way, in order: "id" 66, "tile" "128x256".
struct Fact {
  std::string name;
  std::variant<int64_t, bool, std::string> value;
  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// One way to compute the task: a function of a library, or one of its algorithms.
struct PeerWay {
  std::string name;  // "id 66, tile 128x256, stages 64x4, cluster 2x1"
  Facts facts;
  PeerAnswer answer;
  size_t workspace_bytes = 0;
  // Queues one call. All ways share the memory to work in: they take turns.
  std::function<Status(int set, cuda::DevicePtr workspace)> run;
};

class WaySource {
 public:
  virtual ~WaySource() = default;
  // The next way. Nothing: there is none more, or `over` became true before one was found. Failed: the
  // library has one and refuses to make it.
  virtual std::optional<Result<PeerWay>> next(const std::function<bool()>& over) = 0;
  // How many there were so far, by where they come from: "heuristic" 118, "enumerated" 5120.
  virtual Facts offered() const = 0;
  // Why there is none at all.
  virtual std::string refusal() const = 0;
};

struct SearchOptions {
  double seconds =
      5;  // of the host's clock, checking included; a library with nothing right yet gets three times that
  size_t finalists = 5;                                // ways that are right
  int64_t most = std::numeric_limits<int64_t>::max();  // ways tried
};

struct SearchHooks {
  std::function<double()> now_s;
  // Nanoseconds of a call, roughly. Failed: the library refuses. Unavailable: the device failed.
  std::function<Result<double>(const PeerWay&)> time;
  // The largest error, in tolerances. Failed: the answer is wrong, and where. Unavailable: the device failed.
  std::function<Result<double>(const PeerWay&)> check;
};

struct Finalist {
  PeerWay way;
  double quick_ns = 0, max_error = 0;
};

// What was asked of a library, and what came of it.
struct SearchReport {
  std::string library, what;  // "cuBLASLt", "bias and relu in its epilogue"
  bool counts = true;         // false: told beside the peer
  Facts offered;
  int64_t tried = 0, refused = 0, wrong = 0;
  bool is_whole = true;  // false: the time was over, and there were more ways
  std::string why;       // of the first that was refused or wrong: "NAME: wrong answer: ..."
  double seconds = 0;
  struct Timed {
    std::string name;
    double quick_ns = 0, ns = 0;  // ns: the median of the rounds in turn; 0: none
    double max_error = 0;
    Facts facts;
  };
  std::vector<Timed> finalists;  // right, the fastest at first sight first
};

// The fastest ways that are right, the fastest at first sight first; none is no error. Unavailable: the
// device failed.
Result<std::vector<Finalist>> search(WaySource& source, const SearchOptions& options,
                                     const SearchHooks& hooks, SearchReport& report);

}  // namespace tuner
