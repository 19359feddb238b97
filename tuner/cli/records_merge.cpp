// tuner records merge: several databases into one.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "db/exchange/merge.h"
#include "tuner/cli/records_commands.h"
#include "tuner/text/facts.h"

namespace tuner::cli {

namespace {

using nlohmann::ordered_json;

struct RecordsMergeOptions {
  std::vector<std::string> sources;
  std::string output;
  bool json = false;
};

int run_records_merge(const RecordsMergeOptions& options) {
  Result<exchange::MergeReport> merged = not_found("");
  {
    RowProgress progress("merge");
    merged =
        exchange::merge_databases(options.sources, options.output, [&](int64_t rows) { progress(rows); });
  }
  if (!merged) return report(with_way_to_write(merged.status(), options.output));
  bool skipped = false;
  ordered_json sources = ordered_json::array();
  if (!merged->copied.empty() && !options.json)
    std::printf("%s: copied to %s\n", merged->copied.c_str(), merged->output.c_str());
  for (const exchange::ImportReport& r : merged->sources) {
    skipped = skipped || r.skipped > 0;
    if (options.json)
      sources.push_back({{"database", r.source},
                         {"lines", r.lines},
                         {"records", new_and_known(r.trials)},
                         {"jobs", new_and_known(r.jobs)},
                         {"races", new_and_known(r.races)},
                         {"foreign", new_and_known(r.foreign)},
                         {"kernels", new_and_known(r.kernels)},
                         {"skipped", r.skipped}});
    else
      std::printf(
          "%s: %lld rows: %lld new records (%lld known), %lld new jobs, %lld new races, %lld new records of "
          "other tuners, %lld skipped\n",
          r.source.c_str(), static_cast<long long>(r.lines), static_cast<long long>(r.trials.added),
          static_cast<long long>(r.trials.known), static_cast<long long>(r.jobs.added),
          static_cast<long long>(r.races.added), static_cast<long long>(r.foreign.added),
          static_cast<long long>(r.skipped));
    for (const auto& [row, why] : r.why)
      std::fprintf(stderr, "tuner: %s: skipped%s: %s\n", r.source.c_str(),
                   row > 0 ? str(" row ", row).c_str() : "", why.c_str());
  }
  if (options.json) {
    const ordered_json facts{{"output", merged->output}, {"copied", merged->copied}, {"sources", sources}};
    std::printf("%s\n", pretty(facts).c_str());
  }
  return skipped ? kExitFailed : kExitDone;
}

}  // namespace

void add_records_merge(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsMergeOptions>();
  const Command command =
      add_command(records, context, "merge",
                  "Put the records of several databases into one; the sources stay as they are, and "
                  "the same sources again change nothing",
                  [options] { return run_records_merge(*options); });
  command.add_option("DATABASE", options->sources, "Databases to read").required();
  command
      .add_option(
          "-o,--output", options->output,
          "Database to add them to. One that is not there yet begins as a copy of the first; it may be one "
          "of them")
      .required()
      .type_name("DATABASE");
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
