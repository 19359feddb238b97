#include "tuner/study/cover_text.h"

#include "tuner/study/cover_header.h"
#include "tuner/study/cover_json.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner {

std::string cover_text(const CoverProblem& p, const CoverSolution& s, const CoverWish& wish) {
  std::string out;
  const size_t size = s.set.rows.size();
  append_format(
      out,
      "%s: %zu of %zu configs serve %zu places: worst %.1f %%, mean %.1f %% of the fastest known there\n",
      p.op.c_str(), size, p.configs.size(), p.places.size(), 100 * s.worst, 100 * s.mean);
  if (s.set.is_optimal())
    append_format(out, "  no set of %zu has a better worst case\n", size);
  else
    append_format(out, "  the search was not exhaustive: a set of %zu may reach %.1f %%\n", size,
                  100 * s.set.bound);
  if (wish.level && is_reached(s, wish))
    append_format(out,
                  s.at_least == static_cast<int>(size)
                      ? "  no smaller set is within %.4g %% everywhere\n"
                      : "  within %.4g %% everywhere; a smaller set may be, too\n",
                  100 * (1 - *wish.level));
  for (size_t k = 0; k < s.worst_of_fewer.size(); ++k)
    append_format(out, "%s%zu: %.1f %%", k == 0 ? "  worst of fewer configs: " : ", ", k + 1,
                  100 * s.worst_of_fewer[k]);
  if (!s.worst_of_fewer.empty()) append_format(out, "\n");
  for (size_t i = 0; i < size; ++i) {
    const CoverConfig& c = p.configs[static_cast<size_t>(s.set.rows[i])];
    const std::string mark = algorithm_mark(c.template_name);
    append_format(out, "  config %zu  %s%s%s  %s\n", i + 1,
                  c.template_name == "recorded" ? "" : c.template_name.c_str(), mark.empty() ? "" : ", ",
                  mark.c_str(), c.config.c_str());
  }
  append_format(out, "  which one\n%s  at each place\n", tree_text(s.tree, "    ").c_str());
  for (size_t c = 0; c < p.places.size(); ++c)
    append_format(out, "    %5.1f %%  config %d  %s\n", 100 * s.score[c], s.use[c] + 1,
                  p.places[c].name.c_str());
  if (s.unknown_pairs > 0)
    append_format(out, "  %d of %zu pairs of a config and a place were never measured and count as 0\n",
                  s.unknown_pairs, size * p.places.size());
  if (s.left_out.known > 0)
    append_format(
        out,
        "  places it was not made from (each left out in turn): worst %.1f %%, mean %.1f %%; %d of %d were "
        "measured\n",
        100 * s.left_out.worst, 100 * s.left_out.mean, s.left_out.known, s.left_out.columns);
  if (p.outdated > 0)
    append_format(out, "  %lld records left out: of templates or versions this program does not have\n",
                  static_cast<long long>(p.outdated));
  return out;
}

std::string unmeasured_text(const std::vector<std::string>& unmeasured, const std::string& tasks) {
  constexpr size_t kMostNamed = 3;
  std::string out;
  for (size_t i = 0; i < unmeasured.size() && i < kMostNamed; ++i)
    out += str("tuner: left out, nothing measured: ", unmeasured[i], "\n");
  if (unmeasured.size() > kMostNamed)
    out += str("tuner: left out, nothing measured: ", unmeasured.size() - kMostNamed, " more\n");
  if (!unmeasured.empty())
    out += str("To measure them: ", command_line("submit " + shell_quoted(tasks)), "\n");
  return out;
}

}  // namespace tuner
