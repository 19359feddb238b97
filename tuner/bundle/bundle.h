// A bundle: the output of `tuner build`. One library holds the kernels of all tasks, with everything that a
// program needs to use it. Its files are in a folder that CMake and pkg-config accept as a prefix:
//
//   include/NAME.h  tuner_runtime.h  tuner_kernel.h  tuner_pool.h      typed functions; a thread pool
//   lib/libNAME.so  lib/libNAME.a
//   lib/cmake/NAME/NAMEConfig.cmake  lib/pkgconfig/NAME.pc
//   schedule/ llvm/ asm/ obj/                                          a file a kernel, where asked for
//   cuda/FUNCTION.cubin  .cu  .c  .h                                   of kernels for a GPU; .c launches
//   artifact/FUNCTION.so                                               of a user's kernel: the measured code
//   files of other back ends, as Backend::ship() names them
//   manifest.json                                                      everything above, for programs
//
// Kernels that are shipped as objects share the library, whose architecture must therefore be one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/backend.h"
#include "db/resolve/resolve.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// The parts to write, as --emit names them.
struct Emit {
  bool shared = true, archive = true, schedule = true, object = false;
  std::vector<std::string> texts;  // names of the back end's forms: "asm"
  // Beside each kernel that of its default config, for the runtime library, which may race the two
  // (TUNER_VERIFY). It is in the library and in the manifest, not in the header.
  bool defaults = false;

  bool library() const { return shared || archive; }
};
// Words of --emit: so, a, obj, those of the back ends' forms that have a file, schedule.
std::vector<std::string> emit_words();
// "so,a,asm". InvalidArgument names a word it does not know, and those it does.
Result<Emit> parse_emit(std::string_view text);

// A task and the name of its C function.
struct BundleTask {
  CliTask task;
  std::string function;
  std::string of = {};  // the function that it is a variant of (cpu_variants.h); empty: of none
};
// Gives every task its function name: the one in its file; else `only_name`, if that is not empty and there
// is one task; else what its user calls it (Workload::own_name); else kernel_name(). Repeated tasks become
// one. InvalidArgument: two kernels, or a kernel and the library, need the same C name.
Result<std::vector<BundleTask>> name_functions(const std::vector<CliTask>& tasks, const std::string& library,
                                               const std::string& only_name);
// InvalidArgument: two of these, or one and the library, need the same C name.
Status check_names(const std::vector<BundleTask>& tasks, const std::string& library);

// A kernel compiled under its own name.
struct BundleKernel {
  std::string function, of;  // as BundleTask
  CliTask task;
  ShippedKernel code;
  // Of its default config (Emit::defaults); empty: none, or it has that config itself.
  std::string default_object;
  AnswerKind kind = AnswerKind::kDefault;
  double time_ns = 0;            // as measured for this task; 0: not known
  bool certified = false;        // that time
  std::string origin;            // "tuned: 1.2 ms in trial t7; config ...", lines for people
  std::string note;              // why it is not what was tuned for just this task; else empty
  nlohmann::ordered_json facts;  // its part of manifest.json
  std::string schedule;
  // Packs the constants; a Program of any CPU. Null without them.
  std::shared_ptr<const Program> packing;
  std::shared_ptr<const Program> scheduled;  // what `code` is compiled from, under its template's name
  // Texts that were asked for, with their paths below the folder.
  struct Text {
    std::string path, text;
  };
  std::vector<Text> texts;

  bool stands_alone() const { return code.object.empty(); }
};
// Compiles the resolver's answer for the task. `library` keeps its symbols apart from those of other bundles
// in the same program.
Result<BundleKernel> build_kernel(const BundleTask& task, const std::string& library,
                                  const Resolver& resolver, const Emit& emit);

struct BundleFile {
  std::string path;  // relative to the folder
  std::string bytes;
  // Not empty: a file below BundleFolder::staging() that has the bytes instead, too many to hold; it is moved
  // to its place.
  std::string made;
};
// Returns all files; manifest.json is the last.
Result<std::vector<BundleFile>> bundle_files(const std::string& name,
                                             const std::vector<BundleKernel>& kernels, const Emit& emit);

}  // namespace tuner
