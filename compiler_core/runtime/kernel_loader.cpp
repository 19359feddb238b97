#include "compiler_core/runtime/kernel_loader.h"

#include <dlfcn.h>

#include "compiler_core/runtime/npu_loader.h"

namespace tuner {
namespace {

// Shared objects, by the system's loader.
class SharedObjectLoader final : public KernelLoader {
 public:
  std::string_view kind() const override { return binary_kind::kSharedObject; }

  Result<LoadedKernel> load(const std::string& path, const Manifest& manifest) const override {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return failed(reason == nullptr ? "no reason given" : reason);
    }
    // Threads of OpenMP sleep in its library between calls, and after the last one: libraries stay.
    for (const std::string& library : manifest.libraries)
      if (void* const stays = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlclose(stays);
    LoadedKernel loaded;
    loaded.code = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
    loaded.entry = reinterpret_cast<KernelEntry>(dlsym(handle, manifest.entry.c_str()));
    if (loaded.entry == nullptr) return failed("entry \"", manifest.entry, "\" is not in the shared object");
    if (manifest.pack_entry.empty()) return loaded;
    loaded.pack_entry = reinterpret_cast<KernelEntry>(dlsym(handle, manifest.pack_entry.c_str()));
    if (loaded.pack_entry == nullptr)
      return failed("packing entry \"", manifest.pack_entry, "\" is not in the shared object");
    return loaded;
  }
};

// Every loader of the tree; a new one is a line here.
std::vector<const KernelLoader*>& loaders() {
  static const SharedObjectLoader shared_objects;
  static std::vector<const KernelLoader*> all = {&shared_objects, &npu_loader()};
  return all;
}

}  // namespace

const KernelLoader* find_kernel_loader(std::string_view kind) {
  for (const KernelLoader* loader : loaders())
    if (loader->kind() == kind) return loader;
  return nullptr;
}

bool has_exact_clock(std::string_view kind) {
  const KernelLoader* const loader = find_kernel_loader(kind);
  return loader != nullptr && loader->clock_is_exact();
}

RegisterKernelLoader::RegisterKernelLoader(const KernelLoader& loader) {
  CHECK(find_kernel_loader(loader.kind()) == nullptr)
      << "two loaders are registered for binaries of kind " << loader.kind();
  loaders().push_back(&loader);
}

}  // namespace tuner
