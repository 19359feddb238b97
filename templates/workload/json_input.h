// Reads workloads that people write: compiler_core/base/json_reader.h with shapes.
#pragma once

#include <algorithm>
#include <optional>

#include "compiler_core/base/json_reader.h"
#include "templates/workload/parts/limits.h"

namespace tuner::json_input {

class ObjectReader : public Reader {
 public:
  using Reader::Reader;

  // Reads exactly n integers; `what` names them: "[M, K]".
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
  // Reads one integer for all, or as many integers as one of `sizes` says.
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

 private:
  static bool is_integer(const json& v, int64_t low) {
    if (v.is_number_unsigned())
      return v.get<uint64_t>() <= static_cast<uint64_t>(kMaxExtent) && v.get<int64_t>() >= low;
    return v.is_number_integer() && v.get<int64_t>() >= low;
  }
  static bool all_integers(const json& v, int64_t low) {
    return std::ranges::all_of(v, [&](const json& item) { return is_integer(item, low); });
  }
};

}  // namespace tuner::json_input
