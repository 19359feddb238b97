#include "tuner/daemon/edge/event_log.h"

#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/log_lines.h"

namespace tuner {

void EventLog::add(const std::string& job_id, JobState state, const std::string& message,
                   const v1::TunedConfig* tuned) {
  v1::JobEvent event;
  event.set_state(to_proto(state));
  event.set_message(message);
  if (tuned != nullptr) *event.mutable_tuned() = *tuned;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(event, &json).ok())
      << "a JobEvent of ours has a JSON form";
  const LogAbout about({.job = job_id});
  if (const Result<int64_t> added = store_.add_event(job_id, json); !added)
    spdlog::error("job {}: its event \"{}\" is lost: {}", job_id, message, added.message());
}

Result<std::vector<v1::JobEvent>> EventLog::after(const std::string& job_id, int64_t seq) const {
  ASSIGN_OR_RETURN(const auto stored, store_.events(job_id, seq, 256));
  std::vector<v1::JobEvent> events;
  for (const auto& [event_seq, json] : stored) {
    v1::JobEvent event;
    if (!google::protobuf::util::JsonStringToMessage(json, &event).ok())
      return failed("event ", event_seq, " of job ", job_id, " cannot be read back");
    event.set_seq(event_seq);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace tuner
