// The parts of a report's page that are words, figures and tables, of the parts of report_facts()'s document.
#pragma once

#include "tuner/report/figures.h"
#include "tuner/report/html.h"

namespace tuner::page {

Html job_head(const Facts& facts);
// The tasks of a job with several, with their sums.
Html task_list(const Facts& tasks);
// `explored`: with a place for the dashboard's charts, which a script fills.
Html task_section(const Facts& task, bool explored);

Html knob_shares(const Facts& importance);
Html failure_list(const Facts& failures, int64_t trials);
Html where_time_went(const Facts& phases);
// Whether to go on: the chance that more trials gain something.
Html stopping(const Facts& estimate);

// A table that scrolls in its own box where it is too wide, and says so.
Html table(const std::string& label, const Html& head, const Html& rows);

}  // namespace tuner::page
