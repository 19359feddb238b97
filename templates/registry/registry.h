// The list of all templates: those of this repository, then those that a program registers.
// templates/schedule_template.h declares the questions that can be asked of it.
#pragma once

#include "templates/cpu/cpu_templates.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/npu/npu_templates.h"

// Each list, one after the other; a new folder is its include and a line here.
// clang-format off
#define TUNER_ALL_TEMPLATES(TEMPLATE) \
  TUNER_CPU_TEMPLATES(TEMPLATE) \
  TUNER_CUDA_TEMPLATES(TEMPLATE) \
  TUNER_NPU_TEMPLATES(TEMPLATE)
// clang-format on

namespace tuner {

// As templates_for(), before measured shapes say which one comes first: the order of the list, those that
// serve as second last.
Result<std::vector<const AnyTemplate*>> templates_in_order(const Workload& workload, const Target& target,
                                                           std::string_view algorithms = {});

}  // namespace tuner
