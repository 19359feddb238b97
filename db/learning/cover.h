// Cover: a cover set of one operator, with the tree that chooses from it. `tuner cover --store` keeps it in
// the database (a LearnedRow of kind "cover", with operator and target). Answers of the kind `portable` use
// it.
//
// The document is one JSON object:
//   {"version": 1, "op": "conv2d", "target": "llvm -mcpu=haswell -threads=1",
//    "configs": [{"template": "conv2d_direct_cpu", "template_version": 3, "config": "tile_oc=16 tile_ow=6"},
//    ...], "tree": [{"number": "ic", "at_most": 90, "yes": 1, "no": 2}, {"use": 0},
//             {"word": "act", "is": "relu", "yes": 3, "no": 4}, {"use": 1}, {"use": 0}],
//    "columns": 20, "worst": 0.953, "mean": 0.982,
//    "left_out": {"columns": 20, "known": 14, "worst": 0.71, "mean": 0.93}}
// "tree" starts at its first entry; children come after their parent; the features are those of
// features_of_key(). "columns" is the number of shapes of this target that were served. "worst" and "mean"
// rate the tree's choices there as fractions of the fastest known speed. "left_out" says what an unseen shape
// gets: each shape in turn was hidden, set and tree were made from the others, and the choice was looked up
// ("known" of them had been measured). It is absent if it was not computed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/learning/cover_tree.h"

namespace tuner {

struct CoverConfig {
  std::string template_name;
  int template_version = 1;
  std::string config;  // text, as in records
  auto operator<=>(const CoverConfig&) const = default;
};

struct Cover {
  std::string op, target;
  std::vector<CoverConfig> configs;  // at least one
  CoverTree tree;                    // asks nothing about the target
  int columns = 0;
  double worst = 0, mean = 0;
  struct LeftOut {
    int columns = 0, known = 0;
    double worst = 0, mean = 0;  // over the known ones
  };
  LeftOut left_out;  // columns 0: not computed

  // Chooses a config for any workload of the operator. The caller must check that it is valid for the
  // workload, as it comes from other shapes.
  const CoverConfig& choose(std::string_view workload_key) const;
};

std::string cover_to_json(const Cover& cover);
// InvalidArgument names what is wrong. An accepted document is safe to choose from.
Result<Cover> cover_from_json(std::string_view text);

}  // namespace tuner
