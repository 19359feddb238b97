// The text of fragments, both ways.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "compiler_core/graph/fragment.h"
#include "compiler_core/graph/operator.h"

namespace tuner::graph {
namespace {

constexpr int64_t kNewest = 23;
// Operators whose meaning an operator set changed: the first set of today's meaning.
constexpr std::pair<std::string_view, int64_t> kChanged[] = {
    {"Softmax", 13}, {"LogSoftmax", 13}, {"Hardmax", 13}, {"GroupNormalization", 21}, {"Resize", 11}};
// The set that stands for the node's: that of all nodes which mean the same.
int64_t canonical_set(const Node& node) {
  for (const auto& [op, first] : kChanged)
    if (node.op == op && node.operator_set < first) return first - 1;
  return kNewest;
}

// --- writing ---

template <class Number>
std::string shortest(Number value) {
  std::array<char, 40> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}
// float32 numbers as short as they read back, with f; others as doubles.
std::string text_of(double x) {
  const auto single = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(single) == x) return shortest(single) + "f";
  const std::string text = shortest(x);
  return text.find_first_of(".ei") == std::string::npos ? text + ".0" : text;
}
std::string text_of(int64_t x) { return str(x); }
std::string text_of(const std::string& word) { return str('"', word, '"'); }
template <class Item>
std::string text_of(const std::vector<Item>& list) {
  std::string text;
  for (const Item& item : list) text += (text.empty() ? "" : ";") + text_of(item);
  return str("[", text, "]");
}
std::string type_text(const TensorType& type) {
  std::string shape;
  for (const int64_t extent : type.shape) shape += str(shape.empty() ? "" : ",", extent);
  return str(dtype_name(type.dtype), "[", shape, "]");
}
std::string constant_text(const Value& value) {
  std::string text;
  const auto add = [&](const std::string& number) { text += (text.empty() ? "" : ";") + number; };
  if (is_float(value.type.dtype))
    for (const double x : value.constant->numbers(value.type.dtype))
      add(value.type.dtype == DType::kFloat64 ? shortest(x) : shortest(static_cast<float>(x)));
  else
    for (const int64_t x : value.constant->integers(value.type.dtype)) add(str(x));
  return str(type_text(value.type), "(", text, ")");
}

// --- reading ---

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { graph_.name = "fragment"; }

  Result<Graph> read() {
    take("in=");
    if (!take_if("none")) do {
        const TensorType type = read_type();
        if (failed()) return why_;
        graph_.inputs.push_back(add({"", type, std::nullopt}));
        numbered_.push_back(graph_.inputs.back());
      } while (take_if(","));
    while (!failed() && at_ < text_.size()) {
      take(" ");
      read_node();
    }
    if (!failed() && graph_.nodes.empty()) refuse("an operator");
    if (failed()) return why_;
    graph_.outputs = {numbered_.back()};
    graph_.output_names = {"out"};
    return std::move(graph_);
  }

 private:
  static constexpr int64_t kMostExtent = int64_t{1} << 31, kMostBytes = int64_t{1} << 40;
  static constexpr size_t kMostItems = 4096;

