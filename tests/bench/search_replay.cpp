// search_replay: scores the search strategies on spaces whose every time is known, no device needed.
//
//   search_replay [--seeds N] [--batch N] [--strategies a,b] [--options "key=value ..."] [SPACE.csv[.gz]...]
//
// Prints, for each strategy, best time of the space / best time found after 32, 64, 128, 256 trials in
// percent: the mean over spaces and seeds, and the worst run. Without files: synthetic spaces. A file has a
// header, one column a knob, then time_ms and status ("ok", or how the config failed); configs that are
// absent break a constraint. Constraints are recovered as the combinations of a few knobs that never occur.
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "tests/tuner/measured_space.h"
#include "tuner/search/model_guided.h"

namespace tuner::testing {
namespace {

using Row = std::vector<int64_t>;

Result<std::string> read_text(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain text too
  if (file == nullptr) return not_found(path, ": cannot be opened");
  std::string text;
  char buffer[65536];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  if (got < 0) return failed(path, ": damaged gzip data");
  return text;
}

std::vector<std::string> split(const std::string& line, char at) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, at);) fields.push_back(field);
  return fields;
}

Row project(const Row& row, const std::vector<size_t>& columns) {
  Row part;
  for (size_t c : columns) part.push_back(row[c]);
  return part;
}

// Forbids, over every subset of knobs from pairs up, the combinations that occur in no row.
void require_only(ConfigSpace& space, const std::vector<ChoiceKnob>& knobs,
                  const std::vector<Row>& candidates, const std::vector<Row>& rows) {
  std::vector<Row> allowed{{}};
  for (const Row& values : candidates) {
    std::vector<Row> longer;
    for (const Row& row : allowed)
      for (int64_t v : values) (longer.emplace_back(row)).push_back(v);
    allowed = std::move(longer);
  }
  for (size_t size = 2; size <= knobs.size() && allowed.size() > rows.size(); ++size) {
    for (uint32_t mask = 0; mask < (1u << knobs.size()); ++mask) {
      if (static_cast<size_t>(__builtin_popcount(mask)) != size) continue;
      std::vector<size_t> columns;
      for (size_t c = 0; c < knobs.size(); ++c)
        if (mask >> c & 1) columns.push_back(c);
      std::set<Row> seen, forbidden;
      for (const Row& row : rows) seen.insert(project(row, columns));
      for (const Row& row : allowed)
        if (const Row part = project(row, columns); !seen.contains(part)) forbidden.insert(part);
      for (const Row& part : forbidden) {
        IntExpr differs = IntExpr(knobs[columns[0]]) != IntExpr(part[0]);
        for (size_t i = 1; i < columns.size(); ++i)
          differs = differs || IntExpr(knobs[columns[i]]) != IntExpr(part[i]);
        space.require(differs);
      }
      if (!forbidden.empty())
        std::erase_if(allowed, [&](const Row& row) { return forbidden.contains(project(row, columns)); });
    }
  }
}

Result<MeasuredSpace> load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = split(line, ',');
  if (header.size() < 3 || header[header.size() - 2] != "time_ms" || header.back() != "status")
    return invalid_argument(path, ": found header \"", line, "\", expected knobs, then time_ms,status");
  const size_t width = header.size() - 2;
  std::map<Row, double> times;
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split(line, ',');
    if (fields.size() != header.size())
      return invalid_argument(path, ": found ", fields.size(), " fields, expected ", header.size(),
                              " in: ", line);
    Row row;
    for (size_t i = 0; i < width; ++i) row.push_back(std::stoll(fields[i]));
    rows.push_back(row);
    times[row] =
        fields.back() == "ok" ? 1e6 * std::stod(fields[width]) : std::numeric_limits<double>::infinity();
  }
  std::vector<Row> candidates(width);
  for (size_t i = 0; i < width; ++i) {
    std::set<int64_t> values;
    for (const Row& row : rows) values.insert(row[i]);
    candidates[i].assign(values.begin(), values.end());
  }
  MeasuredSpace m{.name = path.substr(path.rfind('/') + 1), .space = ConfigSpace(), .time_ns = {}};
  std::vector<ChoiceKnob> knobs;
  // These files have no default config; the middle row is as good as any valid one.
  const Row& first = rows[rows.size() / 2];
  for (size_t i = 0; i < width; ++i)
    knobs.push_back(m.space.choice(header[i], candidates[i]).try_first(first[i]));
  require_only(m.space, knobs, candidates, rows);
  RETURN_IF_ERROR(m.space.seal().with_context(path + ": "));
  for (ConfigIndex i = 0; i < m.space.size(); ++i) {
    const Config config = m.space.at(i);
    Row row;
    for (size_t k = 0; k < width; ++k) row.push_back(config.at(header[k]));
    const auto found = times.find(row);
    m.time_ns.push_back(found == times.end() ? std::numeric_limits<double>::infinity() : found->second);
  }
  if (m.space.size() != rows.size())
    return failed(path, ": the recovered space has ", m.space.size(), " configs, the file ", rows.size());
  return m;
}

