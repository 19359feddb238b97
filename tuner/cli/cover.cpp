// tuner cover: the few configs that serve many shapes and devices, and the tree that chooses among them.
#include <cstdio>
#include <memory>
#include <optional>

#include "compiler_core/backend.h"
#include "compiler_core/base/output_file.h"
#include "db/exchange/text_output.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/cover_header.h"
#include "tuner/study/cover_json.h"
#include "tuner/study/cover_problem.h"
#include "tuner/study/cover_text.h"
#include "tuner/text/facts.h"

namespace tuner::cli {
namespace {

constexpr int kMostConfigs = 64;
constexpr double kWithinPercent = 5;

struct CoverOptions {
  std::string tasks, op, db, output, name;
  std::vector<std::string> targets, spaces;
  int k = 0;                   // 0: not given
  double within_percent = -1;  // negative: not given
  bool store = false, json = false;
};

CoverWish wish_of(const CoverOptions& options) {
  CoverWish wish{.most = options.k > 0 ? options.k : kMostConfigs};
  if (options.within_percent >= 0)
    wish.level = 1 - options.within_percent / 100;
  else if (options.k == 0)
    wish.level = 1 - kWithinPercent / 100;
  return wish;
}

Result<CoverProblems> read_store(const CoverOptions& options, const Store& store) {
  CoverScope scope{.op = options.op};
  if (!options.tasks.empty()) {
    ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(options.tasks));
    for (const JobEntry& e : entries)
      scope.tasks.push_back({.workload_key = e.workload.key(), .target = "", .algorithms = e.algorithms});
  }
  for (const std::string& text : options.targets) {
    const Result<Target> target = resolve_target(text);
    if (!target) return target.status().with_context("--target: ");
    scope.targets.push_back(target->name());
  }
  return problems_of_store(store, scope);
}

Status save(const CoverOptions& options, const Covers& covers) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kWrite);
  if (!store) return with_way_to_write(store.status(), options.db);
  for (const auto& [problem, solution] : covers) {
    ASSIGN_OR_RETURN(const std::vector<std::string> stored, store_covers(**store, problem, solution));
    for (const std::string& each : stored) std::fprintf(stderr, "stored: %s\n", each.c_str());
  }
  return Status::ok();
}

// The command that makes the header again.
std::string made_by(const CoverOptions& options) {
  std::string text = "tuner cover";
  if (!options.tasks.empty()) text += " --tasks " + options.tasks;
  if (!options.op.empty()) text += " --op " + options.op;
  if (!options.spaces.empty()) text += " --spaces";
  for (const std::string& space : options.spaces) text += " " + space.substr(space.rfind('/') + 1);
  for (const std::string& target : options.targets) text += " --target '" + target + "'";
  if (options.k > 0) text += str(" --k ", options.k);
  if (options.within_percent >= 0) text += str(" --within ", options.within_percent);
  return text;
}

// Exactly one of the three says what is to be covered.
Status check(const CoverOptions& options) {
  const int given = !options.tasks.empty() + !options.op.empty() + !options.spaces.empty();
  if (given != 1)
    return invalid_argument("cover: found ", given, " of --tasks, --op and --spaces, expected one of them");
  if (options.spaces.empty()) return Status::ok();
  if (options.store) return invalid_argument("--store: keeps what was made from a database; found --spaces");
  if (!options.targets.empty())
    return invalid_argument("--target: selects records of a database; found --spaces");
  return Status::ok();
}

