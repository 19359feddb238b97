// Predictor: estimates how fast a config would be on a shape that was never tuned, as a fraction of the speed
// that tuning would reach. It learns from the records of the operator's other shapes on the same target.
//
// Its features are the real dimensions (log2, and how often 2 divides them), the template and the knobs.
// Every tile adds how many blocks cover its axis and how full the last block is ("fill"). Several
// boosted-tree models, each trained without some of the shapes, give a mean and, by their spread, its
// certainty. The width of the interval is calibrated on shapes that the models had not seen.
//
// Immutable; any thread may read it.
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

// The features of a candidate, by name.
using CandidateFacts = std::map<std::string, float, std::less<>>;
CandidateFacts candidate_facts(const TaskShape& shape, std::string_view template_name,
                               const ConfigSpace& space, const Config& config);

// One measured config.
struct Lesson {
  CandidateFacts facts;
  int shape = 0;        // rows of one shape share a number
  double fraction = 0;  // of the speed of the shape's fastest known config; 0: it failed
};

struct Prediction {
  double fraction = 0, low = 0, high = 0;  // of the optimum; 80 % of cases lie in low..high
  double score = 0;  // candidates are ordered by it: the fraction, reduced where the models disagree
};

// Predicts for one variant (TaskShape::variant).
class VariantPredictor {
 public:
  // Learns from rows of at least kLeastShapes different shapes; NotFound with fewer. Without `calibrate` it
  // takes a sixth of the time but gives no intervals: enough to compare predictors.
  static Result<VariantPredictor> learn(const std::vector<Lesson>& rows, bool calibrate = true);
  Prediction predict(const CandidateFacts& facts) const;
  // Returns how much a dimension says about which config is fast. These weights of the distance between
  // shapes sum to 1.
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
  // The 10, 50 and 90 % quantiles of (found - mean) / (spread + kSpreadFloor) on unseen shapes.
  double error_low_ = 0, error_mid_ = 0, error_high_ = 0;
  int shapes_ = 0;
  size_t rows_ = 0;
};

}  // namespace tuner
