#include "tuner/report/report_page.h"

#include "compiler_core/base/status.h"
#include "report/page.h"
#include "tuner/report/chart.h"
#include "tuner/report/explored.h"
#include "tuner/report/page_parts.h"

namespace tuner {

namespace page {

Html job_head(const Facts& facts) {
  std::string when = text(facts, "submitted");
  if (const size_t t = when.find('T'); t != std::string::npos)
    when = str(when.substr(0, t), " ", when.substr(t + 1, 8), " UTC");
  Html out = html("<h1>Tuning report: job ", breakable(text(facts, "job")), "</h1><p class='soft'>",
                  breakable(text(facts, "search")), ", seed ", static_cast<int64_t>(number(facts, "seed")));
  if (!when.empty()) out << "; submitted " << when;
  out << "; <span class='pill" << (text(facts, "state") == "failed" ? Html(" bad") : Html()) << "'>"
      << text(facts, "state") << "</span>";
  if (const std::string message = text(facts, "message"); !message.empty())
    out << " " << bounded(message, 1000);
  return out << "</p><p class='note'>Each mark in a chart stands for a trial and tells its name, config, "
                "time and "
                "outcome: point at it, tap it, or move through the chart with the arrow keys.</p>";
}

}  // namespace page

namespace {

// Code that was built from sources of ours, as markup. What would end its element is no such code.
Html charts_code(const std::string& code) {
  for (const char* end : {"</script", "</style", "<!--"})
    CHECK(code.find(end) == std::string::npos) << "the charts hold " << end;
  return Html::of_code(code);
}

}  // namespace

std::string report_page(const nlohmann::ordered_json& facts, const ReportCharts& charts) {
  const page::Facts& tasks = page::part(facts, "tasks");
  const std::string job = page::text(facts, "job");
  // Nothing is loaded: the policy holds the browser to it.
  Html out(
      "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
      "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
      "<meta name='color-scheme' content='light dark'>\n"
      "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n<link rel='icon' href='data:,'>\n<title>");
  out << "Tuning report: job " << job << "</title>\n<style>\n"
      << Html(kReportStyle) << charts_code(charts.style) << "</style>\n</head>\n<body>\n"
      << page::shapes() << "<main>\n"
      << page::job_head(facts);
  if (tasks.size() > 1) out << page::task_list(tasks);
  for (const page::Facts& task : tasks) out << page::task_section(task, !charts.script.empty());
  out << "<footer>Made by tuner report from the records of job " << job
      << ". Everything on this page is in it: it needs no network.</footer>\n</main>\n"
         "<div class='tip' id='tip' hidden></div>\n<div class='away' id='said' role='status' "
         "aria-live='polite'></div>\n"
         "<script>\n"
      << Html(kReportScript) << "</script>\n";
  if (!charts.script.empty())
    out << "<script type='application/json' id='explored'>" << page::explored_json(tasks)
        << "</script>\n<script>\n"
        << charts_code(charts.script) << "</script>\n";
  out << "</body>\n</html>\n";
  return out.code();
}

}  // namespace tuner
