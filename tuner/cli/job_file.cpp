#include "tuner/cli/job_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "tuner/search/search_strategy.h"

namespace tuner::cli {

namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxEntries = 4096;
constexpr int64_t kMaxExtent = int64_t{1} << 31;

// The value as it stands in the file, shortened for one line.
std::string found(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  // "[0,1]" reads better as "[0, 1]", but a comma inside a string stays as it is.
  if (value.is_array() && std::ranges::all_of(value, [](const json& v) { return v.is_number(); })) {
    std::string spaced;
    for (const char c : text) spaced += c == ',' ? ", " : std::string(1, c);
    text = std::move(spaced);
  }
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  size_t cut = kLongest;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not in the middle of a UTF-8 character
  return text.substr(0, cut) + "...";
}

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
      status_ = invalid_argument(prefix_, found(json(key)), ": unknown key. Known here: ", known, ".");
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

void read_activation(ObjectReader& in, Activation& activation) {
  const json* value = in.get("activation");
  if (value == nullptr || value->is_null()) return;
  if (*value != "relu") in.refuse("activation", "expected \"relu\" or null, found ", found(*value), ".");
  activation = Activation::kRelu;
}

void read_dtype(ObjectReader& in, DType& dtype, std::initializer_list<DType> served = {DType::kFloat32}) {
  std::string name(dtype_name(dtype)), known;
  in.read("dtype", name);
  for (const DType each : served) {
    if (name == dtype_name(each)) return void(dtype = each);
    known += str(known.empty() ? "\"" : each == *(served.end() - 1) ? " or \"" : ", \"", each, "\"");
  }
  in.refuse("dtype", "expected ", known, ", found ", found(json(name)), ".");
}

// Keys that matmul and conv2d share.
template <class W>
void read_epilogue(ObjectReader& in, W& w) {
  in.read("bias", w.bias);
  in.read("residual", w.residual);
  read_activation(in, w.activation);
}

template <class W>
void read_constant(ObjectReader& in, W& w, std::vector<std::string> operands) {
  const json* constant = in.get("constant");
  if (constant == nullptr) return;
  if (w.bias) operands.emplace_back("bias");
  std::string known;
  for (const std::string& o : operands) known += (known.empty() ? "\"" : ", \"") + o + "\"";
  const auto refuse = [&] {
    in.refuse("constant", "expected a list of different operands out of ", known, ", found ",
              found(*constant), ".");
  };
  if (!constant->is_array()) return refuse();
  for (const json& name : *constant) {
    if (!name.is_string() || std::ranges::find(operands, name.get<std::string>()) == operands.end())
      return refuse();
    w.constant.push_back(name.get<std::string>());
  }
  std::ranges::sort(w.constant);
  if (std::ranges::adjacent_find(w.constant) != w.constant.end()) refuse();
}

Workload read_matmul(ObjectReader& in) {
  MatmulWorkload w;
  in.read("batch", w.batch, 1, kMaxExtent);
  in.read("transpose_a", w.transpose_a);
  in.read("transpose_b", w.transpose_b);
  std::vector<int64_t> a = in.shape("a", 2, w.transpose_a ? "[K, M], as stored" : "[M, K], as stored");
  std::vector<int64_t> b = in.shape("b", 2, w.transpose_b ? "[N, K], as stored" : "[K, N], as stored");
  const json* shape_of_b = in.get("b");  // null once something is wrong
  if (w.transpose_a) std::swap(a[0], a[1]);
  if (w.transpose_b) std::swap(b[0], b[1]);
  if (shape_of_b != nullptr && a[1] != b[0])
    in.refuse("b", "expected K = ", a[1], " as in a, found K = ", b[0], " in ", found(*shape_of_b),
              ". Order is ", w.transpose_b ? "[N, K]" : "[K, N]", ", as stored.");
  w.m = a[0];
  w.k = a[1];
  w.n = b[1];
  read_epilogue(in, w);
  read_dtype(in, w.dtype, {DType::kFloat32, DType::kBFloat16, DType::kInt8});
  read_constant(in, w, {"a", "b"});
  return w;
}

constexpr std::string_view kBoth = "[vertical, horizontal]";

// How a window moves over an image.
void read_window(ObjectReader& in, std::array<int64_t, 2>& stride, std::array<int64_t, 4>& padding) {
  if (const auto v = in.integers("stride", 1, {2}, "two", kBoth)) stride = {v->front(), v->back()};
  if (const auto v = in.integers("padding", 0, {2, 4}, "two or four",
                                 "[vertical, horizontal] or [top, left, bottom, right]")) {
    const auto& p = *v;
    padding = p.size() == 4 ? std::array{p[0], p[1], p[2], p[3]}
                            : std::array{p.front(), p.back(), p.front(), p.back()};
  }
}

Workload read_conv2d(ObjectReader& in) {
  Conv2dWorkload w;
  const std::vector<int64_t> data = in.shape("data", 4, "[batch, channels, height, width]");
  const std::vector<int64_t> weight =
      in.shape("weight", 4, "[output channels, channels of a group, kernel height, kernel width]");
  w.batch = data[0], w.in_channels = data[1], w.in_height = data[2], w.in_width = data[3];
  w.out_channels = weight[0], w.kernel_height = weight[2], w.kernel_width = weight[3];
  in.read("groups", w.groups, 1, kMaxExtent);
  if (w.in_channels % w.groups != 0)
    in.refuse("groups", "expected a divisor of the ", w.in_channels, " channels of data, found ", w.groups,
              ".");
  else if (w.out_channels % w.groups != 0)
    in.refuse("groups", "expected a divisor of the ", w.out_channels, " output channels of weight, found ",
              w.groups, ".");
  else if (weight[1] != w.in_channels / w.groups)
    in.refuse("weight", "expected ", w.in_channels / w.groups, " channels (those of data over ", w.groups,
              w.groups == 1 ? " group" : " groups", "), found ", weight[1],
              ". Order is [output channels, channels of a group, kernel height, kernel width].");
  if (const auto v = in.integers("dilation", 1, {2}, "two", kBoth)) w.dilation = {v->front(), v->back()};
  read_window(in, w.stride, w.padding);
  in.read("layout", w.layout);
  w.out_layout = w.layout;
  in.read("out_layout", w.out_layout);
  read_epilogue(in, w);
  read_dtype(in, w.dtype);
  read_constant(in, w, {"data", "weight"});
  return w;
}

Workload read_pool2d(ObjectReader& in) {
  Pool2dWorkload w;
  const std::vector<int64_t> data = in.shape("data", 4, "[batch, channels, height, width]");
  w.batch = data[0], w.channels = data[1], w.in_height = data[2], w.in_width = data[3];
  w.kernel_height = w.in_height, w.kernel_width = w.in_width;  // unless said: global pooling
  if (in.get("kernel") != nullptr) {
    const std::vector<int64_t> kernel = in.shape("kernel", 2, "[height, width]");
    w.kernel_height = kernel[0], w.kernel_width = kernel[1];
  }
  read_window(in, w.stride, w.padding);
  std::string name;
  in.read("pooling", name, /*required=*/true);
  if (name == pooling_name(Pooling::kAverage))
    w.pooling = Pooling::kAverage;
  else if (name != pooling_name(Pooling::kMax))
    in.refuse("pooling", R"(expected "max" or "average", found )", found(json(name)), ".");
  in.read("count_include_pad", w.count_include_pad);
  in.read("layout", w.layout);
  read_dtype(in, w.dtype);
  return w;
}

// "rows", "columns", "dtype": what the operators on rows share.
template <class W>
W read_matrix(ObjectReader& in) {
  W w;
  in.read("rows", w.rows, 1, kMaxExtent, /*required=*/true);
  in.read("columns", w.columns, 1, kMaxExtent, /*required=*/true);
  read_dtype(in, w.dtype);
  return w;
}

Workload read_layer_norm(ObjectReader& in) {
  auto w = read_matrix<LayerNormWorkload>(in);
  in.read("epsilon", w.epsilon, 0.0, 1.0);
  return w;
}

Workload read_reduce(ObjectReader& in) {
  auto w = read_matrix<ReduceWorkload>(in);
  std::string name;
  in.read("reduction", name, /*required=*/true);
  constexpr RowReduction kAll[] = {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin,
                                   RowReduction::kMean};
  const auto* known = std::ranges::find(kAll, name, row_reduction_name);
  if (known != std::end(kAll))
    w.reduction = *known;
  else
    in.refuse("reduction", R"(expected "sum", "max", "min" or "mean", found )", found(json(name)), ".");
  return w;
}

Workload read_elementwise(ObjectReader& in) {
  auto w = read_matrix<ElementwiseWorkload>(in);
  in.read("scale", w.scale);
  in.read("bias", w.bias);
  in.read("residual", w.residual);
  read_activation(in, w.activation);
  return w;
}

template <class W>
Workload read_only_matrix(ObjectReader& in) {
  return read_matrix<W>(in);
}

struct OperatorReader {
  std::string_view op;
  Workload (*read)(ObjectReader& in);
};
constexpr OperatorReader kOperators[] = {
    {MatmulWorkload::kOp, read_matmul},
    {Conv2dWorkload::kOp, read_conv2d},
    {Pool2dWorkload::kOp, read_pool2d},
    {SoftmaxWorkload::kOp, read_only_matrix<SoftmaxWorkload>},
    {LayerNormWorkload::kOp, read_layer_norm},
    {ReduceWorkload::kOp, read_reduce},
    {TransposeWorkload::kOp, read_only_matrix<TransposeWorkload>},
    {ElementwiseWorkload::kOp, read_elementwise},
};
static_assert(std::size(kOperators) == std::variant_size_v<Workload::Op>, "an operator has no reader");

Workload read_workload(ObjectReader& in) {
  std::string op;
  in.read("op", op, /*required=*/true);
  if (in.failed()) return {};
  const auto* reader = std::ranges::find(kOperators, op, &OperatorReader::op);
  if (reader != std::end(kOperators)) return reader->read(in);
  in.refuse("op", "expected one of ", operator_names(), ", found ", found(json(op)), ".");
  return {};
}

void read_measure(ObjectReader& in, const std::string& prefix, MeasureOptions& o) {
  const json* measure = in.get("measure");
  if (measure == nullptr) return;
  ObjectReader m(*measure, prefix + "measure.");
  constexpr double kDay = 86'400;
  m.read("min_repeat_ms", o.min_repeat_ms, 0.0, 60'000.0);
  m.read("repeats", o.repeats, 1, 10'000);
  m.read_within("precision", o.precision, 0.0, 1.0);
  m.read("build_timeout_s", o.build_timeout_s, 0.0, kDay);
  m.read("run_timeout_s", o.run_timeout_s, 0.0, kDay);
  in.adopt(m.finish());
}

void read_target(ObjectReader& in, std::string& target) {
  in.read("target", target);
  // What "cpu" is on this host is found out where it is used; any other target can be checked here.
  if (in.failed() || target == "cpu" || target.starts_with("cpu ")) return;
  if (const Result<Target> parsed = parse_target(target); !parsed)
    in.refuse("target", parsed.message(), "; found ", found(json(target)), ".");
}

void read_algorithms(ObjectReader& in, std::string& algorithms) {
  const json* value = in.get("algorithms");
  if (value == nullptr) return;
  std::vector<std::string> names;
  if (value->is_array())
    for (const json& name : *value)
      if (name.is_string()) names.push_back(name.get<std::string>());
  if (!value->is_array() || names.size() != value->size())
    return in.refuse("algorithms", "expected a list of names, found ", found(*value), ".");
  const Result<std::string> canonical = canonical_algorithms(names);
  if (!canonical) return in.refuse("algorithms", canonical.message(), "; found ", found(*value), ".");
  algorithms = *canonical;
}

Result<JobEntry> read_entry(const json& object, const std::string& prefix) {
  ObjectReader in(object, prefix);
  JobEntry entry;
  entry.workload = read_workload(in);
  read_target(in, entry.target);
  in.read("trials", entry.trials, 1, 10'000'000);
  in.read("uses", entry.uses, 1, 1'000'000'000);
  in.read("search", entry.search);
  if (!is_search_name(entry.search)) {
    std::string known;
    for (const std::string& name : strategy_names()) known += (known.empty() ? "" : ", ") + name;
    in.refuse("search", "expected one of ", known, ", found ", found(json(entry.search)), ".");
  }
  read_algorithms(in, entry.algorithms);
  in.read("seed", entry.seed, 0, ~uint64_t{0});
  double stop_below_percent = 100 * entry.stop.below;
  in.read_within("stop_below", stop_below_percent, 0, 100);
  entry.stop.below = stop_below_percent / 100;
  in.read("time_limit_s", entry.stop.time_limit_s, 0.0, 1e9);
  read_measure(in, prefix, entry.measure);
  RETURN_IF_ERROR(in.finish());
  RETURN_IF_ERROR(validate(entry.workload).with_context(prefix));
  return entry;
}

// "line 3, column 7" of a byte offset.
std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t newline = before.rfind('\n');
  return str("line ", line, ", column ",
             newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
}

// The document, each key of an object given once.
Result<json> parse_json(std::string_view text) {
  constexpr int kDeepest = 16;
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep = too_deep || depth > kDeepest;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second &&
        repeated.empty())
      repeated = parsed.get<std::string>();
    return !too_deep;  // what lies deeper is not kept
  };
  json document;
  try {
    document = json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." -> from "syntax
    // error" on
    if (const size_t colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    return invalid_argument(position(text, error.byte), ": not JSON: ", what);
  } catch (const json::exception& error) {
    return invalid_argument("not JSON: ", error.what());
  }
  if (too_deep) return invalid_argument("expected at most ", kDeepest, " levels of brackets, found more.");
  if (!repeated.empty())
    return invalid_argument(found(json(repeated)), ": the key is given twice in one object.");
  return document;
}

Result<std::vector<JobEntry>> read_document(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parse_json(text));
  std::vector<JobEntry> entries;
  if (!document.is_array()) {
    ASSIGN_OR_RETURN(JobEntry entry, read_entry(document, ""));
    entries.push_back(std::move(entry));
    return entries;
  }
  if (document.empty()) return invalid_argument("expected at least one entry, found [].");
  if (document.size() > kMaxEntries)
    return invalid_argument("expected at most ", kMaxEntries, " entries, found ", document.size(), ".");
  for (size_t i = 0; i < document.size(); ++i) {
    ASSIGN_OR_RETURN(JobEntry entry, read_entry(document[i], str("[", i, "].")));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Control characters of a hostile file must not reach a terminal, and a message is one line.
std::string one_line(std::string message) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return message;
}

}  // namespace

bool is_search_name(std::string_view name) {
  return std::ranges::find(strategy_names(), name) != strategy_names().end();
}

Result<std::vector<JobEntry>> parse_job_text(std::string_view text, std::string_view name) {
  Result<std::vector<JobEntry>> entries = read_document(text);
  if (!entries) return Status(StatusCode::kInvalidArgument, one_line(str(name, ": ", entries.message())));
  return entries;
}

Result<std::vector<JobEntry>> read_job_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file)
      return invalid_argument(path, ": cannot be read: ", std::strerror(errno),
                              ". Expected a job file such as examples/conv2d.json");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text(kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad())
    return invalid_argument(path, ": cannot be read: ", std::strerror(errno),
                            ". Expected a job file such as examples/conv2d.json");
  if (text.size() > kMaxFileBytes)
    return invalid_argument(path, ": expected at most ", kMaxFileBytes, " bytes, found more");
  return parse_job_text(text, path == "-" ? "standard input" : path);
}

}  // namespace tuner::cli
