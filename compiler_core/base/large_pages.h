// Large arrays on large pages, where the system gives them to who asks: touched for the first time they cost
// some page faults, not one for each 4 KB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace tuner {

// Reserves room for `n` elements of a vector or string, before they are written. A few MB stay as they are:
// they may lie beside what others allocated.
template <class Array>
void reserve_on_large_pages(Array& array, size_t n) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20, kLeast = uintptr_t{32} << 20;
  array.reserve(n);
#ifdef MADV_HUGEPAGE
  const auto begin = reinterpret_cast<uintptr_t>(array.data());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage,
                  end = (begin + n * sizeof(typename Array::value_type)) / kPage * kPage;
  if (end >= first + kLeast) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

}  // namespace tuner
