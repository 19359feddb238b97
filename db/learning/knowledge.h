// Knowledge: what the records of one operator on one target teach: the tuned shapes, their fastest configs,
// and a predictor for each variant. The process that writes the database makes it, after a job or on `tuner
// learn`, and stores it as a document (table `learned`, kind "predictor"). Readers load it in milliseconds.
//
// The document is JSON: {"format": 1, "op", "target", "until_record_id", "shapes": [{"workload", "tops":
// [...]}], "variants": {variant: VariantPredictor}}.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/learning/predictor.h"
#include "db/learning/task_shape.h"
#include "db/store.h"

namespace tuner {

inline constexpr char kPredictorKind[] = "predictor";

// One of the fastest configs of a shape.
struct TopConfig {
  std::string trial_id, template_name, config;
  int template_version = 1;
  double time_ns = 0;
  int64_t finished_at_us = 0;
};
struct TunedShape {
  std::string workload_key;
  TaskShape shape;              // of workload_key
  std::vector<TopConfig> tops;  // fastest first; at most kTopsOfATemplate per template
};

struct Knowledge {
  std::string op, target;
  int64_t until_record_id = 0;  // records with ids up to this were read
  std::vector<TunedShape> shapes;
  std::map<std::string, VariantPredictor, std::less<>> variants;

  std::string to_text() const;
  // InvalidArgument names the part that differs from what to_text() writes.
  static Result<Knowledge> from_text(std::string_view text);
};

// Learns from the records of `op` on `target`. `use` selects the tasks (benchmarks hide some). A variant with
// too few shapes gets no predictor. Takes seconds for some thousand records.
Result<Knowledge> learn(const Store& store, std::string_view op, const Target& target,
                        const std::function<bool(const Workload&)>& use = {});

// Learns and stores the result as the newest document. Returns false and stores nothing if no variant has
// enough shapes for a predictor, or if no record is newer than the stored document. `store` must be open for
// writing.
Result<bool> learn_and_store(Store& store, std::string_view op, std::string_view target);

// The training rows of one variant's predictor, for code that evaluates predictors.
struct Lessons {
  std::vector<Lesson> rows;
  std::vector<std::string> shapes;  // Lesson::shape -> key without epilogue
};
Result<std::map<std::string, Lessons>> lesson_rows(const Store& store, std::string_view op,
                                                   const Target& target,
                                                   const std::function<bool(const Workload&)>& use = {});

}  // namespace tuner
