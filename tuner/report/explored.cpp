#include "tuner/report/explored.h"

#include "tuner/text/facts.h"

namespace tuner::page {
namespace {

Facts records_of(const Facts& task) {
  Facts rows = Facts::array();
  for (const Facts& mark : part(part(task, "convergence"), "marks"))
    rows.push_back({{"template", text(mark, "template")},
                    {"config", part(mark, "knobs")},
                    {"time_ns", part(mark, "ns")},
                    {"outcome", text(mark, "outcome")}});
  return rows;
}

// As the dashboard names them (src/api.ts, Finalist).
Facts finalists_of(const Facts& task) {
  Facts rows = Facts::array();
  for (const Facts& f : part(part(task, "race"), "finalists"))
    rows.push_back({{"trial", text(f, "trial")},
                    {"name", text(f, "trial")},
                    {"template", text(f, "template")},
                    {"config", text(f, "config")},
                    {"time_ns", number(f, "time_ns")},
                    {"time_low_ns", number(f, "low_ns")},
                    {"time_high_ns", number(f, "high_ns")},
                    {"winner", is_set(f, "winner")},
                    {"default", is_set(f, "default")},
                    {"samples_ns", part(f, "samples_ns")},
                    {"process", part(f, "process")}});
  return rows;
}

}  // namespace

Html explored_json(const Facts& tasks) {
  Facts all = Facts::array();
  for (const Facts& task : tasks)
    all.push_back({{"index", part(task, "index")},
                   {"points", part(part(task, "convergence"), "points")},
                   {"records", records_of(task)},
                   {"default_ns", number(part(task, "best"), "default_ns")},
                   {"roofline_ns", number(part(task, "best"), "roofline_ns")},
                   {"finalists", finalists_of(task)}});
  std::string escaped;
  for (const char c : one_line(all))
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  return Html::of_code(escaped);
}

}  // namespace tuner::page
