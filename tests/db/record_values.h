// A record in which no field is as in a new one and no two are alike, and its values as text: for tests of
// every way a record goes. Both know the fields by their description alone.
#pragma once

#include <map>
#include <string>

#include "db/record_fields.h"

namespace tuner {

class GiveDistinctValues {
 public:
  void operator()(const Field& f, int& v) { v = static_cast<int>(f.least + next() % (f.most - f.least)); }
  void operator()(const Field& f, int64_t& v) { v = f.least + next(); }
  void operator()(const Field&, double& v) { v = static_cast<double>(next()) + 0.1; }
  void operator()(const Field&, bool& v) { v = true; }
  void operator()(const Field& f, std::string& v) { v = str(f.name, ", \"", next(), "\""); }
  void operator()(const Field&, std::vector<double>& v) {
    v = {static_cast<double>(next()) / 3, static_cast<double>(next())};
  }
  void operator()(const Field&, Outcome& v) { v = Outcome::kWrongAnswer; }
  void operator()(const Field&, Constants& v) { v = Constants::kCold; }
  template <class Get>
  void derived(const Field&, const Get&) {}
  void time(const Field&, int64_t& us) { us = 1'700'000'000'000'000 + next(); }
  template <class Part>
  void part(const char*, Part& p) {
    describe(p, *this);
  }
  void object(const Field&, MeasureOptions& o) { describe(o, *this); }

 private:
  int64_t next() { return ++last_; }
  int64_t last_ = 100;
};

inline MeasureRecord record_of_distinct_values(const std::string& trial_id) {
  MeasureRecord record{.trial_id = trial_id};
  GiveDistinctValues give;
  describe(record, give);
  return record;
}

class ValuesAsText {
 public:
  void operator()(const Field& f, const auto& v) { add(f, str(v)); }
  void operator()(const Field& f, const std::vector<double>& v) {
    std::string text;
    for (const double each : v) text += exact(each) + ";";
    add(f, text);
  }
  void operator()(const Field& f, double v) { add(f, exact(v)); }
  void operator()(const Field& f, Outcome v) { add(f, std::string(outcome_name(v))); }
  void operator()(const Field& f, Constants v) { add(f, std::string(constants_name(v))); }
  template <class Get>
  void derived(const Field& f, const Get& get) {
    add(f, exact(get()));
  }
  void time(const Field& f, int64_t us) { add(f, str(us)); }
  template <class Part>
  void part(const char*, const Part& p) {
    describe(p, *this);
  }
  void object(const Field& f, const MeasureOptions& o) {
    prefix_ = str(f.name, ".");
    describe(o, *this);
    prefix_.clear();
  }
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  static std::string exact(double v) {
    std::ostringstream text;
    text.precision(17);
    text << v;
    return text.str();
  }
  void add(const Field& f, std::string text) { values_[prefix_ + f.name] = std::move(text); }
  std::string prefix_;
  std::map<std::string, std::string> values_;
};

inline std::map<std::string, std::string> values_of(const MeasureRecord& record) {
  ValuesAsText text;
  describe(record, text);
  return text.values();
}

}  // namespace tuner
