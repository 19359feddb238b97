// What watch.cpp and races.cpp know of a kernel's memory.
#pragma once

#include "state.h"

namespace host_cuda {

struct Cell;  // who touched some bytes

// Memory that a kernel may touch, between rims that it may not.
struct Region {
  const char* name = "";
  unsigned char* begin = nullptr;
  size_t bytes = 0, rim = 0, rim_before = 0;
  size_t granule = 1;     // bytes of one cell
  Cell* cells = nullptr;  // null: nobody may write here, or too large: races are not looked for
  bool is_shared = false, is_input = false;
};
// Cells of so many granules, which nobody has touched. Null: there is no memory for them.
Cell* make_cells(size_t count);
// Reports who else touches these bytes of the region unordered, and notes that the running thread does. The
// region has cells.
void look_for_race(const Region& r, size_t offset, size_t bytes, Access how, const void* pc);

}  // namespace host_cuda
