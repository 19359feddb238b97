// The algorithms that cuBLASLt has for a product: what its heuristic takes for the fastest, what it does so
// of each single algorithm id, and then every id by every tile, stages and cluster that the library does not
// refuse.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/gpu/cublaslt.h"

namespace tuner {

// "128x256" of cublasLtMatmulTile_t, "64x4" (terms in a stage x stages; "64xauto") of cublasLtMatmulStages_t,
// "2x1" of cublasLtClusterShape_t; "-" where the algorithm has none, "#700" of one that was not known when
// this was written.
std::string cublaslt_tile_name(uint32_t tile);
std::string cublaslt_stages_name(uint32_t stages);
std::string cublaslt_cluster_name(uint16_t cluster);

class CublasLtAlgorithms {
 public:
  static constexpr int kMostByHeuristic = 512, kMostByHeuristicOfId = 64, kMostIds = 512;
  static constexpr int64_t kMostWorkspaceBytes = int64_t{64} << 20;

  explicit CublasLtAlgorithms(const CublasLtProduct& product);

  // The next algorithm, each one once, in the order above. Nothing: there is none more, or `over` became true
  // before one was found that the library does not refuse.
  std::optional<CublasLtAlgorithm> next(const std::function<bool()>& over);

  // How many there were of each kind so far; checked: combinations that the library was asked about.
  int64_t by_heuristic() const { return by_heuristic_; }
  int64_t by_heuristic_of_ids() const { return by_heuristic_of_ids_; }
  int64_t enumerated() const { return enumerated_; }
  int64_t checked() const { return checked_; }
  int64_t ids() const { return static_cast<int64_t>(ids_.size()); }
  // What the library answered when it had nothing at all: "has no algorithm for it (status 15)".
  std::string refusal() const;

 private:
  // An id, and where its enumeration is.
  struct Id {
    int id = 0;
    cublaslt::Opaque opaque{};
    std::vector<uint32_t> tiles, stages;
    size_t place = 0;  // tile * stages.size() + stage
    size_t cluster = 0;
    bool asked = false;  // its heuristic
  };
  void ask_heuristic(const Id* id);
  void list_ids();
  bool advance(Id& id);
  bool is_new(CublasLtAlgorithm& algorithm);

  const CublasLtProduct& product_;
  std::vector<CublasLtAlgorithm> queue_;  // found, and not yet given, last one first
  std::set<CublasLtConfig> given_;
  std::vector<Id> ids_;
  size_t turn_ = 0;  // of ids_
  bool listed_ = false;
  int code_ = 0;  // of the heuristic
  int64_t by_heuristic_ = 0, by_heuristic_of_ids_ = 0, enumerated_ = 0, checked_ = 0;
};

}  // namespace tuner
