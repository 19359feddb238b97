// A workload as a job file has it, both ways, from what its operator describes.
#include "templates/workload/workload_json.h"

#include <algorithm>

#include "templates/workload/parts/operator.h"

namespace tuner {
namespace {

using json_input::found;
using json_input::ObjectReader;
using nlohmann::json;
using nlohmann::ordered_json;

// The one key of an object has one number, or a list of them.
std::optional<Activation> activation_of(const json& value) {
  if (value.is_string()) {
    const auto kind = activation_kind_from_name(value.get<std::string>());
    return kind && activation_numbers(*kind) == 0 ? std::optional(Activation{*kind}) : std::nullopt;
  }
  if (!value.is_object() || value.size() != 1) return std::nullopt;
  const auto kind = activation_kind_from_name(value.begin().key());
  const json& given = value.begin().value();
  const json list = given.is_array() ? given : json::array({given});
  if (!kind || static_cast<size_t>(activation_numbers(*kind)) != list.size()) return std::nullopt;
  // Through the text, which rounds to float32 and knows which numbers are good.
  std::string text(activation_kind_name(*kind));
  for (const json& number : list) {
    if (!number.is_number()) return std::nullopt;
    text += ":" + number.dump();
  }
  return activation_from_text(text);
}

// Returns "\"sum\", \"max\", \"min\" or \"mean\"".
template <class Names>
std::string quoted(const Names& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += str(i == 0 ? "\"" : i + 1 == names.size() ? " or \"" : ", \"", names[i], "\"");
  return text;
}

// A key that is missing leaves its field as it is.
class JsonReader final : public WorkloadFields {
 public:
  explicit JsonReader(ObjectReader& in) : in_(in) {}

  bool has_shapes() const override { return true; }
  bool reads_shapes() const override { return true; }
  void refuse(std::string_view json_key, const std::string& why) override {
    in_.refuse(std::string(json_key), why);
  }

