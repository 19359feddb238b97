// Layouts: in which order the elements of each image lie between two steps.
//
// A rule chooses, apply_layouts() carries it out: workloads get the layouts of what they read and write, and
// where a step needs another one than a value has, a step in front of it moves the elements. Rules may be
// replaced; nothing else knows them.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/target.h"
#include "tuner/model/partition.h"

namespace tuner {

// For each value of the graph the channels of a block: 1 for plain (NCHW, and all that is no image), 16 for
// NCHW16c, kChannelsLast for NHWC.
using Layouts = std::vector<int64_t>;
inline constexpr int64_t kChannelsLast = 0;

// Everything plain, as in the file.
Layouts plain_layouts(const ModelSteps& model);
// The rule of today. Plain: over the convolutions of ResNet-50 in float32 blocks are worth 4 %
// (docs/figures.md), and what has no blocked form (concat, resize, what stands between) would have to be
// moved. But NHWC between convolutions of bytes by a matrix unit (AMX), which takes pixels as they lie so.
Layouts chosen_layouts(const ModelSteps& model, const Target& target);
// Blocks of a vector's lanes from convolution to convolution and through pools, wherever nobody else reads or
// shows a value.
Layouts blocked_layouts(const ModelSteps& model, const Target& target);

// NHWC from accelerated step to accelerated step, and through flat ones between; plain elsewhere. An image of
// one pixel is both.
Layouts accelerated_layouts(const ModelSteps& model);

// Requires of the layouts: plain for inputs, outputs, constants, values with aliases, and for what other
// steps than convolutions and pools write; a pool's input may have any. Internal, with the step: they are not
// so, or no template serves a step in its layouts. `accelerator`: of accelerated steps.
Status apply_layouts(ModelSteps& model, const Layouts& layouts, const Target& target,
                     const Target* accelerator = nullptr);

// Channels of a block in which the step's result lies; 1: it is plain; kChannelsLast.
int64_t block_of(const ModelStep& step);

}  // namespace tuner
