// One task: its headline, and the cards below it.
#include <cmath>

#include "compiler_core/base/outcome.h"
#include "compiler_core/base/status.h"
#include "tuner/report/chart.h"
#include "tuner/report/page_parts.h"

namespace tuner::page {
namespace {

constexpr size_t kMostOfShape = 600;

Html figure(const std::string& value, const Html& label, const Html& more = Html()) {
  Html out = html("<div class='figure'><b>", value, "</b><span>", label, "</span>");
  if (!more.empty()) out << "<small>" << more << "</small>";
  return out << "</div>";
}
Html words(const std::string& text) { return html("", text); }

std::string shape(const Facts& task) {
  std::string workload = text(task, "workload");
  if (workload.starts_with("v")) workload.erase(0, std::min(workload.find(' ') + 1, workload.size()));
  return bounded(workload, kMostOfShape);
}

int64_t trials_of(const Facts& task) { return static_cast<int64_t>(number(task, "trials")); }
int64_t failed_of(const Facts& task) {
  return trials_of(task) - static_cast<int64_t>(number(part(task, "outcomes"),
                                                       std::string(outcome_name(Outcome::kOk)).c_str()));
}

std::string rate(const Facts& task) {
  const Facts& best = part(task, "best");
  if (is_set(task, "memory_bound")) return digits(number(task, "bytes") / number(best, "time_ns")) + " GB/s";
  return digits(number(best, "gflops")) + " GFLOP/s";
}

Html time_figure(const Facts& best) {
  const bool certified = is_set(best, "certified");
  Html more;
  if (certified)
    more << "95 %: " << interval(number(best, "low_ns"), number(best, "high_ns"));
  else
    more << "in one trial: " << text(best, "uncertified_why");
  if (number(best, "other_ns") > 0)
    more << "; " << time(number(best, "other_ns"))
         << (text(best, "constants") == "warm" ? Html(" with constants cold") : Html(" with constants warm"));
  return figure(
      time(number(best, "time_ns")),
      html(certified ? Html("certified; ") : Html("not certified; "), "trial ", text(best, "trial")), more);
}

Html speed_figure(const Facts& task) {
  const Facts& best = part(task, "best");
  if (is_set(task, "memory_bound")) return figure(rate(task), Html("each argument read or written once"));
  if (number(task, "flops") <= 0) return figure("-", Html("speed: the job file says no flops"));
  const double peak = number(best, "peak_gflops");
  if (peak <= 0) return figure(rate(task), Html("speed"));
  const double needed = number(best, "needed_gflops");
  Html more;
  if (needed < number(best, "gflops")) more << digits(needed) << " without padding, ";
  more << "peak " << digits(peak) << " GFLOP/s";
  return figure(rate(task), html(percent(needed / peak), " of the ", text(best, "peak_owner"), " peak"),
                more);
}

Html gain_figure(const Facts& best) {
  const double plain = number(best, "default_ns");
  if (plain <= 0) return figure("-", html("gain over the default: ", text(part(best, "words"), "gain")));
  return figure(factor(plain / number(best, "time_ns")), Html("the speed of the default config"),
                html("default ", time(plain)));
}

Html headline(const Facts& task) {
  const Facts& best = part(task, "best");
  const std::string trials = count(trials_of(task), "trial", "trials");
  if (best.is_null()) return figure("no right answer", words(trials));
  return html(time_figure(best), speed_figure(task), gain_figure(best),
              figure(grouped(trials_of(task)), Html("trials"),
                     html(grouped(failed_of(task)), " failed, ",
                          grouped(static_cast<int64_t>(number(task, "cut"))), " ended early")));
}

Html card(const char* css, const std::string& title, const Html& body) {
  return html("<div class='card ", std::string(css), "'><h3>", title, "</h3>", body, "</div>\n");
}

Html config_card(const Facts& task) {
  const Facts& best = part(task, "best");
  if (best.is_null()) return {};
  const std::string trial = text(best, "trial"), artifact = text(best, "artifact").substr(0, 16);
  return card("wide", "The config",
              html("<p class='mono'>", breakable(text(best, "described")),
                   "</p><p class='small soft'>template ", breakable(text(best, "template")), ", version ",
                   static_cast<int64_t>(number(best, "template_version")), "; trial ", trial, "; ",
                   breakable(text(best, "toolchain")), "; ", breakable(text(task, "hardware")),
                   "; artifact <span class='mono'>", artifact.empty() ? "none" : artifact,
                   "</span></p><pre>tuner show ", trial,
                   " --as schedule        # also loops, asm, roofline\ntuner rerun ", trial, "</pre>"));
}

Html head_of(const Facts& task) {
  Html out = html("<h2>", breakable(shape(task)), "</h2><p class='soft small'>on <span class='mono'>",
                  breakable(text(task, "target")), "</span>");
  if (const auto uses = static_cast<int64_t>(number(task, "uses")); uses > 1)
    out << ", used " << grouped(uses) << " times";
  if (const std::string algorithms = text(task, "algorithms"); !algorithms.empty())
    out << ", algorithms: " << algorithms;
  if (const std::string right = text(task, "right"); !right.empty()) out << ", <b>" << right << "</b>";
  return out << "</p>";
}

}  // namespace

Html task_section(const Facts& task, bool explored) {
  Html explore;
  if (explored && !part(part(task, "convergence"), "points").empty())
    explore << "<details class='card wide explore parts' hidden><summary>Explore the "
               "trials</summary></details>\n";
  return html("<section class='task' id='task", static_cast<int64_t>(number(task, "index")), "'>",
              head_of(task), "<div class='figures card'>", headline(task), "</div><div class='grid'>\n",
              card("wide", "Convergence", html(convergence_chart(task), stopping(part(task, "stopping")))),
              explore, card("", "Finalists", race_chart(part(task, "race"))),
              card("", "Roofline", roofline_chart(task)),
              card("wide", "Which knobs matter", knob_shares(part(task, "importance"))),
              card("", "Failures by kind", failure_list(part(task, "failures"), trials_of(task))),
              card("", "Where the time went", where_time_went(part(task, "phases"))), config_card(task),
              "</div></section>\n");
}

Html task_list(const Facts& tasks) {
  double whole = 0, before = 0, after = 0;
  int64_t trials = 0, failed = 0, measured = 0;
  Html rows;
  for (const Facts& task : tasks) {
    const Facts& best = part(task, "best");
    const double uses = number(task, "uses"), ns = number(best, "time_ns"),
                 plain = number(best, "default_ns");
    trials += trials_of(task);
    failed += failed_of(task);
    whole += uses * ns;
    if (plain > 0) ++measured, before += uses * plain, after += uses * ns;
    const Facts& chance = part(part(task, "stopping"), "chance");
    rows << "<tr><td><a href='#task" << static_cast<int64_t>(number(task, "index")) << "'>"
         << breakable(shape(task)) << "</a></td><td class='n'>" << grouped(static_cast<int64_t>(uses))
         << "</td><td class='n'>" << time(ns) << "</td><td class='n'>" << (ns > 0 ? rate(task) : "-")
         << "</td><td class='n'>" << (plain > 0 ? factor(plain / ns) : "-") << "</td><td class='n'>"
         << grouped(trials_of(task)) << "</td><td class='n'>" << grouped(failed_of(task))
         << "</td><td class='n'>" << (chance.is_number() ? percent(chance.get<double>()) : "-")
         << "</td></tr>\n";
  }
  const auto all = static_cast<int64_t>(tasks.size());
  Html figures = figure(time(whole), Html("all tasks, each as often as it is used"));
  if (measured > 0)
    figures << figure(
        factor(before / after), Html("the speed of the default configs"),
        measured < all ? html("over ", grouped(measured), " of ", grouped(all), " tasks") : Html());
  figures << figure(grouped(all), Html("tasks"))
          << figure(grouped(trials), Html("trials"), html(grouped(failed), " failed"));
  return html(
      "<div class='figures card'>", figures, "</div><div class='card list'>",
      table("The tasks of the job",
            Html("<th class='first'>task</th><th class='n'>uses</th><th class='n'>time</th><th "
                 "class='n'>speed</th>"
                 "<th class='n'>over the default</th><th class='n'>trials</th><th class='n'>failed</th>"
                 "<th class='n'>chance of more</th>"),
            rows),
      "</div>");
}

}  // namespace tuner::page