  void extent(const FieldInfo& f, int64_t& value) override {
    in_.read(key(f), value, f.least, kMaxExtent, f.required);
  }
  void shape(const ShapeInfo& s, std::initializer_list<ExtentInfo> extents) override {
    const std::string key(s.json);
    if (!s.required && in_.get(key) == nullptr) return;
    const std::vector<int64_t> read = in_.shape(key, extents.size(), s.order);
    for (size_t i = 0; i < read.size(); ++i) extents.begin()[i].value = read[i];
  }
  void pair(const FieldInfo& f, std::array<int64_t, 2>& values) override {
    if (const auto v = in_.integers(key(f), 1, {2}, "two", "[vertical, horizontal]"))
      values = {v->front(), v->back()};
  }
  void sides(const FieldInfo& f, std::array<int64_t, 4>& values) override {
    const auto v = in_.integers(key(f), 0, {2, 4}, "two or four",
                                "[vertical, horizontal] or [top, left, bottom, right]");
    if (!v) return;
    const auto& p = *v;
    values = p.size() == 4 ? std::array{p[0], p[1], p[2], p[3]}
                           : std::array{p.front(), p.back(), p.front(), p.back()};
  }
  void flag(const FieldInfo& f, bool& value) override { in_.read(key(f), value); }
  // Its range: validate().
  void number(const FieldInfo& f, double& value, double /*least*/, double /*most*/) override {
    in_.read(key(f), value);
  }
  void choice(const FieldInfo& f, std::span<const std::string_view> names, size_t& place) override {
    std::string name;
    in_.read(key(f), name, /*required=*/true);
    const auto known = std::ranges::find(names, name);
    if (known == names.end())
      in_.refuse(key(f), "expected ", quoted(names), ", found ", found(json(name)), ".");
    else
      place = static_cast<size_t>(known - names.begin());
  }
  void type(const FieldInfo& f, DType& value, std::span<const DType> served, DType usual) override {
    std::string name(dtype_name(usual));
    value = usual;
    in_.read(key(f), name);
    for (const DType each : served)
      if (name == dtype_name(each)) return void(value = each);
    in_.refuse(key(f), "expected ", quoted(served), ", found ", found(json(name)), ".");
  }
  void layout(const FieldInfo& f, std::string& value, std::string_view usual) override {
    value = usual;
    in_.read(key(f), value);
  }
  void activation(const FieldInfo& f, Activation& activation) override {
    const json* value = in_.get(key(f));
    if (value == nullptr || value->is_null()) return;
    if (const auto read = activation_of(*value)) return void(activation = *read);
    std::string known;
    for (int i = 1; i < kActivationKinds; ++i) {
      const auto kind = static_cast<ActivationKind>(i);
      if (activation_numbers(kind) == 0) known += str("\"", activation_kind_name(kind), "\", ");
    }
    in_.refuse(key(f), "expected ", known, R"({"clip": [low, high]}, {"leaky": alpha} or null, found )",
               found(*value), ".");
  }
  // "last": behind all other parts.
  void residual(const FieldInfo& f, ResidualPlace& place) override {
    const json* value = in_.get(key(f));
    if (value == nullptr) return;
    if (*value == "last")
      place = ResidualPlace::kLast;
    else if (value->is_boolean())
      place = value->get<bool>() ? ResidualPlace::kUsual : ResidualPlace::kNone;
    else
      in_.refuse(key(f), "expected true, false or \"last\", found ", found(*value), ".");
  }
  void order(const FieldInfo& f, std::vector<EpiloguePart>& parts) override {
    const json* value = in_.get(key(f));
    if (value == nullptr) return;
    const auto refuse_it = [&] {
      in_.refuse(key(f),
                 R"(expected a list of "bias", "scale", "residual" and "activation" in their order, found )",
                 found(*value), ".");
    };
    if (!value->is_array()) return refuse_it();
    for (const json& word : *value) {
      const auto* part = std::ranges::find_if(
          kEpilogueParts, [&](EpiloguePart p) { return word == std::string(epilogue_part_name(p)); });
      if (part == std::end(kEpilogueParts)) return refuse_it();
      parts.push_back(*part);
    }
  }
  void operands(const FieldInfo& f, std::vector<std::string>& names,
                const std::vector<std::string>& known) override {
    const json* value = in_.get(key(f));
    if (value == nullptr) return;
    std::string list;
    for (const std::string& operand : known) list += str(list.empty() ? "\"" : ", \"", operand, "\"");
    const auto refuse_it = [&] {
      in_.refuse(key(f), "expected a list of different operands out of ", list, ", found ", found(*value),
                 ".");
    };
    if (!value->is_array()) return refuse_it();
    for (const json& name : *value) {
      if (!name.is_string() || std::ranges::find(known, name.get<std::string>()) == known.end())
        return refuse_it();
      names.push_back(name.get<std::string>());
    }
    std::ranges::sort(names);
    if (std::ranges::adjacent_find(names) != names.end()) refuse_it();
  }
  void text(const FieldInfo& f, std::string& value,
            const std::function<Status(const std::string&)>& parse) override {
    in_.read(key(f), value, /*required=*/true);
    if (in_.failed()) return;
    if (const Status parsed = parse(value); !parsed.is_ok()) in_.refuse(key(f), parsed.message(), ".");
  }

 private:
  static std::string key(const FieldInfo& f) { return std::string(f.json_key()); }

  ObjectReader& in_;
};

// As the shortest text of the float32 says it, which nlohmann's doubles would not.
json number_json(float number) { return json::parse(shortest_text(number)); }
json activation_json(const Activation& a) {
  const int numbers = activation_numbers(a.kind);
  if (numbers == 0) return activation_kind_name(a.kind);
  json value = number_json(a.first);
  if (numbers == 2) value = json::array({value, number_json(a.second)});
  return json{{activation_kind_name(a.kind), value}};
}

// What is as usual is left out.
class JsonWriter final : public WorkloadFields {
 public:
  explicit JsonWriter(ordered_json& out) : out_(out) {}

  bool has_shapes() const override { return true; }

