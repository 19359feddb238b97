#include "tuner/cli/published.h"

#include <grpcpp/client_context.h>

#include <chrono>

#include "proto/convert.h"
#include "tuner/daemon/connection.h"
#include "tuner/daemon/grpc_status.h"

namespace tuner::cli {
namespace {

constexpr std::chrono::seconds kLimit{330};  // of one task; the daemon answers within 300

}  // namespace

Result<std::optional<TunedConfig>> published_answer(const Connection& connection, const JobRow::Task& task) {
  v1::QueryRequest request;
  to_proto(task, request.mutable_task());
  v1::QueryReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  RETURN_IF_ERROR(from_grpc(connection.jobs->Query(&context, request, &reply), connection.name));
  if (!reply.found()) return std::optional<TunedConfig>();
  ASSIGN_OR_RETURN(TunedConfig tuned, from_proto(reply.tuned()));
  return std::optional<TunedConfig>(std::move(tuned));
}

Result<RaceRow> remeasure(const Connection& connection, const std::string& trial_id, int processes) {
  v1::RemeasureRequest request;
  request.set_trial_id(trial_id);
  request.mutable_options()->set_processes(processes);
  v1::RaceResult reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  RETURN_IF_ERROR(from_grpc(connection.jobs->Remeasure(&context, request, &reply), connection.name));
  return from_proto(reply, "remeasurement");
}

bool is_certified(const TunedConfig& published) { return published.race_id != 0; }

bool is_inside(const TunedConfig& published, const RaceRow& now) {
  return published.ratio_low <= now.ratio && now.ratio <= published.ratio_high;
}

double half_width(const TunedConfig& published) {
  return published.ratio > 0 ? (published.ratio_high - published.ratio_low) / 2 / published.ratio : 0;
}

double to_published(const TunedConfig& published, const RaceRow& now) {
  return published.ratio > 0 ? now.ratio / published.ratio : now.time_ns / published.time_ns;
}

nlohmann::ordered_json remeasured_json(const TunedConfig& published, const RaceRow& now) {
  return {{"ratio", now.ratio},
          {"time_ns", now.time_ns},
          {"samples_ns", now.finalists[0].samples_ns},
          {"sentinel_ns", now.finalists[0].sentinel_ns},
          {"process", now.finalists[0].process},
          {"inside", is_inside(published, now)}};
}

}  // namespace tuner::cli
