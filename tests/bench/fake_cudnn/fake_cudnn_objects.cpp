#include "tests/bench/fake_cudnn/fake_cudnn_objects.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace fake_cudnn {
namespace {

std::string last_error;  // NOLINT: of the one thread that tests have

// `of` is the kind of objects; min 0: may be left away.
struct Rule {
  Type type;
  int64_t min = 1, max = 1;
  int of = -1;
};
using Rules = std::map<int, Rule>;
const std::map<Kind, Rules>& rules() {
  static const std::map<Kind, Rules> all = {
      {kPointwise, {{0, {kPointwiseMode}}, {1, {kDataType}}}},
      {kConvolution,
       {{100, {kDataType}},
        {101, {kConvolutionMode}},
        {102, {kInt64, 2, 2}},
        {103, {kInt64, 2, 2}},
        {104, {kInt64, 2, 2}},
        {105, {kInt64, 2, 2}},
        {106, {kInt64}}}},
      {kEngine, {{1300, {kObject, 1, 1, kGraph}}, {1301, {kInt64}}, {1307, {kObject, 0, 1, kDevice}}}},
      {kConfig, {{300, {kObject, 1, 1, kEngine}}, {302, {kObject, 0, 44, kKnobChoice}}}},
      {kHeuristic,
       {{200, {kHeuristicMode}}, {201, {kObject, 1, 1, kGraph}}, {204, {kObject, 0, 1, kDevice}}}},
      {kPlan, {{400, {kHandle, 0, 1}}, {401, {kObject, 1, 1, kConfig}}, {407, {kObject, 0, 1, kDevice}}}},
      {kForward,
       {{700, {kFloat}},
        {701, {kFloat}},
        {702, {kObject, 1, 1, kConvolution}},
        {703, {kObject, 1, 1, kTensor}},
        {704, {kObject, 1, 1, kTensor}},
        {705, {kObject, 1, 1, kTensor}}}},
      {kPointwiseOperation,
       {{750, {kObject, 1, 1, kPointwise}},
        {751, {kObject, 1, 1, kTensor}},
        {752, {kObject, 0, 1, kTensor}},
        {753, {kObject, 1, 1, kTensor}}}},
      {kGraph, {{800, {kHandle, 0, 1}}, {801, {kObject, 1, 8}}}},
      {kOperands, {{1000, {kInt64, 1, 8}}, {1001, {kPointer, 1, 8}}, {1003, {kPointer}}}},
      {kTensor,
       {{900, {kInt64}},
        {901, {kDataType}},
        {902, {kInt64, 4, 4}},
        {903, {kInt64, 4, 4}},
        {906, {kInt64}},
        {907, {kBoolean, 0, 1}}}},
      {kDevice, {{2701, {kHandle, 0, 1}}, {2702, {kChar, 0, 1 << 20}}}}};
  return all;
}

// --- what must hold of an object ---

int finalize_forward(const Object& o) {
  const Tensor x(*o.object(704)), w(*o.object(703)), y(*o.object(705));
  const Object& c = *o.object(702);
  const auto dilations = c.all<int64_t>(102), strides = c.all<int64_t>(103), post = c.all<int64_t>(104),
             pre = c.all<int64_t>(105);
  // A true convolution turns its weight around, and other sums than float32 are not what is compared.
  if (c.one<int>(101) != 1 || c.one<int>(100) != 0 || c.one<int64_t>(106) != 2)
    return refuse(kNotSupported, "the convolution's mode, type or dimensions");
  if (o.one<float>(700) != 1 || o.one<float>(701) != 0) return refuse(kNotSupported, "alpha or beta");
  for (size_t d = 0; d < 2; ++d) {
    const int64_t size =
        (x.shape[d + 2] + pre[d] + post[d] - dilations[d] * (w.shape[d + 2] - 1) - 1) / strides[d] + 1;
    if (y.shape[d + 2] != size) return refuse(kBadParameter, "the image that comes out has another size");
  }
  if (x.shape[0] != y.shape[0] || y.shape[1] != w.shape[0] || x.shape[1] % w.shape[1] != 0)
    return refuse(kBadParameter, "channels do not fit");
  return x.type == w.type ? kOk : refuse(kBadParameter, "data and weight of different types");
}

int finalize_pointwise(const Object& o) {
  const int mode = o.object(750)->one<int>(0);
  if (mode != 0 && mode != 100) return refuse(kNotSupported, "neither an addition nor ReLU");
  if ((mode == 0) != o.has(752)) return refuse(kBadParameter, "an addition has two operands, ReLU one");
  const Tensor x(*o.object(751)), y(*o.object(753));
  if (x.shape != y.shape) return refuse(kBadParameter, "shapes of a step differ");
  if (mode == 100) return kOk;
  const Tensor b(*o.object(752));
  for (size_t d = 0; d < 4; ++d)
    if (b.shape[d] != 1 && b.shape[d] != x.shape[d]) return refuse(kBadParameter, "cannot be broadcast");
  return kOk;
}

// The steps follow each other: what one makes the next one takes; only the last one's is there to be read.
int finalize_graph(const Object& o) {
  std::set<int64_t> ids;
  const Object* made = nullptr;
  const std::vector<const Object*> steps = o.all<const Object*>(801);
  for (const Object* step : steps) {
    const bool is_first = step == steps.front(), is_last = step == steps.back();
    if (is_first != (step->kind == kForward))
      return refuse(kNotSupported, "a graph begins with its convolution");
    if (!is_first && step->object(751) != made)
      return refuse(kBadParameter, "a step takes what was not made");
    made = step->object(is_first ? 705 : 753);
    if (Tensor(*made).is_virtual == is_last)
      return refuse(kBadParameter, "only the last step's result is real");
    for (const int attribute : {703, 704, 705, 752, 753})
      if (step->has(attribute) && !ids.insert(Tensor(*step->object(attribute)).id).second)
        return refuse(kDuplicated, "two tensors have one id");
  }
  return kOk;
}

struct Facts {
  bool reads_narrow = false, widens = false, mixes = false, has_steps = false, is_float = false;
};
Facts facts_of(const Object& graph) {
  Facts f;
  const std::vector<const Object*> steps = graph.all<const Object*>(801);
  const Tensor x(*steps.front()->object(704)),
      out(*steps.back()->object(steps.back()->kind == kForward ? 705 : 753));
  f.is_float = x.type == 0;
  f.widens = out.type != x.type;
  f.has_steps = steps.size() > 1;
  for (const Object* step : steps)
    if (step->has(752)) f.mixes = f.mixes || Tensor(*step->object(752)).type != out.type;
  return f;
}

// Whether an engine does this graph.
bool serves(int64_t engine, const Object& graph) {
  if (std::getenv("TUNER_FAKE_CUDNN_NO_GRAPH") != nullptr) return false;
  const Facts f = facts_of(graph);
  if (!f.is_float && std::getenv("TUNER_FAKE_CUDNN_NO_BFLOAT16") != nullptr) return false;
  if (f.has_steps && std::getenv("TUNER_FAKE_CUDNN_NO_STEPS") != nullptr) return false;
  if (f.widens && std::getenv("TUNER_FAKE_CUDNN_WIDE_OUT") == nullptr) return false;
  if (f.widens || f.mixes) return engine == kCompiled;
  return engine != kCompiled && (engine != kWinograd || f.is_float);
}

// One that the library makes itself.
Object& made(Kind kind) {
  Object& o = make_object(kind);
  o.is_final = true;
  return o;
}

void fill_engine(Object& engine, int64_t index) {
  engine.put<int64_t>(1301, {index});
  std::vector<int> notes;
  if (index == kReadyMade || index == kCompiled) notes = {0};
  if (index == kWinograd) notes = {5, 6};
  engine.put(1303, notes);
}

}  // namespace

