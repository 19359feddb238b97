#include "tuner/search/recorded_space.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/outcome.h"
#include "compiler_core/base/statistics.h"
#include "templates/space/knob.h"

namespace tuner {
namespace {

constexpr double kFails = std::numeric_limits<double>::infinity();
constexpr double kNsOfMs = 1e6;

Result<std::string> read_text(const std::string& path) {
  ASSIGN_OR_RETURN(const int fd, open_input(path, "a recorded space, SPACE.csv[.gz]"));
  const gzFile file = gzdopen(fd, "rb");  // reads plain text too
  if (file == nullptr) {
    ::close(fd);
    return failed(path, ": out of memory");
  }
  std::string text;
  char buffer[65536];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(got));
  const int closed = gzclose(file);
  if (closed == Z_BUF_ERROR)
    return invalid_argument(path, ": the compressed file is cut off; fetch or export the file again");
  if (got < 0) return invalid_argument(path, ": damaged gzip data; fetch or export the file again");
  return text;
}

// A terminal gets no bytes that it would take for commands, and no page of them.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 80;
  std::string out(text.substr(0, kMost));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out + (text.size() > kMost ? "..." : "");
}

std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields;
  for (size_t at = 0;;) {
    const size_t end = std::min(line.find(separator, at), line.size());
    fields.emplace_back(line.substr(at, end - at));
    if (end == line.size()) return fields;
    at = end + 1;
  }
}

template <class T>
bool read_number(const std::string& cell, T& value) {
  const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && stop == cell.data() + cell.size();
}

using Row = std::vector<int64_t>;

