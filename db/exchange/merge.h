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

// Adds the jobs, trials, records, races, kernels and foreign records (of other tuners) of every source to
// `output`, which is created if needed. `output` may itself be one of the sources: the others are then added
// to it; no other source is changed. Merging the same sources again changes nothing.
//
// A new output begins as a copy of the first source. So it keeps that source's ids, its searches can be
// replayed, and its events and learned documents are there; of the other sources these stay behind. Their
// trials get new ids, and so does a job whose id another job has.
//
// `progress` hears how many rows of the present source were read. InvalidArgument: no source, one that does
// not exist, or one with the schema of another version of this program. Failed: the disk; what was added
// before stays, and the same call goes on.
Result<MergeReport> merge_databases(const std::vector<std::string>& sources, const std::string& output,
                                    const std::function<void(int64_t rows)>& progress = {});

}  // namespace tuner::exchange