// "uncertainty=0.5 local_share=0.3": settings of the model-guided strategies to try out.
Status set_options(ModelGuidedOptions& o, const std::string& text) {
  std::istringstream in(text);
  for (std::string pair; in >> pair;) {
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos) return invalid_argument("option ", pair, ": expected key=value");
    const double v = std::stod(pair.substr(equals + 1));
    if (key == "batch")
      o.batch = static_cast<size_t>(v);
    else if (key == "random_share")
      o.random_share = v;
    else if (key == "local_share")
      o.local_share = v;
    else if (key == "uncertainty")
      o.uncertainty = v;
    else if (key == "crossover")
      o.crossover = v;
    else if (key == "mutation")
      o.mutation = v;
    else if (key == "parents")
      o.parents = static_cast<size_t>(v);
    else if (key == "children")
      o.children = static_cast<size_t>(v);
    else if (key == "likeness")
      o.likeness = v;
    else if (key == "models")
      o.models = static_cast<int>(v);
    else if (key == "rank_whole")
      o.rank_whole = static_cast<size_t>(v);
    else if (key == "rounds")
      o.xgboost.rounds = static_cast<int>(v);
    else if (key == "max_depth")
      o.xgboost.max_depth = static_cast<int>(v);
    else if (key == "eta")
      o.xgboost.eta = static_cast<float>(v);
    else if (key == "subsample")
      o.xgboost.subsample = static_cast<float>(v);
    else if (key == "column_sample")
      o.xgboost.column_sample = static_cast<float>(v);
    else
      return invalid_argument("option ", key, ": not one of the model-guided options");
  }
  return Status::ok();
}

Status run(int argc, char** argv) {
  int seeds = 5;
  size_t batch = 8;
  std::vector<std::string> names = strategy_names();
  ModelGuidedOptions options;
  bool own_options = false;
  std::vector<MeasuredSpace> spaces;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--seeds" && has_value)
      seeds = std::stoi(argv[++i]);
    else if (arg == "--batch" && has_value)
      batch = std::stoul(argv[++i]);
    else if (arg == "--strategies" && has_value)
      names = split(argv[++i], ',');
    else if (arg == "--options" && has_value) {
      RETURN_IF_ERROR(set_options(options, argv[++i]));
      own_options = true;
    } else if (arg.starts_with("--"))
      return invalid_argument(arg, ": unknown option, or its value is missing");
    else {
      ASSIGN_OR_RETURN(MeasuredSpace loaded, load(arg));
      spaces.push_back(std::move(loaded));
    }
  }
  if (spaces.empty())
    for (uint64_t variant = 0; variant < 6; ++variant) spaces.push_back(rugged_space(variant));
  for (const MeasuredSpace& m : spaces) {
    std::vector<double> sorted = m.time_ns;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2),
                     sorted.end());
    std::printf("%s: %zu configs, median/best %.1f\n", m.name.c_str(), m.time_ns.size(),
                sorted[sorted.size() / 2] / m.best_ns());
  }

  constexpr size_t kMarks[] = {32, 64, 128, 256};
  std::printf("%-14s %31s   %31s  %s\n", "", "mean % of optimum @32/64/128/256", "worst run", "s/run");
  for (const std::string& name : names) {
    double mean[4] = {}, worst[4] = {1, 1, 1, 1};
    const auto begin = std::chrono::steady_clock::now();
    for (const MeasuredSpace& m : spaces)
      for (int seed = 0; seed < seeds; ++seed) {
        const SearchSpace space = m.search_space();
        std::unique_ptr<SearchStrategy> search;
        if (own_options && name.starts_with("xgb-")) {
          search = make_model_guided_search(name, space, static_cast<uint64_t>(seed),
                                            name == "xgb-genetic" ? walk_genetic : walk_annealing, options);
        } else {
          ASSIGN_OR_RETURN(search, make_strategy(name, space, static_cast<uint64_t>(seed)));
        }
        const std::vector<double> shares = share_of_optimum(m, *search, 256, batch);
        for (size_t k = 0; k < 4; ++k) {
          mean[k] += shares[kMarks[k] - 1];
          worst[k] = std::min(worst[k], shares[kMarks[k] - 1]);
        }
      }
    const double runs = static_cast<double>(spaces.size()) * seeds;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%-14s %7.1f %7.1f %7.1f %7.1f   %7.1f %7.1f %7.1f %7.1f  %.2f\n", name.c_str(),
                100 * mean[0] / runs, 100 * mean[1] / runs, 100 * mean[2] / runs, 100 * mean[3] / runs,
                100 * worst[0], 100 * worst[1], 100 * worst[2], 100 * worst[3], seconds / runs);
    std::fflush(stdout);
  }
  return Status::ok();
}

}  // namespace
}  // namespace tuner::testing

int main(int argc, char** argv) {
  const tuner::Status status = tuner::testing::run(argc, argv);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 2;
}