Object& make_object(Kind kind) {
  static std::vector<std::unique_ptr<Object>> all;
  Object& o = *all.emplace_back(std::make_unique<Object>());
  o.kind = kind;
  return o;
}

int refuse(int code, const std::string& why) {
  last_error = why;
  return code;
}
const std::string& why_refused() { return last_error; }

size_t element_bytes_of(int type) {
  switch (type) {
    case kHandle:
    case kPointer:
    case kObject:
    case kInt64:
      return 8;
    case kBoolean:
    case kChar:
      return 1;
    default:
      return 4;
  }
}

int check_attribute(const Object& object, int attribute, int type, int64_t count, const void* elements) {
  if (object.is_final) return refuse(kBadParameter, "is finalized already");
  const auto kind = rules().find(object.kind);
  if (kind == rules().end() || !kind->second.contains(attribute))
    return refuse(kBadParameter, "no such attribute");
  const Rule& rule = kind->second.at(attribute);
  if (type != rule.type) return refuse(kAttributeType, "another type of attribute");
  if (count < std::max<int64_t>(rule.min, 1) || count > rule.max || elements == nullptr)
    return refuse(kOutOfBound, "so many elements");
  if (type != kObject) return kOk;
  for (int64_t i = 0; i < count; ++i) {
    const Object* other = static_cast<const Object* const*>(elements)[i];
    if (other == nullptr || other->magic != 0xCD || (rule.of >= 0 && other->kind != rule.of))
      return refuse(kBadParameter, "another kind of object");
    if (!other->is_final) return refuse(kNotFinalized, "an object that is not finalized");
  }
  return kOk;
}