// Cells of one template: values of its knobs, and what was measured.
struct Rows {
  std::set<size_t> used;  // knob columns with a value in some row
  std::vector<std::vector<std::string>> cells;
  std::vector<double> time_ns;
  std::vector<std::vector<double>> samples_ns;
  std::vector<size_t> lines;
};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Result<RecordedSpace> read() {
    ASSIGN_OR_RETURN(const std::string text, read_text(path_));
    RecordedSpace recorded;
    recorded.name = path_.substr(path_.rfind('/') + 1);
    recorded.crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
    RETURN_IF_ERROR(read_lines(text));
    for (auto& [name, rows] : templates_) {
      ASSIGN_OR_RETURN(RecordedSpace::Part part, make_part(rows));
      part.template_name = name.empty() ? "recorded" : name;
      recorded.parts.push_back(std::move(part));
    }
    return recorded;
  }

 private:
  Status read_lines(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      ++number;
      if (number == 1) {
        RETURN_IF_ERROR(read_header(line));
      } else if (!line.empty()) {
        RETURN_IF_ERROR(read_row(line, number));
      }
    }
    if (templates_.empty())
      return invalid_argument(path_, ": found no row of a config, expected at least one");
    return Status::ok();
  }

  Status read_header(std::string_view line) {
    header_ = fields_of(line, ',');
    std::set<std::string> seen;
    for (size_t i = 0; i < header_.size(); ++i) {
      const std::string& name = header_[i];
      if (name.empty() || !seen.insert(name).second)
        return invalid_argument(path_, ":1: column ", i + 1, ": found name \"", name,
                                "\", expected a name, once");
      if (name == "time_ms")
        time_ = i;
      else if (name == "status")
        status_ = i;
      else if (name == "samples_ms")
        samples_ = i;
      else if (name == "template")
        template_ = i;
      else if (time_ || status_ || samples_)
        return invalid_argument(
            path_, ":1: column ", i + 1, ": found \"", name,
            "\" behind the knobs, expected time_ms, status, samples_ms or template; knobs "
            "come first");
      else
        knobs_.push_back(i);
    }
    if (knobs_.empty() || !time_ || !status_)
      return invalid_argument(path_, ":1: found header \"", shown(line),
                              "\", expected the knobs, then time_ms and status");
    return Status::ok();
  }

  Status read_row(std::string_view line, size_t number) {
    std::vector<std::string> cells = fields_of(line, ',');
    const auto at = [&](size_t column) { return str(path_, ":", number, ": ", header_[column], ": "); };
    if (cells.size() != header_.size())
      return invalid_argument(path_, ":", number, ": found ", cells.size(), " cells, expected ",
                              header_.size());
    Rows& rows = templates_[template_ ? cells[*template_] : std::string()];
    for (const size_t c : knobs_)
      if (!cells[c].empty()) rows.used.insert(c);
    double time_ns = kFails;
    if (outcome_from_name(cells[*status_]) == Outcome::kOk) {
      if (!read_number(cells[*time_], time_ns) || !(time_ns > 0) || !std::isfinite(time_ns))
        return invalid_argument(at(*time_), "found \"", cells[*time_],
                                "\", expected milliseconds above 0, as status is ok");
      time_ns *= kNsOfMs;
    }
    if (samples_) {
      std::vector<double>& samples = rows.samples_ns.emplace_back();
      if (!cells[*samples_].empty())
        for (const std::string& cell : fields_of(cells[*samples_], ';')) {
          double sample = 0;
          if (!read_number(cell, sample) || !(sample > 0) || !std::isfinite(sample))
            return invalid_argument(at(*samples_), "found \"", cell, "\", expected milliseconds above 0");
          samples.push_back(kNsOfMs * sample);
        }
    }
    rows.time_ns.push_back(time_ns);
    rows.lines.push_back(number);
    rows.cells.push_back(std::move(cells));
    return Status::ok();
  }

  Result<RecordedSpace::Part> make_part(const Rows& rows) const {
    RecordedSpace::Part part;
    const std::vector<size_t> columns(rows.used.begin(), rows.used.end());
    const size_t width = columns.size();
    if (width == 0)
      return invalid_argument(path_, ":", rows.lines.front(), ": no knob has a value, expected at least one");
    std::vector<Row> values(rows.cells.size(), Row(width));
    std::vector<IntExpr> knobs;
    for (size_t k = 0; k < width; ++k) {
      const size_t column = columns[k];
      std::set<std::string> labels;
      std::set<int64_t> candidates;
      bool integers = true;
      for (size_t r = 0; r < rows.cells.size(); ++r) {
        const std::string& cell = rows.cells[r][column];
        labels.insert(cell);
        if (cell.empty()) continue;
        integers = integers && read_number(cell, values[r][k]);
        candidates.insert(values[r][k]);
      }
      if (integers && labels.contains("")) {  // where it is inactive: a value below all others
        const int64_t inactive = std::min<int64_t>(-1, *candidates.begin() - 1);
        for (size_t r = 0; r < rows.cells.size(); ++r)
          if (rows.cells[r][column].empty()) values[r][k] = inactive;
        candidates.insert(inactive);
      }
      // Without a default of its own, the middle row is as good as any valid one.
      const size_t middle = rows.cells.size() / 2;
      if (integers) {
        knobs.push_back(ChoiceKnob(part.space.choice(header_[column], {candidates.begin(), candidates.end()})
                                       .try_first(values[middle][k])));
      } else {
        knobs.push_back(CategoryKnob(part.space.category(header_[column], {labels.begin(), labels.end()})
                                         .try_first(rows.cells[middle][column])));
        for (size_t r = 0; r < rows.cells.size(); ++r)
          values[r][k] = std::distance(labels.begin(), labels.find(rows.cells[r][column]));
      }
    }
    std::vector<Row> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    part.space.require(one_of(knobs, sorted, 0, 0, sorted.size()));
    RETURN_IF_ERROR(part.space.seal().with_context(path_ + ": "));

    part.time_ns.assign(part.space.size(), 0);
    if (samples_) part.samples_ns.resize(part.space.size());
    for (size_t r = 0; r < values.size(); ++r) {
      std::map<std::string, int64_t> config;
      for (size_t k = 0; k < width; ++k) config.emplace(header_[columns[k]], values[r][k]);
      const ConfigIndex index = part.space.index_of(Config(std::move(config))).value();
      if (part.time_ns[index] != 0)
        return invalid_argument(path_, ":", rows.lines[r], ": the config of this row came before");
      part.time_ns[index] = rows.time_ns[r];
      if (samples_) part.samples_ns[index] = rows.samples_ns[r];
    }
    CHECK(part.space.size() == values.size()) << "the recovered space is larger than the file";
    return part;
  }

  // "The knobs from `knob` on are as in one of the rows begin..end", which agree on the knobs before: a
  // trie, so that the tree of valid configs is built layer by layer without enumerating the product.
  static IntExpr one_of(const std::vector<IntExpr>& knobs, const std::vector<Row>& rows, size_t knob,
                        size_t begin, size_t end) {
    if (knob == knobs.size()) return IntExpr(1);
    std::optional<IntExpr> any;
    while (begin < end) {
      const int64_t value = rows[begin][knob];
      size_t next = begin;
      while (next < end && rows[next][knob] == value) ++next;
      const IntExpr here = knobs[knob] == IntExpr(value) && one_of(knobs, rows, knob + 1, begin, next);
      any = any ? *any || here : here;
      begin = next;
    }
    return *any;
  }

  const std::string path_;
  std::vector<std::string> header_;
  std::vector<size_t> knobs_;
  std::optional<size_t> time_, status_, samples_, template_;
  std::map<std::string, Rows> templates_;
};

}  // namespace

