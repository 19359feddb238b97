// A compiled model as text, for `tuner show DIR --as plan|layers|memory`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tuner/model/plan_file.h"

namespace tuner {

// plan, layers, memory.
std::span<const std::string_view> compiled_views();

// What a step computes, and by which function if that is none of ours: "by conv of ours.so: conv2d n=1 ...".
std::string work_text(const CompiledPlan& plan, const PlanStep& step);

// `width`: columns, 0: no limit. InvalidArgument: `view` is none of compiled_views().
Result<std::string> compiled_text(const CompiledPlan& plan, std::string_view view, int width);

}  // namespace tuner
