// Transformers, weights drawn from a seed, as PyTorch and Hugging Face's libraries export them: attention and
// norms as the operators they consist of, heads by reshapes and transpositions.
//
//   bert_base    tokens and their mask; 12 layers of 768, 12 heads; erf GELU
//   vit_b16      an image of 224x224 as 196 patches and a class; 12 layers, one product for Q, K and V
//   swin_block   a block of windows of 7x7 on an image of 56x56, shifted: a bias per head, a mask per window
//   gpt2         tokens behind a cache; keys and values of all layers come with each call and go back, longer
//   llama_step   one token behind a cache: RMS norm, rotated halves, heads that share keys, SiLU gates; two
//                of the 22 layers of a network of 1.1 billion numbers
//
// And as ONNX Runtime's quantiser leaves them:
//
//   bert_base_qdq      by quantize_static(): products between QuantizeLinear and DequantizeLinear, what is
//                      between them in float32
//   bert_base_dynamic  by quantize_dynamic(): DynamicQuantizeLinear and MatMulInteger
//   llama_step_int4    weights of 4 bits in groups of 32: MatMulNBits
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::testing {

struct TransformerOptions {
  int64_t layers = 0;  // 0: as published
  int64_t tokens = 0;  // of a call; 0: 128, GPT-2 16. The side of an image for vit_b16 and swin_block
  int64_t past = 0;    // in the cache; 0: 112
  int64_t batch = 1;
  int64_t narrower = 1;  // sizes of heads, layers and the vocabulary are divided by it
  uint32_t seed = 1;
};

const std::vector<std::string>& transformer_names();  // of float32
const std::vector<std::string>& names_of_narrow_transformers();
// The bytes of an ONNX model, operator set 17. InvalidArgument: no network of this name.
Result<std::string> transformer(std::string_view name, const TransformerOptions& options = {});

}  // namespace tuner::testing
