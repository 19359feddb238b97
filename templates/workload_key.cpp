// The canonical text of a workload, both ways, and what a workload must satisfy.
#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "templates/workload.h"

namespace tuner {
namespace {

constexpr std::string_view kVersion = "v1";
constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int64_t kMaxExtent = int64_t{1} << 31;

std::string_view activation_name(Activation a) { return a == Activation::kRelu ? "relu" : "none"; }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ",") + w;
  return text.empty() ? "none" : text;
}
template <size_t N>
std::string joined(const std::array<int64_t, N>& numbers) {
  std::string text;
  for (const int64_t v : numbers) text += str(text.empty() ? "" : ",", v);
  return text;
}

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

  void read(const std::string& name, int64_t& value) {
    const std::string text = take(name);
    if (!number(text, value)) refuse(name, "an integer", text);
  }
  void read(const std::string& name, bool& value) {
    const std::string text = take(name);
    if (text != "0" && text != "1") refuse(name, "0 or 1", text);
    value = text == "1";
  }
  template <size_t N>
  void read(const std::string& name, std::array<int64_t, N>& values) {
    const std::string text = take(name);
    const std::vector<std::string> parts = split(text);
    bool good = parts.size() == N;
    for (size_t i = 0; good && i < N; ++i) good = number(parts[i], values[i]);
    if (!good) refuse(name, str(N, " integers between commas"), text);
  }
  void read(const std::string& name, Activation& value) {
    const std::string text = take(name);
    if (text != "none" && text != "relu") refuse(name, "none or relu", text);
    value = text == "relu" ? Activation::kRelu : Activation::kNone;
  }
  void read(const std::string& name, DType& value) {
    const std::string text = take(name);
    if (const auto t = dtype_from_name(text))
      value = *t;
    else
      refuse(name, "a type such as float32", text);
  }
  void read(const std::string& name, std::vector<std::string>& names) {
    const std::string text = take(name);
    names = text == "none" ? std::vector<std::string>{} : split(text);
    std::sort(names.begin(), names.end());
  }
  void read(const std::string& name, std::string& value) { value = take(name); }

  Status finish() {
    if (!words_.empty() && status_.is_ok())
      status_ = invalid_argument("workload key \"", key_, "\": ", op_, " has no ", words_.begin()->first);
    return status_;
  }

 private:
  explicit KeyReader(std::string_view key) : key_(key) {}

  static bool number(const std::string& text, int64_t& value) {
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

Status at_least(std::string_view name, int64_t value, int64_t lowest) {
  if (value >= lowest && value <= kMaxExtent) return Status::ok();
  return invalid_argument(name, ": expected an integer from ", lowest, " to 2^31, found ", value);
}

Status fits(std::string_view name, std::initializer_list<int64_t> shape, DType dtype) {
  __int128 bytes = dtype_bytes(dtype);
  for (const int64_t extent : shape) {
    bytes *= extent;
    if (bytes >= kMaxBytes)
      return invalid_argument(name, ": expected fewer than 2^40 bytes, the shape asks for more");
  }
  return Status::ok();
}

Status only(const std::vector<std::string>& constant, std::initializer_list<std::string_view> operands) {
  for (const std::string& name : constant)
    if (std::find(operands.begin(), operands.end(), name) == operands.end()) {
      std::string known;
      for (const std::string_view o : operands) known += str(known.empty() ? "" : ", ", o);
      return invalid_argument("constant: expected names of operands (", known, "), found \"", name, "\"");
    }
  if (std::adjacent_find(constant.begin(), constant.end(), std::greater_equal<>()) != constant.end())
    return invalid_argument("constant: expected each operand once, in alphabetical order, found ",
                            joined(constant));
  return Status::ok();
}

Status float32_only(DType dtype) {
  if (dtype == DType::kFloat32) return Status::ok();
  return invalid_argument("dtype: expected float32, found ", dtype);
}

// flops() must not overflow.
Status countable(std::initializer_list<int64_t> factors) {
  __int128 product = 2;
  for (const int64_t f : factors) {
    product *= f;
    if (product > (int64_t{1} << 62))
      return invalid_argument("shape: expected at most 2^62 floating-point operations, found more");
  }
  return Status::ok();
}

Status validate_matmul(const MatmulWorkload& w) {
  RETURN_IF_ERROR(at_least("batch", w.batch, 1));
  RETURN_IF_ERROR(at_least("m (rows of a)", w.m, 1));
  RETURN_IF_ERROR(at_least("n (columns of b)", w.n, 1));
  RETURN_IF_ERROR(at_least("k (columns of a)", w.k, 1));
  RETURN_IF_ERROR(float32_only(w.dtype));
  RETURN_IF_ERROR(fits("a", {w.batch, w.m, w.k}, w.dtype));
  RETURN_IF_ERROR(fits("b", {w.batch, w.k, w.n}, w.dtype));
  RETURN_IF_ERROR(fits("out", {w.batch, w.m, w.n}, w.dtype));
  RETURN_IF_ERROR(countable({w.batch, w.m, w.n, w.k}));
  return w.bias ? only(w.constant, {"a", "b", "bias"}) : only(w.constant, {"a", "b"});
}

Status validate_conv2d(const Conv2dWorkload& w) {
  const struct {
    std::string_view name;
    int64_t value;
  } extents[] = {{"data[0] (batch)", w.batch},
                 {"data[1] (channels)", w.in_channels},
                 {"data[2] (height)", w.in_height},
                 {"data[3] (width)", w.in_width},
                 {"weight[0] (output channels)", w.out_channels},
                 {"weight[2] (kernel height)", w.kernel_height},
                 {"weight[3] (kernel width)", w.kernel_width},
                 {"stride[0] (vertical)", w.stride[0]},
                 {"stride[1] (horizontal)", w.stride[1]},
                 {"dilation[0] (vertical)", w.dilation[0]},
                 {"dilation[1] (horizontal)", w.dilation[1]},
                 {"groups", w.groups}};
  for (const auto& [name, value] : extents) RETURN_IF_ERROR(at_least(name, value, 1));
  constexpr std::string_view kSides[] = {"padding[0] (top)", "padding[1] (left)", "padding[2] (bottom)",
                                         "padding[3] (right)"};
  for (size_t i = 0; i < 4; ++i) RETURN_IF_ERROR(at_least(kSides[i], w.padding[i], 0));
  if (w.in_channels % w.groups != 0)
    return invalid_argument("groups: expected a divisor of the ", w.in_channels, " input channels, found ",
                            w.groups);
  if (w.out_channels % w.groups != 0)
    return invalid_argument("groups: expected a divisor of the ", w.out_channels, " output channels, found ",
                            w.groups);
  const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                width = w.in_width + w.padding[1] + w.padding[3];
  const int64_t tall = w.dilation[0] * (w.kernel_height - 1) + 1,
                wide = w.dilation[1] * (w.kernel_width - 1) + 1;
  if (height < tall)
    return invalid_argument("data[2] (height): ", height, " with padding, expected at least ", tall,
                            " for a kernel of ", w.kernel_height, " rows at dilation ", w.dilation[0]);
  if (width < wide)
    return invalid_argument("data[3] (width): ", width, " with padding, expected at least ", wide,
                            " for a kernel of ", w.kernel_width, " columns at dilation ", w.dilation[1]);
  RETURN_IF_ERROR(float32_only(w.dtype));
  if (w.layout != "NCHW") return invalid_argument("layout: expected NCHW, found ", w.layout);
  RETURN_IF_ERROR(fits("data", {w.batch, w.in_channels, height, width}, w.dtype));
  RETURN_IF_ERROR(
      fits("weight", {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width}, w.dtype));
  RETURN_IF_ERROR(fits("out", {w.batch, w.out_channels, w.out_height(), w.out_width()}, w.dtype));
  RETURN_IF_ERROR(countable({w.batch, w.out_channels, w.out_height(), w.out_width(), w.in_channels / w.groups,
                             w.kernel_height, w.kernel_width}));
  return w.bias ? only(w.constant, {"data", "weight", "bias"}) : only(w.constant, {"data", "weight"});
}

}  // namespace

