// Fitted defaults: which template and config stand first for a task that nothing was tuned for, from shapes
// that were tuned when this version was made. Other tuners ship such configs as tables of pre-tuned layers
// (TVM: TopHub), which answer for these layers only; here a config of the nearest measured shape is moved
// into the task's space.
//
// The measured shapes are measured_shapes.inc, written by `fit_defaults` (tests/bench) from the committed
// results of benchmarks. README.md beside this file says how the choice was fitted and how good it is.
//
// Immutable; any thread may ask.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "templates/space/config_space.h"
#include "templates/workload/workload.h"

namespace tuner {

// A shape with the fastest config that tuning found for it.
struct MeasuredShape {
  std::string target;            // "llvm -mcpu=znver5 -threads=1"
  std::string variant;           // TaskShape::variant
  std::vector<int64_t> extents;  // of TaskShape::dimensions, in their order
  std::string template_name;
  Config config;
};

// The table as text:
//   target llvm -mcpu=znver5 -threads=1
//   variant matmul ta=0 tb=0 dtype=float32 const=b
//   1 128 768 768: matmul_cpu block_m=0 ...        extents, template, config
// A line holds for the lines below it. InvalidArgument names the line that is none of these.
Result<std::vector<MeasuredShape>> measured_shapes_from_text(std::string_view text);
std::string measured_shapes_to_text(std::span<const MeasuredShape> shapes);
// Those that come with the program.
const std::vector<MeasuredShape>& measured_shapes();

// A measured shape that may speak for a task.
struct DefaultDonor {
  const MeasuredShape* shape = nullptr;
  double distance = 0;  // in doublings of extents, each weighted by how much it says about the config
  // Whether its CPU has the task's instructions for products (tiles; dots of bfloat16). One that has not
  // could not measure the templates that use them, so it does not choose between templates.
  bool votes = true;
};
// Those of `from` near enough to be believed, nearest first: of the same variant, for a CPU with vectors of
// the same instruction set and width. `from` must outlive them.
std::vector<DefaultDonor> default_donors(std::span<const MeasuredShape> from, const Workload& workload,
                                         const Target& target);

// The config of a donor, moved into a space of its template.
struct FittedConfig {
  const MeasuredShape* from = nullptr;
  Config config;
  // Donors compete by the sum of these, the least wins, each weighted: the distance of the shapes; how far
  // the config had to move; how much of what its tiles compute is beyond the extents (log2); and how far it
  // is from what the other donors became: a search of some dozen trials is sometimes lucky.
  double distance = 0, moved = 0, waste = 0, apart = 0;
  double cost() const { return distance + moved + waste + apart; }
};
// Of all donors of this template, best first. Empty: there is none, or its knobs are others by now.
std::vector<FittedConfig> fitted_configs(std::span<const DefaultDonor> donors, std::string_view template_name,
                                         const ConfigSpace& space);

// Makes the best of them the default of the space, if there is one; it is looked for when somebody asks for
// the default. What try_first() says stays the default elsewhere.
void fit_default(ConfigSpace& space, std::string_view template_name, const Workload& workload,
                 const Target& target);
// Returns the position of the template whose default should stand first: of the donors that may vote, the
// nearest that have one of them do. 0 where no donor is near.
size_t fitted_first(std::span<const DefaultDonor> donors, std::span<const std::string_view> templates);

}  // namespace tuner
