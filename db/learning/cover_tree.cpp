#include "db/learning/cover_tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "templates/workload/key_document.h"

namespace tuner {
namespace {

bool read_integer(std::string_view text, int64_t& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

bool answers_yes(const CoverTree::Node& node, const CoverFeatures& f) {
  return node.is_number ? f.number(node.feature) <= node.at_most : f.word(node.feature) == node.is;
}

// Copies the part of `from` below node `at` that a known word leaves.
int copy_given(const CoverTree& from, int at, std::string_view name, std::string_view value, CoverTree& to) {
  const CoverTree::Node* node = &from.nodes[static_cast<size_t>(at)];
  while (node->use < 0 && !node->is_number && node->feature == name) {
    at = node->is == value ? node->yes : node->no;
    node = &from.nodes[static_cast<size_t>(at)];
  }
  const auto copy = to.nodes.size();
  to.nodes.push_back(*node);
  if (node->use < 0) {
    const int yes = copy_given(from, node->yes, name, value, to);
    const int no = copy_given(from, node->no, name, value, to);
    to.nodes[copy].yes = yes;
    to.nodes[copy].no = no;
  }
  return static_cast<int>(copy);
}

class Grower {
 public:
  Grower(const std::vector<CoverFeatures>& columns, const std::vector<std::vector<double>>& scores,
         double level)
      : columns_(columns), scores_(scores), level_(level) {
    for (const CoverFeatures& f : columns) {
      for (const auto& [name, value] : f.numbers) numbers_.insert(name);
      for (const auto& [name, value] : f.words) words_.insert(name);
    }
  }

  CoverTree grow() {
    std::vector<int> all(columns_.size());
    std::iota(all.begin(), all.end(), 0);
    add(all);
    const int root = without_idle_questions(0);
    CoverTree tree;
    copy_given(tree_, root, "", "", tree);
    return tree;
  }

 private:
  struct Leaf {
    int use = 0;
    double cost = 0;  // what is lost against the whole set, summed over the columns
  };
  struct Split {
    CoverTree::Node question;
    std::vector<int> yes, no;
    double cost = 0;
  };

  // The config that serves these columns best. One that lets a column fall below the level costs more than
  // all that can be lost otherwise.
  Leaf best_leaf(const std::vector<int>& columns) const {
    const double penalty = static_cast<double>(columns_.size()) + 1;
    Leaf best{.use = -1};
    for (size_t i = 0; i < scores_.front().size(); ++i) {
      double cost = 0;
      for (const int c : columns) {
        const std::vector<double>& row = scores_[static_cast<size_t>(c)];
        cost += *std::max_element(row.begin(), row.end()) - row[i] + (row[i] < level_ ? penalty : 0);
      }
      if (best.use < 0 || cost < best.cost) best = {static_cast<int>(i), cost};
    }
    return best;
  }

  void consider(CoverTree::Node question, const std::vector<int>& columns, Split& best) const {
    Split split{.question = std::move(question)};
    for (const int c : columns)
      (answers_yes(split.question, columns_[static_cast<size_t>(c)]) ? split.yes : split.no).push_back(c);
    if (split.yes.empty() || split.no.empty()) return;
    split.cost = best_leaf(split.yes).cost + best_leaf(split.no).cost;
    if (best.yes.empty() || split.cost < best.cost) best = std::move(split);
  }

  Split best_split(const std::vector<int>& columns) const {
    Split best;
    for (const std::string& name : numbers_) {
      std::set<int64_t> values;
      for (const int c : columns) values.insert(columns_[static_cast<size_t>(c)].number(name));
      for (auto at = values.begin(); at != values.end() && std::next(at) != values.end(); ++at) {
        // Half way between two seen sizes, by ratio: a shape between them goes to the nearer.
        const auto low = static_cast<double>(*at), high = static_cast<double>(*std::next(at));
        const double middle = low > 0 ? std::sqrt(low * high) : (low + high) / 2;
        const int64_t at_most = std::clamp(static_cast<int64_t>(middle), *at, *std::next(at) - 1);
        consider({.feature = name, .is_number = true, .at_most = at_most}, columns, best);
      }
    }
    for (const std::string& name : words_) {
      std::set<std::string> values;
      for (const int c : columns) values.insert(columns_[static_cast<size_t>(c)].word(name));
      for (const std::string& value : values)
        consider({.feature = name, .is_number = false, .is = value}, columns, best);
    }
    return best;
  }

  int add(const std::vector<int>& columns) {
    constexpr double kMayLose = 0.005;  // of the score, on average
    const auto at = tree_.nodes.size();
    tree_.nodes.emplace_back();
    const Leaf leaf = best_leaf(columns);
    Split split;
    if (leaf.cost > kMayLose * static_cast<double>(columns.size())) split = best_split(columns);
    if (split.yes.empty()) {
      tree_.nodes[at].use = leaf.use;
      return static_cast<int>(at);
    }
    tree_.nodes[at] = std::move(split.question);
    const int yes = add(split.yes);
    const int no = add(split.no);
    tree_.nodes[at].yes = yes;
    tree_.nodes[at].no = no;
    return static_cast<int>(at);
  }

  // The node that answers as `at` does, when questions whose answer makes no difference are passed over: both
  // answers are one config, or "at most 9: A, at most 12: A".
  int without_idle_questions(int at) {
    CoverTree::Node& n = tree_.nodes[static_cast<size_t>(at)];
    if (n.use >= 0) return at;
    n.yes = without_idle_questions(n.yes);
    n.no = without_idle_questions(n.no);
    const CoverTree::Node& yes = tree_.nodes[static_cast<size_t>(n.yes)];
    const CoverTree::Node& no = tree_.nodes[static_cast<size_t>(n.no)];
    if (yes.use < 0) return at;
    if (yes.use == no.use) return n.yes;
    const bool asks_on =
        n.is_number && no.use < 0 && no.is_number && no.feature == n.feature && no.at_most >= n.at_most;
    return asks_on && tree_.nodes[static_cast<size_t>(no.yes)].use == yes.use ? n.no : at;
  }

  const std::vector<CoverFeatures>& columns_;
  const std::vector<std::vector<double>>& scores_;
  const double level_;
  std::set<std::string> numbers_, words_;
  CoverTree tree_;
};

}  // namespace

int64_t CoverFeatures::number(std::string_view name) const {
  const auto at = numbers.find(name);
  return at == numbers.end() ? 0 : at->second;
}
const std::string& CoverFeatures::word(std::string_view name) const {
  static const std::string none;
  const auto at = words.find(name);
  return at == words.end() ? none : at->second;
}

CoverFeatures features_of_key(std::string_view key) {
  CoverFeatures features;
  // Of a user's kernel its sizes: words repeat them, and its digest is of one task alone.
  const bool numbers_only = document_of_key(key).has_value();
  for (size_t at = 0; at < key.size();) {
    const size_t end = std::min(key.find(' ', at), key.size());
    const std::string_view token = key.substr(at, end - at);
    at = end + 1;
    const size_t equals = token.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;  // "v1", "conv2d"
    const std::string name(token.substr(0, equals));
    const std::string_view value = token.substr(equals + 1);
    if (name == "const") continue;
    std::vector<int64_t> numbers;
    bool all = true;
    for (size_t from = 0; all && from <= value.size();) {
      const size_t comma = std::min(value.find(',', from), value.size());
      all = read_integer(value.substr(from, comma - from), numbers.emplace_back());
      from = comma + 1;
    }
    if (!all) {
      if (!numbers_only) features.words[name] = value;
    } else if (numbers.size() == 1)
      features.numbers[name] = numbers[0];
    else
      for (size_t i = 0; i < numbers.size(); ++i) features.numbers[str(name, "_", i)] = numbers[i];
  }
  return features;
}

int CoverTree::choose(const CoverFeatures& features) const {
  const Node* node = &nodes.front();
  while (node->use < 0)
    node = &nodes[static_cast<size_t>(answers_yes(*node, features) ? node->yes : node->no)];
  return node->use;
}

CoverTree CoverTree::given(std::string_view name, std::string_view value) const {
  CoverTree tree;
  copy_given(*this, 0, name, value, tree);
  return tree;
}

CoverTree grow_cover_tree(const std::vector<CoverFeatures>& columns,
                          const std::vector<std::vector<double>>& scores, double level) {
  CHECK(!columns.empty() && columns.size() == scores.size() && !scores.front().empty())
      << "a tree of " << columns.size() << " columns with scores of " << scores.size();
  return Grower(columns, scores, level).grow();
}

}  // namespace tuner
