// ONNX models built operator by operator, as exporters write them; weights have shapes but no values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/model/onnx.pb.h"

namespace tuner::testing {

using Dims = std::vector<int64_t>;

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    auto* set = model_.add_opset_import();
    set->set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  // A negative extent is a symbol: "N" for -1, "M" for -2...
  std::string input(const std::string& name, const Dims& dims, int type = onnx::TensorProto::FLOAT) {
    describe(*model_.mutable_graph()->add_input(), name, dims, type);
    return name;
  }
  void output(const std::string& name) { model_.mutable_graph()->add_output()->set_name(name); }
  // In a file of its own, which is not there.
  std::string weight(const Dims& dims) {
    auto* t = model_.mutable_graph()->add_initializer();
    t->set_name("w" + std::to_string(next_++));
    t->set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t d : dims) t->add_dims(d);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* where = t->add_external_data();
    where->set_key("location");
    where->set_value("weights.bin");
    return t->name();
  }
  std::string integers(const Dims& values) {
    auto* t = model_.mutable_graph()->add_initializer();
    t->set_name("i" + std::to_string(next_++));
    t->set_data_type(onnx::TensorProto::INT64);
    t->add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t v : values) t->add_int64_data(v);
    return t->name();
  }
  std::string scalar(float value) {
    auto* t = model_.mutable_graph()->add_initializer();
    t->set_name("f" + std::to_string(next_++));
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->set_raw_data(std::string(reinterpret_cast<const char*>(&value), sizeof value));
    return t->name();
  }

  struct Attributes {
    std::vector<std::pair<std::string, Dims>> ints;
    std::vector<std::pair<std::string, int64_t>> integer;
    std::vector<std::pair<std::string, float>> number;
    std::vector<std::pair<std::string, std::string>> word;
  };
  // Returns the name of its first output.
  std::string add(const std::string& op, const std::vector<std::string>& inputs,
                  const Attributes& attributes = {}, int outputs = 1) {
    auto* n = model_.mutable_graph()->add_node();
    n->set_op_type(op);
    n->set_name(op + "_" + std::to_string(next_));
    for (const std::string& in : inputs) n->add_input(in);
    for (int o = 0; o < outputs; ++o)
      n->add_output("t" + std::to_string(next_) + (o == 0 ? "" : "_" + std::to_string(o)));
    ++next_;
    for (const auto& [name, values] : attributes.ints) {
      auto* a = attribute(*n, name, onnx::AttributeProto::INTS);
      for (const int64_t v : values) a->add_ints(v);
    }
    for (const auto& [name, value] : attributes.integer)
      attribute(*n, name, onnx::AttributeProto::INT)->set_i(value);
    for (const auto& [name, value] : attributes.number)
      attribute(*n, name, onnx::AttributeProto::FLOAT)->set_f(value);
    for (const auto& [name, value] : attributes.word)
      attribute(*n, name, onnx::AttributeProto::STRING)->set_s(value);
    return n->output(0);
  }

  // A convolution with square kernel and same padding unless said.
  std::string conv(const std::string& x, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
                   int64_t groups = 1, bool bias = false) {
    const int64_t pad = (kernel - 1) / 2;
    std::vector<std::string> inputs{x, weight({out, in / groups, kernel, kernel})};
    if (bias) inputs.push_back(weight({out}));
    return add("Conv", inputs,
               {.ints = {{"kernel_shape", {kernel, kernel}},
                         {"strides", {stride, stride}},
                         {"pads", {pad, pad, pad, pad}}},
                .integer = {{"group", groups}}});
  }
  std::string batch_norm(const std::string& x, int64_t channels) {
    return add("BatchNormalization",
               {x, weight({channels}), weight({channels}), weight({channels}), weight({channels})},
               {.number = {{"epsilon", 1e-5F}}});
  }

  onnx::ModelProto& model() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const Dims& dims, int type) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    for (const int64_t d : dims) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (d < 0)
        dim->set_dim_param(std::string(1, static_cast<char>('N' + 1 + d)));
      else
        dim->set_dim_value(d);
    }
  }
  static onnx::AttributeProto* attribute(onnx::NodeProto& node, const std::string& name,
                                         onnx::AttributeProto::AttributeType type) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(type);
    return a;
  }

  onnx::ModelProto model_;
  int next_ = 0;
};

// ResNet-50 for 224x224 images (v1.5: a bottleneck's stride is in its 3x3), as an exporter writes it for
// inference with the batch left open: each convolution with a batch normalization, ReLU, the sums, pools and
// the classifier.
inline onnx::ModelProto resnet50() {
  ModelBuilder b;
  std::string x = b.input("data", {-1, 3, 224, 224});
  const auto conv = [&](const std::string& from, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    return b.batch_norm(b.conv(from, in, out, kernel, stride), out);
  };
  x = b.add("Relu", {conv(x, 3, 64, 7, 2)});
  x = b.add("MaxPool", {x},
            {.ints = {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}}});
  const int64_t blocks[] = {3, 4, 6, 3};
  int64_t in = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      const std::string a = b.add("Relu", {conv(x, in, width, 1, 1)});
      const std::string c = b.add("Relu", {conv(a, width, width, 3, stride)});
      const std::string d = conv(c, width, 4 * width, 1, 1);
      const std::string shortcut = block == 0 ? conv(x, in, 4 * width, 1, stride) : x;
      x = b.add("Relu", {b.add("Add", {d, shortcut})});
      in = 4 * width;
    }
  }
  x = b.add("Flatten", {b.add("GlobalAveragePool", {x})});
  x = b.add("Gemm", {x, b.weight({1000, 2048}), b.weight({1000})}, {.integer = {{"transB", 1}}});
  b.output(b.add("Softmax", {x}, {.integer = {{"axis", 1}}}));
  return b.model();
}

}  // namespace tuner::testing
