#include "tuner/search/candidate_features.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/search/divisibility.h"

namespace tuner {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kMostSums = 45;       // all pairs of 10 knobs; more would slow the fit
constexpr size_t kKeptRows = 1 << 16;  // rows remembered before the memory is given back

}  // namespace

CandidateFeatures::CandidateFeatures(const SearchSpace& space, Columns columns) : space_(space) {
  columns_ = space.parts.size() > 1 ? space.parts.size() : 0;
  for (const SearchSpace::Part& part : space.parts) {
    first_column_.push_back(columns_);
    const std::vector<std::string> names = part.space->feature_names();
    std::vector<std::pair<size_t, size_t>>& sums = sums_.emplace_back();
    for (size_t i = 0; i < names.size(); ++i)
      for (size_t j = i + 1; j < names.size() && sums.size() < kMostSums; ++j)
        if (names[i].starts_with("log2(") && names[j].starts_with("log2(")) sums.emplace_back(i, j);
    std::vector<EvenAndOdd>& even_and_odd = even_and_odd_.emplace_back();
    for (const KnobInfo& knob : part.space->knobs()) {
      if (columns == Columns::kSizes || !divisibility_varies(knob)) continue;
      const auto at = std::find(names.begin(), names.end(), "log2(" + knob.name + ")");
      CHECK(at != names.end()) << "no feature for the size of " << knob.name;
      even_and_odd.push_back({knob.name, static_cast<size_t>(at - names.begin())});
    }
    columns_ += names.size() + sums.size() + 2 * even_and_odd.size();
    has_program_features_ = has_program_features_ || static_cast<bool>(part.program_features);
  }
  columns_ = std::max<size_t>(columns_, 1);  // a space of one config without knobs
}

const std::vector<float>& CandidateFeatures::knob_row(const Candidate& c) {
  if (knob_rows_.size() > kKeptRows && !knob_rows_.contains(c)) knob_rows_.clear();
  const auto [found, is_new] = knob_rows_.try_emplace(c);
  if (!is_new) return found->second;
  const size_t part = static_cast<size_t>(c.template_index);
  fill(part, space_.parts[part].space->at(c.config), found->second);
  return found->second;
}

void CandidateFeatures::fill(size_t part, const Config& config, std::vector<float>& row) const {
  row.assign(columns_, kMissing);
  if (space_.parts.size() > 1)
    for (size_t i = 0; i < space_.parts.size(); ++i) row[i] = i == part ? 1 : 0;
  const std::vector<float> knobs = space_.parts[part].space->features(config);
  size_t column = first_column_[part];
  CHECK(column + knobs.size() + sums_[part].size() + 2 * even_and_odd_[part].size() <= columns_)
      << "features() and feature_names() differ in length";
  for (float knob : knobs) row[column++] = knob;
  for (const auto& [i, j] : sums_[part]) row[column++] = knobs[i] + knobs[j];
  for (const EvenAndOdd& k : even_and_odd_[part]) {
    const bool active = !std::isnan(knobs[k.column]);
    row[column++] = active ? log2_even_part(config.at(k.knob)) : kMissing;
    row[column++] = active ? log2_odd_part(config.at(k.knob)) : kMissing;
  }
}

bool CandidateFeatures::append_prior(const std::string& template_name, const Config& config,
                                     FeatureMatrix& rows) const {
  rows.columns = columns_;
  for (size_t part = 0; part < space_.parts.size(); ++part) {
    if (space_.parts[part].template_name != template_name) continue;
    for (const KnobInfo& knob : space_.parts[part].space->knobs())
      if (!config.values().contains(knob.name)) return false;
    std::vector<float> row;
    fill(part, config, row);
    rows.values.insert(rows.values.end(), row.begin(), row.end());
    return true;
  }
  return false;
}

const std::vector<float>& CandidateFeatures::program_row(const Candidate& c) {
  const auto [found, is_new] = program_rows_.try_emplace(c);
  const SearchSpace::Part& part = space_.parts[c.template_index];
  if (is_new && part.program_features) {
    found->second = part.program_features(part.space->at(c.config));
    program_columns_ = std::max(program_columns_, found->second.size());
  }
  return found->second;
}

FeatureMatrix CandidateFeatures::knobs(std::span<const Candidate> candidates) {
  FeatureMatrix matrix{columns_, {}};
  matrix.values.reserve(candidates.size() * columns_);
  for (const Candidate& c : candidates) {
    const std::vector<float>& row = knob_row(c);
    matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  }
  return matrix;
}

FeatureMatrix CandidateFeatures::with_program(std::span<const Candidate> candidates) {
  for (const Candidate& c : candidates) program_row(c);  // first, so that the number of columns is known
  FeatureMatrix matrix{columns_ + program_columns_, {}};
  for (const Candidate& c : candidates) {
    const std::vector<float>& knobs = knob_row(c);
    matrix.values.insert(matrix.values.end(), knobs.begin(), knobs.end());
    const std::vector<float>& program = program_row(c);
    matrix.values.insert(matrix.values.end(), program.begin(), program.end());
    matrix.values.insert(matrix.values.end(), program_columns_ - program.size(), kMissing);
  }
  return matrix;
}

}  // namespace tuner
