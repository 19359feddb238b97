// Feature rows of candidates of all templates of a task, in one layout: [one column per template: is it this
// one | knobs of template 0 | knobs of template 1 | ... | program features].
//
// The knobs of a template are followed by the sums of each pair of its log2 columns. Registers, caches and
// threads run out of products of tile sizes, and trees are slow to find sums. Then, if requested, come the
// even and odd part of the knobs where they vary (divisibility.h), which a tree would need a cut per value
// for. NaN marks what does not apply to a candidate; the model treats it as "missing".
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/cost_model/cost_model.h"
#include "tuner/search/candidate_pool.h"

namespace tuner {

class CandidateFeatures {
 public:
  // Even and odd parts help on spaces of GPUs and cost a little on the rugged ones (HISTORY.md has both).
  enum class Columns { kSizes, kSizesAndDivisibility };
  explicit CandidateFeatures(const SearchSpace& space, Columns columns = Columns::kSizes);
  FeatureMatrix knobs(std::span<const Candidate> candidates);
  // Appends the row of a prior task's config; knobs are matched by name. Returns false and appends nothing if
  // its template is not in this space or a knob is missing.
  bool append_prior(const std::string& template_name, const Config& config, FeatureMatrix& rows) const;
  bool has_program_features() const { return has_program_features_; }
  // Builds the Program of each candidate not seen before. This is expensive: use it for the promising few.
  FeatureMatrix with_program(std::span<const Candidate> candidates);

 private:
  const std::vector<float>& knob_row(const Candidate& c);
  void fill(size_t part, const Config& config, std::vector<float>& row) const;
  const std::vector<float>& program_row(const Candidate& c);

  const SearchSpace& space_;
  std::vector<size_t> first_column_;  // first knob column of each template
  // For each template: pairs of its log2 knob columns.
  std::vector<std::vector<std::pair<size_t, size_t>>> sums_;
  struct EvenAndOdd {
    std::string knob;
    size_t column;  // column of its log2
  };
  std::vector<std::vector<EvenAndOdd>> even_and_odd_;  // for each template
  size_t columns_ = 0, program_columns_ = 0;
  bool has_program_features_ = false;
  std::unordered_map<Candidate, std::vector<float>, CandidateHash> knob_rows_, program_rows_;
};

}  // namespace tuner
