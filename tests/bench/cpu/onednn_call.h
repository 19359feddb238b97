// What the files of the oneDNN contestant share: its functions, found at run time, and one sequence of
// primitives with its memory. Private to onednn*.cpp.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/bench_case.h"

namespace tuner {

#define BENCH_DNNL_SYMBOLS(X)              \
  X(version)                               \
  X(engine_create)                         \
  X(stream_create)                         \
  X(stream_wait)                           \
  X(memory_desc_init_by_tag)               \
  X(memory_desc_get_size)                  \
  X(memory_create)                         \
  X(memory_destroy)                        \
  X(primitive_attr_create)                 \
  X(primitive_attr_destroy)                \
  X(primitive_attr_set_post_ops)           \
  X(primitive_attr_set_output_scales)      \
  X(primitive_attr_set_zero_points)        \
  X(post_ops_create)                       \
  X(post_ops_destroy)                      \
  X(post_ops_append_eltwise)               \
  X(post_ops_append_binary)                \
  X(post_ops_append_sum)                   \
  X(primitive_desc_create)                 \
  X(primitive_desc_destroy)                \
  X(primitive_desc_query)                  \
  X(primitive_desc_query_md)               \
  X(primitive_create)                      \
  X(primitive_destroy)                     \
  X(primitive_execute)                     \
  X(reorder_primitive_desc_create)         \
  X(dilated_convolution_forward_desc_init) \
  X(matmul_desc_init)                      \
  X(inner_product_forward_desc_init)       \
  X(softmax_forward_desc_init)             \
  X(layer_normalization_forward_desc_init) \
  X(pooling_forward_desc_init)             \
  X(eltwise_forward_desc_init)             \
  X(binary_desc_init)                      \
  X(sgemm)

// Lives as long as the process: the library is never unloaded.
class OnednnApi {
 public:
#define BENCH_DNNL_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  BENCH_DNNL_SYMBOLS(BENCH_DNNL_MEMBER)
#undef BENCH_DNNL_MEMBER
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
};

using DnnlMd = dnnl_memory_desc_t;

// OK, or Failed saying what was asked for.
Status dnnl_ok(dnnl_status_t status, const char* what);

// Elements of these dimensions in this layout. dnnl_format_tag_any: the library chooses.
DnnlMd dnnl_md(const OnednnApi& api, const std::vector<int64_t>& shape, dnnl_format_tag_t tag,
               DType dtype = DType::kFloat32);
// Row-major, of any rank to 6.
DnnlMd dnnl_plain_md(const OnednnApi& api, const std::vector<int64_t>& shape, DType dtype = DType::kFloat32);

// A primitive descriptor, owned.
class DnnlPd {
 public:
  static Result<DnnlPd> make(const OnednnApi& api, const_dnnl_op_desc_t description,
                             const_dnnl_primitive_attr_t attributes = nullptr);
  static Result<DnnlPd> reorder(const OnednnApi& api, const DnnlMd& from, const DnnlMd& to);
  const_dnnl_primitive_desc_t get() const { return pd_.get(); }
  DnnlMd md(dnnl_query_t what) const { return *api_->primitive_desc_query_md(pd_.get(), what, 0); }
  std::string kernel() const;  // "brgconv:avx512_core"

 private:
  DnnlPd(const OnednnApi& api, dnnl_primitive_desc_t pd)
      : api_(&api), pd_(pd, [&api](dnnl_primitive_desc_t p) { api.primitive_desc_destroy(p); }) {}
  const OnednnApi* api_;
  std::shared_ptr<std::remove_pointer_t<dnnl_primitive_desc_t>> pd_;
};

// Attributes with the epilogue of a product, owned: scales of the channels (dimension `channel` of out) and
// the zero point, where the case has them; residual as a sum with a tensor of `residual`, then ReLU.
class DnnlEpilogue {
 public:
  DnnlEpilogue(const OnednnApi& api, const BenchCase& bench_case, int channel, const DnnlMd* residual,
               Activation activation);
  ~DnnlEpilogue();
  DnnlEpilogue(const DnnlEpilogue&) = delete;
  DnnlEpilogue& operator=(const DnnlEpilogue&) = delete;
  const_dnnl_primitive_attr_t get() const { return attributes_; }

 private:
  const OnednnApi& api_;
  dnnl_primitive_attr_t attributes_ = nullptr;
};

// Primitives to execute one after the other, and their memory, `sets` times.
class DnnlCall {
 public:
  DnnlCall(const OnednnApi& api, int sets) : api_(api), sets_(sets) {}
  ~DnnlCall();
  DnnlCall(const DnnlCall&) = delete;
  DnnlCall& operator=(const DnnlCall&) = delete;

  using Slot = int;  // a tensor, in each set
  Slot tensor(const DnnlMd& md);
  // On memory that the caller keeps, the same in every set.
  Slot tensor_at(const DnnlMd& md, void* memory);
  const DnnlMd& md(Slot slot) const { return tensors_[static_cast<size_t>(slot)].md; }
  // Filled with `values`, row-major, of the type of `md`; brought into `md` now and so not timed.
  Result<Slot> filled(const DnnlMd& md, const HostTensor& values);
  Status add(const DnnlPd& pd, const std::vector<std::pair<int, Slot>>& arguments);
  // A timed change of layout.
  Status add_reorder(Slot from, Slot to);

  void run(int set) const;
  void poison(Slot slot) const;
  // Puts what was filled and `out` out of the caches, of set 0; not what lies between two steps.
  void flush(Slot out) const;
  // Row-major, of set 0, as `out` is in the plain layout. Failed: the library has no such reorder.
  Result<std::vector<double>> read(Slot slot, const HostTensor& out) const;

 private:
  struct Tensor {
    DnnlMd md;
    std::vector<AlignedBuffer> buffers;
    std::vector<dnnl_memory_t> memory;
    bool is_filled = false;
  };
  struct Step {
    dnnl_primitive_t primitive = nullptr;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;  // of each set
  };
  Status execute(const DnnlPd& pd, const std::vector<dnnl_exec_arg_t>& arguments) const;

  const OnednnApi& api_;
  const int sets_;
  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
};

// `call` as a contestant; its answer is `out`, whose plain shape is that of the case's "out".
Contestant dnnl_contestant(const BenchCase& bench_case, const std::shared_ptr<DnnlCall>& call,
                           DnnlCall::Slot out, const std::string& name, const std::string& kernel,
                           const std::string& algorithm = "direct");

// What one way of calling the library came to: a contestant, or why there is none.
struct DnnlWays {
  const OnednnApi& api;
  const BenchCase& bench_case;
  int sets;
  std::vector<Contestant>& contestants;
  std::vector<MissingPeer>& missing;

  void add(const std::string& name, Result<Contestant> contestant) const {
    if (contestant.is_ok())
      contestants.push_back(*std::move(contestant));
    else
      missing.push_back({name, contestant.message()});
  }
};

void add_dnnl_conv2d(const DnnlWays& ways, const Conv2dWorkload& w);
void add_dnnl_matmul(const DnnlWays& ways, const MatmulWorkload& w);
void add_dnnl_rows(const DnnlWays& ways);

}  // namespace tuner
