// The schedule of math that no template was written for: stage by stage, each a kernel.
//
//   stages that only move elements, or compute little, become part of what reads them
//   elements     all axes as one: blocks of `threads` threads, each an element, or a vector of them
//   sums         the same, each thread adding up in a register; where the sum runs along memory and is long:
//                `lanes` threads share each sum. A short sum that one stage reads is computed there
//   one number   a kernel of one thread
//
// Right for anything that has no steps (te's recurrences); fast for what is bound by memory and has many
// elements.
#pragma once

#include "templates/cuda/cuda_schedule.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"

namespace tuner::cuda {

struct StageKnobs {
  ChoiceKnob threads, vector, lanes;
  FlagKnob inline_all;
};
StageKnobs declare_stages(ConfigSpace& space, const Program& math);
void schedule_stages(Schedule& s, const StageKnobs& k, const Config& c);

}  // namespace tuner::cuda
