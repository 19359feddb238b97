#include "measure_server/worker/run_facts.h"

#include <google/protobuf/message.h>

namespace tuner {

std::vector<std::string> add_facts(const std::map<std::string, double>& facts, v1::MeasureRecord& record) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& set = *record.GetReflection();
  std::vector<std::string> passed_over;
  for (const auto& [name, value] : facts) {
    const FieldDescriptor* field = record.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || !field->options().GetExtension(v1::of_run))
      passed_over.push_back(name);
    else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32)
      set.SetInt32(&record, field, static_cast<int32_t>(value));
    else
      set.SetDouble(&record, field, value);
  }
  return passed_over;
}

}  // namespace tuner
