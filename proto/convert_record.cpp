// Records, their options and their environment: by the names that db/record_fields.h gives their fields.
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <algorithm>

#include "db/record_fields.h"
#include "proto/field_checker.h"

namespace tuner {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Timestamp;

const FieldDescriptor* field_of(const Message& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  CHECK(field != nullptr) << message.GetTypeName() << " has no field " << name << " of record_fields.h";
  return field;
}

class ToMessage {
 public:
  explicit ToMessage(Message& message) : m_(message), set_(*message.GetReflection()) {}
  void operator()(const Field& f, int v) { set_.SetInt32(&m_, at(f), v); }
  void operator()(const Field& f, int64_t v) { set_.SetInt64(&m_, at(f), v); }
  void operator()(const Field& f, double v) { set_.SetDouble(&m_, at(f), f.zero_counts && v <= 0 ? -1 : v); }
  void operator()(const Field& f, bool v) { set_.SetBool(&m_, at(f), v); }
  void operator()(const Field& f, const std::string& v) { set_.SetString(&m_, at(f), v); }
  void operator()(const Field& f, const std::vector<double>& values) {
    const auto list = set_.GetMutableRepeatedFieldRef<double>(&m_, at(f));
    list.Clear();
    for (const double v : values) list.Add(v);
  }
  void operator()(const Field& f, Outcome v) { set_.SetEnumValue(&m_, at(f), to_proto(v)); }
  void operator()(const Field& f, Constants v) { set_.SetString(&m_, at(f), std::string(constants_name(v))); }
  template <class Get>
  void derived(const Field&, const Get&) {}
  void time(const Field& f, int64_t us) { set_.MutableMessage(&m_, at(f))->CopyFrom(timestamp(us)); }
  template <class Part>
  void part(const char* name, const Part& p) {
    ToMessage to(*set_.MutableMessage(&m_, field_of(m_, name)));
    describe(p, to);
  }
  void object(const Field& f, const MeasureOptions& o) { part(f.wire_name(), o); }

 private:
  const FieldDescriptor* at(const Field& f) const { return field_of(m_, f.wire_name()); }
  Message& m_;
  const google::protobuf::Reflection& set_;
};

// `zero_is_default`: a number that is 0 leaves the value as it is.
class FromMessage {
 public:
  FromMessage(const Message& message, FieldChecker& check, bool zero_is_default = false)
      : m_(message), get_(*message.GetReflection()), check_(check), zero_is_default_(zero_is_default) {}
  void operator()(const Field& f, int& v) { integer(f, get_.GetInt32(m_, at(f)), v); }
  void operator()(const Field& f, int64_t& v) { integer(f, get_.GetInt64(m_, at(f)), v); }
  void operator()(const Field& f, double& v) {
    const double found = get_.GetDouble(m_, at(f));
    if (zero_is_default_ && found == 0) return;
    v = number(f, found);
    if (f.zero_counts && v < 0) v = 0;
  }
  void operator()(const Field& f, bool& v) { v = get_.GetBool(m_, at(f)); }
  void operator()(const Field& f, std::string& v) { v = check_.text(f.wire_name(), text(f)); }
  void operator()(const Field& f, std::vector<double>& v) {
    v = check_.times(f.wire_name(), get_.GetRepeatedFieldRef<double>(m_, at(f)), f.rule != Rule::kCallTime);
  }
  void operator()(const Field& f, Outcome& v) {
    v = check_.part(
        from_proto(static_cast<v1::Outcome>(get_.GetEnumValue(m_, at(f))), check_.path(f.wire_name())));
  }
  void operator()(const Field& f, Constants& v) { v = check_.constants(f.wire_name(), text(f)); }
  template <class Get>
  void derived(const Field&, const Get&) {}
  void time(const Field& f, int64_t& us) {
    Timestamp t;
    t.CopyFrom(get_.GetMessage(m_, at(f)));
    us = microseconds(check_, f.wire_name(), t);
  }
  template <class Part>
  void part(const char* name, Part& p) {
    FieldChecker check(check_.path(name));
    FromMessage from(get_.GetMessage(m_, field_of(m_, name)), check, std::is_same_v<Part, MeasureOptions>);
    describe(p, from);
    check_.take(check.status());
  }
  void object(const Field& f, MeasureOptions& o) { part(f.wire_name(), o); }

