// The facts that the dashboard's charts show in a report, as a document that a script of the page reads.
#pragma once

#include "tuner/report/figures.h"
#include "tuner/report/html.h"

namespace tuner::page {

// Of each task: its results, the knobs of those that are drawn, levels, samples of its race. Without "<", so
// that no text in it ends the element.
Html explored_json(const Facts& tasks);

}  // namespace tuner::page
