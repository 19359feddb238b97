// Reads formulas: one function a level of strength, each of which reads the level above.
#include "templates/space/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "templates/space/formula_node.h"

namespace tuner {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr int kMostLevels = 64;
constexpr int64_t kMostOperations = 512;

using Node = std::shared_ptr<const FormulaNode>;

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool goes_on_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> all() {
    if (text_.size() > kMostBytes)
      return invalid_argument("expected at most ", kMostBytes, " bytes, found ", text_.size());
    Node root = disjunction();
    if (error_ && place_ < text_.size()) refuse("an operator or the end");
    if (!error_) return error_;
    return root;
  }

 private:
  // --- characters ---
  void skip_blanks() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n'))
      ++place_;
  }
  bool next_is(std::string_view sign) {
    skip_blanks();
    return text_.substr(place_).starts_with(sign);
  }
  bool next_is_word(std::string_view word) {
    return next_is(word) &&
           (place_ + word.size() == text_.size() || !goes_on_name(text_[place_ + word.size()]));
  }
  bool take(std::string_view sign) {
    if (!next_is(sign)) return false;
    place_ += sign.size();
    return true;
  }
  bool take_word(std::string_view word) {
    if (!next_is_word(word)) return false;
    place_ += word.size();
    return true;
  }
  // Up to the next blank, for messages.
  std::string found() {
    skip_blanks();
    if (place_ == text_.size()) return "the end";
    size_t end = place_;
    if (goes_on_name(text_[end]))
      while (end < text_.size() && goes_on_name(text_[end])) ++end;
    else
      while (end < text_.size() && end < place_ + 3 && !goes_on_name(text_[end]) && text_[end] != ' ') ++end;
    return std::string(text_.substr(place_, std::min<size_t>(end - place_, 40)));
  }
  Node refuse(const std::string& expected) {
    if (error_)
      error_ = invalid_argument("column ", place_ + 1, ": expected ", expected, ", found ", found());
    return std::make_shared<FormulaNode>();
  }
  Node refuse_at(size_t column, const std::string& what) {
    if (error_) error_ = invalid_argument("column ", column, ": ", what);
    return std::make_shared<FormulaNode>();
  }

  // --- nodes ---
  Node node(FormulaNode made) {
    for (const Node& operand : made.operands) made.operations += operand->operations;
    if (made.operations > kMostOperations)
      return refuse_at(made.column, str("expected at most ", kMostOperations, " operations"));
    return std::make_shared<FormulaNode>(std::move(made));
  }
  Node apply(IntOp op, size_t column, const Node& a, const Node& b) {
    return node({.kind = FormulaKind::kApply, .op = op, .column = column, .operands = {a, b}});
  }
  Node logic(FormulaKind kind, size_t column, std::vector<Node> operands) {
    return node({.kind = kind, .column = column, .operands = std::move(operands)});
  }
  size_t column() {
    skip_blanks();
    return place_ + 1;
  }

  // --- levels, weakest first ---
  Node disjunction() {
    if (++level_ > kMostLevels)
      return refuse_at(column(), str("expected at most ", kMostLevels, " levels of parentheses"));
    Node left = conjunction();
    for (size_t at = column(); error_ && (take("||") || take_word("or")); at = column())
      left = logic(FormulaKind::kOr, at, {left, conjunction()});
    --level_;
    return left;
  }
  Node conjunction() {
    Node left = negation();
    for (size_t at = column(); error_ && (take("&&") || take_word("and")); at = column())
      left = logic(FormulaKind::kAnd, at, {left, negation()});
    return left;
  }
  // `not a == b` is not (a == b), as in Python; `!a == b` is (!a) == b, as in C: see sign().
  Node negation() {
    const size_t at = column();
    if (!take_word("not")) return comparison();
    if (++level_ > kMostLevels) return refuse_at(at, str("expected at most ", kMostLevels, " levels"));
    const Node operand = negation();
    --level_;
    return logic(FormulaKind::kNot, at, {operand});
  }
  std::optional<IntOp> take_comparison(bool& swapped) {
    swapped = false;
    if (take("<=")) return IntOp::kLe;
    if (take(">=")) return swapped = true, IntOp::kLe;
    if (take("==")) return IntOp::kEq;
    if (take("!=")) return IntOp::kNe;
    if (next_is("<<") || next_is(">>")) return std::nullopt;
    if (take("<")) return IntOp::kLt;
    if (take(">")) return swapped = true, IntOp::kLt;
    return std::nullopt;
  }
  Node comparison() {
    Node left = sum();
    Node whole;
    for (;;) {
      const size_t at = column();
      bool swapped = false;
      const std::optional<IntOp> op = error_ ? take_comparison(swapped) : std::nullopt;
      if (!op) return whole == nullptr ? left : whole;
      const Node right = sum();
      const Node link = swapped ? apply(*op, at, right, left) : apply(*op, at, left, right);
      whole = whole == nullptr ? link : logic(FormulaKind::kAnd, at, {whole, link});
      left = right;
    }
  }
  Node sum() {
    Node left = product();
    for (size_t at = column(); error_; at = column()) {
      if (take("+"))
        left = apply(IntOp::kAdd, at, left, product());
      else if (take("-"))
        left = apply(IntOp::kSub, at, left, product());
      else
        break;
    }
    return left;
  }
  Node product() {
    Node left = sign();
    for (size_t at = column(); error_; at = column()) {
      if (next_is("**")) break;
      if (take("//"))
        left = apply(IntOp::kDiv, at, left, sign());
      else if (next_is("/"))
        return refuse_at(at, "expected // (a quotient rounded down), found /");
      else if (take("*"))
        left = apply(IntOp::kMul, at, left, sign());
      else if (take("%"))
        left = apply(IntOp::kMod, at, left, sign());
      else
        break;
    }
    return left;
  }
  Node sign() {
    const size_t at = column();
    const bool minus = next_is("-"), no = next_is("!") && !next_is("!=");
    if (!minus && !no && !next_is("+")) return power();
    ++place_;
    if (++level_ > kMostLevels) return refuse_at(at, str("expected at most ", kMostLevels, " signs"));
    const Node operand = sign();
    --level_;
    if (minus) return logic(FormulaKind::kNegate, at, {operand});
    return no ? logic(FormulaKind::kNot, at, {operand}) : operand;
  }
  Node power() {
    const Node base = operand();
    const size_t at = column();
    if (!error_ || !take("**")) return base;
    if (++level_ > kMostLevels) return refuse_at(at, str("expected at most ", kMostLevels, " powers"));
    const Node exponent = sign();  // 2 ** -k, 2 ** 3 ** 2
    --level_;
    return apply(IntOp::kPow, at, base, exponent);
  }
  Node operand() {
    const size_t at = column();
    if (place_ == text_.size()) return refuse("a number, a name or (");
    const char c = text_[place_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number(at);
    if (c == '"' || c == '\'') return word(at, c);
    if (begins_name(c)) return name(at);
    if (!take("(")) return refuse("a number, a name or (");
    Node inner = disjunction();
    if (error_ && !take(")")) refuse(str("an operator or the ) of column ", at));
    return inner;
  }
  Node number(size_t at) {
    const bool hex = next_is("0x") || next_is("0X");
    const char* const begin = text_.data() + place_ + (hex ? 2 : 0);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range) return refuse_at(at, "expected a number of 64 bits");
    const bool ends = end == text_.data() + text_.size() || (!goes_on_name(*end) && *end != '.');
    const bool octal = !hex && end - begin > 1 && *begin == '0';
    if (error != std::errc() || *begin == '-' || !ends || octal)
      return refuse_at(at, str("expected an integer such as 64 or 0x40, found ", found()));
    place_ = static_cast<size_t>(end - text_.data());
    return node({.kind = FormulaKind::kNumber, .number = value, .column = at});
  }
  Node word(size_t at, char quote) {
    const size_t end = text_.find(quote, place_ + 1);
    if (end == std::string_view::npos)
      return refuse_at(at, "expected a word in quotes, found no second quote");
    FormulaNode made{.kind = FormulaKind::kWord, .column = at};
    made.text = text_.substr(place_ + 1, end - place_ - 1);
    place_ = end + 1;
    return node(std::move(made));
  }
  Node name(size_t at) {
    size_t end = place_;
    while (end < text_.size() && goes_on_name(text_[end])) ++end;
    const std::string_view found_name = text_.substr(place_, end - place_);
    if (found_name == "and" || found_name == "or" || found_name == "not")
      return refuse("a number, a name or (");
    place_ = end;
    if ((found_name == "min" || found_name == "max") && next_is("("))
      return extreme(at, found_name == "min" ? IntOp::kMin : IntOp::kMax);
    if (next_is("("))
      return refuse_at(at, str("expected min or max before (, found ", found_name.substr(0, 40)));
    FormulaNode made{.kind = FormulaKind::kName, .column = at};
    made.text = found_name;
    return node(std::move(made));
  }
  Node extreme(size_t at, IntOp op) {
    take("(");
    Node all = disjunction();
    while (error_ && take(",")) all = apply(op, at, all, disjunction());
    if (error_ && !take(")")) refuse("a comma or )");
    return all;
  }

  const std::string_view text_;
  size_t place_ = 0;
  int level_ = 0;
  Status error_;
};

void collect_names(const FormulaNode& node, std::vector<std::string>& names) {
  if (node.kind == FormulaKind::kName && std::ranges::find(names, node.text) == names.end())
    names.push_back(node.text);
  for (const auto& operand : node.operands) collect_names(*operand, names);
}

}  // namespace

Result<Formula> Formula::parse(std::string_view text) {
  ASSIGN_OR_RETURN(const Node root, Parser(text).all());
  Formula formula;
  formula.text_ = text;
  formula.root_ = root;
  collect_names(*root, formula.names_);
  return formula;
}

}  // namespace tuner
