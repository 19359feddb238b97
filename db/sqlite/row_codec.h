// Helpers for all kinds of rows: checksums, reading column by column, JSON in a column. Only rows*.cpp use
// them.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/sqlite/rows.h"

namespace tuner::db {

// The row with its checksum appended.
SqlRow sealed(SqlRow row);
// Failed, naming table and row, if the last column is not the checksum of the others.
Status check_row(const SqlRow& row, std::string_view table);
// Returns the error for a row with a right checksum but wrong values.
Status unreadable_row(const SqlRow& row, std::string_view table);

// Reads a row column by column. A wrong type or name only happens in a damaged or foreign row, and the
// checksum catches that first. So it is noted, and reported once at the end.
class RowReader {
 public:
  explicit RowReader(const SqlRow& row) : row_(row) {}
  int64_t integer() { return get<int64_t>(); }
  int integer32() { return static_cast<int>(get<int64_t>()); }
  double real() { return get<double>(); }
  std::string text() { return get<std::string>(); }
  // Returns a view of the row's own text, without a copy.
  std::string_view text_view() {
    if (at_ < row_.size())
      if (const auto* value = std::get_if<std::string>(&row_[at_++])) return *value;
    wrong_ = true;
    return {};
  }
  std::string text_or_null() {
    if (at_ < row_.size() && std::holds_alternative<std::monostate>(row_[at_])) return ++at_, std::string();
    return get<std::string>();
  }
  template <class E>
  E named(std::optional<E> (*from_name)(std::string_view)) {
    const std::optional<E> value = from_name(get<std::string>());
    if (!value) wrong_ = true;
    return value.value_or(E{});
  }
  nlohmann::json parsed() {
    nlohmann::json value = nlohmann::json::parse(get<std::string>(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) wrong_ = true;
    return value;
  }
  std::vector<double> numbers() {
    const nlohmann::json value = parsed();
    if (!value.is_array() ||
        !std::ranges::all_of(value, [](const nlohmann::json& v) { return v.is_number(); }))
      return wrong_ = true, std::vector<double>{};
    return value.get<std::vector<double>>();
  }
  bool wrong() const { return wrong_; }
  void mark_wrong() { wrong_ = true; }

 private:
  template <class T>
  T get() {
    if (at_ < row_.size())
      if (const auto* value = std::get_if<T>(&row_[at_++])) return *value;
    wrong_ = true;
    return T{};
  }
  const SqlRow& row_;
  size_t at_ = 0;
  bool wrong_ = false;
};

// Grants in a column.
std::vector<Grant> grants_from(std::string_view text, RowReader& reader);

// Dumps JSON and replaces text that is not UTF-8 (a message from a failed program), which could not be
// exported.
std::string dumped(const nlohmann::json& j);
nlohmann::json options_json(const MeasureOptions& o);
MeasureOptions options_from(const nlohmann::json& j, RowReader& reader);

}  // namespace tuner::db
