#include "db/record_fields.h"

namespace tuner {

namespace {

class Collect {
 public:
  void operator()(const Field& f, const int&) { add(f, FieldKind::kInteger); }
  void operator()(const Field& f, const int64_t&) { add(f, FieldKind::kInteger); }
  void operator()(const Field& f, const double&) { add(f, FieldKind::kNumber); }
  void operator()(const Field& f, const bool&) { add(f, FieldKind::kFlag); }
  void operator()(const Field& f, const std::string&) { add(f, FieldKind::kText); }
  void operator()(const Field& f, const std::vector<double>&) { add(f, FieldKind::kNumbers); }
  void operator()(const Field& f, const Outcome&) { add(f, FieldKind::kOutcome); }
  void operator()(const Field& f, const Constants&) { add(f, FieldKind::kConstants); }
  template <class Get>
  void derived(const Field& f, const Get&) {
    add(f, FieldKind::kNumber);
  }
  void time(const Field& f, const int64_t&) { add(f, FieldKind::kTime); }
  template <class Part>
  void part(const char*, const Part& p) {
    describe(p, *this);
  }
  void object(const Field& f, const MeasureOptions&) { add(f, FieldKind::kObject); }

  template <class Described>
  static std::vector<DescribedField> fields_of() {
    Collect collect;
    const Described example;
    describe(example, collect);
    return std::move(collect.fields_);
  }

 private:
  void add(const Field& f, FieldKind kind) { fields_.push_back({f, kind}); }
  std::vector<DescribedField> fields_;
};

}  // namespace

const std::vector<DescribedField>& record_fields() {
  static const std::vector<DescribedField> fields = Collect::fields_of<MeasureRecord>();
  return fields;
}
const std::vector<DescribedField>& environment_fields() {
  static const std::vector<DescribedField> fields = Collect::fields_of<Environment>();
  return fields;
}
const std::vector<DescribedField>& options_fields() {
  static const std::vector<DescribedField> fields = Collect::fields_of<MeasureOptions>();
  return fields;
}

}  // namespace tuner
