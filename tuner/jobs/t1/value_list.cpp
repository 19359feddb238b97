#include "tuner/jobs/t1/value_list.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler_core/base/printable.h"
#include "templates/space/formula.h"

namespace tuner::t1 {
namespace {

constexpr int kMostLevels = 8;
constexpr char kExpected[] = "expected a list such as [1, 2, 4], range(1, 9) or [2**i for i in range(5)]";

// A part of the text. `at`: where it begins, counted from 0, for messages.
struct Part {
  std::string_view text;
  size_t at = 0;

  Part sub(size_t from, size_t count = std::string_view::npos) const {
    return {text.substr(from, count), at + from};
  }
  Part trimmed() const {
    constexpr std::string_view kBlanks = " \t\r\n";
    const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
    const size_t last = text.find_last_not_of(kBlanks);
    return sub(first, last == std::string_view::npos ? 0 : last + 1 - first);
  }
};

template <class... Args>
Status wrong(const Part& part, const Args&... what) {
  return invalid_argument("column ", part.at + 1, ": ", what...);
}
std::string found(const Part& part) {
  return part.text.empty() ? "the end" : printable(part.text.substr(0, 40));
}

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Calls visit(place) for each character that stands in no bracket and no quotes, until it returns false.
// InvalidArgument: a bracket or quote without its other.
template <class Visit>
Status at_top(const Part& part, const Visit& visit) {
  std::string open;
  char quote = 0;
  size_t quoted_at = 0;
  for (size_t i = 0; i < part.text.size(); ++i) {
    const char c = part.text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') {
      quote = c;
      quoted_at = i;
    } else if (c == '(' || c == '[') {
      open += c == '(' ? ')' : ']';
    } else if (c == ')' || c == ']') {
      if (open.empty() || open.back() != c) return wrong(part.sub(i), "a ", c, " that closes nothing");
      open.pop_back();
    } else if (open.empty() && !visit(i)) {
      return Status::ok();
    }
  }
  if (quote != 0) return wrong(part.sub(quoted_at), "expected a word in quotes, found no second quote");
  if (!open.empty()) return wrong(part.sub(part.text.size()), "expected ", open.back(), ", found the end");
  return Status::ok();
}

Result<std::vector<Part>> split(const Part& part, char separator) {
  std::vector<Part> parts;
  size_t begin = 0;
  RETURN_IF_ERROR(at_top(part, [&](size_t i) {
    if (part.text[i] == separator) {
      parts.push_back(part.sub(begin, i - begin));
      begin = i + 1;
    }
    return true;
  }));
  parts.push_back(part.sub(begin));
  return parts;
}

// Where the word stands in no brackets; npos: nowhere.
Result<size_t> find_word(const Part& part, std::string_view word) {
  size_t place = std::string_view::npos;
  RETURN_IF_ERROR(at_top(part, [&](size_t i) {
    const std::string_view rest = part.text.substr(i);
    const bool begins = i == 0 || !in_name(part.text[i - 1]);
    const bool ends =
        rest.size() == word.size() || (rest.size() > word.size() && !in_name(rest[word.size()]));
    if (begins && ends && rest.starts_with(word)) place = i;
    return place == std::string_view::npos;
  }));
  return place;
}

// What `name(`...`)` holds, where that is the whole part.
std::optional<Part> inside(const Part& part, std::string_view begin, char end) {
  if (!part.text.starts_with(begin) || !part.text.ends_with(end) || part.text.size() <= begin.size())
    return std::nullopt;
  return part.sub(begin.size(), part.text.size() - begin.size() - 1);
}

// The message of a formula that is a part, with the columns of the whole text.
Status moved(const Part& part, const Status& of_formula) {
  constexpr std::string_view kColumn = "column ";
  const std::string_view message = of_formula.message();
  size_t column = 0;
  if (!message.starts_with(kColumn)) return wrong(part, printable(message));
  const auto [end, error] =
      std::from_chars(message.data() + kColumn.size(), message.data() + message.size(), column);
  const std::string_view rest = message.substr(static_cast<size_t>(end - message.data()));
  if (error != std::errc() || !rest.starts_with(": ")) return wrong(part, printable(message));
  return wrong(Part{{}, part.at + column - 1}, printable(rest.substr(2)));
}

std::optional<Formula::Value> nothing(const std::string&) { return std::nullopt; }

Result<int64_t> integer(const Part& part) {
  const Result<Formula> formula = Formula::parse(part.text);
  if (!formula) return moved(part, formula.status());
  const Result<int64_t> value = formula->value(nothing);
  if (!value) return moved(part, value.status());
  return *value;
}

class Lists {
 public:
  // A sum of lists.
  Result<std::vector<Value>> sum(const Part& part) {
    if (++level_ > kMostLevels) return wrong(part, "expected at most ", kMostLevels, " levels of brackets");
    ASSIGN_OR_RETURN(const std::vector<Part> terms, split(part, '+'));
    std::vector<Value> all;
    for (const Part& each : terms) {
      ASSIGN_OR_RETURN(const std::vector<Value> values, term(each.trimmed()));
      if (all.size() + values.size() > kMostValues) return too_many(part);
      all.insert(all.end(), values.begin(), values.end());
    }
    --level_;
    return all;
  }

