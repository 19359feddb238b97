#include "compiler_core/base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compiler_core/base/did_you_mean.h"

namespace tuner::json_input {

std::string found(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  // "[0,1]" reads better as "[0, 1]", but a comma inside a string stays as it is.
  if (value.is_array() && std::ranges::all_of(value, [](const json& v) { return v.is_number(); })) {
    std::string spaced;
    for (const char c : text) spaced += c == ',' ? ", " : std::string(1, c);
    text = std::move(spaced);
  }
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  size_t cut = kLongest;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not in the middle of a UTF-8 character
  return text.substr(0, cut) + "...";
}

namespace {

// "line 3, column 7" of a byte offset.
std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t newline = before.rfind('\n');
  return str("line ", line, ", column ",
             newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
}

constexpr size_t kDeepest = 16;
// Brackets, keys and values. A job file of 4,096 entries has some 200,000; each costs up to 100 bytes while
// it is read.
constexpr size_t kMostParts = 500'000;

// Builds the document from the parser's events. (The library's own builder with a callback looks through all
// of a list at the end of each object in it.) The first refusal ends the parse.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no text has any
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }
  bool key(string_t& name) override {
    const auto [it, added] = open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!added && repeated.empty()) repeated = it->first;
    value_ = &it->second;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const json::exception& error) override {
    byte = at;
    what = error.what();
    return false;
  }

  json document;
  std::string repeated;  // the first key that is twice in its object
  size_t byte = 0;       // of the mistake in the text, where `what` says what is wrong
  std::string what;
  bool too_deep = false, too_many = false;

 private:
  template <class Value>
  json* add(Value&& value) {
    too_many = ++parts_ > kMostParts;
    if (too_many) return nullptr;
    json* const place = open_.empty() ? &document : open_.back()->is_object() ? value_ : nullptr;
    if (place == nullptr)
      return &open_.back()->get_ref<json::array_t&>().emplace_back(std::forward<Value>(value));
    *place = std::forward<Value>(value);
    return place;
  }
  template <class Value>
  bool put(Value&& value) {
    return add(std::forward<Value>(value)) != nullptr;
  }
  bool open(json empty) {
    too_deep = open_.size() >= kDeepest;
    json* const opened = too_deep ? nullptr : add(std::move(empty));
    if (opened != nullptr) open_.push_back(opened);
    return opened != nullptr;
  }
  // Brackets, the outermost first: each is the last part of the one before, so it stays put.
  std::vector<json*> open_;
  json* value_ = nullptr;  // of the key read last
  size_t parts_ = 0;
};

}  // namespace

Result<json> parse(std::string_view text) {
  Builder built;
  try {
    json::sax_parse(text.begin(), text.end(), &built);
  } catch (const json::exception& error) {
    return invalid_argument("not JSON: ", error.what());
  }
  if (built.too_deep)
    return invalid_argument("expected at most ", kDeepest, " levels of brackets, found more.");
  if (built.too_many)
    return invalid_argument("expected at most ", kMostParts, " values, found more; split the file.");
  if (!built.what.empty()) {
    std::string what = built.what;
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." -> from "syntax
    // error" on
    if (const size_t colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    return invalid_argument(position(text, built.byte), ": not JSON: ", what);
  }
  if (!built.repeated.empty())
    return invalid_argument(found(json(built.repeated)), ": the key is given twice in one object.");
  return std::move(built.document);
}

std::string one_line(std::string message) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return message;
}

