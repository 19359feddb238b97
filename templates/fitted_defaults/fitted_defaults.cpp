#include "templates/fitted_defaults/fitted_defaults.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "templates/space/project.h"
#include "templates/workload/parts/operator.h"

namespace tuner {

namespace {

constexpr std::string_view kMeasuredShapes =
#include "templates/fitted_defaults/measured_shapes.inc"
    ;

// What a doubling of an extent says about which config is fast; those that are not listed count 1. Judged by
// hand. The weights of way, waste and disagreement, and the votes, were chosen by what `fit_defaults judge
// --donors` timed of 40 convolutions (README.md).
struct Weight {
  std::string_view dimension;
  double weight;
};
constexpr Weight kWeights[] = {{"n", 0.3}, {"b", 0.3}, {"oh", 0.5}, {"kh", 2}, {"kw", 2},
                               {"sh", 2},  {"sw", 2},  {"dh", 2},   {"dw", 2}, {"pad", 0.2}};
constexpr double kOtherThreads = 0.5, kOtherCpu = 0.25;  // what these add to a distance
constexpr double kFarthest = 4;                          // donors farther away say nothing
constexpr size_t kMostDonors = 6;                        // of one template
constexpr int kMostSteps = 4;                            // from a moved config to ones that waste less
constexpr double kMovedWeight = 2, kWasteWeight = 2, kApartWeight = 0.5;
constexpr size_t kVoters = 5;  // donors that choose the template; a vote counts 1 / (1 + distance)

double weight_of(std::string_view dimension) {
  const auto* const found = std::ranges::find(kWeights, dimension, &Weight::dimension);
  return found == std::end(kWeights) ? 1 : found->weight;
}

// What of a target decides whether configs of one mean anything for another. Empty: nothing is fitted for it.
struct Vectors {
  std::string architecture;
  int bits = 0, registers = 0;
  bool operator==(const Vectors&) const = default;
};
std::optional<Vectors> vectors_of(const Target& target) {
  if (!target.is_cpu()) return std::nullopt;
  return Vectors{target.is_x86() ? "x86_64" : target.mtriple.substr(0, target.mtriple.find('-')),
                 target.vector_bits, target.vector_registers_n};
}

// What another target adds to a distance, and whether it has the same instructions for products of `dtype`;
// nothing if its configs mean nothing here.
struct OtherTarget {
  double distance = 0;
  bool same_products = false;
};
std::optional<OtherTarget> other_target(const std::string& there, const Target& here, DType dtype) {
  const Result<Target> parsed = parse_target(there);
  if (!parsed || vectors_of(*parsed) != vectors_of(here)) return std::nullopt;
  const bool same_dots = dtype != DType::kBFloat16 || parsed->has_bfloat16_dots() == here.has_bfloat16_dots();
  return OtherTarget{.distance = (parsed->threads == here.threads ? 0 : kOtherThreads) +
                                 (parsed->mcpu == here.mcpu ? 0 : kOtherCpu),
                     .same_products = same_dots && parsed->has_tiles(dtype) == here.has_tiles(dtype)};
}

// The share of what tiles compute beyond the extents: log2 of computed over needed, summed over the axes.
double waste_of(const ConfigSpace& space, const Config& config) {
  double sum = 0;
  for (const KnobInfo& knob : space.knobs()) {
    if (knob.kind != KnobKind::kSplit || knob.extent <= 0 || !space.is_active(config, knob.name)) continue;
    const int64_t inner = std::max<int64_t>(config.at(knob.name), 1);
    sum += std::log2(static_cast<double>(inner * ceil_div(knob.extent, inner)) /
                     static_cast<double>(knob.extent));
  }
  return sum;
}

FittedConfig weighed(FittedConfig fitted, const ConfigSpace& space) {
  fitted.moved = kMovedWeight * distance_between(fitted.config, fitted.from->config, space);
  fitted.waste = kWasteWeight * waste_of(space, fitted.config);
  return fitted;
}

// A tile of 14 is as valid for 16 columns as one of 16, and wastes most of its second block: from the donor's
// config to neighbours that waste less, as long as that is worth the way.
FittedConfig settled(FittedConfig fitted, const ConfigSpace& space) {
  fitted = weighed(std::move(fitted), space);
  for (int step = 0; step < kMostSteps; ++step) {
    const Result<ConfigIndex> at = space.index_of(fitted.config);
    CHECK(at) << at.status().message();
    FittedConfig best = fitted;
    for (const ConfigIndex next : space.neighbours(*at)) {
      FittedConfig there = fitted;
      there.config = space.at(next);
      there = weighed(std::move(there), space);
      if (there.cost() < best.cost()) best = std::move(there);
    }
    if (best.config == fitted.config) break;
    fitted = std::move(best);
  }
  return fitted;
}

Result<std::vector<int64_t>> numbers_from(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || number < 1) return invalid_argument("expected numbers of at least 1");
    numbers.push_back(number);
    at = next == end || *next != ' ' ? next : next + 1;
    if (at == next && at != end) return invalid_argument("expected a blank between numbers");
  }
  return numbers;
}

// "1 128 768 768: matmul_cpu block_m=0"
Status read_shape(std::string_view line, MeasuredShape& shape) {
  const size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return invalid_argument("expected \"EXTENTS: TEMPLATE CONFIG\"");
  ASSIGN_OR_RETURN(shape.extents, numbers_from(line.substr(0, colon)));
  const std::string_view rest = line.substr(colon + 2);
  const size_t blank = std::min(rest.find(' '), rest.size());
  shape.template_name = std::string(rest.substr(0, blank));
  if (shape.template_name.empty()) return invalid_argument("no template after the extents");
  ASSIGN_OR_RETURN(shape.config, config_from_text(blank == rest.size() ? "" : rest.substr(blank + 1)));
  return Status::ok();
}

}  // namespace

