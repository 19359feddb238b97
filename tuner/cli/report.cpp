// tuner report JOB -o FILE: what a job found and how, as one page that opens offline.
#include "tuner/report/report_facts.h"

#include <cstdio>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "tuner/cli/command.h"
#include "tuner/dashboard/page_files.h"
#include "tuner/jobs/job_state.h"
#include "tuner/jobs/job_word.h"
#include "tuner/report/report_page.h"
#include "tuner/text/facts.h"

namespace tuner::cli {
namespace {

struct ReportCommandOptions {
  std::string job, output, db;
  ReportOptions report;
  bool json = false;
};

// The dashboard's charts for the file; empty where its page is not here, or is older.
ReportCharts charts_here() {
  const dashboard::PageFiles page = dashboard::PageFiles::of_this_program();
  const auto* const style = page.find("/report.css");
  const auto* const script = page.find("/report.js");
  if (style == nullptr || script == nullptr) return {};
  for (const char* end : {"</script", "</style", "<!--"})  // what would end its element is no page of ours
    if (str(style->bytes, script->bytes).find(end) != std::string::npos) return {};
  return {.style = style->bytes, .script = script->bytes};
}

int run_report_command(ReportCommandOptions options) {
  if (options.output.empty() && !options.json)
    return report(
        invalid_argument("-o FILE says where the page goes (- is standard output), or --json prints the "
                         "facts; found neither"));
  if (!options.output.empty())
    if (const Status s = check_output(options.output); !s) return report(s);
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  Result<std::string> job_id = job_of_word(options.job, store->get());
  if (!job_id) return report(job_id.status());
  options.job = *std::move(job_id);
  options.report.progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const JobStates states(options.db);
  Result<nlohmann::ordered_json> facts = report_facts(**store, options.job, options.report);
  if (!facts) return report(facts.status());
  if (const Result<JobRow> job = (*store)->job(options.job); job && states.is_interrupted(*job)) {
    (*facts)["state"] = states.name(*job);
    (*facts)["message"] = states.message(*job);
  }
  if (options.json) std::printf("%s\n", pretty(*facts).c_str());
  if (options.output.empty()) return kExitDone;
  const ReportCharts charts = charts_here();
  const std::string page = report_page(*facts, charts);
  if (const Status s = write_file(options.output, page); !s) return report(s);
  if (options.output == "-") return kExitDone;
  std::fprintf(stderr, "%s: %zu task%s, %.0f kB\n", options.output.c_str(), (*facts)["tasks"].size(),
               (*facts)["tasks"].size() == 1 ? "" : "s", static_cast<double>(page.size()) / 1000);
  if (charts.script.empty())
    std::fprintf(
        stderr,
        "%s: without charts of knobs and samples, which the dashboard's page has. The Debian package "
        "tuner brings it; in a source tree, deploy/page.sh builds it\n",
        options.output.c_str());
  return kExitDone;
}

}  // namespace

void add_report_command(Command app, CommandContext& context) {
  auto options = std::make_shared<ReportCommandOptions>();
  const Command command = add_command(
      app, context, "report",
      "Write a page about a job: its search, the knobs that matter, failures, finalists with intervals, the\n"
      "roofline, and where the time went. It is one file and opens offline.\n"
      "  tuner report j3 -o report.html",
      [options] { return run_report_command(*options); });
  command
      .add_option("JOB", options->job,
                  "The job, as tuner jobs lists it, or its job file: the newest job of that")
      .required();
  command.add_option("-o,--output", options->output, "The page; - is standard output").type_name("FILE");
  command
      .add_option("--seeds", options->report.baseline_seeds,
                  "Runs of a baseline that is played on recorded rows")
      .in_range(2, 1000)
      .show_default();
  command.add_flag(
      "--no-roofs", [options] { options->report.measure_roofs = false; },
      "Do not measure this machine's peak and bandwidths (about 0.2 s a thread)");
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
