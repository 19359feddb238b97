#include "templates/source_kernel/source_launch.h"

#include <algorithm>
#include <set>

#include "compiler_core/base/printable.h"
#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner {
namespace {

template <class... Args>
Status launch_error(std::string_view key, const Args&... what) {
  return invalid_argument(key, ": ", what...);
}

ForeignLaunch::Form form_of(SourceLanguage language) {
  return language == SourceLanguage::kPtx     ? ForeignLaunch::Form::kPtx
         : language == SourceLanguage::kCubin ? ForeignLaunch::Form::kCubin
                                              : ForeignLaunch::Form::kCuda;
}

size_t place_in_knob(const SourceKnob& knob, const Config& config) {
  const int64_t value = config.at(knob.name);
  if (!knob.words.empty()) return static_cast<size_t>(value);
  return static_cast<size_t>(std::ranges::find(knob.numbers, value) - knob.numbers.begin());
}

std::string known_names(const SourceKernel& kernel) {
  std::string names;
  for (const auto& [name, value] : kernel.sizes) names += (names.empty() ? "" : ", ") + name;
  for (const SourceKnob& knob : kernel.knobs) names += (names.empty() ? "" : ", ") + knob.name;
  return names.empty() ? "; there are no sizes and no knobs" : str("; known are ", names);
}

// Its value, which must lie from `least` to `most`.
Result<int64_t> launch_number(const SourceKernel& kernel, const Config& config, const std::string& key,
                              const Formula& formula, int64_t least, int64_t most) {
  const auto value_of = [&](const std::string& name) -> std::optional<Formula::Value> {
    if (const auto size = kernel.sizes.find(name); size != kernel.sizes.end()) return size->second;
    const auto knob = std::ranges::find(kernel.knobs, name, &SourceKnob::name);
    if (knob == kernel.knobs.end()) return std::nullopt;
    if (knob->words.empty()) return config.at(name);
    return knob->words.at(place_in_knob(*knob, config));
  };
  const std::string shown = str("; in \"", printable(formula.text().substr(0, 80)), "\"");
  const Result<int64_t> value = formula.value(value_of);
  if (!value)
    return launch_error(key, value.message(),
                        value.message().find("unknown name") == std::string::npos ? "" : known_names(kernel),
                        shown);
  if (*value >= least && *value <= most) return *value;
  return launch_error(key, "expected ", least, " to ", most, ", found ", *value, shown);
}

Result<ForeignLaunch> launch_numbers(const SourceKernel& kernel, const Config& config,
                                     const std::string& prefix, const SourceLaunch& launch) {
  ForeignLaunch made{.form = form_of(kernel.language)};
  for (size_t i = 0; i < launch.grid.size(); ++i) {
    ASSIGN_OR_RETURN(made.grid[i], launch_number(kernel, config, str(prefix, "grid[", i, "]"), launch.grid[i],
                                                 1, kMostGrid[i]));
  }
  for (size_t i = 0; i < launch.block.size(); ++i) {
    ASSIGN_OR_RETURN(made.block[i], launch_number(kernel, config, str(prefix, "block[", i, "]"),
                                                  launch.block[i], 1, kMostBlock[i]));
  }
  if (made.threads() > kMostBlockThreads)
    return launch_error(prefix + "block", "expected at most ", kMostBlockThreads, " threads, found ",
                        made.threads());
  if (launch.shared_bytes) {
    ASSIGN_OR_RETURN(made.shared_bytes, launch_number(kernel, config, prefix + "shared_bytes",
                                                      *launch.shared_bytes, 0, kMostBlockShared));
  }
  return made;
}

std::string config_text(const SourceKernel& kernel, const ReadyKernel& ready) {
  std::string text;
  for (size_t i = 0; i < kernel.knobs.size(); ++i)
    text += str(text.empty() ? "" : " ", kernel.knobs[i].name, "=", kernel.knobs[i].text(ready.places.at(i)));
  return text;
}

// That of one that is ready.
Config config_of_ready(const SourceKernel& kernel, const ReadyKernel& ready) {
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < kernel.knobs.size(); ++i) {
    const SourceKnob& knob = kernel.knobs[i];
    const size_t place = ready.places.at(i);
    values[knob.name] = knob.words.empty() ? knob.numbers.at(place) : static_cast<int64_t>(place);
  }
  return Config(std::move(values));
}

