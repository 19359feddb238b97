// Knowledge: what the records of one operator on one target teach: the shapes that were tuned, their fastest
// configs, and per variant a predictor. Made by the process that writes the database, after a job or by
// `tuner learn`; kept there as a document (table `learned`, kind "predictor"), so that whoever only reads has
// it in milliseconds.
//
// The document is JSON, {"format": 1, "op", "target", "until_record_id", "shapes": [{"workload", "tops":
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
  std::vector<TopConfig> tops;  // fastest first; of each template at most kTopsOfATemplate
};

struct Knowledge {
  std::string op, target;
  int64_t until_record_id = 0;  // records up to this were looked at
  std::vector<TunedShape> shapes;
  std::map<std::string, VariantPredictor, std::less<>> variants;

  std::string to_text() const;
  // InvalidArgument names what is not as to_text() writes it.
  static Result<Knowledge> from_text(std::string_view text);
};

// Reads the records of `op` on `target`. `use` says which tasks may be looked at (benchmarks hide some).
// Variants of too few shapes have no predictor. Seconds for some thousand records.
Result<Knowledge> learn(const Store& store, std::string_view op, const Target& target,
                        const std::function<bool(const Workload&)>& use = {});

// Learns and stores it as the newest document. False, and nothing stored, where no variant has shapes enough
// for a predictor, or no record is newer than the document there is. `store` is open for writing.
Result<bool> learn_and_store(Store& store, std::string_view op, std::string_view target);

// The rows a predictor is taught with, by variant: for those who judge it.
struct Lessons {
  std::vector<Lesson> rows;
  std::vector<std::string> shapes;  // Lesson::shape -> key without epilogue
};
Result<std::map<std::string, Lessons>> lesson_rows(const Store& store, std::string_view op,
                                                   const Target& target,
                                                   const std::function<bool(const Workload&)>& use = {});

}  // namespace tuner
