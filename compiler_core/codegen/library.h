// Several kernels in one library: what `tuner build` ships. Programs become objects, and objects a shared
// object or a static archive. As compile.h: any thread, no LLVM type, the same bytes for the same input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/codegen/compile.h"

namespace tuner {

// A kernel before linking.
struct CompiledObject {
  Manifest manifest;   // without a digest, which is of what is linked
  std::string object;  // ELF, relocatable, position independent
};
// As compile(), without the link. The entries are the only symbols others see.
Result<CompiledObject> compile_object(const Program& program, const Target& target,
                                      const CompileOptions& options = {});

// All instruction sets beyond the architecture's base that code for this CPU may use (needed_features()), by
// names that tuner_cpu_has() of tuner_kernel.h knows: a CPU has all of them, or the code may end with an
// illegal instruction there.
Result<std::vector<std::string>> instruction_sets(const Target& target);

// A table in C for a library: constant bytes, some of which are addresses.
struct ConstantTable {
  // Eight bytes at `at` hold the address of `symbol`, which another object defines, or, without one, of byte
  // `offset` of the table.
  struct Address {
    size_t at = 0;
    std::string symbol;
    size_t offset = 0;
  };
  std::string symbol;  // the table's own, at its beginning; aligned to 64 bytes
  std::string bytes;
  std::vector<Address> addresses;  // `at` grows; what `bytes` has there is not read
};
// The object that defines the table's symbol. InvalidArgument: a CPU that LLVM does not know.
Result<std::string> compile_table(const ConstantTable& table, const Target& target);

// True if an object calls functions of libm: a program that links it statically needs -lm.
Result<bool> calls_math_library(const std::vector<std::string>& objects);

// One shared object of all, which exports the entries of each, or of all symbols only `exported`. Programs
// linked with it look for `soname` when they start. It needs libm.so.6 if an object calls functions of it,
// and besides those in `needed`: shared objects, of which it uses symbols; the loader looks for them, by
// their sonames, in the library's own folder. InvalidArgument when there is no object, or two define the same
// symbol (named).
Result<std::string> link_shared_library(const std::vector<std::string>& objects, const Target& target,
                                        std::string_view soname, std::string_view exported = {},
                                        const std::vector<std::string>& needed = {});

// A shared object that has these symbols and nothing behind them: stands for a library while another one is
// linked with it.
Result<std::string> library_stub(const std::vector<std::string>& symbols, const Target& target,
                                 std::string_view soname);

struct ArchiveMember {
  std::string name;  // "conv1.o"
  std::string object;
};
// A static library (`ar`, GNU format) with a symbol table. InvalidArgument when there is no member.
Result<std::string> write_archive(const std::vector<ArchiveMember>& members);

}  // namespace tuner