 private:
  static Status too_many(const Part& part) {
    return wrong(part, "expected at most ", kMostValues, " values");
  }

  Result<std::vector<Value>> term(const Part& part) {
    if (const auto of = inside(part, "list(", ')')) return sum(of->trimmed());
    if (const auto of = inside(part, "tuple(", ')')) return sum(of->trimmed());
    if (const auto of = inside(part, "range(", ')')) return range(*of);
    if (const auto of = inside(part, "[", ']')) return elements(*of);
    if (const auto of = inside(part, "(", ')')) {
      ASSIGN_OR_RETURN(const std::vector<Part> parts, split(*of, ','));
      return parts.size() > 1 ? elements(*of) : sum(of->trimmed());
    }
    return wrong(part, kExpected, ", found ", found(part));
  }

  static Result<std::vector<Value>> range(const Part& part) {
    ASSIGN_OR_RETURN(const std::vector<Part> parts, split(part, ','));
    if (parts.size() > 3)
      return wrong(part, "expected range(STOP), range(START, STOP) or range(START, STOP, STEP)");
    std::vector<int64_t> numbers;
    for (const Part& each : parts) {
      ASSIGN_OR_RETURN(const int64_t number, integer(each.trimmed()));
      numbers.push_back(number);
    }
    const int64_t start = numbers.size() == 1 ? 0 : numbers[0];
    const int64_t stop = numbers.size() == 1 ? numbers[0] : numbers[1];
    const int64_t step = numbers.size() == 3 ? numbers[2] : 1;
    if (step == 0) return wrong(part, "expected a step that is not 0");
    std::vector<Value> values;
    for (__int128 v = start; step > 0 ? v < stop : v > stop; v += step) {
      if (values.size() == kMostValues) return too_many(part);
      values.emplace_back(static_cast<int64_t>(v));
    }
    return values;
  }

  Result<std::vector<Value>> elements(const Part& part) {
    ASSIGN_OR_RETURN(const size_t at, find_word(part, "for"));
    if (at != std::string_view::npos) return comprehension(part, at);
    ASSIGN_OR_RETURN(std::vector<Part> parts, split(part, ','));
    if (parts.back().trimmed().text.empty())
      parts.pop_back();  // a comma behind the last one, or nothing at all
    if (parts.size() > kMostValues) return too_many(part);
    std::vector<Value> values;
    for (const Part& each : parts) {
      ASSIGN_OR_RETURN(Value value, element(each.trimmed()));
      values.push_back(std::move(value));
    }
    return values;
  }

