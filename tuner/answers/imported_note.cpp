#include "tuner/answers/imported_note.h"

#include <optional>

#include "compiler_core/base/printable.h"
#include "db/exchange/foreign_knobs.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

constexpr int kSample = 3;  // the fastest is among them (donor_sample.h)

std::string note_of(const ForeignRecord& record) {
  const exchange::ForeignKnobs knobs = exchange::foreign_knobs(record);
  std::string config = knobs.template_name;
  for (const auto& [name, value] : knobs.values) config += str(config.empty() ? "" : " ", name, "=", value);
  const std::string device = exchange::t4_device(record);
  return str("imported, not measured here: ", printable(config), " took ", format_time(record.time_ns),
             device.empty() ? "" : " on " + printable(device.substr(0, 100)));
}

}  // namespace

Result<std::string> imported_note(const Store& store, const std::string& workload_key,
                                  const std::string& target) {
  ASSIGN_OR_RETURN(const std::vector<ForeignTask> tasks, store.exchange().foreign_tasks());
  ASSIGN_OR_RETURN(const int64_t until, store.exchange().last_foreign_id());
  std::optional<ForeignRecord> best;
  for (const ForeignTask& task : tasks) {
    if (task.target != target || exchange::foreign_workload(task.format, task.task) != workload_key) continue;
    ASSIGN_OR_RETURN(std::vector<ForeignRecord> records,
                     store.exchange().sample_foreign(task, until, kSample));
    for (ForeignRecord& record : records)
      if (record.outcome == Outcome::kOk && (!best || record.time_ns < best->time_ns))
        best = std::move(record);
  }
  return best ? note_of(*best) : "";
}

}  // namespace tuner
