#include "db/exchange/record_lines.h"

#include "db/exchange/formats.h"
#include "db/record_fields.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

class ToLine {
 public:
  explicit ToLine(ordered_json& out) : out_(out) {}
  void operator()(const Field& f, const auto& v) { out_[f.json_key()] = v; }
  void operator()(const Field& f, const std::string& v) {
    if (!f.unless_empty || !v.empty()) out_[f.json_key()] = v;
  }
  void operator()(const Field& f, Outcome v) { out_[f.json_key()] = outcome_name(v); }
  void operator()(const Field& f, Constants v) { out_[f.json_key()] = constants_name(v); }
  template <class Get>
  void derived(const Field& f, const Get& get) {
    out_[f.json_key()] = get();
  }
  void time(const Field& f, int64_t us) { out_[f.json_key()] = time_text(us); }
  template <class Part>
  void part(const char*, const Part& p) {
    describe(p, *this);
  }
  void object(const Field& f, const MeasureOptions& o) { out_[f.json_key()] = options_value(o); }

 private:
  ordered_json& out_;
};

class FromLine {
 public:
  explicit FromLine(Fields& in) : in_(in) {}
  void operator()(const Field& f, int& v) {
    if (there(f)) v = in_.integer32(f.json_key());
  }
  void operator()(const Field& f, int64_t& v) {
    if (there(f)) v = in_.integer(f.json_key());
  }
  void operator()(const Field& f, double& v) {
    if (there(f)) v = in_.number(f.json_key());
  }
  void operator()(const Field& f, bool& v) {
    if (there(f)) v = in_.flag(f.json_key());
  }
  void operator()(const Field& f, std::string& v) {
    if (there(f)) v = in_.text(f.json_key());
  }
  void operator()(const Field& f, std::vector<double>& v) {
    if (there(f)) v = in_.numbers(f.json_key());
  }
  void operator()(const Field& f, Outcome& v) {
    if (there(f)) v = in_.named(f.json_key(), outcome_from_name);
  }
  void operator()(const Field& f, Constants& v) {
    if (there(f)) v = in_.named(f.json_key(), constants_from_name);
  }
  template <class Get>
  void derived(const Field&, const Get&) {}
  void time(const Field& f, int64_t& us) {
    if (there(f)) us = time_from(in_, f.json_key());
  }
  template <class Part>
  void part(const char*, Part& p) {
    describe(p, *this);
  }
  void object(const Field&, MeasureOptions& o) { o = options_from(in_); }

 private:
  bool there(const Field& f) const { return !f.optional || in_.has(f.json_key()); }
  Fields& in_;
};

}  // namespace

void add_record(ordered_json& out, const MeasureRecord& record) {
  ToLine to(out);
  describe(record, to);
}

void add_environment(ordered_json& out, const Environment& environment) {
  ToLine to(out);
  describe(environment, to);
}

ordered_json options_value(const MeasureOptions& options) {
  ordered_json out = ordered_json::object();
  ToLine to(out);
  describe(options, to);
  return out;
}

MeasureRecord record_from(Fields& in) {
  MeasureRecord record;
  FromLine from(in);
  describe(record, from);
  return record;
}

Environment environment_from(Fields& in) {
  Environment environment;
  FromLine from(in);
  describe(environment, from);
  return environment;
}

MeasureOptions options_from(Fields& parent) {
  MeasureOptions options;
  Fields in(parent.object("options"), "options: ");
  FromLine from(in);
  describe(options, from);
  if (!in.status()) parent.fail(in.status().message());
  return options;
}

int64_t time_from(Fields& in, const char* key) {
  const std::string text = in.text(key);
  if (const std::optional<int64_t> us = time_from_text(text)) return *us;
  in.fail(str(key, ": found \"", text, "\", expected a time as 2026-11-20T21:10:08.123456Z"));
  return 0;
}

}  // namespace tuner::exchange
