// Decision trees over shapes: which config of a cover set serves which shape on which device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// What a tree may ask about a place: numbers (extents, strides...) and words (layout, target...), by name.
struct CoverFeatures {
  std::map<std::string, int64_t, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;

  int64_t number(std::string_view name) const;           // 0 where there is none
  const std::string& word(std::string_view name) const;  // "" where there is none
};
// Of a workload's key: "v1 conv2d n=1 ic=512 stride=1,1 act=relu ..." has the numbers n = 1, ic = 512,
// stride_0 = 1, stride_1 = 1 and the word act = "relu". Operands named constant are no feature.
CoverFeatures features_of_key(std::string_view workload_key);

struct CoverTree {
  // A question, or (use >= 0) an answer: the position of a config in the set.
  struct Node {
    std::string feature;
    bool is_number = true;
    int64_t at_most = 0;    // of a number: yes when it is at most this
    std::string is;         // of a word: yes when it is this
    int yes = -1, no = -1;  // positions in `nodes`, behind this one
    int use = -1;
  };
  std::vector<Node> nodes;  // the root first; never empty

  int choose(const CoverFeatures& features) const;
  // Node by node without the questions about word `name`, which is known to be `value`.
  CoverTree given(std::string_view name, std::string_view value) const;
};

// A tree that serves every column with a config scoring `level` or more there, and as well on average as the
// set itself, but for half a percent. `scores[c][i]`: of config i in column c; each column has one config at
// `level` or above. Columns that no feature tells apart share an answer: the one that is best for them.
CoverTree grow_cover_tree(const std::vector<CoverFeatures>& columns,
                          const std::vector<std::vector<double>>& scores, double level);

}  // namespace tuner
