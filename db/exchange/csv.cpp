// CSV: our own table with every field of a record, and tables of other programs.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"

namespace tuner::exchange {

using nlohmann::json;

namespace {

// Our own table: what a JSON line of a trial has, under the same names; lists with ";" between, options as
// JSON.
constexpr std::array<std::string_view, 38> kColumns = {"job_uid",
                                                       "job",
                                                       "home_seq",
                                                       "task_index",
                                                       "workload",
                                                       "target",
                                                       "algorithms",
                                                       "template",
                                                       "template_version",
                                                       "config",
                                                       "state",
                                                       "leases",
                                                       "rng_counter",
                                                       "model_digest",
                                                       "terminal",
                                                       "attempt",
                                                       "outcome",
                                                       "cut",
                                                       "message",
                                                       "time_ns",
                                                       "run_ns",
                                                       "cpu_ns",
                                                       "sentinel_before_ns",
                                                       "sentinel_after_ns",
                                                       "queue_ms",
                                                       "build_ms",
                                                       "run_ms",
                                                       "max_error",
                                                       "peak_gflops",
                                                       "artifact",
                                                       "hardware",
                                                       "toolchain",
                                                       "harness_abi",
                                                       "worker",
                                                       "worker_incarnation",
                                                       "host",
                                                       "options",
                                                       "when"};
// Columns that older tables do not have.
constexpr std::array<std::string_view, 6> kLaterColumns = {
    "device_state", "constants", "memory_sentinel_before_ns", "memory_sentinel_after_ns",
    "discarded",    "read_gbps"};

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
  for (const std::string_view column : kColumns) out += (out.empty() ? "" : ",") + std::string(column);
  for (const std::string_view column : kLaterColumns) out += "," + std::string(column);
  return out;
}

std::string csv_line(const ExchangedTrial& in) {
  if (!in.record) return "";
  // The JSON line has every value by the names of the columns.
  const json line = json::parse(json_line(ExchangeRow(in)));
  std::string out;
  const auto add = [&](const std::string& field) { out += (out.empty() ? "" : ",") + field; };
  for (const std::string_view column : kColumns) {
    const json& value = line.at(std::string(column));
    if (column == "config")
      add(csv_quoted(in.trial.config));
    else if (column == "run_ns")
      add(list_text(in.record->run_ns));
    else if (column == "cpu_ns")
      add(list_text(in.record->cpu_ns));
    else
      add(value.is_string() ? csv_quoted(value.get<std::string>()) : csv_quoted(value.dump()));
  }
  for (const std::string_view column : kLaterColumns) {
    // A JSON line leaves out what is empty.
    const json value = line.value(std::string(column), json(""));
    add(value.is_string() ? csv_quoted(value.get<std::string>()) : csv_quoted(value.dump()));
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
  table.own_ = std::ranges::all_of(kColumns, [&](std::string_view name) { return find({name}) >= 0; });
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

// Put back into the JSON line it came from: one place knows what a trial is made of.
Result<ExchangeRow> CsvTable::parse_own(const std::vector<std::string>& fields) const {
  json line{{"format", 2}, {"kind", "trial"}};
  const auto is = [](std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& column = columns_[i];
    const std::string& text = fields[i];
    if (is(column, {"run_ns", "cpu_ns"})) {
      json& list = line[column] = json::array();
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(';', at), text.size());
        double value = 0;
        if (!read_number(std::string_view(text).substr(at, end - at), value))
          return invalid_argument(column, ": found \"", text, "\", expected numbers with ; between");
        list.push_back(value);
        at = end + 1;
      }
    } else if (is(column, {"home_seq", "task_index", "template_version", "leases", "attempt", "harness_abi",
                           "discarded"})) {
      int64_t value = 0;
      if (!read_number(text, value))
        return invalid_argument(column, ": found \"", text, "\", expected an integer");
      line[column] = value;
    } else if (column == "rng_counter") {
      uint64_t value = 0;
      if (!read_number(text, value))
        return invalid_argument(column, ": found \"", text, "\", expected an integer >= 0");
      line[column] = value;
    } else if (is(column, {"terminal", "cut"})) {
      if (text != "true" && text != "false")
        return invalid_argument(column, ": found \"", text, "\", expected true or false");
      line[column] = text == "true";
    } else if (is(column, {"time_ns", "sentinel_before_ns", "sentinel_after_ns", "queue_ms", "build_ms",
                           "run_ms", "max_error", "peak_gflops", "memory_sentinel_before_ns",
                           "memory_sentinel_after_ns", "read_gbps"})) {
      double value = 0;
      if (!read_number(text, value) || !std::isfinite(value))
        return invalid_argument(column, ": found \"", text, "\", expected a number");
      line[column] = value;
    } else if (column == "options") {
      line[column] = json::parse(text, nullptr, false);
      if (line[column].is_discarded())
        return invalid_argument("options: found \"", text.substr(0, 60), "\", expected a JSON object");
    } else {
      line[column] = text;
    }
  }
  if (line.value("device_state", "") == "") line.erase("device_state");
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
    if (!read_number(time, out.time_ns) || !std::isfinite(out.time_ns) || out.time_ns <= 0)
      return invalid_argument(columns_[static_cast<size_t>(time_)], ": found \"", time,
                              "\", expected a number > 0");
    out.time_ns *= to_ns_;
    if (!std::isfinite(out.time_ns)) return invalid_argument("the time is too large");
  }
  out.task = task_ >= 0 ? field(task_) : task;
  out.target = target_ >= 0 ? field(target_) : target;
  out.document = line;
  return ExchangeRow(std::move(out));
}

}  // namespace tuner::exchange
