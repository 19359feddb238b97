// Reading JSON that people write: every key is checked, and the first thing wrong is one line that names the
// key, what was found and what was expected.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/status.h"

namespace tuner::json_input {

using nlohmann::json;

// Extents of shapes, and what else is counted in a workload, are at most this.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

// The value as it stands in the file, shortened for one line.
std::string found(const json& value);

// The document, each key of an object given once, at most 16 levels deep. InvalidArgument with line and
// column.
Result<json> parse(std::string_view text);

// Without control characters: those of a hostile file must not reach a terminal, and a message is one line.
std::string one_line(std::string message);

// One object of the file: hands out its keys, notes the first thing that is wrong, and at the end every key
// must have been asked for.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {
    if (!object.is_object()) {
      const std::string where = prefix_.ends_with('.') ? prefix_.substr(0, prefix_.size() - 1) + ": " : "";
      status_ = invalid_argument(where, "expected an object { ... }, found ", found(object), ".");
    }
  }

  bool failed() const { return !status_.is_ok(); }

  // The value of a key, or null when it is not there (an error if `required`).
  const json* get(const std::string& key, bool required = false) {
    asked_.insert(key);
    if (failed()) return nullptr;
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (required) refuse(key, "expected a value, found nothing.");
    return nullptr;
  }
  template <class... Args>
  void refuse(const std::string& key, const Args&... args) {
    if (!failed()) status_ = invalid_argument(prefix_, key, ": ", args...);
  }

  // The error of an object within this one, whose message names its whole path.
  void adopt(const Status& inner) {
    if (!failed()) status_ = inner;
  }

  void read(const std::string& key, bool& value) {
    const json* v = get(key);
    if (v == nullptr) return;
    if (!v->is_boolean()) return refuse(key, "expected true or false, found ", found(*v), ".");
    value = v->get<bool>();
  }
  template <class T>
  void read(const std::string& key, T& value, uint64_t low, uint64_t high, bool required = false) {
    const json* v = get(key, required);
    if (v == nullptr) return;
    // Negative integers have a type of their own, and numbers beyond 2^64 arrive as floating point.
    if (!v->is_number_unsigned() || v->get<uint64_t>() < low || v->get<uint64_t>() > high)
      return refuse(key, "expected an integer from ", low, " to ", high, ", found ", found(*v), ".");
    value = static_cast<T>(v->get<uint64_t>());
  }
  void read(const std::string& key, double& value, double above, double high) {
    const json* v = get(key);
    if (v == nullptr) return;
    if (!v->is_number() || !(v->get<double>() > above) || v->get<double>() > high)
      return refuse(key, "expected a number above ", above, " and at most ", high, ", found ", found(*v),
                    ".");
    value = v->get<double>();
  }
  void read_within(const std::string& key, double& value, double low, double high) {
    const json* v = get(key);
    if (v == nullptr) return;
    if (!v->is_number() || !(v->get<double>() >= low) || !(v->get<double>() <= high))
      return refuse(key, "expected a number from ", low, " to ", high, ", found ", found(*v), ".");
    value = v->get<double>();
  }
  void read(const std::string& key, std::string& value, bool required = false) {
    const json* v = get(key, required);
    if (v == nullptr) return;
    if (!v->is_string()) return refuse(key, "expected a text in quotes, found ", found(*v), ".");
    value = v->get<std::string>();
  }
  // Exactly n integers, `what` says which: "[M, K]".
  std::vector<int64_t> shape(const std::string& key, size_t n, std::string_view what) {
    const json* v = get(key, /*required=*/true);
    if (v == nullptr) return std::vector<int64_t>(n, 1);
    if (!v->is_array() || v->size() != n || !all_integers(*v, 1)) {
      refuse(key, "expected ", n, " integers from 1 to ", kMaxExtent, ", found ", found(*v), ". Order is ",
             what, ".");
      return std::vector<int64_t>(n, 1);
    }
    return v->get<std::vector<int64_t>>();
  }
  // One integer for all, or one of the given numbers of integers.
  std::optional<std::vector<int64_t>> integers(const std::string& key, int64_t low,
                                               std::initializer_list<size_t> sizes, std::string_view words,
                                               std::string_view order) {
    const json* v = get(key);
    if (v == nullptr) return std::nullopt;
    if (v->is_number()) {
      if (is_integer(*v, low)) return std::vector<int64_t>{v->get<int64_t>()};
      refuse(key, "expected an integer >= ", low, ", found ", found(*v), ".");
    } else if (v->is_array() && std::ranges::find(sizes, v->size()) != sizes.end() && all_integers(*v, low)) {
      return v->get<std::vector<int64_t>>();
    } else if (v->is_array()) {
      refuse(key, "expected ", words, " integers >= ", low, ", found ", found(*v), ". Order is ", order, ".");
    } else {
      refuse(key, "expected an integer >= ", low, " or ", words, " of them, found ", found(*v), ". Order is ",
             order, ".");
    }
    return std::nullopt;
  }

  // Every key of the object was asked for, or the first that was not is the error.
  Status finish() {
    for (const auto& [key, value] : object_.items()) {
      if (failed()) break;
      if (asked_.contains(key)) continue;
      std::string known;
      for (const std::string& k : asked_) known += (known.empty() ? "" : ", ") + k;
      const std::string meant = did_you_mean(key, {asked_.begin(), asked_.end()});
      status_ = invalid_argument(prefix_, found(json(key)), ": unknown key", meant.empty() ? "." : meant,
                                 " Known here: ", known, ".");
    }
    return status_;
  }

 private:
  static bool is_integer(const json& v, int64_t low) {
    if (v.is_number_unsigned())
      return v.get<uint64_t>() <= static_cast<uint64_t>(kMaxExtent) && v.get<int64_t>() >= low;
    return v.is_number_integer() && v.get<int64_t>() >= low;
  }
  static bool all_integers(const json& v, int64_t low) {
    return std::ranges::all_of(v, [&](const json& item) { return is_integer(item, low); });
  }

  const json& object_;
  const std::string prefix_;
  std::set<std::string> asked_;
  Status status_;
};

}  // namespace tuner::json_input