Reader::Reader(const json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {
  if (object.is_object()) return;
  const std::string where = prefix_.ends_with('.') ? prefix_.substr(0, prefix_.size() - 1) + ": " : prefix_;
  status_ = invalid_argument(where, "expected an object { ... }, found ", found(object), ".");
}

const json* Reader::get(const std::string& key, bool required) {
  asked_.push_back(key);
  if (failed()) return nullptr;
  const auto it = object_.find(key);
  if (it != object_.end()) return &*it;
  if (required) {
    refuse(key, "expected a value, found nothing.");
    missing_ = true;
  }
  return nullptr;
}

void Reader::read(const std::string& key, bool& value, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  if (!v->is_boolean()) return refuse(key, "expected true or false, found ", found(*v), ".");
  value = v->get<bool>();
}

void Reader::read(const std::string& key, std::string& value, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  if (!v->is_string()) return refuse(key, "expected a text in quotes, found ", found(*v), ".");
  value = v->get<std::string>();
}

namespace {

// Negative integers have a type of their own, and numbers beyond 2^64 arrive as floating point.
bool is_integer(const json& v, __int128 low, __int128 high, __int128& value) {
  if (!v.is_number_integer()) return false;
  value = v.is_number_unsigned() ? static_cast<__int128>(v.get<uint64_t>()) : v.get<int64_t>();
  return low <= value && value <= high;
}

// Not a number where it is none.
double number_of(const json& v) { return v.is_number() ? v.get<double>() : std::nan(""); }

std::string text_of(__int128 number) {
  return number < 0 ? std::to_string(static_cast<int64_t>(number))
                    : std::to_string(static_cast<uint64_t>(number));
}

}  // namespace

bool Reader::integer(const std::string& key, __int128& value, __int128 low, __int128 high, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return false;
  if (is_integer(*v, low, high, value)) return true;
  const bool narrow = low > INT32_MIN || high < INT32_MAX;
  refuse(key, "expected an integer", narrow ? str(" from ", text_of(low), " to ", text_of(high)) : "",
         ", found ", found(*v), ".");
  return false;
}

void Reader::read(const std::string& key, double& value, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  const double number = number_of(*v);
  if (!std::isfinite(number)) return refuse(key, "expected a finite number, found ", found(*v), ".");
  value = number;
}

void Reader::read(const std::string& key, double& value, double above, double high, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  const double number = number_of(*v);
  if (!(number > above) || !(number <= high))
    return refuse(key, "expected a number above ", above, " and at most ", high, ", found ", found(*v), ".");
  value = number;
}

void Reader::read_within(const std::string& key, double& value, double low, double high, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  const double number = number_of(*v);
  if (!(number >= low) || !(number <= high))
    return refuse(key, "expected a number from ", low, " to ", high, ", found ", found(*v), ".");
  value = number;
}

void Reader::read_at_least(const std::string& key, double& value, double low, bool required) {
  const json* v = get(key, required);
  if (v == nullptr) return;
  const double number = number_of(*v);
  if (!std::isfinite(number) || number < low)
    return refuse(key, "expected a number >= ", low, ", found ", found(*v), ".");
  value = number;
}

void Reader::read(const std::string& key, std::vector<double>& values, bool required) {
  const json* v = list(key, required);
  if (v == nullptr) return;
  std::vector<double> numbers;
  numbers.reserve(v->size());
  for (const json& each : *v)
    if (const double number = number_of(each); std::isfinite(number)) numbers.push_back(number);
  if (numbers.size() != v->size())
    return refuse(key, "expected a list of finite numbers, found ", found(*v), ".");
  values = std::move(numbers);
}

void Reader::read(const std::string& key, std::vector<int>& values, int low, int high, bool required) {
  const json* v = list(key, required);
  if (v == nullptr) return;
  std::vector<int> numbers;
  numbers.reserve(v->size());
  __int128 number = 0;
  for (const json& each : *v)
    if (is_integer(each, low, high, number)) numbers.push_back(static_cast<int>(number));
  if (numbers.size() != v->size())
    return refuse(key, "expected integers from ", low, " to ", high, ", found ", found(*v), ".");
  values = std::move(numbers);
}

const json* Reader::list(const std::string& key, bool required) {
  const json* v = get(key, required);
  if (v == nullptr || v->is_array()) return v;
  refuse(key, "expected a list, found ", found(*v), ".");
  return nullptr;
}

// "unknown key "M"; did you mean m? Known here: ..."; empty: every key was asked for.
std::string Reader::unknown_keys() const {
  const std::set<std::string> asked(asked_.begin(), asked_.end());
  std::string unknown, meant, known;
  int count = 0;
  for (const auto& [key, value] : object_.items()) {
    if (asked.contains(key)) continue;
    ++count;
    unknown += (unknown.empty() ? "" : ", ") + found(json(key));
    if (const std::string near = nearest_word(key, {asked.begin(), asked.end()}); !near.empty())
      meant += str(meant.empty() ? "; did you mean " : ", ", near);
  }
  if (count == 0) return "";
  for (const std::string& k : asked) known += (known.empty() ? "" : ", ") + k;
  return str(unknown, count == 1 ? ": unknown key" : ": unknown keys", meant.empty() ? "." : meant + "?",
             " Known here: ", known, ".");
}

Status Reader::finish() {
  if (failed() && !(missing_ && knows_keys_)) return status_;
  const std::string unknown = object_.is_object() ? unknown_keys() : "";
  if (unknown.empty()) return status_;
  status_ = missing_ ? invalid_argument(status_.message(), " ", unknown) : invalid_argument(prefix_, unknown);
  missing_ = false;
  return status_;
}

}  // namespace tuner::json_input
