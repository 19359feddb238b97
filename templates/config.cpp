// Config: values by knob name, its text, and reading it by handle.
#include <charconv>

#include "templates/knob.h"

namespace tuner {

int64_t Config::at(std::string_view knob) const {
  const auto found = values_.find(std::string(knob));
  CHECK(found != values_.end()) << "config \"" << to_text() << "\" has no knob " << knob;
  return found->second;
}

SplitFactors Config::operator[](const SplitKnob& knob) const {
  const int64_t inner = at(knob.name());
  CHECK(inner >= 1) << "knob " << knob.name() << ": factor " << inner;
  return {inner, (knob.extent() + inner - 1) / inner};
}
bool Config::operator[](const FlagKnob& knob) const { return at(knob.name()) != 0; }
int64_t Config::operator[](const ChoiceKnob& knob) const { return at(knob.name()); }
int64_t Config::operator[](const CategoryKnob& knob) const { return at(knob.name()); }

std::string Config::to_text() const {
  std::string text;
  for (const auto& [name, value] : values_) text += str(text.empty() ? "" : " ", name, "=", value);
  return text;
}

Result<Config> config_from_text(std::string_view text) {
  std::map<std::string, int64_t> values;
  size_t at = 0;
  while ((at = text.find_first_not_of(' ', at)) != std::string_view::npos) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end;
    const size_t equals = word.find('=');
    int64_t value = 0;
    bool good = equals != std::string_view::npos && equals > 0;
    if (good) {
      const char* last = word.data() + word.size();
      const auto [stop, error] = std::from_chars(word.data() + equals + 1, last, value);
      good = error == std::errc() && stop == last;
    }
    if (!good) return invalid_argument("config: expected knob=integer, found \"", word, "\"");
    if (!values.emplace(std::string(word.substr(0, equals)), value).second)
      return invalid_argument("config: knob ", word.substr(0, equals), " is given twice");
  }
  return Config(std::move(values));
}

}  // namespace tuner
