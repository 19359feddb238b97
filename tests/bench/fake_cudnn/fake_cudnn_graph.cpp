// The graph interface of libfakecudnn.so: a convolution and what follows it, computed by its definition
// (plain loops) when a plan is executed. The rules of its objects stand in fake_cudnn_objects.cpp.
//
// Seven engines. 0, the fallback, takes twice as long as TUNER_FAKE_CUDNN_NS (default 5000). 1 has tensor
// cores and a knob: with tile 0 it takes so long, with 1 half as long, with 2 three times. 2 is offered, and
// no plan of it can be made. 3 is the fastest and wrong. 4 is Winograd's algorithm of float32, in 0.6 of the
// time. 5 has no tensor cores, takes so long, and uses all of its workspace. 6 compiles kernels for the
// graph: it has tensor cores, takes 0.8 times as long, and alone does graphs with a bias of another type than
// out's.
//
// The environment: with TUNER_FAKE_CUDNN_WRONG all are wrong; with TUNER_FAKE_CUDNN_NO_GRAPH no engine does
// anything, with TUNER_FAKE_CUDNN_NO_STEPS nothing that follows a convolution, with
// TUNER_FAKE_CUDNN_NO_BFLOAT16 nothing of 16 bits; only with TUNER_FAKE_CUDNN_WIDE_OUT out may have another
// type than data (engine 6).
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>

#include "compiler_core/base/elements.h"
#include "tests/bench/fake_cudnn/fake_cudnn_objects.h"
#include "tests/measure_server/fake_cuda/fake_queue.h"

using namespace fake_cudnn;  // NOLINT

namespace {

using tuner::DType;

DType type_of(int code) {
  return code == 9 ? DType::kBFloat16 : code == 2 ? DType::kFloat16 : DType::kFloat32;
}
size_t bytes_of(const Tensor& t) {
  return static_cast<size_t>(t.elements() * tuner::dtype_bytes(type_of(t.type)));
}
double as_tf32(double x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x1000) & 0xffffe000);
}
double rounded(double x, int type) {
  const auto nearest = static_cast<float>(x);
  return type == 9   ? tuner::rounded_to_bfloat16(nearest)
         : type == 2 ? tuner::rounded_to_float16(nearest)
                     : nearest;
}

// Calls f(n, c, h, w) for each element of a shape.
template <class F>
void each(const std::vector<int64_t>& shape, const F& f) {
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t h = 0; h < shape[2]; ++h)
        for (int64_t w = 0; w < shape[3]; ++w) f(n, c, h, w);
}

struct Run {
  std::vector<const Object*> steps;
  std::map<int64_t, void*> pointers;
  int64_t engine = 0, tile = 0;

  std::vector<double> numbers(const Tensor& t) const {
    return tuner::load_elements(pointers.at(t.id), t.elements(), type_of(t.type));
  }
  bool has_tensor_cores() const { return engine == kReadyMade || engine == kCompiled; }

  std::vector<double> convolved() const {
    const Object& step = *steps.front();
    const Tensor x(*step.object(704)), w(*step.object(703)), y(*step.object(705));
    const Object& conv = *step.object(702);
    const auto dilation = conv.all<int64_t>(102), stride = conv.all<int64_t>(103),
               pre = conv.all<int64_t>(105);
    std::vector<double> data = numbers(x), weight = numbers(w);
    if (x.type == 0 && has_tensor_cores())
      for (std::vector<double>* operand : {&data, &weight})
        for (double& number : *operand) number = as_tf32(number);
    std::vector<double> sums(static_cast<size_t>(y.elements()));
    const int64_t filters_a_group = w.shape[0] / (x.shape[1] / w.shape[1]);
    each(y.shape, [&](int64_t n, int64_t o, int64_t row, int64_t column) {
      double sum = 0;
      each({1, w.shape[1], w.shape[2], w.shape[3]}, [&](int64_t, int64_t c, int64_t kh, int64_t kw) {
        const int64_t h = row * stride[0] + kh * dilation[0] - pre[0],
                      v = column * stride[1] + kw * dilation[1] - pre[1];
        if (h < 0 || h >= x.shape[2] || v < 0 || v >= x.shape[3]) return;
        const int64_t channel = o / filters_a_group * w.shape[1] + c;
        sum += data[static_cast<size_t>(x.at(n, channel, h, v))] *
               weight[static_cast<size_t>(w.at(o, c, kh, kw))];
      });
      sums[static_cast<size_t>(y.at(n, o, row, column))] = sum;
    });
    return sums;
  }

  void operator()() const {
    std::vector<double> values = convolved();
    Tensor last(*steps.front()->object(705));
    for (size_t i = 1; i < steps.size(); ++i) {
      const Object& step = *steps[i];
      const Tensor next(*step.object(753));
      std::vector<double> made(values.size());
      const bool adds = step.has(752);
      const Tensor b(*step.object(adds ? 752 : 751));
      const std::vector<double> added = adds ? numbers(b) : std::vector<double>();
      each(next.shape, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
        double value = values[static_cast<size_t>(last.at(n, c, h, w))];
        const auto at = [&](size_t d, int64_t place) { return b.shape[d] == 1 ? 0 : place; };
        if (adds)
          value += added[static_cast<size_t>(b.at(at(0, n), at(1, c), at(2, h), at(3, w)))];
        else
          value = std::max(value, 0.0);
        made[static_cast<size_t>(next.at(n, c, h, w))] = value;
      });
      values = std::move(made);
      last = next;
    }
    for (double& value : values) value = rounded(value, last.type);
    if (engine == kWrong || std::getenv("TUNER_FAKE_CUDNN_WRONG") != nullptr) values[0] = 1000;
    tuner::store_elements(values.data(), last.elements(), type_of(last.type), pointers.at(last.id));
    fake_cuda_advance(time_ns());
  }

  double time_ns() const {
    const char* given = std::getenv("TUNER_FAKE_CUDNN_NS");
    const double ns = given != nullptr ? std::atof(given) : 5000;
    switch (engine) {
      case kFallback:
        return 2 * ns;
      case kReadyMade:
        return tile == 1 ? ns / 2 : tile == 2 ? 3 * ns : ns;
      case kWinograd:
        return 0.6 * ns;
      case kCompiled:
        return 0.8 * ns;
      default:
        return engine == kDirect ? ns : ns / 10;
    }
  }
};

