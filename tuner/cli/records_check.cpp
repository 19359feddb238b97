// tuner records check: reads a whole database and says whether every row is what was written.
#include <cstdio>
#include <optional>
#include <stop_token>

#include "db/damage.h"
#include "db/resolve/documents.h"
#include "tuner/cli/records_commands.h"
#include "tuner/command_line/interrupt.h"

namespace tuner::cli {

namespace {

struct RecordsCheckOptions {
  std::string db;
  bool json = false;
};

void print_json(const RecordsCheckOptions& options, const IntegrityReport& r) {
  const nlohmann::ordered_json facts{{"db", options.db},
                                     {"lines", r.rows},
                                     {"damaged", r.faults},
                                     {"why", r.damage},
                                     {"complete", r.complete}};
  std::printf("%s\n", pretty(facts).c_str());
}

// What the rows' own checksums cannot tell.
Status check_documents(const Store& store, const std::stop_token& stop, IntegrityReport& report) {
  constexpr size_t kMostLines = 10;
  return check_kernels(store, stop,
                       [&](const std::string& line) {
                         ++report.faults;
                         if (report.damage.size() < kMostLines) report.damage.push_back(line);
                       })
      .status();
}

void print(const IntegrityReport& r) {
  for (const std::string& line : r.damage) std::printf("%s\n", line.c_str());
  const auto lines = static_cast<size_t>(r.faults);
  if (lines > r.damage.size()) std::printf("and %zu more\n", lines - r.damage.size());
  std::printf("%lld rows read%s: %s\n", static_cast<long long>(r.rows),
              r.complete ? "" : ", then interrupted",
              r.faults == 0 ? "all as they were written" : "damaged; restore a copy of the file");
}

int run_records_check(const RecordsCheckOptions& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) {
    const int exit_code = report(store.status());
    return is_damaged_database(options.db) ? kExitFailed : exit_code;
  }
  catch_interrupts();
  std::stop_source stop;
  std::optional<RowProgress> progress("checked");
  Result<IntegrityReport> checked = (*store)->check_integrity(stop.get_token(), [&](int64_t rows) {
    (*progress)(rows);
    if (interrupted()) stop.request_stop();
  });
  progress.reset();  // what is said next has the line to itself
  if (!checked) return report(checked.status());
  if (const Status looked = check_documents(**store, stop.get_token(), *checked); !looked)
    return report(looked);
  if (options.json)
    print_json(options, *checked);
  else
    print(*checked);
  return checked->complete && checked->faults == 0 ? kExitDone : kExitFailed;
}

}  // namespace

void add_records_check(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsCheckOptions>();
  const Command command = add_command(records, context, "check",
                                      "Read every row of a database and compare it with its checksum, every "
                                      "index with its table, the source of every kernel with its digest. "
                                      "Exit code 1: something is damaged",
                                      [options] { return run_records_check(*options); });
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
