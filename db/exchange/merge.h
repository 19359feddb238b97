// Merges several databases into one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "db/exchange/import_file.h"

namespace tuner::exchange {

struct MergeReport {
  std::string output;
  std::string copied;                 // the source that the output began as a copy of; empty: the output
                                      // existed before
  std::vector<ImportReport> sources;  // the sources that were added; their `lines` counts rows
};

// Adds the jobs, trials, records, races and foreign records of every source to `output`, which is created if
// needed. Sources are opened for reading and never changed; `output` may be one of them, and then the others
// are added to it. Merging the same sources again changes nothing. A new output begins as a copy of the first
// source, and so keeps that source's ids, replayable searches, events and learned documents. Those of the
// other sources are not taken over; their trials get new ids, and so do jobs whose id is taken.
// InvalidArgument: no source, one that does not exist, or one of another version.
Result<MergeReport> merge_databases(const std::vector<std::string>& sources, const std::string& output,
                                    const std::function<void(int64_t rows)>& progress = {});

}  // namespace tuner::exchange