  void extent(const FieldInfo& f, int64_t& value) override {
    if (f.required || value != 1) out_[key(f)] = value;
  }
  void shape(const ShapeInfo& s, std::initializer_list<ExtentInfo> extents) override {
    ordered_json& list = out_[std::string(s.json)];
    for (const ExtentInfo& e : extents) list.push_back(e.value);
  }
  void pair(const FieldInfo& f, std::array<int64_t, 2>& values) override {
    if (values != std::array<int64_t, 2>{1, 1}) out_[key(f)] = values;
  }
  void sides(const FieldInfo& f, std::array<int64_t, 4>& values) override {
    const auto [top, left, bottom, right] = values;
    if (top != bottom || left != right)
      out_[key(f)] = values;
    else if (top != 0 || left != 0)
      out_[key(f)] = {top, left};
  }
  void flag(const FieldInfo& f, bool& value) override {
    if (value) out_[key(f)] = true;
  }
  void number(const FieldInfo& f, double& value, double /*least*/, double /*most*/) override {
    out_[key(f)] = value;
  }
  void choice(const FieldInfo& f, std::span<const std::string_view> names, size_t& place) override {
    out_[key(f)] = names[place];
  }
  void type(const FieldInfo& f, DType& value, std::span<const DType> /*served*/, DType usual) override {
    if (value != usual) out_[key(f)] = dtype_name(value);
  }
  void layout(const FieldInfo& f, std::string& value, std::string_view usual) override {
    if (value != usual) out_[key(f)] = value;
  }
  void activation(const FieldInfo& f, Activation& value) override {
    if (value != Activation::kNone) out_[key(f)] = activation_json(value);
  }
  void residual(const FieldInfo& f, ResidualPlace& value) override {
    if (value == ResidualPlace::kUsual) out_[key(f)] = true;
    if (value == ResidualPlace::kLast) out_[key(f)] = "last";
  }
  void order(const FieldInfo& f, std::vector<EpiloguePart>& parts) override {
    for (const EpiloguePart part : parts) out_[key(f)].push_back(epilogue_part_name(part));
  }
  void operands(const FieldInfo& f, std::vector<std::string>& names,
                const std::vector<std::string>& /*known*/) override {
    if (!names.empty()) out_[key(f)] = names;
  }
  void text(const FieldInfo& f, std::string& value,
            const std::function<Status(const std::string&)>& /*parse*/) override {
    out_[key(f)] = value;
  }

 private:
  static std::string key(const FieldInfo& f) { return std::string(f.json_key()); }

  ordered_json& out_;
};

// Reads the object as the operator `op`, if it has alternative I or one behind it.
template <size_t I = 0>
Workload read_as_operator(const std::string& op, ObjectReader& in) {
  if constexpr (I == std::variant_size_v<Workload::Op>) {
    in.refuse("op", "expected one of ", operator_names(), ", found ", found(json(op)), ".");
    return {};
  } else {
    using W = std::variant_alternative_t<I, Workload::Op>;
    if (op != W::kOp) return read_as_operator<I + 1>(op, in);
    W w;
    JsonReader fields(in);
    w.facts().describe(w, fields);
    return w;
  }
}

}  // namespace

Workload read_workload(ObjectReader& in) {
  std::string op;
  in.read("op", op, /*required=*/true);
  if (in.failed()) return in.know_no_keys(), Workload();
  return read_as_operator(op, in);
}

Result<Workload> workload_from_json(std::string_view text, const std::function<void(ObjectReader&)>& more) {
  const auto refuse = [](const Status& why) {
    return Status(StatusCode::kInvalidArgument, json_input::one_line(why.message()));
  };
  const Result<json> document = json_input::parse(text);
  if (!document) return refuse(document.status());
  ObjectReader in(*document, "");
  Workload workload = read_workload(in);
  if (more) more(in);
  if (const Status all_read = in.finish(); !all_read.is_ok()) return refuse(all_read);
  RETURN_IF_ERROR(validate(workload));
  return workload;
}

ordered_json workload_json(const Workload& workload) {
  ordered_json out;
  out["op"] = workload.op_name();
  std::visit(
      [&out](auto w) {
        JsonWriter fields(out);
        w.facts().describe(w, fields);
      },
      workload.op());
  return out;
}

}  // namespace tuner