Result<std::vector<MeasuredShape>> measured_shapes_from_text(std::string_view text) {
  std::vector<MeasuredShape> shapes;
  MeasuredShape shape;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.starts_with("target ")) {
      shape.target = std::string(line.substr(7));
    } else if (line.starts_with("variant ")) {
      shape.variant = std::string(line.substr(8));
    } else {
      const Status read = shape.target.empty() || shape.variant.empty()
                              ? invalid_argument("expected \"target ...\" and \"variant ...\" above a shape")
                              : read_shape(line, shape);
      if (!read) return read.with_context(str("measured shapes, line ", number, ": "));
      shapes.push_back(shape);
    }
  }
  return shapes;
}

std::string measured_shapes_to_text(std::span<const MeasuredShape> shapes) {
  std::string text, target, variant;
  for (const MeasuredShape& s : shapes) {
    if (s.target != target) text += str("target ", s.target, "\n"), variant.clear();
    if (s.variant != variant) text += str("variant ", s.variant, "\n");
    target = s.target;
    variant = s.variant;
    for (size_t i = 0; i < s.extents.size(); ++i) text += str(i == 0 ? "" : " ", s.extents[i]);
    text += str(": ", s.template_name, " ", s.config.to_text(), "\n");
  }
  return text;
}

const std::vector<MeasuredShape>& measured_shapes() {
  static const std::vector<MeasuredShape> shapes = [] {
    Result<std::vector<MeasuredShape>> read = measured_shapes_from_text(kMeasuredShapes);
    CHECK(read) << read.status().message();
    return *std::move(read);
  }();
  return shapes;
}

std::vector<DefaultDonor> default_donors(std::span<const MeasuredShape> from, const Workload& workload,
                                         const Target& target) {
  std::vector<DefaultDonor> donors;
  if (!vectors_of(target)) return donors;
  const TaskShape here = workload.shape();
  std::map<std::string_view, std::optional<OtherTarget>> of_targets;
  for (const MeasuredShape& there : from) {
    if (there.variant != here.variant || there.extents.size() != here.dimensions.size()) continue;
    const auto [at, fresh] = of_targets.try_emplace(there.target);
    if (fresh) at->second = other_target(there.target, target, workload.dtype());
    if (!at->second) continue;
    double distance = at->second->distance;
    for (size_t i = 0; i < there.extents.size(); ++i) {
      const auto& [name, extent] = here.dimensions[i];
      const double ratio = static_cast<double>(extent) / static_cast<double>(there.extents[i]);
      distance += weight_of(name) * std::abs(std::log2(ratio));
    }
    if (distance <= kFarthest) donors.push_back({&there, distance, at->second->same_products});
  }
  std::ranges::stable_sort(donors, {}, &DefaultDonor::distance);
  return donors;
}

std::vector<FittedConfig> fitted_configs(std::span<const DefaultDonor> donors, std::string_view template_name,
                                         const ConfigSpace& space) {
  std::vector<FittedConfig> fitted;
  for (const DefaultDonor& donor : donors) {
    if (fitted.size() == kMostDonors) break;
    if (donor.shape->template_name != template_name) continue;
    std::optional<Config> here = project(donor.shape->config, space);
    if (!here) continue;
    fitted.push_back(
        settled({.from = donor.shape, .config = *std::move(here), .distance = donor.distance}, space));
  }
  for (FittedConfig& one : fitted) {
    double apart = 0, weights = 0;
    for (const FittedConfig& other : fitted) {
      if (&other == &one) continue;
      const double weight = 1 / (1 + other.distance);
      apart += weight * distance_between(one.config, other.config, space);
      weights += weight;
    }
    if (weights > 0) one.apart = kApartWeight * apart / weights;
  }
  std::ranges::stable_sort(fitted, {}, &FittedConfig::cost);
  return fitted;
}

void fit_default(ConfigSpace& space, std::string_view template_name, const Workload& workload,
                 const Target& target) {
  std::vector<DefaultDonor> donors = default_donors(measured_shapes(), workload, target);
  std::erase_if(donors, [&](const DefaultDonor& d) { return d.shape->template_name != template_name; });
  if (donors.empty()) return;
  space.choose_default([donors = std::move(donors), name = std::string(template_name)](
                           const ConfigSpace& sealed) -> std::optional<Config> {
    std::vector<FittedConfig> fitted = fitted_configs(donors, name, sealed);
    if (fitted.empty()) return std::nullopt;
    return std::move(fitted.front().config);
  });
}

size_t fitted_first(std::span<const DefaultDonor> donors, std::span<const std::string_view> templates) {
  std::vector<double> votes(templates.size(), 0);
  size_t voters = 0;
  for (const DefaultDonor& donor : donors) {
    const auto found = std::ranges::find(templates, donor.shape->template_name);
    if (!donor.votes || found == templates.end()) continue;
    votes[static_cast<size_t>(found - templates.begin())] += 1 / (1 + donor.distance);
    if (++voters == kVoters) break;
  }
  if (voters == 0) return 0;
  return static_cast<size_t>(std::ranges::max_element(votes) - votes.begin());
}

}  // namespace tuner
