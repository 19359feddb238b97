#include "tuner/daemon/edge/prune_call.h"

#include "db/prune.h"
#include "tuner/daemon/edge/record_calls.h"

namespace tuner {

namespace {

constexpr int64_t kMostAtOnce = 4096;  // a call takes a fraction of a second

}  // namespace

Status prune_records(Store& store, const v1::PruneRequest& request, v1::PruneReply* reply) {
  ASSIGN_OR_RETURN(const JobRow::Task task, stored_task(request.task()));
  if (request.keep() < 1) return invalid_argument("keep: expected a number >= 1, found ", request.keep());
  if (request.until_record_id() < 0 || request.finished_before_us() < 0)
    return invalid_argument("until_record_id, finished_before_us: expected numbers >= 0, found ",
                            request.until_record_id(), " and ", request.finished_before_us());
  if (request.most() < 1 || request.most() > kMostAtOnce)
    return invalid_argument("most: expected 1 to ", kMostAtOnce, ", found ", request.most());
  const PruneRules rules{.keep = request.keep(),
                         .until_record_id = request.until_record_id(),
                         .finished_before_us = request.finished_before_us()};
  ASSIGN_OR_RETURN(const PruneCount count, store.prune(task, rules, request.most()));
  reply->set_records(count.records);
  reply->set_trials(count.trials);
  reply->set_kept(count.kept);
  reply->set_run_s(count.run_s);
  reply->set_more(count.more);
  return Status::ok();
}

}  // namespace tuner
