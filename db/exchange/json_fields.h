// Fields wraps compiler_core/base/json_reader.h and returns values. A key that is asked for must be there.
// After the first error every read returns zero, so a parser needs no checks in between. Only the parsers
// here use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/json_reader.h"
#include "db/exchange/json_walker.h"

namespace tuner::exchange {

// No record is so deep. Values are shown in messages, which takes a call per level.
inline constexpr int kDeepestRecord = 64;

// Parses text, or reports nlohmann::json's reason in one line.
inline Result<nlohmann::json> parse_json(std::string_view text) {
  if (depth_of(text, kDeepestRecord) > kDeepestRecord)
    return invalid_argument("no JSON of ours: expected at most ", kDeepestRecord,
                            " levels of brackets, found more");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    std::string why = e.what();
    if (const size_t at = why.find("] "); at != std::string::npos) why = why.substr(at + 2);
    if (why.size() > 160) why = why.substr(0, 160) + "...";
    return invalid_argument("no JSON: ", why);
  }
}

// Shows a value in a message, shortened if it is long.
inline std::string shown(const nlohmann::json& value) { return json_input::found(value); }

// Joins text into one line for a message, whatever the file holds.
inline std::string on_one_line(std::string text) { return json_input::one_line(std::move(text)); }

class Fields {
 public:
  // `object` must outlive this; `where` starts every message.
  explicit Fields(const nlohmann::json& object, std::string where = {})
      : object_(object), where_(where), in_(object, std::move(where)) {}

  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  std::string text(const char* key) { return value<std::string>(key); }
  std::string text_or(const char* key, std::string otherwise) {
    return has(key) ? text(key) : std::move(otherwise);
  }
  // Reads a finite number.
  double number(const char* key) { return value<double>(key); }
  double number_or(const char* key, double otherwise) { return has(key) ? number(key) : otherwise; }
  int64_t integer(const char* key, int64_t low = INT64_MIN, int64_t high = INT64_MAX) {
    int64_t out = 0;
    in_.read(key, out, low, high, json_input::kRequired);
    return out;
  }
  int integer32(const char* key, int low = INT32_MIN, int high = INT32_MAX) {
    return static_cast<int>(integer(key, low, high));
  }
  uint64_t unsigned64(const char* key) { return value<uint64_t>(key); }
  bool flag(const char* key) { return value<bool>(key); }
  std::vector<double> numbers(const char* key) { return value<std::vector<double>>(key); }
  // Returns the list, or an empty one.
  const nlohmann::json& list(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json* value = in_.list(key, json_input::kRequired);
    return value != nullptr ? *value : kEmpty;
  }
  const nlohmann::json& object(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    const nlohmann::json* value = any(key);
    if (value != nullptr && value->is_object()) return *value;
    if (value != nullptr) wrong(key, *value, "an object");
    return kEmpty;
  }
  template <class E>
  E named(const char* key, std::optional<E> (*from_name)(std::string_view)) {
    const std::string name = text(key);
    if (const std::optional<E> value = from_name(name)) return *value;
    fail(str(key, ": found \"", name, "\", which is none of the names there are"));
    return E{1};
  }
  // Returns the value of any type; null if it is missing.
  const nlohmann::json* any(const char* key) { return in_.get(key, json_input::kRequired); }
  void wrong(const char* key, const nlohmann::json& found, std::string_view expected) {
    in_.refuse(key, "found ", shown(found), ", expected ", expected);
  }
  void fail(const std::string& message) { in_.adopt(invalid_argument(where_, on_one_line(message))); }
  const Status& status() const { return in_.status(); }

 private:
  template <class T>
  T value(const char* key) {
    T out{};
    in_.read(key, out, json_input::kRequired);
    return out;
  }

  const nlohmann::json& object_;
  const std::string where_;
  json_input::Reader in_;
};

}  // namespace tuner::exchange