 private:
  const FieldDescriptor* at(const Field& f) const { return field_of(m_, f.wire_name()); }
  std::string text(const Field& f) const { return get_.GetString(m_, at(f)); }
  template <class Int>
  void integer(const Field& f, Int found, Int& v) {
    if (zero_is_default_ && found == 0) return;
    v = check_.in_range<Int>(f.wire_name(), found, static_cast<Int>(f.least), static_cast<Int>(f.most));
  }
  double number(const Field& f, double v) {
    switch (f.rule) {
      case Rule::kFinite:
        return check_.finite(f.wire_name(), v);
      case Rule::kError:
        if (std::isnan(v) || v < 0) check_.refuse(f.wire_name(), "expected a number >= 0, found ", v);
        return v;
      default:
        return check_.at_least_zero(f.wire_name(), v);
    }
  }
  const Message& m_;
  const google::protobuf::Reflection& get_;
  FieldChecker& check_;
  const bool zero_is_default_;
};

template <class Described>
void write(const Described& from, Message& message) {
  ToMessage to(message);
  describe(from, to);
}

}  // namespace

void to_proto(const MeasureOptions& options, v1::MeasureOptions* out) { write(options, *out); }

Result<MeasureOptions> from_proto(const v1::MeasureOptions& options, std::string_view field) {
  FieldChecker check(field);
  MeasureOptions out;
  FromMessage from(options, check, /*zero_is_default=*/true);
  describe(out, from);
  return check.finish(out);
}

void to_proto(const Environment& e, v1::Environment* out) { write(e, *out); }

Result<Environment> from_proto(const v1::Environment& e, std::string_view field) {
  FieldChecker check(field);
  Environment out;
  FromMessage from(e, check);
  describe(out, from);
  return check.finish(std::move(out));
}

void to_proto(const MeasureRecord& r, v1::MeasureRecord* out) {
  out->set_trial_id(r.trial_id);
  write(r, *out);
}

Result<MeasureRecord> from_proto(const v1::MeasureRecord& r, std::string_view field) {
  FieldChecker check(field);
  MeasureRecord out;
  out.trial_id = check.needed("trial_id", r.trial_id());
  FromMessage from(r, check);
  describe(out, from);
  if (out.outcome == Outcome::kOk && r.run_ns().empty())
    check.refuse("run_ns", "expected a sample of an ok outcome, found none");
  // SHA-256 in hexadecimal today. It is shown to people, and names files: printable, and no path.
  constexpr size_t kLongestDigest = 128;
  const auto plain = [](char c) { return c >= ' ' && c < 0x7f && c != '/' && c != '\\'; };
  if (out.artifact_digest.size() > kLongestDigest || !std::ranges::all_of(out.artifact_digest, plain))
    check.refuse("artifact_digest", "expected at most ", kLongestDigest,
                 " printable characters without slashes, found ", out.artifact_digest.size(), " bytes");
  return check.finish(std::move(out));
}

Result<std::vector<MeasureRecord>> results_from_proto(const v1::SyncRequest& request) {
  if (request.results_size() > kMaxResultsPerSync)
    return invalid_argument("results: expected at most ", kMaxResultsPerSync, " items, found ",
                            request.results_size());
  std::vector<MeasureRecord> out;
  for (int i = 0; i < request.results_size(); ++i) {
    ASSIGN_OR_RETURN(MeasureRecord record, from_proto(request.results(i), str("results[", i, "]")));
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace tuner
