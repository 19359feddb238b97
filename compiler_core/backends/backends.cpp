// The list of back ends, and what is asked of all of them.
#include <atomic>

#include "compiler_core/backend.h"
#include "compiler_core/codegen/cpu_backend.h"
#include "compiler_core/codegen_cuda/cuda_backend.h"
#include "compiler_core/codegen_npu/npu_backend.h"

namespace tuner {
namespace {

// Every back end of the tree; a new one is a line here.
std::vector<const Backend*>& backends() {
  static std::vector<const Backend*> all = {&cpu_backend(), &cuda_backend(), &npu_backend()};
  return all;
}

std::atomic<void (*)(const std::string&)> tell_advice = nullptr;

}  // namespace

const std::vector<const Backend*>& all_backends() { return backends(); }

const Backend* find_backend(const TargetFamily& family) {
  for (const Backend* backend : backends())
    if (&backend->family() == &family) return backend;
  return nullptr;
}

const Backend& backend_of(const Target& target) {
  const Backend* backend = find_backend(*target.family);
  CHECK(backend != nullptr) << "no back end for \"" << target.name() << "\" is linked in";
  return *backend;
}

RegisterBackend::RegisterBackend(const Backend& backend) {
  CHECK(find_backend(backend.family()) == nullptr)
      << "two back ends are registered for " << backend.family().word();
  backends().push_back(&backend);
}

Result<Target> resolve_target(std::string_view text) {
  for (const Backend* backend : backends()) {
    ASSIGN_OR_RETURN(const std::optional<Target> here, backend->resolve_here(text));
    if (here) return *here;
  }
  ASSIGN_OR_RETURN(Target target, parse_target(text));
  if (const Status known = backend_of(target).check_words(target); !known)
    return known.with_context(str("target '", text, "': "));
  if (auto* tell = tell_advice.load())
    if (const std::string advice = target.family->advice(target); !advice.empty()) tell(advice);
  return target;
}

void on_target_advice(void (*tell)(const std::string& advice)) { tell_advice = tell; }

std::vector<std::string> toolchains_here() {
  std::vector<std::string> found;
  for (const Backend* backend : backends())
    if (backend->available()) found.push_back(backend->toolchain());
  return found;
}

}  // namespace tuner
