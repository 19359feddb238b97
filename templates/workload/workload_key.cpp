// The canonical text of a workload, both ways.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "templates/workload/workload.h"

namespace tuner {
namespace {

constexpr std::string_view kVersion = "v1";

template <class W, class Fields>
void describe_types(W& w, Fields& f) {
  f("dtype", w.dtype);
  f.unless("allow_tf32", w.allow_tf32, false);
  const DType usual = sum_dtype(w.dtype);
  DType out = w.out_dtype();
  f.unless("out_dtype", out, usual);
  w.narrow_out = out == usual ? std::nullopt : std::optional(out);
}

// residual=1, or residual=last behind the activation.
enum class Residual : uint8_t { kNone, kFirst, kLast };
std::ostream& operator<<(std::ostream& out, Residual r) {
  return out << (r == Residual::kNone ? "0" : r == Residual::kFirst ? "1" : "last");
}

// The order of the parts of an epilogue: post=scale,bias,activation.
struct Order {
  std::vector<EpiloguePart> parts;
  friend bool operator==(const Order&, const Order&) = default;
};
std::ostream& operator<<(std::ostream& out, const Order& order) {
  for (size_t i = 0; i < order.parts.size(); ++i)
    out << (i == 0 ? "" : ",") << epilogue_part_name(order.parts[i]);
  return out;
}

// What residual=last says of a workload whose other words are known.
template <class W>
std::vector<EpiloguePart> residual_last_order(W w) {
  w.post.clear();
  std::vector<EpiloguePart> parts = epilogue_parts(w);
  std::erase(parts, EpiloguePart::kResidual);
  parts.push_back(EpiloguePart::kResidual);
  return parts;
}

template <class W, class Fields>
void describe_epilogue(W& w, Fields& f) {
  f("bias", w.bias);
  f.unless("scale", w.scale, false);
  Residual residual = !w.residual             ? Residual::kNone
                      : adds_residual_last(w) ? Residual::kLast
                                              : Residual::kFirst;
  f.unless("residual", residual, Residual::kNone);
  w.residual = residual != Residual::kNone;
  f.unless("accumulate", w.accumulate, false);
  f("act", w.activation);
  const bool last = residual == Residual::kLast;
  Order order{last ? std::vector<EpiloguePart>() : w.post};
  if (!last) f.unless("post", order, Order());
  w.post = last ? residual_last_order(w) : order.parts;
}

// The words of each operator's key, in order: one list, for writing and for reading.
template <class Fields>
void describe(MatmulWorkload& w, Fields& f) {
  f("b", w.batch);
  f("m", w.m);
  f("n", w.n);
  f("k", w.k);
  f("ta", w.transpose_a);
  f("tb", w.transpose_b);
  describe_epilogue(w, f);
  describe_types(w, f);
  f("const", w.constant);
}
template <class Fields>
void describe(Conv2dWorkload& w, Fields& f) {
  f("n", w.batch);
  f("ic", w.in_channels);
  f("ih", w.in_height);
  f("iw", w.in_width);
  f("oc", w.out_channels);
  f("kh", w.kernel_height);
  f("kw", w.kernel_width);
  f("stride", w.stride);
  f("pad", w.padding);
  f("dil", w.dilation);
  f("groups", w.groups);
  describe_epilogue(w, f);
  describe_types(w, f);
  f("layout", w.layout);
  f.unless("out_layout", w.out_layout, w.layout);
  f("const", w.constant);
}
template <class Fields>
void describe(Pool2dWorkload& w, Fields& f) {
  f("n", w.batch);
  f("c", w.channels);
  f("ih", w.in_height);
  f("iw", w.in_width);
  f("kh", w.kernel_height);
  f("kw", w.kernel_width);
  f("stride", w.stride);
  f("pad", w.padding);
  f("pooling", w.pooling);
  f.unless("include_pad", w.count_include_pad, false);
  f("dtype", w.dtype);
  f("layout", w.layout);
}
template <class W, class Fields>
void describe_matrix(W& w, Fields& f) {
  f("rows", w.rows);
  f("columns", w.columns);
}
template <class Fields>
void describe(SoftmaxWorkload& w, Fields& f) {
  describe_matrix(w, f);
  f("dtype", w.dtype);
}
template <class Fields>
void describe(LayerNormWorkload& w, Fields& f) {
  describe_matrix(w, f);
  f("eps", w.epsilon);
  f("dtype", w.dtype);
}
template <class Fields>
void describe(ReduceWorkload& w, Fields& f) {
  describe_matrix(w, f);
  f("reduction", w.reduction);
  f("dtype", w.dtype);
}
template <class Fields>
void describe(TransposeWorkload& w, Fields& f) {
  describe_matrix(w, f);
  f("dtype", w.dtype);
}
template <class Fields>
void describe(ElementwiseWorkload& w, Fields& f) {
  describe_matrix(w, f);
  f("scale", w.scale);
  f("bias", w.bias);
  f("residual", w.residual);
  f("act", w.activation);
  f("dtype", w.dtype);
}

class KeyWriter {
 public:
  explicit KeyWriter(std::string_view op) : text_(str(kVersion, " ", op)) {}
  template <class T>
  void operator()(std::string_view name, const T& value) {
    text_ += str(" ", name, "=", word(value));
  }
  // A word that is left out when it says the usual: keys from before it existed stay good.
  template <class T>
  void unless(std::string_view name, const T& value, const T& usual) {
    if (value != usual) (*this)(name, value);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string word(int64_t value) { return str(value); }
  static std::string word(bool value) { return value ? "1" : "0"; }
  // The shortest text that reads back as the same number.
  static std::string word(double value) {
    std::array<char, 32> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }
  static std::string word(const Activation& value) { return activation_text(value); }
  static std::string word(Residual value) { return str(value); }
  static std::string word(const Order& value) { return str(value); }
  static std::string word(Pooling value) { return std::string(pooling_name(value)); }
  static std::string word(RowReduction value) { return std::string(row_reduction_name(value)); }
  static std::string word(DType value) { return std::string(dtype_name(value)); }
  static std::string word(const std::string& value) { return value; }
  static std::string word(const std::vector<std::string>& words) {
    return words.empty() ? "none" : joined(words);
  }
  template <size_t N>
  static std::string word(const std::array<int64_t, N>& numbers) {
    return joined(numbers);
  }
  template <class List>
  static std::string joined(const List& list) {
    std::string text;
    for (const auto& item : list) text += str(text.empty() ? "" : ",", item);
    return text;
  }

  std::string text_;
};

// "v1 conv2d n=1 ..." taken apart; each reader consumes its word, so that what is left over is unknown.
class KeyReader {
 public:
  static Result<KeyReader> open(std::string_view key) {
    KeyReader reader(key);
    std::istringstream in{std::string(key)};
    std::string version, word;
    in >> version >> reader.op_;
    if (version != kVersion)
      return invalid_argument("workload key \"", key, "\": expected to start with \"", kVersion,
                              "\", found \"", version, "\"");
    while (in >> word) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        return invalid_argument("workload key \"", key, "\": expected name=value, found \"", word, "\"");
      if (!reader.words_.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
        return invalid_argument("workload key \"", key, "\": ", word.substr(0, equals), " is given twice");
    }
    return reader;
  }

