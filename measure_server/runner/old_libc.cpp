// What the statically linked runtime of the compiler asks of a glibc newer than 2.34, so that the runner and
// the worker without LLVM start on hosts that have no newer one. Part of the executable, not of a library: it
// must come before libc's own.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#ifdef DLFO_STRUCT_HAS_EH_DBASE  // this glibc has _dl_find_object (2.35), so libgcc's unwinder calls it

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

// The object whose code holds the address, as dl_iterate_phdr() describes it.
int look(dl_phdr_info* object, size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool is_here = false;
  ElfW(Addr) begin = ~ElfW(Addr){0}, end = 0, frames = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const ElfW(Addr) at = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = at;
    if (part.p_type != PT_LOAD) continue;
    if (at < begin) begin = at;
    if (at + part.p_memsz > end) end = at + part.p_memsz;
    is_here = is_here || (search.address >= at && search.address < at + part.p_memsz);
  }
  if (!is_here || frames == 0) return 0;
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), found};
  return dl_iterate_phdr(look, &search) != 0 ? 0 : -1;
}

#endif

#if __GLIBC_PREREQ(2, 36)  // this glibc has arc4random(), so std::random_device calls it

extern "C" uint32_t arc4random() noexcept {
  uint32_t number = 0;
  // A few bytes come whole, or are interrupted before the first.
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    if (errno != EINTR) std::abort();
  return number;
}

#endif
