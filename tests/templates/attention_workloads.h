// Attention on small odd shapes, with every form of its operands.
#pragma once

#include <random>

#include "templates/workload/workload.h"

namespace tuner::testing {

class AttentionDraws {
 public:
  explicit AttentionDraws(uint64_t seed) : random_(seed) {}

  AttentionWorkload workload(int64_t most_places = 21, int64_t most_size = 19) {
    AttentionWorkload w{.batch = number(1, 4), .kv_heads = number(1, 3)};
    w.heads = w.kv_heads * number(1, 3);
    w.queries = number(1, most_places);
    w.causal = one_of(3);
    w.keys = w.causal ? w.queries + number(0, 7) : number(1, most_places);
    w.size = number(1, most_size);
    w.v_size = number(1, most_size);
    w.scale = 0.25 * static_cast<double>(number(1, 6));
    if (w.causal && one_of(2)) w.hidden = -2;
    w.mask = summand(w);
    w.bias = summand(w);
    w.q_layout = layout(w.heads);
    w.k_layout = layout(w.kv_heads);
    w.v_layout = layout(w.kv_heads);
    w.out_layout = one_of(2) ? "BSHD" : "BHSD";
    return w;
  }

 private:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool one_of(int64_t n) { return number(1, n) == 1; }
  std::string layout(int64_t heads) {
    if (one_of(3)) return "BHSD";
    const int64_t first = number(0, 2), row = first + heads + number(0, 2);
    return head_layout_text({row, first}, heads);
  }
  std::string summand(const AttentionWorkload& w) {
    if (one_of(2)) return "none";
    const int64_t batch = w.batch == 4 && one_of(2) ? 2 : one_of(2) ? w.batch : 1;
    return str(batch, "x", one_of(2) ? w.heads : 1, "x", one_of(2) ? w.queries : 1);
  }

  std::mt19937_64 random_;
};

}  // namespace tuner::testing
