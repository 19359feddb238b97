// Predictor: how fast a config would be on a shape that was never tuned, as a fraction of what tuning it
// would reach, learned from the records of the operator's other shapes on the same target.
//
// What it looks at: the real dimensions (log2, and how often 2 divides them), the template, and the knobs; of
// every tile also how many blocks cover the axis and which part of the last block is work ("fill"). Several
// boosted-tree models, each taught with some shapes left out, give a mean and, by their spread, how sure they
// are; the width of the interval is calibrated on shapes the models had not seen.
//
// Immutable once made; may be read from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/learning/boosted_trees.h"
#include "db/learning/task_shape.h"
#include "templates/space/config_space.h"

namespace tuner {

// Name -> value of everything that is looked at.
using CandidateFacts = std::map<std::string, float, std::less<>>;
CandidateFacts candidate_facts(const TaskShape& shape, std::string_view template_name,
                               const ConfigSpace& space, const Config& config);

// One measured config.
struct Lesson {
  CandidateFacts facts;
  int shape = 0;        // rows of one shape have one number
  double fraction = 0;  // of the fastest time known of that shape; 0: it failed
};

struct Prediction {
  double fraction = 0, low = 0, high = 0;  // of the optimum; low..high: 80 % of cases
  double score = 0;  // what candidates are ordered by: the fraction, less where the models disagree
};

// Of one variant (TaskShape::variant).
class VariantPredictor {
 public:
  // Rows of at least kLeastShapes different shapes, else NotFound. Without `calibrate` there are no
  // intervals, in a sixth of the time: for those who only compare predictors.
  static Result<VariantPredictor> learn(const std::vector<Lesson>& rows, bool calibrate = true);
  Prediction predict(const CandidateFacts& facts) const;
  // How much a dimension says about which config is fast: weights of the distance between shapes, summing
  // to 1.
  double weight_of(std::string_view dimension) const;

  int shapes() const { return shapes_; }
  size_t rows() const { return rows_; }

  nlohmann::json to_json() const;
  static Result<VariantPredictor> from_json(const nlohmann::json& document);

  static constexpr int kLeastShapes = 4;

 private:
  struct Raw {
    double mean = 0, spread = 0;  // log2 of the fraction
  };
  Raw raw(const CandidateFacts& facts) const;

  std::vector<std::string> columns_;
  std::vector<BoostedTrees> models_;
  // Of (found - mean) / (spread + kSpreadFloor), on shapes not seen: its 10, 50, 90 % quantiles.
  double error_low_ = 0, error_mid_ = 0, error_high_ = 0;
  int shapes_ = 0;
  size_t rows_ = 0;
};

}  // namespace tuner
