// Macros that a text defines where its compiler's options do not:
//   #ifndef TILE
//   #define TILE 8
//   #define UNROLL 4
//   #endif
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct MacroDefault {
  std::string name;
  int64_t value = 0;
  int line = 1;
};

// Those whose value is an integer, in the order of the text, each once: all that an #ifndef of one of them
// defines. Macros of #ifndef without a value, which guard headers, are not among them.
std::vector<MacroDefault> macro_defaults(std::string_view text);

}  // namespace tuner
