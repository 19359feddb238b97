// The canonical text of a workload, both ways, from what its operator describes.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "templates/workload/parts/operator.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

constexpr std::string_view kVersion = "v1";

template <class W>
constexpr bool kKeyIsText = requires {
  W::kKeyIsText;
};

template <class List>
std::string joined(const List& list) {
  std::string text;
  for (const auto& item : list) text += str(text.empty() ? "" : ",", item);
  return text;
}
std::string joined(const std::vector<EpiloguePart>& parts) {
  std::string text;
  for (const EpiloguePart part : parts) text += str(text.empty() ? "" : ",", epilogue_part_name(part));
  return text;
}

std::string_view word_of(ResidualPlace place) {
  return place == ResidualPlace::kNone ? "0" : place == ResidualPlace::kUsual ? "1" : "last";
}

// Returns "sum, max, min or mean".
std::string either_of(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += str(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text;
}

class KeyWriter final : public WorkloadFields {
 public:
  explicit KeyWriter(std::string_view op) : text_(str(kVersion, " ", op)) {}
  const std::string& text() const { return text_; }

  void extent(const FieldInfo& f, int64_t& value) override { write(f, str(value)); }
  void shape(const ShapeInfo& /*s*/, std::initializer_list<ExtentInfo> extents) override {
    for (const ExtentInfo& e : extents)
      if (!e.word.empty()) write({.word = e.word}, str(e.value));
  }
  void pair(const FieldInfo& f, std::array<int64_t, 2>& values) override { write(f, joined(values)); }
  void sides(const FieldInfo& f, std::array<int64_t, 4>& values) override { write(f, joined(values)); }
  void flag(const FieldInfo& f, bool& value) override { write(f, value ? "1" : "0", "0"); }
  // The shortest text that reads back as the same number.
  void number(const FieldInfo& f, double& value, double /*least*/, double /*most*/) override {
    std::array<char, 32> text;
    write(f, {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr});
  }
  void choice(const FieldInfo& f, std::span<const std::string_view> names, size_t& place) override {
    write(f, std::string(names[place]));
  }
  void type(const FieldInfo& f, DType& value, std::span<const DType> /*served*/, DType usual) override {
    write(f, std::string(dtype_name(value)), dtype_name(usual));
  }
  void layout(const FieldInfo& f, std::string& value, std::string_view usual) override {
    write(f, value, usual);
  }
  void activation(const FieldInfo& f, Activation& value) override { write(f, activation_text(value)); }
  void residual(const FieldInfo& f, ResidualPlace& value) override {
    write(f, std::string(word_of(value)), "0");
  }
  void order(const FieldInfo& f, std::vector<EpiloguePart>& parts) override { write(f, joined(parts), ""); }
  void operands(const FieldInfo& f, std::vector<std::string>& names,
                const std::vector<std::string>& /*known*/) override {
    write(f, names.empty() ? "none" : joined(names));
  }
  void text(const FieldInfo& /*f*/, std::string& value,
            const std::function<Status(const std::string&)>& /*parse*/) override {
    text_ += " " + value;
  }

 private:
  void write(const FieldInfo& f, const std::string& word, std::string_view usual = "") {
    if (!f.may_lack || word != usual) text_ += str(" ", f.word, "=", word);
  }

  std::string text_;
};

// "v1 conv2d n=1 ..." taken apart; each field consumes its word, so that what is left over is unknown.
class KeyReader final : public WorkloadFields {
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
  // Of a key whose text behind the operator has spaces of its own.
  static KeyReader of_text(std::string_view key, std::string_view op, std::string_view text) {
    KeyReader reader(key);
    reader.op_ = op, reader.rest_ = text;
    return reader;
  }

  const std::string& op() const { return op_; }

  void extent(const FieldInfo& f, int64_t& value) override {
    const auto text = take(f);
    if (text && !number_of(*text, value)) refuse_word(f, "an integer", *text);
  }
  void shape(const ShapeInfo& /*s*/, std::initializer_list<ExtentInfo> extents) override {
    for (const ExtentInfo& e : extents)
      if (!e.word.empty()) extent({.word = e.word}, e.value);
  }
  void pair(const FieldInfo& f, std::array<int64_t, 2>& values) override { integers(f, values); }
  void sides(const FieldInfo& f, std::array<int64_t, 4>& values) override { integers(f, values); }
  void flag(const FieldInfo& f, bool& value) override {
    value = false;
    const auto text = take(f);
    if (!text) return;
    if (*text != "0" && *text != "1") refuse_word(f, "0 or 1", *text);
    value = *text == "1";
    if (f.may_lack && !value) refuse_usual(f, "0");
  }
  void number(const FieldInfo& f, double& value, double /*least*/, double /*most*/) override {
    const auto text = take(f);
    if (text && !number_of(*text, value)) refuse_word(f, "a number", *text);
  }
  void choice(const FieldInfo& f, std::span<const std::string_view> names, size_t& place) override {
    const auto text = take(f);
    if (!text) return;
    const auto found = std::ranges::find(names, *text);
    if (found == names.end()) return refuse_word(f, either_of(names), *text);
    place = static_cast<size_t>(found - names.begin());
  }
  void type(const FieldInfo& f, DType& value, std::span<const DType> /*served*/, DType usual) override {
    const auto text = take(f);
    if (f.may_lack) value = usual;
    if (!text) return;
    const auto read = dtype_from_name(*text);
    if (!read) return refuse_word(f, "a type such as float32", *text);
    value = *read;
    if (f.may_lack && value == usual) refuse_usual(f, std::string(dtype_name(usual)));
  }
  void layout(const FieldInfo& f, std::string& value, std::string_view usual) override {
    const auto text = take(f);
    value = text ? *text : usual;
    if (text && f.may_lack && value == usual) refuse_usual(f, value);
  }
  void activation(const FieldInfo& f, Activation& value) override {
    const auto text = take(f);
    if (!text) return;
    const auto read = activation_from_text(*text);
    if (!read || activation_text(*read) != *text)
      return refuse_word(f, "an activation such as none, relu, silu, clip:0:6 or leaky:0.1", *text);
    value = *read;
  }
  void residual(const FieldInfo& f, ResidualPlace& value) override {
    value = ResidualPlace::kNone;
    const auto text = take(f);
    if (!text) return;
    for (const ResidualPlace place : {ResidualPlace::kUsual, ResidualPlace::kLast})
      if (*text == word_of(place)) return void(value = place);
    if (*text == word_of(ResidualPlace::kNone)) return refuse_usual(f, *text);
    refuse_word(f, "1 or last", *text);
  }
  void order(const FieldInfo& f, std::vector<EpiloguePart>& parts) override {
    parts.clear();
    const auto text = take(f);
    if (!text) return;
    for (const std::string& word : split(*text)) {
      const auto* part = std::ranges::find(kEpilogueParts, word, epilogue_part_name);
      if (part == std::end(kEpilogueParts))
        return refuse_word(f, "bias, scale, residual or activation, between commas", *text);
      parts.push_back(*part);
    }
    if (parts.empty()) refuse_usual(f, "");
  }
  void operands(const FieldInfo& f, std::vector<std::string>& names,
                const std::vector<std::string>& /*known*/) override {
    const auto text = take(f);
    if (!text) return;
    names = *text == "none" ? std::vector<std::string>{} : split(*text);
    std::ranges::sort(names);
  }
  void text(const FieldInfo& /*f*/, std::string& value,
            const std::function<Status(const std::string&)>& parse) override {
    value = rest_;
    status_ = parse(rest_).with_context(context());
  }

  // Returns the first mistake; a word that no field has is one.
  Status finish() {
    if (!words_.empty() && status_.is_ok())
      status_ = invalid_argument(context(), op_, " has no ", words_.begin()->first);
    return status_;
  }
  std::string context() const { return str("workload key \"", key_, "\": "); }

 private:
  explicit KeyReader(std::string_view key) : key_(key) {}

  template <class T>
  static bool number_of(const std::string& text, T& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
  }
  template <size_t N>
  void integers(const FieldInfo& f, std::array<int64_t, N>& values) {
    const auto text = take(f);
    if (!text) return;
    const std::vector<std::string> parts = split(*text);
    bool good = parts.size() == N;
    for (size_t i = 0; good && i < N; ++i) good = number_of(parts[i], values[i]);
    if (!good) refuse_word(f, str(N, " integers between commas"), *text);
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
  }
  // Consumes the word of a field. Nothing if there is none, which is a mistake unless it may be lacking.
  std::optional<std::string> take(const FieldInfo& f) {
    const auto found = words_.find(std::string(f.word));
    if (found == words_.end()) {
      if (!f.may_lack && status_.is_ok()) status_ = invalid_argument(context(), f.word, " is missing");
      return std::nullopt;
    }
    std::string text = std::move(found->second);
    words_.erase(found);
    return text;
  }
  void refuse_word(const FieldInfo& f, const std::string& expected, const std::string& found) {
    if (status_.is_ok())
      status_ = invalid_argument(context(), f.word, ": expected ", expected, ", found \"", found, "\"");
  }
  void refuse_usual(const FieldInfo& f, const std::string& usual) {
    refuse_word(f, "the word to be left out when it says the usual", usual);
  }

  std::string key_, op_, rest_;
  std::map<std::string, std::string> words_;
  Status status_;
};

// Reads the key as the operator `op`, if it has alternative I or one behind it.
template <size_t I = 0>
Result<Workload> read_as(std::string_view op, bool as_text, KeyReader& in) {
  if constexpr (I == std::variant_size_v<Workload::Op>) {
    return invalid_argument(in.context(), "expected one of ", operator_names(), ", found \"", op, "\"");
  } else {
    using W = std::variant_alternative_t<I, Workload::Op>;
    if (op != W::kOp || as_text != kKeyIsText<W>) return read_as<I + 1>(op, as_text, in);
    W w;
    w.facts().describe(w, in);
    RETURN_IF_ERROR(in.finish());
    const Workload workload(std::move(w));
    RETURN_IF_ERROR(validate(workload).with_context(in.context()));
    return workload;
  }
}

// The start of keys whose operator has a text in place of words: "v1 program ".
template <size_t... I>
std::string_view text_operator_of(std::string_view key, std::index_sequence<I...>) {
  std::string_view op;
  const auto look = [&]<class W>() {
    if (kKeyIsText<W> && key.starts_with(str(kVersion, " ", W::kOp, " "))) op = W::kOp;
  };
  (look.template operator()<std::variant_alternative_t<I, Workload::Op>>(), ...);
  return op;
}

}  // namespace

std::string Workload::key() const {
  return std::visit(
      [](auto w) {
        KeyWriter out(w.kOp);
        w.facts().describe(w, out);
        return out.text();
      },
      op_);
}

Result<Workload> workload_from_key(std::string_view key) {
  const std::string_view op =
      text_operator_of(key, std::make_index_sequence<std::variant_size_v<Workload::Op>>());
  if (!op.empty()) {
    KeyReader in = KeyReader::of_text(key, op, key.substr(kVersion.size() + op.size() + 2));
    return read_as(op, /*as_text=*/true, in);
  }
  ASSIGN_OR_RETURN(KeyReader in, KeyReader::open(key));
  return read_as(in.op(), /*as_text=*/false, in);
}

}  // namespace tuner
