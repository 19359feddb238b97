#include "tuner/report/page_parts.h"

#include <algorithm>
#include <set>

#include "compiler_core/base/status.h"

namespace tuner::page {
namespace {

constexpr size_t kMostKnobs = 12, kMostMessage = 2000;

Html bar(double share, const char* css) {
  return html("<i class='fill ", std::string(css),
              "' style='width:", digits(100 * std::clamp(share, 0.0, 1.0)), "%'></i>");
}

// Times of the configs that have a value of the knob.
Html value_table(const Facts& knob) {
  const Facts& values = part(knob, "values");
  double most = 0, best = 0;
  for (const Facts& v : values) {
    most = std::max(most, v[2].get<double>());
    best = best == 0 ? v[3].get<double>() : std::min(best, v[3].get<double>());
  }
  Html rows;
  for (const Facts& v : values) {
    const double median = v[2].get<double>(), fastest = v[3].get<double>();
    rows << "<tr><td class='mono'>" << breakable(v[0].get<std::string>()) << "</td><td class='n'>"
         << grouped(v[1].get<int64_t>()) << "</td><td class='n'>" << (fastest == best ? Html("<b>") : Html())
         << time(fastest) << (fastest == best ? Html("</b>") : Html()) << "</td><td class='n'>"
         << time(median) << "</td><td class='bars'>" << bar(median / most, "median")
         << bar(fastest / most, "best") << "</td></tr>\n";
  }
  return html(table(
      "Times by value of " + text(knob, "knob"),
      Html("<th>value</th><th class='n'>configs</th><th class='n'>best</th><th class='n'>median</th>"
           "<th class='bars'><span class='key best'>best</span> <span class='key median'>median</span></th>"),
      rows));
}

}  // namespace

Html table(const std::string& label, const Html& head, const Html& rows) {
  return html(
      "<div class='table'><p class='hint' aria-hidden='true'>This table is wider than the page: scroll it "
      "sideways &#8594;</p><div class='scroll' role='region' tabindex='0' aria-label='",
      label, "'><table><thead><tr>", head, "</tr></thead><tbody>", rows, "</tbody></table></div></div>");
}

Html knob_shares(const Facts& im) {
  if (const std::string why = text(im, "why"); !why.empty())
    return html("<p class='note'>Not shown: ", why, ".</p>");
  const double r2 = number(im, "r2"), least = number(im, "least_r2");
  if (r2 < least)
    return html("<p class='note'>Not shown: the model explains ", percent(std::max(0.0, r2), 0),
                " of the variation of the times on configs that it has not seen, and below ",
                percent(least, 0), " a share per knob says little.</p>");
  const Facts& knobs = part(im, "knobs");
  std::set<std::string> templates;
  double most = 1e-9;
  for (const Facts& k : knobs) {
    if (!text(k, "template").empty()) templates.insert(text(k, "template"));
    most = std::max(most, number(k, "share"));
  }
  Html rows;
  for (size_t i = 0; i < std::min(knobs.size(), kMostKnobs); ++i) {
    const Facts& k = knobs[i];
    Html name;
    if (templates.size() > 1 && !text(k, "template").empty()) name << breakable(text(k, "template")) << ": ";
    name << breakable(text(k, "knob"));
    rows << "<details class='knob'" << (i == 0 ? Html(" open") : Html()) << "><summary><span>" << name
         << "</span><span>" << bar(number(k, "share") / most, "best") << "</span><span>"
         << percent(number(k, "share")) << "</span></summary>" << value_table(k) << "</details>\n";
  }
  return html(
      "<p class='note'>How much of the variation of the times each knob explains. Boosted trees learn the "
      "times of ",
      "four fifths of ", count(static_cast<int64_t>(number(im, "configs")), "config", "configs"),
      " and predict the others, in five turns. They explain ", percent(r2, 0),
      ". A knob's share is what they lose when its values are shuffled. Shares of knobs that act together "
      "add "
      "up to more. Open a knob to see the times by its values.</p>",
      rows);
}

Html failure_list(const Facts& failures, int64_t trials) {
  if (failures.empty())
    return trials == 0 ? Html("<p class='note'>No trial has a result yet.</p>")
                       : Html("<p class='note'>None: every trial gave a right answer.</p>");
  Html rows, examples;
  for (const Facts& f : failures) {
    const std::string kind = outcome(text(f, "outcome"));
    rows << "<tr><td>" << kind << "</td><td class='n'>" << grouped(static_cast<int64_t>(number(f, "count")))
         << "</td><td class='n'>"
         << percent(number(f, "count") / static_cast<double>(std::max<int64_t>(1, trials))) << "</td></tr>\n";
    examples << "<details><summary>" << kind << ": examples</summary>";
    for (const Facts& e : part(f, "examples")) {
      const std::string message = bounded(text(e, "message"), kMostMessage);
      examples << "<p class='small'>" << text(e, "trial") << "  <span class='mono soft'>"
               << breakable(text(e, "template")) << "  "
               << breakable(bounded(text(e, "config"), kMostOfConfig)) << "</span></p><pre>"
               << (message.empty() ? "(no message)" : message) << "</pre>";
    }
    if (const Facts& all = part(f, "examples"); !all.empty())
      examples << "<p class='note'>To see one again: tuner rerun " << text(all[0], "trial") << "</p>";
    examples << "</details>\n";
  }
  return html(table("Failures by kind",
                    Html("<th>outcome</th><th class='n'>trials</th><th class='n'>share</th>"), rows),
              examples);
}

Html where_time_went(const Facts& p) {
  if (const std::string why = text(p, "why"); !why.empty())
    return html("<p class='note'>Not shown: ", why, ".</p>");
  const double wall = number(p, "wall_ms"), run = number(p, "run_ms"), build = number(p, "build_ms");
  const double most = std::max({wall, run, build, 1.0});
  const auto row = [&](const char* name, double ms, const char* css) {
    return html("<div class='phase'><span>", std::string(name), "</span><span>", duration(ms),
                ms != wall && wall > 0 ? ", " + percent(ms / wall, 0) : "", "</span>", bar(ms / most, css),
                "</div>");
  };
  return html(row("from the first to the last result", wall, "faint"), row("candidates running", run, "best"),
              row("candidates being built", build, "built"), "<p class='note'>",
              count(static_cast<int64_t>(number(p, "trials")), "trial", "trials"),
              ". A run with its check takes ", time(1e6 * number(p, "run_median_ms")),
              " (median). A build takes ", time(1e6 * number(p, "build_median_ms")),
              " (median), beside the runs. The rest is the search, the database, races and waiting. Pauses "
              "of a minute "
              "and more are left out.</p>");
}

Html stopping(const Facts& s) {
  Html out("<p class='note'>");
  const auto results = static_cast<int64_t>(number(s, "results")),
             size = static_cast<int64_t>(number(s, "space_size"));
  if (s.is_null())
    out << "This program does not know the config space, so it estimates no further gain.";
  else if (results >= size)
    out << "All " << count(size, "valid config is", "valid configs are")
        << " measured: nothing is left to find.";
  else if (!part(s, "chance").is_number())
    out << "An estimate of further gains needs " << static_cast<int64_t>(number(s, "least"))
        << " results; this task has " << grouped(results) << ".";
  else
    out << "Chance that the next " << static_cast<int64_t>(number(s, "horizon")) << " trials gain "
        << percent(number(s, "gain"), 0) << " or more: " << percent(number(s, "chance"))
        << ". Expected gain: " << percent(number(s, "expected_gain"), 2) << ". " << grouped(results) << " of "
        << grouped(size) << " valid configs are tried.";
  return out << "</p>";
}

}  // namespace tuner::page
