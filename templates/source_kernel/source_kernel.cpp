#include "templates/source_kernel/source_kernel.h"

#include <algorithm>

#include "templates/source_kernel/flag_rule.h"

namespace tuner {

std::string_view language_name(SourceLanguage language) {
  static constexpr std::string_view kNames[] = {"c", "c++", "command"};
  return kNames[static_cast<size_t>(language)];
}

int64_t SourceArgument::elements() const {
  int64_t all = 1;
  for (const int64_t extent : shape) all *= extent;
  return all;
}

const SourceFile* SourceKernel::file(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &SourceFile::name);
  return found == files.end() ? nullptr : &*found;
}

Status SourceKernel::declare(ConfigSpace& space) const {
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
  return Status::ok();
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

std::vector<std::string> SourceKernel::flags_of(const Config& config) const {
  std::vector<std::string> words;
  for (const std::string& flag : flags) words.push_back(expanded(flag, config));
  return words;
}

}  // namespace tuner
