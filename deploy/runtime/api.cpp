// The C API: handles, codes and texts around Source and Function. No exception leaves this file.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>

#include "deploy/runtime/builder.h"
#include "deploy/runtime/call.h"
#include "deploy/runtime/capture.h"
#include "deploy/runtime/function.h"
#include "deploy/runtime/kernel_cache.h"
#include "deploy/runtime/say_once.h"
#include "deploy/runtime/source.h"
#include "deploy/runtime/tuner_runtime_api.h"
#include "deploy/runtime/verify.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload_json.h"

namespace tuner::runtime {
namespace {

thread_local std::string last_error;

// What tuner_find() is asked for. An entry that was captured names its target, too.
struct Asked {
  Workload workload;
  std::string target;  // empty: that of the source
};

Result<Asked> parse_asked(std::string_view text) {
  Asked asked;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    ASSIGN_OR_RETURN(asked.workload, workload_from_json(text, [&](json_input::ObjectReader& in) {
                       uint64_t uses = 1;
                       in.read("target", asked.target);
                       in.read("uses", uses);  // says nothing of which kernel is best
                     }));
    return asked;
  }
  ASSIGN_OR_RETURN(asked.workload, workload_from_key(text));
  RETURN_IF_ERROR(validate(asked.workload));
  return asked;
}

// True for the key of a user's kernel. Its source is not here, so no workload can be made of the key.
bool is_own_kernel(std::string_view text) { return text.starts_with("v1 kernel "); }

// Refuses a target other than the one that kernels are for.
Status check_target(const std::string& asked, const std::string& ours) {
  if (asked.empty() || asked == ours) return Status::ok();
  // What a library that cannot know the name of this CPU captured, and cannot hold against a name.
  if (asked == "cpu" && !can_compile()) return Status::ok();
  const Result<Target> named = resolve(asked);
  if (!named) return named.status().with_context("target: ");
  if (named->name() == ours) return Status::ok();
  return invalid_argument("target: this source answers for \"", ours, "\", found \"", asked,
                          "\". Another source may be opened with tuner_options.target");
}

// A struct of the caller, who may have been compiled with an older or newer header than ours.
template <class T>
Result<T> read_struct(const T* given) {
  T mine{};
  if (given == nullptr) return mine;
  constexpr size_t kLeast = sizeof(size_t) + sizeof(void*);
  if (given->struct_bytes < kLeast || given->struct_bytes > 64 * sizeof(T))
    return invalid_argument("struct_bytes: expected the sizeof of the struct, ", sizeof(T), " bytes, found ",
                            given->struct_bytes);
  std::memcpy(&mine, given, std::min(sizeof(T), given->struct_bytes));
  return mine;
}

// "direct,winograd" -> canonical; empty: any.
Result<std::string> parse_algorithms(std::string text) {
  if (text.empty()) return text;
  std::vector<std::string> names(1);
  for (const char c : text)
    if (c == ',')
      names.emplace_back();
    else if (c != ' ')
      names.back() += c;
  Result<std::string> canonical = canonical_algorithms(names);
  return canonical ? canonical : canonical.status().with_context("tuner_options.algorithms: ");
}

Result<Constants> parse_constants(const std::string& text) {
  const std::optional<Constants> found = constants_from_name(text);
  if (found) return *found;
  return invalid_argument("tuner_options.constants: expected warm or cold, found \"", text.substr(0, 40),
                          "\"");
}

// What the environment says; nothing if the variable is not set, or empty.
const char* environment(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr || *value == 0 ? nullptr : value;
}

Result<std::shared_ptr<const AnswerLock>> open_lock(const char* given) {
  const char* const path = given != nullptr ? given : environment("TUNER_LOCK");
  if (path == nullptr || *path == 0) return std::shared_ptr<const AnswerLock>();
  Result<AnswerLock> lock = AnswerLock::read(path);
  if (!lock) return given != nullptr ? lock.status() : lock.status().with_context("TUNER_LOCK: ");
  return std::make_shared<const AnswerLock>(*std::move(lock));
}

Result<bool> parse_verify(int32_t given) {
  if (given == 1 || given == -1) return given == 1;
  if (given != 0) return invalid_argument("tuner_options.verify: expected 1, 0 or -1, found ", given);
  const char* const value = environment("TUNER_VERIFY");
  if (value == nullptr || std::string_view(value) == "0") return false;
  if (std::string_view(value) == "1") return true;
  return invalid_argument("TUNER_VERIFY: expected 1 or 0, found \"", std::string(value).substr(0, 40), "\"");
}

std::string text_or(const char* text, const std::string& otherwise) {
  return text == nullptr ? otherwise : text;
}

}  // namespace