uint64_t RecordedSpace::size() const {
  uint64_t total = 0;
  for (const Part& part : parts) total += part.time_ns.size();
  return total;
}

double RecordedSpace::best_ns() const {
  double best = kFails;
  for (const Part& part : parts)
    for (const double t : part.time_ns) best = std::min(best, t);
  return best;
}

double RecordedSpace::median_ns() const {
  std::vector<double> all;
  for (const Part& part : parts) all.insert(all.end(), part.time_ns.begin(), part.time_ns.end());
  return median_in_place(all);
}

Observation RecordedSpace::measure(const Candidate& c) const {
  const double t = parts[c.template_index].time_ns[c.config];
  return {.candidate = c, .ok = std::isfinite(t), .time_ns = std::isfinite(t) ? t : 0};
}

SearchSpace RecordedSpace::search_space() const {
  SearchSpace search;
  for (const Part& part : parts) search.parts.push_back({part.template_name, &part.space, {}});
  return search;
}

PriorTask RecordedSpace::drawn_rows(size_t rows, uint64_t seed) const {
  PriorTask prior{.source = name, .rows = {}, .weight = 1};
  std::seed_seq words{static_cast<uint32_t>(seed), crc};
  std::mt19937_64 rng(words);
  std::vector<Candidate> all;
  for (size_t part = 0; part < parts.size(); ++part)
    for (ConfigIndex i = 0; i < parts[part].space.size(); ++i) all.push_back({static_cast<int>(part), i});
  for (size_t i = 0; i < std::min(rows, all.size()); ++i) {
    std::swap(all[i], all[i + rng() % (all.size() - i)]);
    const Part& part = parts[all[i].template_index];
    const Observation seen = measure(all[i]);
    prior.rows.push_back({part.template_name, part.space.at(all[i].config), seen.ok, seen.time_ns});
  }
  return prior;
}

Result<RecordedSpace> read_recorded_space(const std::string& path) { return Reader(path).read(); }

Result<std::vector<RecordedSpace>> read_recorded_spaces(const std::vector<std::string>& paths) {
  std::vector<RecordedSpace> spaces;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(RecordedSpace space, read_recorded_space(path));
    spaces.push_back(std::move(space));
  }
  return spaces;
}

}  // namespace tuner