// What the caller's operands must be: each real tensor of the graph, once, on the device, aligned as it was
// described.
int collect(const Object& operands, Run& run) {
  const std::vector<int64_t> ids = operands.all<int64_t>(1000);
  const std::vector<void*> pointers = operands.all<void*>(1001);
  for (size_t i = 0; i < ids.size(); ++i)
    if (!run.pointers.emplace(ids[i], pointers[i]).second)
      return refuse(kDuplicated, "an id stands there twice");
  size_t real = 0;
  for (const Object* step : run.steps)
    for (const int attribute : {703, 704, 705, 752, 753}) {
      if (!step->has(attribute)) continue;
      const Tensor t(*step->object(attribute));
      if (t.is_virtual) continue;
      ++real;
      const auto found = run.pointers.find(t.id);
      if (found == run.pointers.end())
        return refuse(kBadParameter, "no pointer for id " + std::to_string(t.id));
      if (reinterpret_cast<uint64_t>(found->second) % static_cast<uint64_t>(t.alignment) != 0)
        return refuse(kMisaligned, "id " + std::to_string(t.id) + " is not aligned");
      if (!fake_cuda_owns(found->second, bytes_of(t)))
        return refuse(kBadParameter, "id " + std::to_string(t.id) + " does not lie on the device");
    }
  return real == ids.size() ? kOk : refuse(kBadParameter, "ids that the graph does not have");
}

}  // namespace

extern "C" {

void cudnnGetLastErrorString(char* text, size_t bytes) {
  const std::string& why = why_refused();
  const size_t count = std::min(bytes - 1, why.size());
  std::memcpy(text, why.data(), count);
  text[count] = '\0';
}

int cudnnBackendCreateDescriptor(int kind, void** object) {
  *object = &make_object(static_cast<Kind>(kind));
  return kOk;
}
int cudnnBackendDestroyDescriptor(void*) { return kOk; }
int cudnnBackendSetAttribute(void* object, int attribute, int type, int64_t count, const void* elements) {
  auto& o = *static_cast<Object*>(object);
  if (const int code = check_attribute(o, attribute, type, count, elements); code != kOk) return code;
  const auto* bytes = static_cast<const unsigned char*>(elements);
  o.attributes[attribute].assign(bytes, bytes + static_cast<size_t>(count) * element_bytes_of(type));
  return kOk;
}
int cudnnBackendFinalize(void* object) { return finalize(*static_cast<Object*>(object)); }

// Objects are filled, others copied. No room asks how many there are.
int cudnnBackendGetAttribute(const void* object, int attribute, int type, int64_t most, int64_t* count,
                             void* elements) {
  const auto& o = *static_cast<const Object*>(object);
  *count = 0;
  if (!o.is_final) return refuse(kNotFinalized, "is not finalized");
  const auto found = o.attributes.find(attribute);
  const int64_t there =
      found == o.attributes.end() ? 0 : static_cast<int64_t>(found->second.size() / element_bytes_of(type));
  *count = most == 0 ? there : std::min(most, there);
  if (most == 0 || there == 0) return kOk;
  if (type != kObject) {
    std::memcpy(elements, found->second.data(), static_cast<size_t>(*count) * element_bytes_of(type));
    return kOk;
  }
  const std::vector<const Object*> held = o.all<const Object*>(attribute);
  for (int64_t i = 0; i < *count; ++i) {
    Object* into = static_cast<Object**>(elements)[i];
    if (into == nullptr || into->is_final || into->kind != held[static_cast<size_t>(i)]->kind)
      return refuse(kBadParameter, "an object of that kind, not finalized, is to be filled");
    *into = *held[static_cast<size_t>(i)];
  }
  return kOk;
}

int cudnnBackendExecute(void* handle, void* plan, void* operands) {
  const auto &p = *static_cast<Object*>(plan), &o = *static_cast<Object*>(operands);
  if (handle == nullptr || p.kind != kPlan || o.kind != kOperands)
    return refuse(kBadParameter, "a handle, a plan and operands are needed");
  if (!p.is_final || !o.is_final) return refuse(kNotFinalized, "plan or operands are not finalized");
  if (p.one<void*>(400) != handle) return refuse(kBadParameter, "a plan for another handle");
  const Object& config = *p.object(401);
  const Object& engine = *config.object(300);
  Run run{.steps = engine.object(1300)->all<const Object*>(801), .engine = engine.one<int64_t>(1301)};
  if (config.has(302)) run.tile = config.object(302)->one<int64_t>(601);
  if (const int code = collect(o, run); code != kOk) return code;
  const auto workspace_bytes = static_cast<size_t>(p.one<int64_t>(402));
  void* workspace = o.one<void*>(1003);
  if (workspace_bytes > 0 && !fake_cuda_owns(workspace, workspace_bytes))
    return refuse(kBadParameter, "the workspace does not lie on the device");
  return fake_cuda_queue([=] {
    if (workspace_bytes > 0) std::memset(workspace, 0x5A, workspace_bytes);
    run();
    return 0;
  });
}

}  // extern "C"