// Configs of a heuristic: an engine and, of the one that has a knob, its value.
Object& config_of(const Object& graph, int64_t index, int64_t tile) {
  Object& engine = made(kEngine);
  engine.put(1300, std::vector<const Object*>{&graph});
  fill_engine(engine, index);
  Object& config = made(kConfig);
  config.put(300, std::vector<const Object*>{&engine});
  if (tile < 0) return config;
  Object& knob = made(kKnobChoice);
  knob.put<int>(600, {2});
  knob.put<int64_t>(601, {tile});
  config.put(302, std::vector<const Object*>{&knob});
  return config;
}

int finalize(Object& o) {
  if (o.is_final) return refuse(kBadParameter, "is finalized already");
  for (const auto& [attribute, rule] : rules().at(o.kind))
    if (rule.min > 0 && !o.has(attribute))
      return refuse(kBadParameter, "attribute " + std::to_string(attribute) + " is missing");
  int code = kOk;
  if (o.kind == kForward) code = finalize_forward(o);
  if (o.kind == kPointwiseOperation) code = finalize_pointwise(o);
  if (o.kind == kGraph) code = finalize_graph(o);
  if (code != kOk) return code;
  if (o.kind == kPointwise && o.one<int>(1) != 0)
    return refuse(kNotSupported, "steps in another type than float32");
  if (o.kind == kGraph) o.put<int64_t>(802, {kEngines});
  if (o.kind == kTensor && (o.one<int64_t>(900) < 1 || o.one<int64_t>(906) == 0))
    return refuse(kBadParameter, "a tensor's alignment or id");
  if (o.kind == kEngine) {
    const int64_t index = o.one<int64_t>(1301);
    if (index < 0 || index >= kEngines || !serves(index, *o.object(1300)))
      return refuse(kNotSupported, "this engine does not do it");
    fill_engine(o, index);
  }
  if (o.kind == kHeuristic) {
    const Object& graph = *o.object(201);
    const int mode = o.one<int>(200);
    std::vector<const Object*> results;
    const auto offer = [&](int64_t engine, int64_t tile = -1) {
      if (serves(engine, graph)) results.push_back(&config_of(graph, engine, tile));
    };
    if (mode == 3 || mode == 1) {
      for (const int64_t engine : {kRefusing, kWrong}) offer(engine);
      for (const int64_t tile : {0, 1}) offer(kReadyMade, tile);
      for (const int64_t engine : {kDirect, kWinograd, kCompiled}) offer(engine);
      if (mode == 1) offer(kReadyMade, 2);
    }
    if (mode == 2) offer(kFallback);
    o.put(202, results);
  }
  if (o.kind == kPlan) {
    if (!o.has(400) && !o.has(407)) return refuse(kBadParameter, "a plan is for a handle or a device");
    const int64_t engine = o.object(401)->object(300)->one<int64_t>(1301);
    if (engine == kRefusing) return refuse(kNotSupported, "engine 2 is not made");
    o.put<int64_t>(402, {engine == kDirect ? static_cast<int64_t>(kWorkspaceBytes) : 0});
  }
  if (o.kind == kOperands && o.all<int64_t>(1000).size() != o.all<void*>(1001).size())
    return refuse(kBadParameter, "as many pointers as ids");
  if (o.kind == kDevice) {
    if (o.has(2701) == o.has(2702)) return refuse(kBadParameter, "a device is a handle's or a text");
    const std::string json = "{\"deviceVer\":900,\"deviceName\":\"Fake GPU\"}";
    const std::vector<char> text = o.all<char>(2702);
    if (o.has(2702) && std::string(text.begin(), text.end()).find("deviceVer") == std::string::npos)
      return refuse(kBadParameter, "!json_object.HasMember(\"deviceVer\")");
    if (!o.has(2702)) o.put(2702, std::vector<char>(json.begin(), json.end()));
  }
  o.is_final = true;
  return kOk;
}

}  // namespace fake_cudnn
