// Fields: the values of a JSON object, read by name. The first one that is missing or of another kind is kept
// as the error; later reads then return zeros, so a parser needs no checks between them. Only the parsers
// here use it.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::exchange {

// One line that names what nlohmann::json says of text that is no JSON.
inline Result<nlohmann::json> parse_json(std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    std::string why = e.what();
    if (const size_t at = why.find("] "); at != std::string::npos) why = why.substr(at + 2);
    if (why.size() > 160) why = why.substr(0, 160) + "...";
    return invalid_argument("no JSON: ", why);
  }
}

// What was found, short enough for a message.
inline std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// For a message, which is one line whatever a file holds.
inline std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

class Fields {
 public:
  // `object` outlives this; `where` goes before every message.
  explicit Fields(const nlohmann::json& object, std::string where = {})
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(str("found ", shown(object), ", expected an object"));
  }

  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  std::string text(const char* key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return {};
    if (const auto* text = value->get_ptr<const std::string*>()) return *text;
    return wrong(key, *value, "a text"), std::string();
  }
  std::string text_or(const char* key, std::string otherwise) {
    return has(key) ? text(key) : std::move(otherwise);
  }
  // Any finite number.
  double number(const char* key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return 0;
    if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
    return wrong(key, *value, "a finite number"), 0;
  }
  double number_or(const char* key, double otherwise) { return has(key) ? number(key) : otherwise; }
  int64_t integer(const char* key, int64_t low = INT64_MIN, int64_t high = INT64_MAX) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return 0;
    // A number above INT64_MAX is held as unsigned.
    if (value->is_number_integer() && !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX)) {
      const auto v = value->get<int64_t>();
      if (v >= low && v <= high) return v;
    }
    return wrong(key, *value, str("an integer from ", low, " to ", high)), 0;
  }
  int integer32(const char* key, int low = INT32_MIN, int high = INT32_MAX) {
    return static_cast<int>(integer(key, low, high));
  }
  uint64_t unsigned64(const char* key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return 0;
    if (value->is_number_unsigned()) return value->get<uint64_t>();
    if (value->is_number_integer() && value->get<int64_t>() >= 0) return value->get<uint64_t>();
    return wrong(key, *value, "an integer >= 0"), 0;
  }
  bool flag(const char* key) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return false;
    if (const auto* flag = value->get_ptr<const bool*>()) return *flag;
    return wrong(key, *value, "true or false"), false;
  }
  std::vector<double> numbers(const char* key) {
    std::vector<double> out;
    const nlohmann::json* value = find(key);
    if (value == nullptr) return out;
    if (!value->is_array()) return wrong(key, *value, "a list of numbers"), out;
    out.reserve(value->size());
    for (const nlohmann::json& v : *value) {
      if (!v.is_number() || !std::isfinite(v.get<double>())) return wrong(key, v, "finite numbers"), out;
      out.push_back(v.get<double>());
    }
    return out;
  }
  // The list, or an empty one.
  const nlohmann::json& list(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json* value = find(key);
    if (value == nullptr) return kEmpty;
    if (value->is_array()) return *value;
    wrong(key, *value, "a list");
    return kEmpty;
  }
  const nlohmann::json& object(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    const nlohmann::json* value = find(key);
    if (value == nullptr) return kEmpty;
    if (value->is_object()) return *value;
    wrong(key, *value, "an object");
    return kEmpty;
  }
  template <class E>
  E named(const char* key, std::optional<E> (*from_name)(std::string_view)) {
    const std::string name = text(key);
    if (const std::optional<E> value = from_name(name)) return *value;
    if (status_) fail(str(key, ": found \"", name, "\", which is none of the names there are"));
    return E{1};
  }
  // The value, whatever it is; null when it is missing.
  const nlohmann::json* any(const char* key) { return find(key); }
  void wrong(const char* key, const nlohmann::json& found, std::string_view expected) {
    fail(str(key, ": found ", shown(found), ", expected ", expected));
  }
  void fail(const std::string& message) {
    if (status_) status_ = invalid_argument(where_, on_one_line(message));
  }
  const Status& status() const { return status_; }

 private:
  const nlohmann::json* find(const char* key) {
    if (!status_) return nullptr;
    const auto at = object_.find(key);
    if (at != object_.end()) return &*at;
    fail(str(key, ": is missing"));
    return nullptr;
  }
  const nlohmann::json& object_;
  std::string where_;
  Status status_;
};

}  // namespace tuner::exchange