  const std::string& op() const { return op_; }

  void operator()(const std::string& name, int64_t& value) {
    const std::string text = take(name);
    if (!number(text, value)) refuse(name, "an integer", text);
  }
  void operator()(const std::string& name, bool& value) {
    const std::string text = take(name);
    if (text != "0" && text != "1") refuse(name, "0 or 1", text);
    value = text == "1";
  }
  template <size_t N>
  void operator()(const std::string& name, std::array<int64_t, N>& values) {
    const std::string text = take(name);
    const std::vector<std::string> parts = split(text);
    bool good = parts.size() == N;
    for (size_t i = 0; good && i < N; ++i) good = number(parts[i], values[i]);
    if (!good) refuse(name, str(N, " integers between commas"), text);
  }
  void operator()(const std::string& name, double& value) {
    const std::string text = take(name);
    if (!number(text, value)) refuse(name, "a number", text);
  }
  void operator()(const std::string& name, Activation& value) {
    const std::string text = take(name);
    const auto read = activation_from_text(text);
    if (read && activation_text(*read) == text) return void(value = *read);
    refuse(name, "an activation such as none, relu, silu, clip:0:6 or leaky:0.1", text);
  }
  void operator()(const std::string& name, Residual& value) {
    const std::string text = take(name);
    for (const Residual r : {Residual::kNone, Residual::kFirst, Residual::kLast})
      if (text == str(r)) return void(value = r);
    refuse(name, "1 or last", text);
  }
  void operator()(const std::string& name, Order& value) {
    const std::string text = take(name);
    for (const std::string& word : split(text)) {
      const auto* part = std::ranges::find(kEpilogueParts, word, epilogue_part_name);
      if (part == std::end(kEpilogueParts))
        return refuse(name, "bias, scale, residual or activation, between commas", text);
      value.parts.push_back(*part);
    }
  }
  void operator()(const std::string& name, Pooling& value) {
    const std::string text = take(name);
    if (text != "max" && text != "average") refuse(name, "max or average", text);
    value = text == "average" ? Pooling::kAverage : Pooling::kMax;
  }
  void operator()(const std::string& name, RowReduction& value) {
    const std::string text = take(name);
    for (const RowReduction r :
         {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin, RowReduction::kMean})
      if (text == row_reduction_name(r)) return void(value = r);
    refuse(name, "sum, max, min or mean", text);
  }
  void operator()(const std::string& name, DType& value) {
    const std::string text = take(name);
    if (const auto t = dtype_from_name(text))
      value = *t;
    else
      refuse(name, "a type such as float32", text);
  }
  void operator()(const std::string& name, std::vector<std::string>& names) {
    const std::string text = take(name);
    names = text == "none" ? std::vector<std::string>{} : split(text);
    std::sort(names.begin(), names.end());
  }
  void operator()(const std::string& name, std::string& value) { value = take(name); }

