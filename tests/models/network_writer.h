// Writes a network layer by layer, with weights drawn from a seed, as exporters write them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/models/onnx_model.h"

namespace tuner::testing {

// A value of the network and its shape, as far as layers need it: [N, C, H, W], or [N, C].
struct Tensor {
  std::string name;
  std::vector<int64_t> shape;

  int64_t channels() const { return shape[1]; }
};

class NetworkWriter {
 public:
  explicit NetworkWriter(uint32_t seed) : random_(seed) {}

  Tensor input(std::vector<int64_t> shape);
  void output(const Tensor& x);
  std::string bytes() const { return model_.bytes(); }

  struct Conv {
    int64_t channels, kernel, stride = 1, groups = 1, dilation = 1;
    bool bias = false;
  };
  // Padding keeps the size, but for the stride.
  Tensor conv(const Tensor& x, const Conv& c);
  Tensor conv_transpose(const Tensor& x, int64_t channels);  // twice the size
  Tensor batch_norm(const Tensor& x);
  Tensor gemm(const Tensor& x, int64_t results);
  Tensor max_pool(const Tensor& x, int64_t kernel, int64_t stride);
  Tensor global_average(const Tensor& x);
  Tensor lower(const Tensor& x);  // half as high and as wide as it is, by MaxPool

  Tensor relu(const Tensor& x) { return unary("Relu", x); }
  Tensor relu6(const Tensor& x);  // Clip with two constants
  Tensor silu(const Tensor& x) { return binary("Mul", x, unary("Sigmoid", x)); }
  Tensor unary(const std::string& op, const Tensor& x,
               const std::vector<OnnxModel::Attribute>& attributes = {});
  // The result has the shape of a.
  Tensor binary(const std::string& op, const Tensor& a, const Tensor& b);
  Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 1);
  std::vector<Tensor> halves(const Tensor& x);  // of the channels, by Split
  Tensor enlarged(const Tensor& x);             // twice the size, by Resize: nearest
  // The height and width of another one, by Resize: linear. They are taken from the tensor itself, in 13 more
  // operators: Shape, Gather, Cast, Unsqueeze, Slice, Concat.
  Tensor enlarged_to(const Tensor& x, const Tensor& other);
  Tensor transposed(const Tensor& x, const std::vector<int64_t>& order);
  // [N, C, H, W] -> [N, rest], the batch taken from the tensor itself: Shape, Gather, Unsqueeze, Concat,
  // Reshape.
  Tensor flattened(const Tensor& x);
  Tensor reshaped(const Tensor& x, const std::vector<int64_t>& shape);
  Tensor softmax(const Tensor& x, int64_t axis = 1);

  // Of sequences, [N, T, C].
  Tensor linear(const Tensor& x, int64_t results);  // MatMul and Add
  Tensor layer_norm(const Tensor& x);
  Tensor attention(const Tensor& x);  // one head
  // Without an axis of extent 1, as exporters write it: an If that asks for the extent, whose other branch
  // leaves the tensor as it is.
  Tensor squeezed(const Tensor& x, int64_t axis);
  // By its largest element, if that is small: an If on data.
  Tensor louder(const Tensor& x);
  // Less a running mean over T, [T, N, C]: a Scan.
  Tensor centered(const Tensor& x);

  // For what no layer above writes. A Tensor without a name is an input that is not given.
  Tensor input(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::kFloat32);
  Tensor drawn(const std::vector<int64_t>& shape, double deviation);
  // In 8 bits, as ONNX Runtime's quantiser writes them, back in floats: unsigned activations with one scale
  // and zero point; signed weights around 0 with a scale for each index of the axis. Weights have seven bits,
  // as with its reduce_range: on CPUs without VNNI its sums of two products of bytes saturate at 16 bits.
  Tensor rounded(const Tensor& x, float scale, int zero);
  Tensor drawn_bytes(const std::vector<int64_t>& shape, double deviation, int64_t axis);
  // Constant activations, as rounded() has them.
  Tensor drawn_rounded(const std::vector<int64_t>& shape, double deviation, float scale, int zero);
  // x times weights of bytes, both rounded as quantize_dynamic() does: x by the range of its own elements.
  Tensor product_in_bytes(const Tensor& x, int64_t results);
  // x times weights of 4 bits in groups of 32 with a scale each, around 8: ONNX Runtime's MatMulNBits.
  Tensor product_in_4_bits(const Tensor& x, int64_t results);
  // As gemm(), of what was rounded to units of `scale`; the bias has 32 bits, in units of the products.
  Tensor gemm_in_bytes(const Tensor& x, float scale, int64_t results);
  Tensor list(const std::vector<int64_t>& values);
  Tensor integer(int64_t value);  // without dimensions, as scalar()
  Tensor scalar(float value);
  // [1, 1, rows, columns] of bools: true up to the diagonal that ends in the last column.
  Tensor lower_triangle(int64_t rows, int64_t columns);
  Tensor add(const std::string& op, const std::vector<Tensor>& inputs, std::vector<int64_t> shape,
             const std::vector<OnnxModel::Attribute>& attributes = {});
  // Results of these names and shapes.
  std::vector<Tensor> add(const std::string& op, const std::vector<Tensor>& inputs,
                          std::vector<Tensor> results, const std::vector<OnnxModel::Attribute>& attributes);

 private:
  std::string weights(const std::vector<int64_t>& shape, double mean, double deviation);
  std::string integers(const std::vector<int64_t>& values, bool scalar = false);
  std::string number(float value);
  std::string byte(int value);
  struct Bytes {
    std::string bytes, units, zeros;
    std::vector<float> scales;
  };
  Bytes weights_in_bytes(const std::vector<int64_t>& shape, double deviation, int64_t axis);
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxModel::Attribute>& attributes = {});

  OnnxModel model_;
  std::map<std::string, std::array<std::string, 3>> rounded_;  // values to their bytes, scale and zero point
  std::mt19937 random_;
  int names_ = 0;
};

}  // namespace tuner::testing