void keep_error(std::string message) { last_error = std::move(message); }

tuner_code code_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return TUNER_OK;
    case StatusCode::kInvalidArgument:
      return TUNER_INVALID;
    case StatusCode::kNotFound:
      return TUNER_NOT_FOUND;
    default:
      return TUNER_FAILED;
  }
}

}  // namespace tuner::runtime

struct tuner_function {
  std::shared_ptr<const tuner::runtime::Function> function;
  std::string digest;
};
struct tuner_packed {
  std::shared_ptr<const tuner::runtime::Function> function;  // whose they are: it outlives them
  std::unique_ptr<tuner::runtime::Packed> packed;
};

struct tuner_source {
  using Function = tuner::runtime::Function;
  using Made = tuner::Result<std::shared_ptr<const Function>>;

  std::unique_ptr<tuner::runtime::Source> source;
  tuner::runtime::MessageSink message;
  tuner::runtime::Capture* capture = nullptr;        // null: off
  std::optional<tuner::runtime::Verdicts> verdicts;  // if first uses are verified
  tuner::runtime::Pools pools;
  std::mutex mutex;
  // By workload: made by the first who asks, the others wait for it. What failed is tried again.
  std::map<std::string, std::shared_future<Made>> functions;

  Made find(const tuner::Workload& workload) {
    return once(workload.key(), [&] { return make(workload); });
  }
  // A user's kernel, by its key.
  Made find_own(const std::string& key) {
    return once(key, [&] { return make_own(key); });
  }

 private:
  Made once(const std::string& key, const std::function<Made()>& make);
  Made make(const tuner::Workload& workload);
  Made make_own(const std::string& key);
};

tuner_source::Made tuner_source::make(const tuner::Workload& workload) {
  ASSIGN_OR_RETURN(tuner::runtime::Choice choice, source->choose(workload));
  if (!choice.note.empty())
    tuner::runtime::say_once(workload.key() + "\n" + choice.target, choice.note, message);
  if (verdicts)
    return tuner::runtime::verified_function(workload, std::move(choice), *source, *verdicts, pools, message);
  const int threads = std::max(1, choice.kernel.manifest().threads);
  return Function::make(workload, std::move(choice), pools.of(threads));
}

tuner_source::Made tuner_source::make_own(const std::string& key) {
  ASSIGN_OR_RETURN(tuner::runtime::Choice choice, source->choose_own(key));
  const int threads = std::max(1, choice.kernel.manifest().threads);
  return Function::make(key, std::move(choice), pools.of(threads));
}

tuner_source::Made tuner_source::once(const std::string& key, const std::function<Made()>& make) {
  std::promise<Made> promise;
  std::shared_future<Made> future;
  bool mine = false;
  {
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = functions.try_emplace(key);
    if (is_new) at->second = promise.get_future().share();
    mine = is_new;
    future = at->second;
  }
  if (!mine) return future.get();
  Made made = tuner::failed("not made");
  try {
    made = make();
  } catch (const std::exception& error) {
    made = tuner::failed("out of memory, threads or the like: ", error.what());
  }
  if (!made) {
    const std::lock_guard lock(mutex);
    functions.erase(key);
  }
  promise.set_value(made);
  return made;
}

using namespace tuner;           // NOLINT: below are C functions only
using namespace tuner::runtime;  // NOLINT

