// Decision trees over shapes: they choose the config of a cover set for a shape on a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// What a tree may ask about, by name: numbers (extents, strides, ...) and words (layout, target, ...).
struct CoverFeatures {
  std::map<std::string, int64_t, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;

  int64_t number(std::string_view name) const;           // 0 if there is none
  const std::string& word(std::string_view name) const;  // "" if there is none
};
// Reads the features from a workload key: "v1 conv2d n=1 ic=512 stride=1,1 act=relu ..." has the numbers n =
// 1, ic = 512, stride_0 = 1, stride_1 = 1 and the word act = "relu". The list of constant operands is not a
// feature.
CoverFeatures features_of_key(std::string_view workload_key);

struct CoverTree {
  // Either a question, or an answer (use >= 0), which is the position of a config in the set.
  struct Node {
    std::string feature;
    bool is_number = true;
    int64_t at_most = 0;    // number question: yes if it is at most this
    std::string is;         // word question: yes if it equals this
    int yes = -1, no = -1;  // positions in `nodes`, after this one
    int use = -1;
  };
  std::vector<Node> nodes;  // the root first; never empty

  int choose(const CoverFeatures& features) const;
  // Returns the tree with the questions about word `name` answered by `value`.
  CoverTree given(std::string_view name, std::string_view value) const;
};

// Grows a tree that gives every column a config scoring at least `level` there, and whose average is within
// half a percent of the set's. `scores[c][i]` is the score of config i in column c; each column must have a
// config at `level` or above. Columns with equal features share the answer that is best for them.
CoverTree grow_cover_tree(const std::vector<CoverFeatures>& columns,
                          const std::vector<std::vector<double>>& scores, double level);

}  // namespace tuner
