// The machine code in a cubin, as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::sass {

struct CubinText {
  std::string name;        // of the kernel, or of a function that was not inlined
  std::string_view bytes;  // of its section .text.NAME; lives as long as the cubin's bytes
};
struct CubinTexts {
  int sm = 0;                    // 80, 90...
  std::vector<CubinText> texts;  // sorted by name
};

// InvalidArgument naming the offset when the bytes are not a cubin.
Result<CubinTexts> cubin_texts(std::string_view cubin);

}  // namespace tuner::sass
