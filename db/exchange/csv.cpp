// CSV: our own table with every field of a record, and tables of other programs.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
#include "db/plausible.h"
#include "db/record_fields.h"

namespace tuner::exchange {

using nlohmann::json;

namespace {

// Our own table: what a JSON line of a trial has, under the same names; lists with ";" between, options as
// JSON.
struct Column {
  std::string name;
  FieldKind kind;
  bool needed = true;  // else older tables do not have it
};
const std::vector<Column>& own_columns() {
  static const std::vector<Column> columns = [] {
    constexpr FieldKind kText = FieldKind::kText, kInteger = FieldKind::kInteger;
    std::vector<Column> list = {
        {"job_uid", kText},        {"job", kText},          {"home_seq", kInteger},
        {"task_index", kInteger},  {"workload", kText},     {"target", kText},
        {"algorithms", kText},     {"template", kText},     {"template_version", kInteger},
        {"config", kText},         {"state", kText},        {"leases", kInteger},
        {"rng_counter", kInteger}, {"model_digest", kText}, {"terminal", FieldKind::kFlag}};
    for (const auto& [field, kind] : record_fields()) {
      list.push_back({field.json_key(), kind, !field.optional});
      // Of the trial's task: where it stood when it came.
      if (list.back().name == "device_state") list.push_back({"constants", kText, false});
    }
    return list;
  }();
  return columns;
}

std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c == '\n' || c == '\r' ? ' ' : c;  // a field does not go over the end of a line
  }
  return out + "\"";
}

// Decimal text that reads back as the same number.
std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "0";
}
template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}
std::string list_text(const std::vector<double>& values) {
  std::string out;
  for (const double v : values) out += (out.empty() ? "" : ";") + number_text(v);
  return out;
}

// Of our table or another's.
std::optional<Outcome> outcome_from(std::string_view name) {
  if (name == "correct" || name == "OK" || name == "Ok") return Outcome::kOk;
  return outcome_from_name(name);
}

}  // namespace

Result<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool in_quotes = false, was_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_quotes) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += c;
        ++i;
      } else {
        in_quotes = false;
        was_quoted = true;
      }
    } else if (c == ',') {
      fields.emplace_back();
      was_quoted = false;
    } else if (was_quoted) {
      return invalid_argument("field ", fields.size(), ": text after its closing quote");
    } else if (c == '"' && fields.back().empty()) {
      in_quotes = true;
    } else {
      fields.back() += c;
    }
  }
  if (in_quotes) return invalid_argument("field ", fields.size(), ": its quote is not closed on this line");
  return fields;
}

std::string csv_header() {
  std::string out;
  for (const Column& column : own_columns()) out += (out.empty() ? "" : ",") + column.name;
  return out;
}

std::string csv_line(const ExchangedTrial& in) {
  if (!in.record) return "";
  // The JSON line has every value by the names of the columns, but for what is empty.
  const json line = json::parse(json_line(ExchangeRow(in)));
  std::string out;
  for (const Column& column : own_columns()) {
    const auto value = line.find(column.name);
    if (&column != &own_columns().front()) out += ',';
    if (column.name == "config")
      out += csv_quoted(in.trial.config);
    else if (value == line.end())
      continue;
    else if (column.kind == FieldKind::kNumbers)
      out += list_text(value->get<std::vector<double>>());
    else
      out += csv_quoted(value->is_string() ? value->get<std::string>() : value->dump());
  }
  return out;
}

std::string csv_foreign_header() { return "format,task,target,outcome,time_ns,when,source,document"; }

std::string csv_foreign_line(const ForeignRecord& r) {
  return str(r.format, ",", csv_quoted(r.task), ",", csv_quoted(r.target), ",", outcome_name(r.outcome), ",",
             number_text(r.time_ns), ",", time_text(r.finished_at_us), ",", csv_quoted(r.origin.source), ",",
             csv_quoted(r.document));
}

Result<CsvTable> CsvTable::from_header(std::string_view line) {
  CsvTable table;
  ASSIGN_OR_RETURN(table.columns_, csv_fields(line));
  const auto find = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      for (size_t i = 0; i < table.columns_.size(); ++i)
        if (table.columns_[i] == name) return static_cast<int>(i);
    return -1;
  };
  for (size_t i = 0; i < table.columns_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (table.columns_[i] == table.columns_[j])
        return invalid_argument("the header has \"", table.columns_[i], "\" twice");
  table.own_ = std::ranges::all_of(
      own_columns(), [&](const Column& column) { return !column.needed || find({column.name}) >= 0; });
  if (table.own_) return table;
  constexpr std::pair<std::string_view, double> kTimes[] = {
      {"time_ns", 1}, {"time_us", 1e3}, {"time_ms", 1e6}, {"time_s", 1e9}};
  for (const auto& [name, to_ns] : kTimes) {
    if (table.time_ >= 0) break;
    table.time_ = find({name});
    table.to_ns_ = to_ns;
  }
  if (table.time_ < 0)
    return invalid_argument(
        "the header has no column time_ns, time_us, time_ms or time_s, which says what a config took");
  table.outcome_ = find({"outcome", "status"});
  table.task_ = find({"task", "workload", "kernel"});
  table.target_ = find({"target", "device"});
  return table;
}

