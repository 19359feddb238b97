#include "compiler_core/base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

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

}  // namespace

Result<json> parse(std::string_view text) {
  constexpr int kDeepest = 16;
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep = too_deep || depth > kDeepest;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second &&
        repeated.empty())
      repeated = parsed.get<std::string>();
    return !too_deep;  // what lies deeper is not kept
  };
  json document;
  try {
    document = json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." -> from "syntax
    // error" on
    if (const size_t colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    return invalid_argument(position(text, error.byte), ": not JSON: ", what);
  } catch (const json::exception& error) {
    return invalid_argument("not JSON: ", error.what());
  }
  if (too_deep) return invalid_argument("expected at most ", kDeepest, " levels of brackets, found more.");
  if (!repeated.empty())
    return invalid_argument(found(json(repeated)), ": the key is given twice in one object.");
  return document;
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