int run_cover(const CoverOptions& options) {
  if (const Status s = check(options); !s) return report(s);
  std::vector<std::string> read = options.spaces;
  read.push_back(options.tasks);
  if (!options.output.empty())
    if (const Status s = check_output(options.output, read); !s) return report(s);
  std::vector<CoverProblem> problems;
  std::vector<std::string> unmeasured;
  if (!options.spaces.empty()) {
    const Result<std::vector<RecordedSpace>> spaces = read_recorded_spaces(options.spaces);
    Result<CoverProblem> problem =
        spaces ? problem_of_spaces(*spaces) : Result<CoverProblem>(spaces.status());
    if (!problem) return report(invalid_argument(problem.message()));
    problems.push_back(*std::move(problem));
  } else {
    const Result<std::unique_ptr<Store>> store = open_if_there(options.db);
    if (!store) return report(store.status());
    if (*store == nullptr)
      return report(not_found(options.db, ": there is no database yet. To make one: tuner submit FILE"));
    Result<CoverProblems> read = read_store(options, **store);
    if (!read) return report(read.status());
    problems = std::move(read->problems);
    unmeasured = std::move(read->unmeasured);
  }
  std::fprintf(stderr, "%s", unmeasured_text(unmeasured, options.tasks).c_str());
  if (problems.empty())
    return report(not_found("no timed config of ", options.op.empty() ? options.tasks : options.op,
                            options.targets.empty() ? "" : " on these targets", " in ", options.db,
                            ". To measure: tuner submit FILE"));

  const CoverWish wish = wish_of(options);
  Covers covers;
  bool reached = true;
  for (CoverProblem& problem : problems) {
    CoverSolution solution = solve(problem, wish);
    reached = reached && is_reached(solution, wish);
    covers.emplace_back(std::move(problem), std::move(solution));
  }
  if (!options.output.empty())
    if (const Status s =
            exchange::write_text(options.output, cover_header(covers, options.name, made_by(options)));
        !s)
      return report(s);

  if (options.store)
    if (const Status s = save(options, covers); !s) return report(s);

  if (options.json) {
    std::printf("%s\n", pretty(covers_json(covers, unmeasured, wish)).c_str());
  } else if (options.output != "-") {
    for (const auto& [problem, solution] : covers)
      std::printf("%s", cover_text(problem, solution, wish).c_str());
    if (!options.output.empty()) std::printf("written: %s\n", options.output.c_str());
  }
  if (!reached)
    std::fprintf(stderr, "tuner: not within %.4g %% everywhere; more configs: --k N, up to %d\n",
                 100 * (1 - *wish.level), kMostConfigs);
  return reached ? kExitDone : kExitFailed;
}

}  // namespace

void add_cover_command(Command app, CommandContext& context) {
  auto options = std::make_shared<CoverOptions>();
  const Command command =
      add_command(app, context, "cover",
                  "Find the few configs that serve many shapes and devices; emit them as a C++ header",
                  [options] { return run_cover(*options); });
  command
      .add_option("--tasks", options->tasks,
                  "Cover the workloads of this job file, on every target in the database")
      .offers(offer_files({".json"}));
  command.add_option("--op", options->op, "Cover every task of this operator in the database")
      .type_name("OP");
  command
      .add_option("--spaces", options->spaces,
                  "Cover recorded spaces of one kernel (CSV or gzip), one place per file; needs no database")
      .type_name("SPACE");
  command.add_option("--target,--devices", options->targets, "Use only these targets of the database")
      .type_name("TARGET");
  command
      .add_option("--k", options->k,
                  "At most this many configs; without --within the set of this size with the best worst case")
      .in_range(1, kMostConfigs)
      .type_name("K");
  command
      .add_option(
          "--within", options->within_percent,
          "Find the smallest set that is within this many percent of the fastest known config everywhere (5 "
          "unless --k is given)")
      .read_as(
          [](const std::string& text) {
            return text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
          },
          "percent")
      .in_range(0.0, 100.0)
      .type_name("PERCENT");
  command
      .add_option("-o,--output", options->output,
                  "Write configs and tree as a C++17 header; - is standard output")
      .type_name("FILE");
  options->name = "tuner_cover";
  command.add_option("--name", options->name, "Namespace in the header").show_default().type_name("NAME");
  command.add_flag("--store", options->store,
                   "Keep it in the database: answers of the kind `portable` come from it");
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