// True of one of the kernels [begin, end).
IntExpr is_one_of(const SourceKernel& kernel, const std::vector<IntExpr>& knobs, size_t begin, size_t end) {
  if (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    return is_one_of(kernel, knobs, begin, middle) || is_one_of(kernel, knobs, middle, end);
  }
  IntExpr all(1);
  const Config config = config_of_ready(kernel, kernel.ready[begin]);
  for (size_t i = 0; i < knobs.size(); ++i) {
    const IntExpr one = knobs[i] == config.at(kernel.knobs[i].name);
    all = i == 0 ? one : all && one;
  }
  return all;
}

Status check_parts(const std::string& prefix, const SourceLaunch& launch) {
  for (const auto& [key, list] : {std::pair("grid", &launch.grid), {"block", &launch.block}})
    if (list->empty() || list->size() > 3)
      return launch_error(prefix + key, "expected 1 to 3 expressions, found ", list->size());
  return Status::ok();
}

// A symbol may be one of C++, mangled.
bool is_symbol(const std::string& name) {
  constexpr size_t kLongestSymbol = 1000;
  return !name.empty() && name.size() <= kLongestSymbol && (name[0] < '0' || name[0] > '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '$';
         });
}

bool has_entry(const std::string& ptx, const std::string& function) {
  const std::string head = ".entry " + function;
  for (size_t found = ptx.find(head); found != std::string::npos; found = ptx.find(head, found + 1)) {
    const char next = found + head.size() < ptx.size() ? ptx[found + head.size()] : '\0';
    if (next == '(' || next == ' ' || next == '\t' || next == '\n' || next == '\r') return true;
  }
  return false;
}

// What its file must be. Who compiles or loads it looks closer.
Status check_image(const SourceKernel& kernel, const std::string& prefix, const ReadyKernel& ready) {
  if (!is_symbol(ready.function))
    return launch_error(prefix + "function", "expected a symbol of letters, digits, _ and $, found \"",
                        printable(ready.function.substr(0, 80)), "\"");
  const SourceFile* const file = kernel.file(ready.file);
  if (file == nullptr)
    return launch_error(prefix + "file", "there is no file ", printable(ready.file.substr(0, 200)));
  const std::string& text = file->text;
  const auto lacks = [&](const std::string& what) {
    return launch_error(prefix + "function", ready.file, " has no kernel \"", ready.function, "\"", what);
  };
  if (kernel.language == SourceLanguage::kPtx) {
    if (text.find(".version") == std::string::npos || text.find('\0') != std::string::npos)
      return launch_error(prefix + "file", ready.file, " is no PTX: it has no \".version\", or a byte 0");
    return has_entry(text, ready.function) ? Status::ok() : lacks(": no \".entry\" names it");
  }
  constexpr std::string_view kElf(
      "\x7f"
      "ELF\x02\x01");
  constexpr size_t kMachineAt = 18;
  constexpr unsigned char kMachineCuda = 190;
  if (!text.starts_with(kElf) || text.size() < 64 ||
      static_cast<unsigned char>(text[kMachineAt]) != kMachineCuda)
    return launch_error(prefix + "file", ready.file, " is no cubin: expected an ELF file for CUDA devices");
  return text.find(".text." + ready.function + '\0') == std::string::npos ? lacks("") : Status::ok();
}