extern "C" {

const char* tuner_version(void) { return TUNER_VERSION; }
int tuner_can_compile(void) { return can_compile() ? 1 : 0; }
const char* tuner_last_error(void) { return last_error.c_str(); }

tuner_code tuner_open(const char* path, const tuner_options* options, tuner_source** source) {
  return guarded([&]() -> Status {
    if (source == nullptr) return invalid_argument("tuner_open: source is NULL");
    *source = nullptr;
    if (path != nullptr && *path == 0)
      return invalid_argument(
          "tuner_open: path is empty, expected a database or a bundle; NULL opens the default database");
    ASSIGN_OR_RETURN(const tuner_options o, read_struct(options));
    auto opened = std::make_unique<tuner_source>();
    if (o.message != nullptr)
      opened->message = [call = o.message, user = o.message_user](const std::string& line) {
        call(user, line.c_str());
      };
    const char* const capture = environment("TUNER_CAPTURE");
    const bool captures = capture != nullptr;
    ASSIGN_OR_RETURN(const std::string algorithms, parse_algorithms(text_or(o.algorithms, "")));
    ASSIGN_OR_RETURN(const Constants constants, parse_constants(text_or(o.constants, "warm")));
    ASSIGN_OR_RETURN(const std::shared_ptr<const AnswerLock> lock, open_lock(o.lock));
    ASSIGN_OR_RETURN(const bool verifies, parse_verify(o.verify));
    if (captures)
      opened->capture = &Capture::of(
          capture, [sink = opened->message](const std::string& line) { say_once(line, line, sink); });
    const bool will_capture = captures && opened->capture->check().is_ok();
    const SourceOptions asked{
        .target = text_or(o.target, ""),
        .cache_dir = text_or(o.cache_dir, default_cache_dir()),
        .artifact_dir = text_or(o.artifact_dir, ""),
        .algorithms = algorithms,
        .constants = constants,
        .fix = will_capture ? str("tuner submit ", capture)
               : captures
                   ? str("give TUNER_CAPTURE a file other than ", capture,
                         ", which cannot be written as a job file; run this "
                         "program once, then tuner submit that file")
                   : "run this program once with TUNER_CAPTURE=shapes.json, then tuner submit shapes.json",
        .lock = lock,
        .lock_fix =
            lock == nullptr
                ? ""
                : str(will_capture ? "" : "run this program once with TUNER_CAPTURE=shapes.json, then ",
                      "tuner lock ", will_capture ? capture : "shapes.json", " -o ", lock->path(),
                      constants == Constants::kCold ? " --constants cold" : "",
                      algorithms.empty() ? "" : ", with \"algorithms\" in the entries of that file")};
    if (verifies) opened->verdicts.emplace(asked.cache_dir);
    ASSIGN_OR_RETURN(opened->source, Source::open(text_or(path, ""), asked));
    *source = opened.release();
    return Status::ok();
  });
}

void tuner_close(tuner_source* source) {
  static_cast<void>(guarded([&] {
    if (source != nullptr && source->capture != nullptr) static_cast<void>(source->capture->flush());
    delete source;
    return Status::ok();
  }));
}

tuner_code tuner_find(tuner_source* source, const char* workload, tuner_function** function) {
  return guarded([&]() -> Status {
    if (source == nullptr || workload == nullptr || function == nullptr)
      return invalid_argument("tuner_find: source, workload or function is NULL");
    *function = nullptr;
    if (is_own_kernel(workload)) {
      ASSIGN_OR_RETURN(std::shared_ptr<const Function> own, source->find_own(workload));
      const std::string digest = own->choice().kernel.manifest().digest;
      *function = new tuner_function{std::move(own), digest};
      return Status::ok();
    }
    ASSIGN_OR_RETURN(const Asked asked, parse_asked(workload));
    const std::string ours = source->source->target();
    if (!ours.empty()) RETURN_IF_ERROR(check_target(asked.target, ours));
    tuner_source::Made found = source->find(asked.workload);
    if (ours.empty() && found) RETURN_IF_ERROR(check_target(asked.target, (*found)->choice().target));
    // Captured whether or not there is a kernel: that there is none is worth tuning most.
    if (source->capture != nullptr) {
      const std::string target = found ? (*found)->choice().target : ours;
      source->capture->asked(asked.workload, target.empty() ? "cpu" : target,
                             found ? (*found)->calls() : std::make_shared<const std::atomic<uint64_t>>(0));
    }
    if (!found) return found.status();
    const std::string digest = (*found)->choice().kernel.manifest().digest;
    *function = new tuner_function{*std::move(found), digest};
    return Status::ok();
  });
}

void tuner_release(tuner_function* function) { delete function; }

int32_t tuner_num_operands(const tuner_function* function) {
  return function == nullptr ? 0 : static_cast<int32_t>(function->function->operands().size());
}

tuner_code tuner_get_operand(const tuner_function* function, int32_t index, tuner_operand* operand) {
  return guarded([&]() -> Status {
    if (function == nullptr || operand == nullptr)
      return invalid_argument("tuner_get_operand: function or operand is NULL");
    const auto& operands = function->function->operands();
    if (index < 0 || static_cast<size_t>(index) >= operands.size())
      return invalid_argument("tuner_get_operand: expected an index from 0 to ", operands.size() - 1,
                              ", found ", index);
    const auto& o = operands[static_cast<size_t>(index)];
    *operand = {o.name.c_str(),
                buffer_role_name(o.role).data(),
                dtype_name(o.dtype).data(),
                static_cast<int32_t>(o.shape.size()),
                o.shape.data(),
                o.bytes};
    return Status::ok();
  });
}

tuner_code tuner_describe(const tuner_function* function, tuner_answer* answer) {
  return guarded([&]() -> Status {
    if (function == nullptr || answer == nullptr)
      return invalid_argument("tuner_describe: function or answer is NULL");
    ASSIGN_OR_RETURN(const tuner_answer given, read_struct(answer));
    const Choice& c = function->function->choice();
    const tuner_answer all{given.struct_bytes,
                           function->function->workload_key().c_str(),
                           c.target.c_str(),
                           c.kind.c_str(),
                           c.template_name.c_str(),
                           c.config.c_str(),
                           function->digest.c_str(),
                           c.note.c_str(),
                           c.kernel.manifest().threads,
                           c.compiled ? 1 : 0,
                           c.algorithm.c_str(),
                           c.verdict.c_str(),
                           c.raced_ns,
                           c.raced_default_ns};
    std::memcpy(answer, &all, std::min(sizeof all, given.struct_bytes));
    return Status::ok();
  });
}

tuner_code tuner_pack(const tuner_function* function, const void* const* operands, tuner_packed** packed) {
  return guarded([&]() -> Status {
    if (function == nullptr || operands == nullptr || packed == nullptr)
      return invalid_argument("tuner_pack: function, operands or packed is NULL");
    *packed = nullptr;
    ASSIGN_OR_RETURN(std::unique_ptr<Packed> made, function->function->pack(operands));
    *packed = new tuner_packed{function->function, std::move(made)};
    return Status::ok();
  });
}

void tuner_free_packed(tuner_packed* packed) { delete packed; }

tuner_code tuner_run(const tuner_function* function, const tuner_packed* packed, void* const* operands) {
  return guarded([&]() -> Status {
    if (function == nullptr || operands == nullptr)
      return invalid_argument("tuner_run: function or operands is NULL");
    return function->function->run(packed == nullptr ? nullptr : packed->packed.get(), operands);
  });
}

void* tuner_allocate(size_t bytes) {
  constexpr size_t kLine = 64;
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t rounded = (bytes + kLine - 1) / kLine * kLine + (bytes == 0 ? kLine : 0);
  void* const memory = std::aligned_alloc(kLine, rounded);
  if (memory != nullptr) std::memset(memory, 0, rounded);
  return memory;
}

void tuner_free(void* memory) { std::free(memory); }

}  // extern "C"
