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
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"

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

using Covers = std::vector<std::pair<CoverProblem, CoverSolution>>;

CoverWish wish_of(const CoverOptions& options) {
  CoverWish wish{.most = options.k > 0 ? options.k : kMostConfigs};
  if (options.within_percent >= 0)
    wish.level = 1 - options.within_percent / 100;
  else if (options.k == 0)
    wish.level = 1 - kWithinPercent / 100;
  return wish;
}

Result<CoverProblem> read_spaces(const CoverOptions& options) {
  std::vector<RecordedSpace> spaces;
  for (const std::string& path : options.spaces) {
    ASSIGN_OR_RETURN(RecordedSpace space, read_recorded_space(path));
    spaces.push_back(std::move(space));
  }
  return problem_of_spaces(spaces);
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

void print(const CoverProblem& p, const CoverSolution& s, const CoverWish& wish) {
  const size_t size = s.set.rows.size();
  std::printf(
      "%s: %zu of %zu configs serve %zu places: worst %.1f %%, mean %.1f %% of the fastest known there\n",
      p.op.c_str(), size, p.configs.size(), p.places.size(), 100 * s.worst, 100 * s.mean);
  if (s.set.is_optimal())
    std::printf("  no set of %zu has a better worst case\n", size);
  else
    std::printf("  the search was not exhaustive: a set of %zu may reach %.1f %%\n", size, 100 * s.set.bound);
  if (wish.level && is_reached(s, wish))
    std::printf(s.at_least == static_cast<int>(size)
                    ? "  no smaller set is within %.4g %% everywhere\n"
                    : "  within %.4g %% everywhere; a smaller set may be, too\n",
                100 * (1 - *wish.level));
  for (size_t k = 0; k < s.worst_of_fewer.size(); ++k)
    std::printf("%s%zu: %.1f %%", k == 0 ? "  worst of fewer configs: " : ", ", k + 1,
                100 * s.worst_of_fewer[k]);
  if (!s.worst_of_fewer.empty()) std::printf("\n");
  for (size_t i = 0; i < size; ++i) {
    const CoverConfig& c = p.configs[static_cast<size_t>(s.set.rows[i])];
    const std::string mark = algorithm_mark(c.template_name);
    std::printf("  config %zu  %s%s%s  %s\n", i + 1,
                c.template_name == "recorded" ? "" : c.template_name.c_str(), mark.empty() ? "" : ", ",
                mark.c_str(), c.config.c_str());
  }
  std::printf("  which one\n%s  at each place\n", tree_text(s.tree, "    ").c_str());
  for (size_t c = 0; c < p.places.size(); ++c)
    std::printf("    %5.1f %%  config %d  %s\n", 100 * s.score[c], s.use[c] + 1, p.places[c].name.c_str());
  if (s.unknown_pairs > 0)
    std::printf("  %d of %zu pairs of a config and a place were never measured and count as 0\n",
                s.unknown_pairs, size * p.places.size());
  if (s.left_out.known > 0)
    std::printf(
        "  places it was not made from (each left out in turn): worst %.1f %%, mean %.1f %%; %d of %d were "
        "measured\n",
        100 * s.left_out.worst, 100 * s.left_out.mean, s.left_out.known, s.left_out.columns);
  if (p.outdated > 0)
    std::printf("  %lld records left out: of templates or versions this program does not have\n",
                static_cast<long long>(p.outdated));
}

Status save(const CoverOptions& options, const Covers& covers) {
  const Result<std::unique_ptr<Store>> opened = Store::open(options.db, Store::Mode::kWrite);
  if (!opened) return with_way_to_write(opened.status(), options.db);
  Store* const store = opened->get();
  for (const auto& [problem, solution] : covers)
    for (const Cover& cover : covers_to_store(problem, solution)) {
      LearnedRow row{.kind = "cover",
                     .op = cover.op,
                     .target = cover.target,
                     .until_record_id = problem.until_record_id,
                     .document = cover_to_json(cover)};
      RETURN_IF_ERROR(store->add_learned(row));
      std::fprintf(stderr, "stored: %s on %s\n", cover.op.c_str(), cover.target.c_str());
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
    Result<CoverProblem> problem = read_spaces(options);
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
  constexpr size_t kMostNamed = 3;
  for (size_t i = 0; i < unmeasured.size() && i < kMostNamed; ++i)
    std::fprintf(stderr, "tuner: left out, nothing measured: %s\n", unmeasured[i].c_str());
  if (unmeasured.size() > kMostNamed)
    std::fprintf(stderr, "tuner: left out, nothing measured: %zu more\n", unmeasured.size() - kMostNamed);
  if (!unmeasured.empty())
    std::fprintf(stderr, "To measure them: %s\n",
                 command_line("submit " + shell_quoted(options.tasks)).c_str());
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
    nlohmann::ordered_json document = nlohmann::ordered_json::array();
    for (const auto& [problem, solution] : covers) document.push_back(solution_json(problem, solution, wish));
    std::printf("%s\n", pretty({{"covers", document}, {"unmeasured", unmeasured}}).c_str());
  } else if (options.output != "-") {
    for (const auto& [problem, solution] : covers) print(problem, solution, wish);
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
