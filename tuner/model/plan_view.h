// A compiled model as text, for `tuner show DIR --as graph|plan|layers|memory`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tuner/model/plan_file.h"

namespace tuner {

// graph, plan, layers, memory.
std::span<const std::string_view> compiled_views();

// `width`: columns, 0: no limit. InvalidArgument: `view` is none of compiled_views().
Result<std::string> compiled_text(const CompiledPlan& plan, std::string_view view, int width);

}  // namespace tuner