  template <class T>
  void unless(const std::string& name, T& value, const T& usual) {
    if (!words_.contains(name)) return void(value = usual);
    (*this)(name, value);
    if (value == usual) refuse(name, "the word to be left out when it says the usual", str(usual));
  }

  Status finish() {
    if (!words_.empty() && status_.is_ok())
      status_ = invalid_argument("workload key \"", key_, "\": ", op_, " has no ", words_.begin()->first);
    return status_;
  }

 private:
  explicit KeyReader(std::string_view key) : key_(key) {}

  template <class T>
  static bool number(const std::string& text, T& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
  }
  std::string take(const std::string& name) {
    const auto found = words_.find(name);
    if (found == words_.end()) {
      if (status_.is_ok()) status_ = invalid_argument("workload key \"", key_, "\": ", name, " is missing");
      return {};
    }
    std::string text = std::move(found->second);
    words_.erase(found);
    return text;
  }
  void refuse(const std::string& name, const std::string& expected, const std::string& found) {
    if (status_.is_ok())
      status_ = invalid_argument("workload key \"", key_, "\": ", name, ": expected ", expected, ", found \"",
                                 found, "\"");
  }

  std::string key_, op_;
  std::map<std::string, std::string> words_;
  Status status_;
};

// Reads the key as the operator whose name it has; false when none has.
template <size_t I = 0>
bool read_operator(KeyReader& in, Workload& workload) {
  if constexpr (I == std::variant_size_v<Workload::Op>) {
    return false;
  } else {
    using W = std::variant_alternative_t<I, Workload::Op>;
    if constexpr (std::is_same_v<W, ProgramWorkload>) {
      return read_operator<I + 1>(in, workload);
    } else {
      if (in.op() != W::kOp) return read_operator<I + 1>(in, workload);
      W w;
      describe(w, in);
      workload = Workload(std::move(w));
      return true;
    }
  }
}

template <size_t... I>
std::string names_of(std::index_sequence<I...>) {
  std::string names;
  ((names += str(I == 0 ? "" : ", ", std::variant_alternative_t<I, Workload::Op>::kOp)), ...);
  return names;
}

}  // namespace

std::string operator_names() {
  return names_of(std::make_index_sequence<std::variant_size_v<Workload::Op>>());
}

std::string Workload::key() const {
  return std::visit(
      []<class W>(W w) {
        if constexpr (std::is_same_v<W, ProgramWorkload>) {
          return str(kVersion, " ", w.kOp, " ", w.text);
        } else {
          KeyWriter out(w.kOp);
          describe(w, out);
          return out.text();
        }
      },
      op_);
}

Result<Workload> workload_from_key(std::string_view key) {
  const std::string program = str(kVersion, " ", ProgramWorkload::kOp, " ");
  if (key.starts_with(program)) {
    Result<Workload> workload = program_from_text(key.substr(program.size()));
    if (!workload) return workload.status().with_context(str("workload key \"", key, "\": "));
    return workload;
  }
  ASSIGN_OR_RETURN(KeyReader in, KeyReader::open(key));
  Workload workload;
  if (!read_operator(in, workload))
    return invalid_argument("workload key \"", key, "\": expected one of ", operator_names(), ", found \"",
                            in.op(), "\"");
  RETURN_IF_ERROR(in.finish());
  RETURN_IF_ERROR(validate(workload).with_context(str("workload key \"", key, "\": ")));
  return workload;
}

}  // namespace tuner
