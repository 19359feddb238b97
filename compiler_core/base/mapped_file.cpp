#include "compiler_core/base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler_core/base/input_file.h"

namespace tuner {

Result<MappedFile> map_input(const std::string& path, const std::string& expected) {
  ASSIGN_OR_RETURN(const int descriptor, open_input(path, expected));
  struct stat about {};
  const bool regular = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  if (!regular || about.st_size == 0) {
    close(descriptor);
    return invalid_argument(path, regular ? ": is empty" : ": is no regular file", ", expected ", expected);
  }
  const auto size = static_cast<size_t>(about.st_size);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) return invalid_argument(path, ": cannot be mapped, expected ", expected);
  std::shared_ptr<const void> owner(memory, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return MappedFile({static_cast<const char*>(memory), size}, std::move(owner));
}

}  // namespace tuner
