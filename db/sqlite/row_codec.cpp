#include "db/sqlite/row_codec.h"

#include <array>
#include <bit>
#include <charconv>

#include "db/crc32c.h"
#include "db/record_fields.h"
#include "db/store.h"

namespace tuner::db {

using nlohmann::json;

namespace {

// Type, length and bytes of every value but the last: no two different rows feed the same bytes.
int64_t checksum(const SqlRow& row, size_t values) {
  uint32_t crc = 0;
  const auto feed = [&](uint64_t word) {
    std::array<char, 8> bytes{};
    for (char& byte : bytes) {
      byte = static_cast<char>(word & 0xff);
      word >>= 8;
    }
    crc = crc32c({bytes.data(), bytes.size()}, crc);
  };
  for (size_t i = 0; i < values; ++i) {
    feed(row[i].index());
    if (const auto* integer = std::get_if<int64_t>(&row[i])) feed(static_cast<uint64_t>(*integer));
    if (const auto* real = std::get_if<double>(&row[i]))
      feed(std::bit_cast<uint64_t>(*real == 0 ? 0.0 : *real));
    if (const auto* text = std::get_if<std::string>(&row[i])) {
      feed(text->size());
      crc = crc32c(*text, crc);
    }
  }
  return crc;
}

}  // namespace

SqlRow sealed(SqlRow row) {
  row.emplace_back(checksum(row, row.size()));
  return row;
}

Status check_row(const SqlRow& row, std::string_view table) {
  const auto* id = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
  const auto* stored = row.empty() ? nullptr : std::get_if<int64_t>(&row.back());
  const int64_t computed = row.empty() ? 0 : checksum(row, row.size() - 1);
  if (id != nullptr && stored != nullptr && *stored == computed) return Status::ok();
  return failed(
      "row ", id != nullptr ? std::to_string(*id) : "?", " of table ", table, " is damaged: checksum ",
      computed, ", stored ", stored != nullptr ? std::to_string(*stored) : "nothing",
      ". Check the disk, then restore a copy of the file or give another one ", how_a_database_is_given());
}

Status unreadable_row(const SqlRow& row, std::string_view table) {
  return failed(
      "row ", std::get<int64_t>(row[0]), " of table ", table,
      " holds a value this program does not know, though its checksum is right. Use the tuner that wrote it");
}

std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

namespace {

class OptionsToJson {
 public:
  void operator()(const Field& f, const auto& v) { out_[f.name] = v; }
  void operator()(const Field& f, Constants v) { out_[f.name] = constants_name(v); }
  static json of(const MeasureOptions& o) {
    OptionsToJson to;
    describe(o, to);
    return std::move(to.out_);
  }

 private:
  json out_ = json::object();
};

// A value of another kind is noted as wrong, and so is a missing one unless it is optional.
class OptionsFromJson {
 public:
  OptionsFromJson(const json& in, RowReader& reader) : in_(in), reader_(reader) {}
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const Field& f, T& v) {
    if (const json* value = find(f)) value->is_number() ? void(v = value->get<T>()) : reader_.mark_wrong();
  }
  void operator()(const Field& f, Constants& v) {
    const json* value = find(f);
    if (value == nullptr) return;
    const auto constants =
        value->is_string() ? constants_from_name(value->get_ref<const std::string&>()) : std::nullopt;
    if (!constants) reader_.mark_wrong();
    v = constants.value_or(v);
  }

 private:
  const json* find(const Field& f) {
    const auto at = in_.find(f.name);
    if (at != in_.end()) return &*at;
    if (!f.optional) reader_.mark_wrong();
    return nullptr;
  }
  const json& in_;
  RowReader& reader_;
};

}  // namespace

// Rows from before an optional field have no such key: what is as in a new record is not written either, so
// that they keep their checksums.
json options_json(const MeasureOptions& o) {
  static const json kNew = OptionsToJson::of(MeasureOptions{});
  json out = OptionsToJson::of(o);
  for (const auto& [field, kind] : options_fields())
    if (field.optional && out[field.name] == kNew[field.name]) out.erase(field.name);
  return out;
}

MeasureOptions options_from(const json& j, RowReader& reader) {
  MeasureOptions o;
  OptionsFromJson from(j, reader);
  describe(o, from);
  return o;
}

std::string placeholders(std::string_view columns) {
  std::string out = "?";
  for (const char c : columns)
    if (c == ',') out += ", ?";
  return out;
}

std::string trial_id_text(int64_t seq) { return str("t", seq); }

std::optional<TrialName> trial_name_parts(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  TrialName parts{std::string(name.substr(0, dot))};
  const char* const begin = name.data() + dot + 1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, parts.number);
  if (error != std::errc() || rest != end || parts.number <= 0) return std::nullopt;
  return parts;
}

Result<int64_t> trial_seq(std::string_view trial_id) {
  int64_t seq = 0;
  const char* const begin = trial_id.data() + (trial_id.empty() ? 0 : 1);
  const char* const end = trial_id.data() + trial_id.size();
  const auto [rest, error] = std::from_chars(begin, end, seq);
  if (trial_id.empty() || trial_id[0] != 't' || error != std::errc() || rest != end || seq <= 0)
    return not_found("no trial \"", trial_id,
                     "\": expected its job and its number there, as in j3.17, or t812");
  return seq;
}

}  // namespace tuner::db