std::string Workload::key() const {
  if (const auto* m = get_if<MatmulWorkload>())
    return str(kVersion, " matmul b=", m->batch, " m=", m->m, " n=", m->n, " k=", m->k,
               " ta=", m->transpose_a, " tb=", m->transpose_b, " bias=", m->bias,
               " act=", activation_name(m->activation), " dtype=", m->dtype, " const=", joined(m->constant));
  const auto& w = std::get<Conv2dWorkload>(op_);
  return str(kVersion, " conv2d n=", w.batch, " ic=", w.in_channels, " ih=", w.in_height, " iw=", w.in_width,
             " oc=", w.out_channels, " kh=", w.kernel_height, " kw=", w.kernel_width,
             " stride=", joined(w.stride), " pad=", joined(w.padding), " dil=", joined(w.dilation),
             " groups=", w.groups, " bias=", w.bias, " act=", activation_name(w.activation),
             " dtype=", w.dtype, " layout=", w.layout, " const=", joined(w.constant));
}

Result<Workload> workload_from_key(std::string_view key) {
  ASSIGN_OR_RETURN(KeyReader in, KeyReader::open(key));
  Workload workload;
  if (in.op() == "matmul") {
    MatmulWorkload w;
    in.read("b", w.batch);
    in.read("m", w.m);
    in.read("n", w.n);
    in.read("k", w.k);
    in.read("ta", w.transpose_a);
    in.read("tb", w.transpose_b);
    in.read("bias", w.bias);
    in.read("act", w.activation);
    in.read("dtype", w.dtype);
    in.read("const", w.constant);
    workload = Workload(std::move(w));
  } else if (in.op() == "conv2d") {
    Conv2dWorkload w;
    in.read("n", w.batch);
    in.read("ic", w.in_channels);
    in.read("ih", w.in_height);
    in.read("iw", w.in_width);
    in.read("oc", w.out_channels);
    in.read("kh", w.kernel_height);
    in.read("kw", w.kernel_width);
    in.read("stride", w.stride);
    in.read("pad", w.padding);
    in.read("dil", w.dilation);
    in.read("groups", w.groups);
    in.read("bias", w.bias);
    in.read("act", w.activation);
    in.read("dtype", w.dtype);
    in.read("layout", w.layout);
    in.read("const", w.constant);
    workload = Workload(std::move(w));
  } else {
    return invalid_argument("workload key \"", key, "\": expected matmul or conv2d, found \"", in.op(), "\"");
  }
  RETURN_IF_ERROR(in.finish());
  RETURN_IF_ERROR(validate(workload).with_context(str("workload key \"", key, "\": ")));
  return workload;
}

Status validate(const Workload& workload) {
  if (const auto* w = workload.get_if<MatmulWorkload>()) return validate_matmul(*w);
  return validate_conv2d(*workload.get_if<Conv2dWorkload>());
}

}  // namespace tuner
