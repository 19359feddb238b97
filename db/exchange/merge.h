// Several databases into one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "db/exchange/import_file.h"

namespace tuner::exchange {

struct MergeReport {
  std::string output;
  std::string copied;                 // the source the output began as; empty: the output was there before
  std::vector<ImportReport> sources;  // those that were added; `lines` counts rows
};

// Adds the jobs, trials, records, races and foreign records of every source to `output`, which is made when
// there is none. Sources are opened for reading and stay as they are; `output` may be one of them, then the
// others are added to it. The same sources again change nothing. An output that is made begins as a copy of
// the first source: ids, the searches that can be replayed, events and learned documents of that one are
// kept; those of the others stay where they are, as do the ids of their trials and those of their jobs that
// are taken. InvalidArgument: no source, or one that is not there, or of another version.
Result<MergeReport> merge_databases(const std::vector<std::string>& sources, const std::string& output,
                                    const std::function<void(int64_t rows)>& progress = {});

}  // namespace tuner::exchange