  bool failed() const { return !why_.is_ok(); }
  void refuse(std::string_view expected) {
    if (failed()) return;
    why_ = invalid_argument("fragment: at character ", at_ + 1, ": expected ", expected, ", found ",
                            at_ < text_.size() ? str('"', text_.substr(at_, 12), '"') : "the end");
  }
  bool take_if(std::string_view word) {
    if (failed() || !text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void take(std::string_view word) {
    if (!take_if(word)) refuse(str('"', word, '"'));
  }
  std::string_view take_while(bool (*wanted)(char)) {
    const size_t begin = at_;
    while (!failed() && at_ < text_.size() && wanted(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
  }
  static bool is_number(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'i' || c == 'n' ||
           c == 'f' || c == 'a';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  int64_t read_integer(int64_t least, int64_t most) {
    int64_t value = 0;
    const size_t begin = at_;
    const std::string_view word = take_while([](char c) { return is_digit(c) || c == '-'; });
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < least ||
        value > most) {
      at_ = begin;
      refuse(str("an integer from ", least, " to ", most));
    }
    return value;
  }
  enum class Real : uint8_t { kSingle, kDouble, kMarked };  // kMarked: a float32 number ends in f, "inff" too
  double read_real(Real kind) {
    const size_t begin = at_;
    std::string_view word = take_while(is_number);
    const bool marked = kind == Real::kMarked && word.ends_with('f') && word != "inf" && word != "-inf";
    if (marked) word.remove_suffix(1);
    const bool single = marked || kind == Real::kSingle;
    double value = 0;
    float narrow = 0;
    const char* const last = word.data() + word.size();
    const auto [end, error] =
        single ? std::from_chars(word.data(), last, narrow) : std::from_chars(word.data(), last, value);
    if (word.empty() || error != std::errc() || end != last) {
      at_ = begin;
      refuse("a number");
      return 0;
    }
    return single ? static_cast<double>(narrow) : value;
  }
  TensorType read_type() {
    TensorType type;
    const size_t begin = at_;
    const std::string_view name = take_while(is_word);
    if (const auto dtype = dtype_from_name(name)) {
      type.dtype = *dtype;
    } else {
      at_ = begin;
      refuse("a type such as float32[8,4]");
      return type;
    }
    take("[");
    int64_t bytes = dtype_bytes(type.dtype);
    if (!take_if("]")) {
      do {
        type.shape.push_back(read_integer(1, kMostExtent));
        if (!failed() && __builtin_mul_overflow(bytes, type.shape.back(), &bytes)) bytes = kMostBytes + 1;
        if (bytes > kMostBytes) refuse("at most 2^40 bytes before it");
        if (type.shape.size() > kMostItems) refuse("fewer dimensions before it");
      } while (!failed() && take_if(","));
      take("]");
    }
    return type;
  }
  ValueId add(Value value) {
    graph_.values.push_back(std::move(value));
    return graph_.values.size() - 1;
  }

  ValueId read_constant() {
    Value value{"", read_type(), std::nullopt};
    take("(");
    if (failed()) return kNoValue;
    if (value.type.elements() > static_cast<int64_t>(kMostItems)) {
      refuse("a constant of fewer elements before it");
      return kNoValue;
    }
    std::vector<double> reals;
    std::vector<int64_t> integers;
    for (int64_t n = value.type.elements(); n > 0 && !failed(); --n) {
      if (is_float(value.type.dtype))
        reals.push_back(read_real(value.type.dtype == DType::kFloat64 ? Real::kDouble : Real::kSingle));
      else
        integers.push_back(read_integer(INT64_MIN, INT64_MAX));
      if (n > 1) take(";");
    }
    take(")");
    if (failed()) return kNoValue;
    value.constant = is_float(value.type.dtype) ? Constant::of(reals, value.type.dtype)
                                                : Constant::of(integers, value.type.dtype);
    return add(std::move(value));
  }
  ValueId read_operand() {
    if (take_if("_")) return kNoValue;
    if (at_ < text_.size() && is_digit(text_[at_])) {
      const int64_t number = read_integer(0, std::ssize(numbered_) - 1);
      return failed() ? kNoValue : numbered_[static_cast<size_t>(number)];
    }
    return read_constant();
  }

  std::string read_word() {
    take("\"");
    std::string word(take_while([](char c) { return c >= ' ' && c <= '~' && c != '"'; }));
    take("\"");
    return word;
  }
  bool at_real() const {
    size_t end = at_;
    while (end < text_.size() && is_number(text_[end])) ++end;
    return text_.substr(at_, end - at_).find_first_of(".einf") != std::string_view::npos;
  }
  template <class Item, class Read>
  std::vector<Item> read_list(const Read& read) {
    std::vector<Item> list;
    do {
      list.push_back(read());
      if (list.size() > kMostItems) refuse("a shorter list before it");
    } while (!failed() && take_if(";"));
    take("]");
    return list;
  }
  Attribute read_attribute() {
    const auto integer = [&] { return read_integer(INT64_MIN, INT64_MAX); };
    const auto real = [&] { return read_real(Real::kMarked); };
    if (take_if("[")) {
      if (take_if("]")) return std::vector<int64_t>();
      if (at_ < text_.size() && text_[at_] == '"') return read_list<std::string>([&] { return read_word(); });
      if (at_real()) return read_list<double>(real);
      return read_list<int64_t>(integer);
    }
    if (at_ < text_.size() && text_[at_] == '"') return read_word();
    if (at_real()) return real();
    return integer();
  }

  void read_node() {
    Node node{.op = std::string(take_while(is_word))};
    if (node.op.empty()) refuse("an operator");
    if (take_if("@")) node.operator_set = read_integer(7, kNewest);
    int64_t place = 0, results = 1;
    if (take_if(":")) {
      place = read_integer(0, kMostItems);
      take("/");
      results = read_integer(1, kMostItems);
      if (place >= results) refuse("a result that is there before it");
    }
    take("(");
    if (!take_if(")")) {
      do node.inputs.push_back(read_operand());
      while (!failed() && take_if(",") && node.inputs.size() < kMostItems);
      take(")");
    }
    if (take_if("{")) {
      do {
        const std::string name(take_while(is_word));
        take("=");
        if (failed() || !node.attributes.emplace(name, read_attribute()).second)
          refuse("each attribute once before it");
      } while (!failed() && take_if(","));
      take("}");
    }
    if (failed()) return;
    node.outputs.assign(static_cast<size_t>(results), kNoValue);
    // Results that are not wanted need a value while types are found.
    const auto types = infer(graph_, node);
    if (!types || place >= std::ssize(*types)) {
      why_ = invalid_argument("fragment: ", types ? str(node.op, " has no result ", place) : types.message());
      return;
    }
    node.outputs[static_cast<size_t>(place)] = add({"", (*types)[static_cast<size_t>(place)], std::nullopt});
    numbered_.push_back(node.outputs[static_cast<size_t>(place)]);
    graph_.nodes.push_back(std::move(node));
  }

  std::string_view text_;
  size_t at_ = 0;
  Graph graph_;
  std::vector<ValueId> numbered_;
  Status why_;
};

}  // namespace

std::string fragment_text(const Graph& fragment) {
  std::map<ValueId, size_t> numbers;
  std::string text;
  for (const ValueId in : fragment.inputs) {
    text += (text.empty() ? "" : ",") + type_text(fragment[in].type);
    numbers.emplace(in, numbers.size());
  }
  text = "in=" + (text.empty() ? "none" : text);
  for (const Node& node : fragment.nodes) {
    text += " " + node.op;
    if (const int64_t set = canonical_set(node); set != kNewest) text += str("@", set);
    size_t place = 0;
    while (node.outputs[place] == kNoValue) ++place;
    if (node.outputs.size() > 1) text += str(":", place, "/", node.outputs.size());
    std::string operands, attributes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId in = node.inputs[i];
      operands += str(i == 0 ? "" : ",", in == kNoValue          ? "_"
                                         : fragment[in].constant ? constant_text(fragment[in])
                                                                 : str(numbers.at(in)));
    }
    for (const auto& [name, value] : node.attributes)
      attributes += str(attributes.empty() ? "" : ",", name, "=",
                        std::visit([](const auto& v) { return text_of(v); }, value));
    text += str("(", operands, ")", attributes.empty() ? "" : str("{", attributes, "}"));
    numbers.emplace(node.outputs[place], numbers.size());
  }
  return text;
}

Result<Graph> fragment_from_text(std::string_view text) {
  ASSIGN_OR_RETURN(Graph graph, Reader(text).read());
  RETURN_IF_ERROR(check(graph).with_context("fragment: "));
  return graph;
}

}  // namespace tuner::graph
