// Reads an entry of a job file with `"op": "kernel"`. docs/own_kernels.md lists its keys.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/base/json_reader.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner {

// The folder that names of files in a job file are relative to.
class JobFolder {
 public:
  virtual ~JobFolder() = default;
  virtual bool has(const std::string& name) const = 0;
  // InvalidArgument: it cannot be read, or is longer than `most_bytes`.
  virtual Result<std::string> read(const std::string& name, size_t most_bytes) const = 0;
};
// A folder of this machine. Names that lead out of it by links are refused.
std::unique_ptr<JobFolder> job_folder(const std::string& path);

// Reads the entry's keys from an object that may have others, and the files that they name. Errors are kept
// in `in`; then the result is null.
std::shared_ptr<const SourceKernel> read_source_kernel(json_input::Reader& in, const JobFolder& folder);

// The keys that only a program has, and the files that they name; its flops and bytes have been read.
void read_command(json_input::Reader& in, const JobFolder& folder, SourceKernel& kernel);

// The keys that only kernels of a GPU have, after its sizes were read: grid, block and shared_bytes of a source;
// the configs of kernels that come compiled, which bring their knobs and files.
void read_launch(json_input::Reader& in, SourceKernel& kernel);
void read_ready_kernels(json_input::Reader& in, const JobFolder& folder, SourceKernel& kernel);

// OK for a relative name of a file, without "..", "." or empty parts, of at most 200 printable characters.
Status check_file_name(const std::string& name);
// What must hold of any kernel, wherever it comes from: names, expressions, flags, sizes of operands, the
// default. InvalidArgument in one line that begins with the key: "arguments[2].shape: ...".
// read_source_kernel() and stored documents go through it.
Status check_source_kernel(const SourceKernel& kernel);

}  // namespace tuner
