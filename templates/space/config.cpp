// Config: values by knob name, its text, and reading it by handle.
#include <charconv>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "templates/space/knob.h"

namespace tuner {

int64_t Config::at(std::string_view knob) const {
  const auto found = values_.find(std::string(knob));
  CHECK(found != values_.end()) << "config \"" << to_text() << "\" has no knob " << knob;
  return found->second;
}

SplitFactors Config::operator[](const SplitKnob& knob) const {
  const int64_t inner = at(knob.name());
  CHECK(inner >= 1) << "knob " << knob.name() << ": factor " << inner;
  return {inner, ceil_div(knob.extent(), inner)};
}
bool Config::operator[](const FlagKnob& knob) const { return at(knob.name()) != 0; }
int64_t Config::operator[](const ChoiceKnob& knob) const { return at(knob.name()); }
int64_t Config::operator[](const CategoryKnob& knob) const { return at(knob.name()); }
std::vector<int> Config::operator[](const PermutationKnob& knob) const {
  return permutation_of_rank(at(knob.name()), knob.items());
}

std::vector<int> permutation_of_rank(int64_t rank, int n) {
  std::vector<int> left(static_cast<size_t>(n)), order;
  std::iota(left.begin(), left.end(), 0);
  int64_t orders = 1;
  for (int i = 2; i <= n; ++i) orders *= i;
  CHECK(rank >= 0 && rank < orders) << "rank " << rank << " of the " << orders << " orders of " << n
                                    << " items";
  for (int i = n; i >= 1; --i) {
    orders /= i;
    order.push_back(left[static_cast<size_t>(rank / orders)]);
    left.erase(left.begin() + rank / orders);
    rank %= orders;
  }
  return order;
}

int64_t rank_of_permutation(const std::vector<int>& order) {
  int64_t rank = 0;
  const auto n = static_cast<int>(order.size());
  std::vector<bool> used(order.size(), false);
  for (int i = 0; i < n; ++i) {
    const int item = order[static_cast<size_t>(i)];
    CHECK(item >= 0 && item < n && !used[static_cast<size_t>(item)])
        << "item " << item << " of an order of " << n;
    used[static_cast<size_t>(item)] = true;
    int smaller = 0;
    for (int j = 0; j < item; ++j) smaller += used[static_cast<size_t>(j)] ? 0 : 1;
    rank = rank * (n - i) + smaller;
  }
  return rank;
}

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
