// What the parts of the daemon hand each other: what is to be measured, and who measures. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/records.h"

namespace tuner {

// Whose jobs a caller sees and makes: a tenant's; nothing: everybody's, and nobody's in particular.
using Scope = std::optional<std::string>;

// One life of a worker: its id, and the incarnation, which is new at each of its starts.
struct WorkerLife {
  std::string worker_id, incarnation;
  auto operator<=>(const WorkerLife&) const = default;
};

// What a worker does: builds and measures, only builds, or measures what others have built.
enum class WorkerKind : uint8_t { kFull, kBuilder, kRunner };

enum class WorkKind : uint8_t {
  kTrial,  // an open trial of the store, which writes down each of its leases
  kRerun,  // a trial that has its result, once more: somebody waits for it (tuner rerun)
  kRace,   // finalists against each other, or one trial beside the sentinel; only for workers that can race
};

// All that a worker must know to measure it. The id of a lease is the trial's, or one made for the race.
struct Work {
  WorkKind kind = WorkKind::kTrial;
  JobRow::Task task;
  std::string compiler = {};  // of a task whose source is a user's: which one he wants; empty: ours
  MeasureOptions
      options;  // constants: where they are to lie, which is the task's word but for remeasurements
  // Of a trial or a rerun:
  int task_index = 0;  // within its job
  std::string template_name, config;
  int template_version = 1;
  // Of a race:
  RaceOptions race;
  std::vector<TrialRow> finalists;
  std::string default_trial_id;  // the finalist that is the default config; empty: none of them is
  std::string stored_trial_id;   // the finalist that is the answer so far; empty: none of them is
};

// A template in one version: the configs of another version mean something else.
struct TemplateVersion {
  std::string name;
  int version = 0;  // 0: there is no such template
  auto operator<=>(const TemplateVersion&) const = default;
};

// A template that a worker does not have in the version that is wanted.
struct Lack {
  TemplateVersion wanted;
  int found = 0;  // the version it has; 0: it has no such template
  auto operator<=>(const Lack&) const = default;
};

// What a worker must have to measure a piece of work. Whoever serves one piece serves all with the same
// needs.
struct Needs {
  WorkKind kind = WorkKind::kTrial;  // kTrial or kRace: a rerun needs what its trial needed
  std::string target = {};
  std::vector<TemplateVersion> templates = {};  // of the trial or of all finalists; sorted, each once
  std::string compiler = {};                    // as Work's
  auto operator<=>(const Needs&) const = default;
};
Needs needs_of(const Work& work);

// How long a worker may be at the work, in seconds: builds, references and retries included. The longest time
// of a lease.
double longest_s(const Work& work);

// What a compiler must be for a worker that runs what it makes.
struct CompilerNeed {
  std::string family;           // of targets: their first word
  TemplateVersion wanted = {};  // with no name: any
  int newest_toolkit = 0;       // of CUDA: the newest major version that the worker's driver takes; 0: any
  std::string source_compiler = {};  // as Work::compiler
};

// How far a race is.
struct RaceCourse {
  int finalists = 0;       // that it began with
  int racing = 0;          // of these not yet beaten
  int processes = 0;       // that each of those has run in
  int most_processes = 0;  // it ends after so many, unless its winner is not certain yet. 0: it has not begun
  int spoilt = 0;          // processes of each that were disturbed, and run again
  bool operator==(const RaceCourse&) const = default;
};

}  // namespace tuner
