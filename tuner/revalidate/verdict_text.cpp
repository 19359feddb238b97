#include "tuner/revalidate/verdict_text.h"

#include "tuner/daemon/search/task_space.h"
#include "tuner/search/known_best.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"
#include "tuner/text/time_words.h"

namespace tuner {
namespace {

// Why there is no time of the old config under the present code.
std::string why_not_measured(const RevalidateItem& item) {
  const Result<TaskSpace> space = make_task_space(item.task);
  const Result<Config> config = config_from_text(item.before.config);
  if (!space || !config) return "is not measured again";
  const auto known = known_candidate(space->search, item.before.template_name, *config);
  if (!known)
    return str("has no template any more: this program has no ", item.before.template_name, " for it");
  if (!known->moved) return "gives no right answer any more";
  const ConfigSpace& part = *space->search.parts[static_cast<size_t>(known->candidate.template_index)].space;
  return str("is not valid any more; the nearest that is was measured in its place: ",
             part.at(known->candidate.config).to_text());
}

}  // namespace

std::string verdict_text(const RevalidateItem& item, const RevalidateVerdict& v) {
  const std::string_view end = ending(item, v);
  std::string text = on_a_line(str(std::string(end), std::string(end.size() < 10 ? 10 - end.size() : 0, ' '),
                                   " ", item.task.workload_key, " on \"", item.task.target, "\"")) +
                     "\n";
  if (item.staleness.stale()) text += str("  stale     ", item.staleness.reason, "\n");
  text += str("  before    ", format_time(item.before.time_ns), "  ", item.before.config, "\n");
  if (end == "failed")
    text += str("  now       no right answer: ", v.error, ". Its job: ", v.job_id,
                "; what went wrong: ", command_line("records export --job " + v.job_id), "\n");
  if (end == "replaced")
    text += str("  the same  ",
                v.old_config_now_ns ? str("config takes ", format_time(*v.old_config_now_ns), " now",
                                          v.tied ? "; the race cannot tell the two apart" : "")
                                    : why_not_measured(item),
                "\n");
  if (end == "kept" || end == "replaced") {
    const TunedConfig& now = *v.after;
    text += str("  now       ", time_words(now).time, "  ", end == "kept" ? "the same config" : now.config,
                "  (trial ", now.trial_name, "; ", time_words(now).certainty, ")\n");
  }
  return text;
}

nlohmann::ordered_json verdict_json(const RevalidateItem& item, const RevalidateVerdict& v) {
  nlohmann::ordered_json j{{"workload", item.task.workload_key},
                           {"target", item.task.target},
                           {"uses", item.task.uses},
                           {"stale", item.staleness.stale()},
                           {"stale_reason", item.staleness.reason},
                           {"ending", ending(item, v)},
                           {"job", v.job_id},
                           {"before", tuned_json(item.before, 0)},
                           {"after", nullptr},
                           {"old_config_now_ns", nullptr},
                           {"message", v.error}};
  if (v.after) j["after"] = tuned_json(*v.after, 0);
  if (v.old_config_now_ns) j["old_config_now_ns"] = *v.old_config_now_ns;
  j["tied"] = v.tied;
  return j;
}

}  // namespace tuner
