#include "compiler_core/runtime/kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tuner {

Result<Kernel> Kernel::load_file(const std::string& path, const Manifest& manifest) {
  // float64 kernels (reference answers) call exp, log, tanh and erf of the C library, which a static program
  // may not have.
  static void* const math = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  static_cast<void>(math);
  static_cast<void>(tuner_tiles());  // asks for them, for a kernel that uses them
  const KernelLoader* loader = find_kernel_loader(manifest.kind);
  if (loader == nullptr)
    return failed(path, ": a binary of kind \"", manifest.kind,
                  "\" does not run in a process of this program");
  Kernel kernel;
  Result<LoadedKernel> loaded = loader->load(path, manifest);
  if (!loaded) return loaded.status().with_context(path + ": cannot load: ");
  kernel.loaded_ = *std::move(loaded);
  kernel.manifest_ = manifest;
  return kernel;
}

Result<Kernel> Kernel::load(const Artifact& artifact) {
  const int fd = memfd_create(artifact.manifest.entry.c_str(), MFD_CLOEXEC);
  if (fd < 0) return failed("memfd_create: ", std::strerror(errno));
  std::string_view bytes = artifact.binary;
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const Status status =
          failed("memfd of ", artifact.manifest.entry, ": cannot write: ", std::strerror(errno));
      close(fd);
      return status;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  // The loader takes a name that it has loaded for the same library, whatever the file is now. So the file
  // stays open as long as the library is loaded: two kernels have two names.
  const auto file = std::shared_ptr<void>(nullptr, [fd](void*) { close(fd); });
  ASSIGN_OR_RETURN(Kernel kernel, load_file(str("/proc/self/fd/", fd), artifact.manifest));
  void* const code = kernel.loaded_.code.get();
  kernel.loaded_.code = std::shared_ptr<void>(
      code, [library = std::move(kernel.loaded_.code), file](void*) mutable { library.reset(); });
  return kernel;
}

Status Kernel::checked(Entry entry, void* const* args, const tuner_runtime& rt) const {
  CHECK(entry != nullptr) << manifest_.entry << " has no such entry";
  const int32_t code = entry(args, &rt);
  if (code == 0) return Status::ok();
  return failed(manifest_.entry, ": returned ", code,
                code == -1   ? " (runtime of another ABI version)"
                : code == -2 ? " (no workspace given)"
                             : "");
}

AlignedBuffer::AlignedBuffer(int64_t bytes, Content content) : bytes_(bytes) {
  CHECK(bytes >= 0) << "a buffer of " << bytes << " bytes";
  // Whole lines, and never empty. Large ones so that large pages can serve them, as where candidates are
  // measured: as many as they fill; what is behind them takes small pages.
  constexpr size_t kLine = 64, kLargePage = size_t{2} << 20;
  const size_t lines = (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine + kLine;
  const size_t border = lines >= kLargePage ? kLargePage : kLine;
  void* p = std::aligned_alloc(border, (lines + border - 1) / border * border);
  if (p == nullptr) throw std::bad_alloc();  // of standard containers, too: one error for one cause
#ifdef MADV_HUGEPAGE
  if (border == kLargePage) madvise(p, lines / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  if (content == Content::kZeros) std::memset(p, 0, lines);
  data_.reset(p);
}

void AlignedBuffer::Free::operator()(void* p) const { std::free(p); }

}  // namespace tuner
