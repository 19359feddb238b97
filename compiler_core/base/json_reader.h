// Reads JSON written by people or programs. The first mistake is reported in one line that names the key,
// what was expected and what was found.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::json_input {

using nlohmann::json;

// Returns the value as it is in the file, shortened to one line.
std::string found(const json& value);

// Parses a document, in time linear in the text. Each key of an object may appear once, nesting may be 16
// levels deep, and there may be 500,000 values, brackets included: a text of 16 MiB costs no more memory than
// 64 MiB. InvalidArgument has line and column.
Result<json> parse(std::string_view text);

// Removes control characters: those of a hostile file must not reach a terminal, and a message is one line.
std::string one_line(std::string message);

inline constexpr bool kRequired = true;

// Reads one object: hands out its keys and keeps the first error. Later reads then change nothing, so a
// parser needs no checks between them. A missing key leaves the variable unchanged, unless it is required.
//
//   Reader in(object, "[3].");                  the prefix of every message; `object` outlives the reader
//   in.read("rows", w.rows, 1, 4096, kRequired);   "[3].rows: expected an integer from 1 to 4096, found 0."
//   return in.finish();                         or status(), if unknown keys are allowed
class Reader {
 public:
  Reader(const json& object, std::string prefix);
  Reader(json&&, std::string) = delete;

  bool failed() const { return !status_.is_ok(); }
  const Status& status() const { return status_; }

  // Returns the value of a key; null if it is missing (an error if `required`) or if there was an error
  // before.
  const json* get(const std::string& key, bool required = false);

  void read(const std::string& key, bool& value, bool required = false);
  void read(const std::string& key, std::string& value, bool required = false);
  // Reads an integer from `low` to `high`, for any type T that can hold both.
  template <std::integral T, std::integral Low, std::integral High>
  void read(const std::string& key, T& value, Low low, High high, bool required = false) {
    __int128 wide = 0;
    if (integer(key, wide, low, high, required)) value = static_cast<T>(wide);
  }
  // Reads any integer that T can hold.
  template <std::integral T>
  void read(const std::string& key, T& value, bool required = false) {
    read(key, value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), required);
  }
  // Read finite numbers: any; above `above` and at most `high`; from `low` to `high`; at least `low`.
  void read(const std::string& key, double& value, bool required = false);
  void read(const std::string& key, double& value, double above, double high, bool required = false);
  void read_within(const std::string& key, double& value, double low, double high, bool required = false);
  void read_at_least(const std::string& key, double& value, double low, bool required = false);
  void read(const std::string& key, std::vector<double>& values, bool required = false);
  void read(const std::string& key, std::vector<int>& values, int low, int high, bool required = false);
  // Calls read_one(Reader&) for each object of a list.
  template <class F>
  void read_objects(const std::string& key, const F& read_one, bool required = false) {
    const json* values = list(key, required);
    for (size_t i = 0; values != nullptr && i < values->size() && !failed(); ++i) {
      Reader each((*values)[i], str(prefix_, key, "[", i, "]."));
      read_one(each);
      adopt(each.status());
    }
  }
  // Calls read_one(Reader&) for the object of this key.
  template <class F>
  void read_object(const std::string& key, const F& read_one, bool required = false) {
    const json* value = get(key, required);
    if (value == nullptr) return;
    Reader inner(*value, str(prefix_, key, "."));
    read_one(inner);
    adopt(inner.status());
  }
  // Returns the list, or null.
  const json* list(const std::string& key, bool required = false);

  // Sets the error "PREFIX KEY: ARGS". Only the first error is kept.
  template <class... Args>
  void refuse(const std::string& key, const Args&... args) {
    if (!failed()) status_ = invalid_argument(prefix_, key, ": ", args...);
  }
  // Sets the error "PREFIX MESSAGE": of a check of the whole object, whose message begins with a key.
  void refuse_all(const Status& checked) {
    if (!failed()) status_ = checked.with_context(prefix_);
  }
  // Takes over the error of an object inside this one; its message names the whole path.
  void adopt(const Status& inner) {
    if (!failed()) status_ = inner;
  }

  // Returns the first error; InvalidArgument also if the object has a key that was never asked for. Where a
  // required key is missing it names the keys that were not asked for, too: one of them may be that key
  // misspelt. So a reader asks for all its keys, whatever is wrong with the first ones.
  Status finish();
  // What was missing decides which keys belong here: finish() calls none unknown beside it.
  void know_no_keys() { knows_keys_ = false; }

 private:
  std::string unknown_keys() const;
  bool integer(const std::string& key, __int128& value, __int128 low, __int128 high, bool required);

  const json& object_;
  const std::string prefix_;
  std::vector<std::string> asked_;  // with repetitions: importers read millions of keys
  Status status_;
  bool missing_ = false;  // status_ is that a required key is not there
  bool knows_keys_ = true;
};

}  // namespace tuner::json_input