  static Result<Value> element(const Part& part) {
    const std::string_view text = part.text;
    if (text == "True") return Value(int64_t{1});
    if (text == "False") return Value(int64_t{0});
    const char quote = text.empty() ? '\0' : text.front();
    if ((quote == '\'' || quote == '"') && text.find(quote, 1) == text.size() - 1 && text.size() > 1) {
      if (text.find('\\') != std::string_view::npos)
        return wrong(part, "expected a word without \\, found ", found(part));
      return Value(std::string(text.substr(1, text.size() - 2)));
    }
    const char* const end = text.data() + text.size();
    int64_t whole = 0;
    if (const auto read = std::from_chars(text.data(), end, whole);
        read.ec == std::errc() && read.ptr == end && (text.front() != '0' || text.size() == 1))
      return Value(whole);
    double number = 0;
    if (const auto read = std::from_chars(text.data(), end, number);
        read.ec == std::errc() && read.ptr == end && std::isfinite(number) &&
        text.find_first_of(".eE") != std::string_view::npos)
      return Value(number);
    ASSIGN_OR_RETURN(const int64_t computed, integer(part));
    return Value(computed);
  }

  // EXPRESSION for NAME in LIST if CONDITION
  Result<std::vector<Value>> comprehension(const Part& part, size_t at) {
    const Part head = part.sub(0, at).trimmed();
    Part rest = part.sub(at + 3).trimmed();
    size_t end = 0;
    while (end < rest.text.size() && in_name(rest.text[end])) ++end;
    const std::string name(rest.text.substr(0, end));
    if (name.empty()) return wrong(rest, "expected a name behind for, found ", found(rest));
    rest = rest.sub(end).trimmed();
    ASSIGN_OR_RETURN(const size_t in, find_word(rest, "in"));
    if (in != 0) return wrong(rest, "expected in, found ", found(rest));
    rest = rest.sub(2);
    ASSIGN_OR_RETURN(const size_t again, find_word(rest, "for"));
    if (again != std::string_view::npos)
      return wrong(rest.sub(again), "expected one for, found a second one");
    ASSIGN_OR_RETURN(const size_t if_at, find_word(rest, "if"));
    const bool filters = if_at != std::string_view::npos;
    const Part condition = filters ? rest.sub(if_at + 2).trimmed() : Part();
    ASSIGN_OR_RETURN(const std::vector<Value> over, sum(rest.sub(0, if_at).trimmed()));

    const Result<Formula> made = Formula::parse(head.text);
    if (!made) return moved(head, made.status());
    const Result<Formula> kept = Formula::parse(filters ? condition.text : "1");
    if (!kept) return moved(condition, kept.status());
    std::vector<Value> values;
    for (const Value& each : over) {
      const auto known = [&](const std::string& asked) -> std::optional<Formula::Value> {
        if (asked != name) return std::nullopt;
        if (const auto* word = std::get_if<std::string>(&each)) return Formula::Value(*word);
        if (const auto* number = std::get_if<int64_t>(&each)) return Formula::Value(*number);
        return std::nullopt;
      };
      const Result<int64_t> keep = kept->value(known);
      if (!keep) return moved(condition, keep.status());
      if (*keep == 0) continue;
      if (head.text == name) {
        values.push_back(each);
        continue;
      }
      const Result<int64_t> value = made->value(known);
      if (!value) return moved(head, value.status());
      values.emplace_back(*value);
    }
    return values;
  }

  int level_ = 0;
};

}  // namespace

Result<std::vector<Value>> value_list(std::string_view text) {
  if (text.size() > kMostListBytes)
    return invalid_argument("expected at most ", kMostListBytes, " bytes, found ", text.size());
  const Part whole{text, 0};
  ASSIGN_OR_RETURN(std::vector<Value> values, Lists().sum(whole.trimmed()));
  if (values.empty()) return wrong(whole.trimmed(), "expected at least one value, found none");
  return values;
}

std::string text_of(const Value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), std::get<double>(value));
  return error == std::errc() ? std::string(digits, end) : "";
}

}  // namespace tuner::t1
