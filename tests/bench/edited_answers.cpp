// edited_answers: a copy of a database whose published times are wrong by a factor, for verify_times.sh.
//
//   edited_answers FROM TO FACTOR
//
// Each certified answer of the copy gets one race more: the one that decided, with all its times multiplied
// by FACTOR. It decides from then on. FACTOR 0.9: answers that are 10 % too fast. Prints a line per answer.
// Exit status: 0; 1 nothing is certified, or the database cannot be read or written; 2 wrong use.
#include <cstdio>
#include <cstdlib>

#include "db/store.h"

namespace tuner {
namespace {

void scale(double factor, RaceRow& race) {
  for (double* ns : {&race.time_ns, &race.time_low_ns, &race.time_high_ns, &race.ratio, &race.ratio_low,
                     &race.ratio_high, &race.default_time_ns, &race.other_time_ns})
    *ns *= factor;
  for (RaceFinalist& f : race.finalists)
    for (std::vector<double>* samples : {&f.samples_ns, &f.other_ns})
      for (double& ns : *samples) ns *= factor;
}

Result<int> edit(const char* from, const char* to, double factor) {
  RETURN_IF_ERROR(copy_database(from, to));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(to, Store::Mode::kWrite));
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store->jobs());
  int edited = 0;
  for (const JobRow& job : jobs) {
    ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store->races(job.id));
    for (RaceRow race : races) {
      const JobRow::Task& task = job.tasks.at(static_cast<size_t>(race.task_index));
      ASSIGN_OR_RETURN(const TunedConfig answer,
                       store->best(task.workload_key, task.target, {}, /*counted=*/false, task.constants));
      if (!answer.certified || answer.race_id != race.id) continue;
      scale(factor, race);
      RETURN_IF_ERROR(store->add_race(race));
      std::printf("%.0f ns becomes %.0f: %s\n", answer.time_ns, race.time_ns, task.workload_key.c_str());
      ++edited;
    }
  }
  if (edited == 0) return not_found(from, ": no answer is certified");
  return edited;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  const double factor = argc == 4 ? std::atof(argv[3]) : 0;
  if (!(factor > 0)) {
    std::fprintf(stderr, "usage: edited_answers FROM TO FACTOR\n");
    return 2;
  }
  const tuner::Result<int> edited = tuner::edit(argv[1], argv[2], factor);
  if (edited) return 0;
  std::fprintf(stderr, "edited_answers: %s\n", edited.message().c_str());
  return 1;
}
