#include "tests/bench/gpu/cublaslt_search.h"

#include <algorithm>
#include <array>
#include <map>

namespace tuner {
namespace {

using namespace cublaslt;  // NOLINT: its words, throughout

// The first of cublasLtMatmulTile_t and the last ones stand here; those between follow a rule.
constexpr std::array<std::pair<int, int>, 36> kFirstTiles = {
    {{0, 0},    {8, 8},    {8, 16},    {16, 8},    {8, 32},    {16, 16},   {32, 8},    {8, 64},   {16, 32},
     {32, 16},  {64, 8},   {32, 32},   {32, 64},   {64, 32},   {32, 128},  {64, 64},   {128, 32}, {64, 128},
     {128, 64}, {64, 256}, {128, 128}, {256, 64},  {64, 512},  {128, 256}, {256, 128}, {512, 64}, {64, 96},
     {96, 64},  {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},  {32, 256}, {256, 32}}};
constexpr std::array<std::pair<int, int>, 4> kLastTiles = {
    {{256, 512}, {256, 1024}, {512, 512}, {512, 1024}}};

// First rows by eights with columns by sixty-fours, then rows by sixty-fours with columns by eights, each as
// far as 768 and a number of elements, without those that were there before.
std::vector<std::pair<int, int>> make_tiles() {
  std::vector<std::pair<int, int>> tiles(kFirstTiles.begin(), kFirstTiles.end());
  std::set<std::pair<int, int>> known(tiles.begin(), tiles.end());
  const auto add = [&](int row_step, int column_step, int most_elements) {
    for (int rows = row_step; rows <= 768; rows += row_step)
      for (int columns = column_step; columns <= 768 && rows * columns <= most_elements;
           columns += column_step)
        if (known.emplace(rows, columns).second) tiles.emplace_back(rows, columns);
  };
  add(8, 64, 49'152);
  add(64, 8, 65'536);
  tiles.insert(tiles.end(), kLastTiles.begin(), kLastTiles.end());
  return tiles;
}

// By cublasLtClusterShape_t; 1 is none.
constexpr std::array<std::pair<int, int>, 52> kClusters = {
    {{0, 0},  {0, 0},  {1, 1},  {2, 1},  {4, 1},  {1, 2},  {2, 2},  {4, 2}, {1, 4}, {2, 4}, {4, 4},
     {8, 1},  {1, 8},  {8, 2},  {2, 8},  {16, 1}, {1, 16}, {3, 1},  {5, 1}, {6, 1}, {7, 1}, {9, 1},
     {10, 1}, {11, 1}, {12, 1}, {13, 1}, {14, 1}, {15, 1}, {3, 2},  {5, 2}, {6, 2}, {7, 2}, {1, 3},
     {2, 3},  {3, 3},  {4, 3},  {5, 3},  {3, 4},  {1, 5},  {2, 5},  {3, 5}, {1, 6}, {2, 6}, {1, 7},
     {2, 7},  {1, 9},  {1, 10}, {1, 11}, {1, 12}, {1, 13}, {1, 14}, {1, 15}}};
// What is enumerated: the library's own choice first, then what kernels are known to use.
constexpr std::array<uint16_t, 14> kClustersTried = {0, 2, 3, 5, 6, 4, 8, 7, 9, 10, 11, 12, 13, 14};

template <class T>
void read(const Opaque& algorithm, int attribute, T& value) {
  size_t written = 0;
  (void)loaded()->get_config(&algorithm, attribute, &value, sizeof value, &written);
}

// 0 where it has no such number.
CublasLtConfig config_of(const Opaque& algorithm) {
  CublasLtConfig c;
  read(algorithm, kConfigId, c.id);
  read(algorithm, kConfigTile, c.tile);
  read(algorithm, kConfigSplitK, c.split_k);
  read(algorithm, kConfigReduction, c.reduction);
  read(algorithm, kConfigSwizzle, c.swizzle);
  read(algorithm, kConfigCustom, c.custom);
  read(algorithm, kConfigStages, c.stages);
  read(algorithm, kConfigInner, c.inner);
  read(algorithm, kConfigCluster, c.cluster);
  return c;
}

// The list of numbers that a capability is; one 0, which means "none", where there is no list.
std::vector<uint32_t> list_of(const Opaque& algorithm, int capability) {
  size_t bytes = 0;
  if (loaded()->capability(&algorithm, capability, nullptr, 0, &bytes) != kSuccess || bytes == 0) return {0};
  std::vector<uint32_t> list(bytes / sizeof(uint32_t));
  if (loaded()->capability(&algorithm, capability, list.data(), bytes, &bytes) != kSuccess) return {0};
  return list;
}

bool is_on_tensor_cores(const Opaque& algorithm) {
  uint64_t flags = 0;
  size_t written = 0;
  return loaded()->capability(&algorithm, kCapNumerics, &flags, sizeof flags, &written) == kSuccess &&
         (flags & kNumericsOfTensorCores) != 0;
}

}  // namespace

std::string cublaslt_tile_name(uint32_t tile) {
  static const std::vector<std::pair<int, int>> tiles = make_tiles();
  if (tile == 0) return "-";
  if (tile >= tiles.size()) return str("#", tile);
  return str(tiles[tile].first, "x", tiles[tile].second);
}

std::string cublaslt_stages_name(uint32_t stages) {
  static const std::map<uint32_t, std::string> others = {
      {25, "32x10"},   {26, "8x4"},      {27, "16x10"},    {28, "8x5"},
      {31, "8x3"},     {32, "8xauto"},   {33, "16xauto"},  {34, "32xauto"},
      {35, "64xauto"}, {36, "128xauto"}, {37, "256xauto"}, {38, "768xauto"}};
  if (stages == 0) return "-";
  if (stages <= 24) return str(16 << (stages - 1) / 6, "x", (stages - 1) % 6 + 1);
  const auto it = others.find(stages);
  return it != others.end() ? it->second : str("#", stages);
}

std::string cublaslt_cluster_name(uint16_t cluster) {
  if (cluster == 0) return "auto";
  if (cluster >= kClusters.size() || kClusters[cluster].first == 0) return str("#", cluster);
  return str(kClusters[cluster].first, "x", kClusters[cluster].second);
}

CublasLtAlgorithms::CublasLtAlgorithms(const CublasLtProduct& product) : product_(product) {
  ask_heuristic(nullptr);
}

std::string CublasLtAlgorithms::refusal() const {
  return str("cuBLASLt: has no algorithm for it (status ", code_, ")");
}

bool CublasLtAlgorithms::is_new(CublasLtAlgorithm& algorithm) {
  algorithm.config = config_of(algorithm.opaque);
  if (!given_.insert(algorithm.config).second) return false;
  algorithm.on_tensor_cores = is_on_tensor_cores(algorithm.opaque);
  return true;
}

// Of all algorithms, or of those of one id.
void CublasLtAlgorithms::ask_heuristic(const Id* id) {
  const Api& api = *loaded();
  void* preference = nullptr;
  if (api.create_preference(&preference) != kSuccess) return;
  const uint64_t workspace_bytes = kMostWorkspaceBytes;
  (void)api.set_preference(preference, kPreferenceWorkspace, &workspace_bytes, sizeof workspace_bytes);
  if (id != nullptr)
    (void)api.set_preference(preference, kPreferenceSearch, &kSearchOfOneId, sizeof kSearchOfOneId);
  const int most = id == nullptr ? kMostByHeuristic : kMostByHeuristicOfId;
  std::vector<HeuristicResult> results(static_cast<size_t>(most));
  if (id != nullptr)
    for (HeuristicResult& r : results) r.algorithm = id->opaque;
  int found = 0;
  const int code = api.heuristic(product_.lt_.handle(), product_.product_, product_.left_, product_.right_,
                                 product_.out_, product_.out_, preference, most, results.data(), &found);
  api.destroy_preference(preference);
  if (id == nullptr) code_ = code;
  for (int i = std::min(found, most) - 1; i >= 0 && code == kSuccess; --i) {
    const HeuristicResult& r = results[static_cast<size_t>(i)];
    if (r.state != kSuccess) continue;
    (id == nullptr ? by_heuristic_ : by_heuristic_of_ids_)++;
    queue_.push_back({.opaque = r.algorithm,
                      .workspace_bytes = r.workspace_bytes,
                      .origin = id == nullptr ? str("heuristic #", i + 1)
                                              : str("heuristic of id ", id->id, ", #", i + 1)});
  }
}

void CublasLtAlgorithms::list_ids() {
  const Api& api = *loaded();
  const CublasLtProduct& p = product_;
  std::vector<int> ids(kMostIds);
  int found = 0;
  if (api.ids(p.lt_.handle(), p.compute_, p.scale_, p.type_, p.type_, p.out_type_, p.out_type_, kMostIds,
              ids.data(), &found) != kSuccess)
    return;
  for (int i = 0; i < std::min(found, kMostIds); ++i) {
    Id id{.id = ids[static_cast<size_t>(i)]};
    if (api.init(p.lt_.handle(), p.compute_, p.scale_, p.type_, p.type_, p.out_type_, p.out_type_, id.id,
                 &id.opaque) != kSuccess)
      continue;
    id.tiles = list_of(id.opaque, kCapTiles);
    id.stages = list_of(id.opaque, kCapStages);
    ids_.push_back(std::move(id));
  }
}

// One step of an id's enumeration; false: it is at its end. Tile and stages that the library refuses when it
// may choose the cluster are not asked about with others.
bool CublasLtAlgorithms::advance(Id& id) {
  if (id.place >= id.tiles.size() * id.stages.size()) return false;
  const Api& api = *loaded();
  const uint32_t tile = id.tiles[id.place / id.stages.size()],
                 stages = id.stages[id.place % id.stages.size()];
  const uint16_t cluster = kClustersTried[id.cluster];
  CublasLtAlgorithm algorithm{.opaque = id.opaque, .origin = "enumerated"};
  HeuristicResult result{};
  ++checked_;
  const bool is_one =
      api.set_config(&algorithm.opaque, kConfigTile, &tile, sizeof tile) == kSuccess &&
      api.set_config(&algorithm.opaque, kConfigStages, &stages, sizeof stages) == kSuccess &&
      api.set_config(&algorithm.opaque, kConfigCluster, &cluster, sizeof cluster) == kSuccess &&
      api.check(product_.lt_.handle(), product_.product_, product_.left_, product_.right_, product_.out_,
                product_.out_, &algorithm.opaque, &result) == kSuccess &&
      result.state == kSuccess && result.workspace_bytes <= static_cast<size_t>(kMostWorkspaceBytes);
  const bool is_whole_pair_over = id.cluster + 1 == kClustersTried.size() || (id.cluster == 0 && !is_one);
  id.cluster = is_whole_pair_over ? 0 : id.cluster + 1;
  id.place += is_whole_pair_over ? 1 : 0;
  if (is_one) {
    algorithm.workspace_bytes = result.workspace_bytes;
    queue_.push_back(std::move(algorithm));
  }
  return true;
}

std::optional<CublasLtAlgorithm> CublasLtAlgorithms::next(const std::function<bool()>& over) {
  size_t at_end = 0;  // ids in a row that have nothing more
  for (;;) {
    while (!queue_.empty()) {
      CublasLtAlgorithm algorithm = std::move(queue_.back());
      queue_.pop_back();
      if (!is_new(algorithm)) continue;
      if (algorithm.origin == "enumerated") ++enumerated_;
      return algorithm;
    }
    if (over()) return std::nullopt;
    if (!std::exchange(listed_, true)) list_ids();
    if (const auto id = std::ranges::find(ids_, false, &Id::asked); id != ids_.end()) {
      id->asked = true;
      ask_heuristic(&*id);
      continue;
    }
    if (at_end == ids_.size()) return std::nullopt;
    // Ids take turns, so that none has all of a time that is too short.
    at_end = advance(ids_[turn_]) ? 0 : at_end + 1;
    turn_ = (turn_ + 1) % ids_.size();
  }
}

}  // namespace tuner
