// Answers: what the daemon tells from the store alone, without jobs, workers or locks.
//
// May be called from any thread.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/resolve/resolve.h"
#include "db/store.h"
#include "tuner/daemon/edge/record_calls.h"
#include "tuner/daemon/search/known_answer.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

class Answers {
 public:
  // `present`: what a record of the target would say today, by which query() judges what is stale. `store`
  // outlives this.
  Answers(Store& store, std::function<Present(const Target& target)> present)
      : store_(store), resolver_(&store, {.present = std::move(present)}) {}

  // Store::best of the task, its records counted unless told otherwise, with the default's time.
  Result<TunedConfig> best_of(const JobRow::Task& task, bool counted = true) const;
  // The same as a message.
  Result<v1::TunedConfig> tuned(const JobRow::Task& task, int64_t flops) const;

  // What query() would tell of the task now; none: nothing but a default config, or no task of this program.
  Result<std::optional<KnownConfig>> known_config(const JobRow::Task& task) const;

  Status query(const v1::QueryRequest& request, v1::QueryReply* reply) const;
  // Unless `without_best`: with best_gflops, for which all records of all jobs are read.
  Status list(const v1::ListRequest& request, const Scope& scope, v1::ListReply* reply) const;
  // As list_records() and list_races() (record_calls.h).
  Status records(const v1::RecordsRequest& request, const Scope& scope, v1::RecordsReply* reply) const {
    return list_records(store_, request, scope, reply);
  }
  Status races(const v1::RacesRequest& request, const Scope& scope, v1::RacesReply* reply) const {
    return list_races(store_, request, scope, reply);
  }

 private:
  // As db/device_records.h has it, with the default's time.
  Result<TunedConfig> best_on_device(const JobRow::Task& task) const;
  Result<TunedConfig> with_default(const JobRow::Task& task, Result<TunedConfig> best) const;
  Status add_best_gflops(const std::string& job_id, v1::JobSummary* summary) const;
  Store& store_;
  const Resolver resolver_;
};

}  // namespace tuner