Status check_ready(const SourceKernel& kernel) {
  if (kernel.ready.empty() || kernel.ready.size() > kMostReadyKernels)
    return launch_error("configs", "expected 1 to ", kMostReadyKernels, ", found ", kernel.ready.size());
  std::set<std::vector<size_t>> seen;
  for (size_t i = 0; i < kernel.ready.size(); ++i) {
    const ReadyKernel& ready = kernel.ready[i];
    const std::string prefix = str("configs[", i, "].");
    bool fits = ready.places.size() == kernel.knobs.size();
    for (size_t k = 0; fits && k < ready.places.size(); ++k) fits = ready.places[k] < kernel.knobs[k].size();
    if (!fits) return launch_error(prefix + "config", "expected a value of each knob");
    if (!seen.insert(ready.places).second)
      return launch_error(prefix + "config", "the config ", config_text(kernel, ready), " is there twice");
    RETURN_IF_ERROR(check_parts(prefix, ready.launch));
    RETURN_IF_ERROR(check_image(kernel, prefix, ready));
    RETURN_IF_ERROR(launch_numbers(kernel, config_of_ready(kernel, ready), prefix, ready.launch).status());
  }
  if (ready_kernel(kernel, default_config(kernel)) == nullptr)
    return launch_error("default", "\"configs\" has no such config: ", default_config(kernel).to_text());
  return Status::ok();
}

}  // namespace

const ReadyKernel* ready_kernel(const SourceKernel& kernel, const Config& config) {
  std::vector<size_t> places;
  for (const SourceKnob& knob : kernel.knobs) places.push_back(place_in_knob(knob, config));
  const auto found = std::ranges::find(kernel.ready, places, &ReadyKernel::places);
  return found == kernel.ready.end() ? nullptr : &*found;
}

Result<ForeignLaunch> launch_of(const SourceKernel& kernel, const Config& config) {
  if (kernel.launch) return launch_numbers(kernel, config, "", *kernel.launch);
  const ReadyKernel* const ready = ready_kernel(kernel, config);
  if (ready == nullptr) return launch_error("configs", "none is for ", config.to_text());
  return launch_numbers(kernel, config, str("configs[", ready - kernel.ready.data(), "]."), ready->launch);
}

Status require_launch(const SourceKernel& kernel, const Formula::Space& known, int64_t most_shared_bytes,
                      ConfigSpace& space) {
  if (!kernel.ready.empty()) {
    std::vector<IntExpr> knobs;
    for (const SourceKnob& knob : kernel.knobs) knobs.push_back(known(knob.name)->expr);
    if (!knobs.empty()) space.require(is_one_of(kernel, knobs, 0, kernel.ready.size()));
    return Status::ok();
  }
  const SourceLaunch& launch = *kernel.launch;
  const auto within = [&](const std::string& key, const Formula& formula, int64_t least,
                          int64_t most) -> Result<IntExpr> {
    const Result<IntExpr> expr = formula.over(known);
    if (!expr) return launch_error(key, expr.message(), "; in \"", formula.text(), "\"");
    space.require(*expr >= least);
    space.require(*expr <= most);
    return *expr;
  };
  for (size_t i = 0; i < launch.grid.size(); ++i)
    RETURN_IF_ERROR(within(str("grid[", i, "]"), launch.grid[i], 1, kMostGrid[i]).status());
  IntExpr threads(1);
  for (size_t i = 0; i < launch.block.size(); ++i) {
    ASSIGN_OR_RETURN(const IntExpr axis, within(str("block[", i, "]"), launch.block[i], 1, kMostBlock[i]));
    threads = i == 0 ? axis : threads * axis;
  }
  space.require(threads <= kMostBlockThreads);
  if (launch.shared_bytes)
    RETURN_IF_ERROR(within("shared_bytes", *launch.shared_bytes, 0, most_shared_bytes).status());
  return Status::ok();
}

Status check_launch(const SourceKernel& kernel) {
  const bool is_cuda = kernel.language == SourceLanguage::kCuda;
  if (is_cuda != kernel.launch.has_value() || (!is_cuda && kernel.on_device()) == kernel.ready.empty())
    return launch_error(
        "language", "\"cuda\" has a grid and a block, \"ptx\" and \"cubin\" have configs, and no other has");
  if (!kernel.on_device()) return Status::ok();
  if (!is_cuda) return check_ready(kernel);
  RETURN_IF_ERROR(check_parts("", *kernel.launch));
  // All other configs that break a limit are not in the space.
  const Result<ForeignLaunch> first = launch_of(kernel, default_config(kernel));
  return first ? Status::ok() : first.status().with_context("the default config: ");
}

}  // namespace tuner