Result<ExchangeRow> CsvTable::parse(std::string_view line, const std::string& task,
                                    const std::string& target) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> fields, csv_fields(line));
  if (fields.size() != columns_.size())
    return invalid_argument("found ", fields.size(), " fields, expected ", columns_.size(),
                            " as in the header");
  return own_ ? parse_own(fields) : parse_foreign(fields, line, task, target);
}

namespace {

// A field of our table as the value it was written from.
Result<json> value_of(const std::string& name, const std::string& text) {
  const auto& columns = own_columns();
  const auto column = std::ranges::find(columns, name, &Column::name);
  const auto wrong = [&](std::string_view expected) {
    return invalid_argument(name, ": found \"", text.substr(0, 60), "\", expected ", expected);
  };
  int64_t integer = 0;
  uint64_t counter = 0;
  double number = 0;
  switch (column == columns.end() ? FieldKind::kText : column->kind) {
    case FieldKind::kInteger:
      if (name == "rng_counter")
        return read_number(text, counter) ? Result<json>(counter) : wrong("an integer >= 0");
      return read_number(text, integer) ? Result<json>(integer) : wrong("an integer");
    case FieldKind::kNumber:
      return read_number(text, number) && std::isfinite(number) ? Result<json>(number) : wrong("a number");
    case FieldKind::kFlag:
      return text == "true" || text == "false" ? Result<json>(text == "true") : wrong("true or false");
    case FieldKind::kNumbers: {
      json list = json::array();
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(';', at), text.size());
        if (!read_number(std::string_view(text).substr(at, end - at), number))
          return wrong("numbers with ; between");
        list.push_back(number);
        at = end + 1;
      }
      return list;
    }
    case FieldKind::kObject: {
      json object = json::parse(text, nullptr, false);
      return object.is_discarded() ? wrong("a JSON object") : Result<json>(std::move(object));
    }
    default:
      return json(text);
  }
}

}  // namespace

// Put back into the JSON line it came from: one place knows what a trial is made of.
Result<ExchangeRow> CsvTable::parse_own(const std::vector<std::string>& fields) const {
  json line{{"format", 2}, {"kind", "trial"}};
  for (size_t i = 0; i < fields.size(); ++i) {
    ASSIGN_OR_RETURN(line[columns_[i]], value_of(columns_[i], fields[i]));
  }
  for (const auto& [field, kind] : record_fields())
    if (field.unless_empty && line.value(field.json_key(), "") == "") line.erase(field.json_key());
  if (line.value("constants", "") == "cold") line["format"] = 3;
  return parse_json_line(line.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<ExchangeRow> CsvTable::parse_foreign(const std::vector<std::string>& fields, std::string_view line,
                                            const std::string& task, const std::string& target) const {
  ForeignRecord out{.format = std::string(format_name(Format::kCsv))};
  const auto field = [&](int i) { return fields[static_cast<size_t>(i)]; };
  const std::string time = field(time_), outcome = outcome_ >= 0 ? field(outcome_) : "";
  if (outcome_ >= 0) {
    const std::optional<Outcome> known = outcome_from(outcome);
    if (!known)
      return invalid_argument(
          columns_[static_cast<size_t>(outcome_)], ": found \"", outcome,
          "\", expected ok, invalid_config, build_error, build_timeout, run_timeout, crashed, "
          "wrong_answer, out_of_memory or device_lost");
    out.outcome = *known;
  } else if (time.empty()) {
    out.outcome = Outcome::kCrashed;  // the table does not say why there is no time
  }
  if (out.outcome == Outcome::kOk) {
    double number = 0;
    if (!read_number(time, number) || !is_plausible_call(number * to_ns_))
      return invalid_argument(columns_[static_cast<size_t>(time_)], ": found \"", time, "\", expected ",
                              kPlausibleCall);
    out.time_ns = number * to_ns_;
  }
  out.task = task_ >= 0 ? field(task_) : task;
  out.target = target_ >= 0 ? field(target_) : target;
  out.document = line;
  return ExchangeRow(std::move(out));
}

}  // namespace tuner::exchange
