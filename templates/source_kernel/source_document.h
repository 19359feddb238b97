// A SourceKernel as bytes: how it is stored and sent, and what names it.
//
//   tuner-kernel 1
//   {"language":"c","source":"stencil.c",...,"files":[{"name":"stencil.c","bytes":1204}]}
//   (the files' bytes, one after the other)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "templates/source_kernel/source_kernel.h"

namespace tuner {

std::string source_document(const SourceKernel& kernel);

// Reads source_document() back. The result has passed check_source_kernel(). InvalidArgument: it is none, or
// torn, or breaks a rule.
Result<std::shared_ptr<const SourceKernel>> parse_source_document(std::string_view bytes);

// The SHA-256 of the document with normalized_source() of its C and C++ files: kernels that differ in white
// space and comments have the same one.
std::string source_digest(const SourceKernel& kernel);

}  // namespace tuner
