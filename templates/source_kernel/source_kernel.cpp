#include "templates/source_kernel/source_kernel.h"

#include <algorithm>

#include "templates/source_kernel/flag_rule.h"

namespace tuner {

int64_t SourceArgument::elements() const {
  int64_t all = 1;
  for (const int64_t extent : shape) all *= extent;
  return all;
}

const SourceFile* SourceKernel::file(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &SourceFile::name);
  return found == files.end() ? nullptr : &*found;
}

bool SourceKernel::is_ready_file(std::string_view name) const {
  return std::ranges::find(ready, name, &ReadyKernel::file) != ready.end();
}

std::string SourceKernel::cuda_compiler() const {
  const std::string first = compiler.substr(0, compiler.find(','));
  return language == SourceLanguage::kCuda && is_nvcc(first) ? first : kNvrtcCompiler;
}

std::string SourceKernel::host_compiler() const {
  const std::string own = cuda_compiler();
  if (own == kNvrtcCompiler) return compiler;
  return compiler.substr(std::min(own.size() + 1, compiler.size()));
}

bool SourceKernel::is_cxx(std::string_view file_name) const {
  return on_device() ? !file_name.ends_with(".c") : language == SourceLanguage::kCxx;
}

Result<std::map<std::string, Formula::InSpace>> declare_knobs(const std::vector<SourceKnob>& knobs,
                                                              const std::vector<Formula>& constraints,
                                                              const std::map<std::string, int64_t>& sizes,
                                                              ConfigSpace& space) {
  std::map<std::string, Formula::InSpace> names;
  for (const auto& [name, value] : sizes) names.insert({name, {IntExpr(value), {value}, {}}});
  for (const SourceKnob& knob : knobs) {
    if (knob.words.empty()) {
      const ChoiceKnob handle = space.choice(knob.name, knob.numbers).try_first(knob.numbers[knob.first]);
      names.insert({knob.name, {handle, knob.numbers, {}}});
    } else {
      const CategoryKnob handle = space.category(knob.name, knob.words).try_first(knob.words[knob.first]);
      names.insert({knob.name, {handle, {0, static_cast<int64_t>(knob.words.size()) - 1}, knob.words}});
    }
  }
  const auto known = [&names](const std::string& name) -> std::optional<Formula::InSpace> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Result<IntExpr> expr = constraints[i].over(known);
    if (!expr)
      return invalid_argument("constraints[", i, "]: ", expr.message(), "; in \"", constraints[i].text(),
                              "\"");
    space.require(*expr);
  }
  return names;
}

Status SourceKernel::declare(ConfigSpace& space, int64_t most_shared_bytes) const {
  ASSIGN_OR_RETURN(const auto names, declare_knobs(knobs, constraints, sizes, space));
  if (!on_device()) return Status::ok();
  const auto known = [&names](const std::string& name) -> std::optional<Formula::InSpace> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
  return require_launch(*this, known, most_shared_bytes, space);
}

namespace {

std::string text_of(const SourceKnob& knob, const Config& config) {
  const int64_t value = config.at(knob.name);
  return knob.words.empty() ? std::to_string(value) : knob.words.at(static_cast<size_t>(value));
}

}  // namespace

std::vector<std::string> SourceKernel::definitions(const Config& config) const {
  std::vector<std::string> words;
  for (const SourceKnob& knob : knobs) words.push_back("-D" + knob.name + "=" + text_of(knob, config));
  return words;
}

std::string SourceKernel::expanded(const std::string& text, const Config& config) const {
  return expanded_flag(text, [&](const std::string& name) {
    const auto knob = std::ranges::find(knobs, name, &SourceKnob::name);
    return knob == knobs.end() ? std::to_string(sizes.at(name)) : text_of(*knob, config);
  });
}

std::vector<std::string> SourceKernel::expanded(const std::vector<std::string>& texts,
                                                const Config& config) const {
  std::vector<std::string> words;
  for (const std::string& text : texts) words.push_back(expanded(text, config));
  return words;
}

}  // namespace tuner
