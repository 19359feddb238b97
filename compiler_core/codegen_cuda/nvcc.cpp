#include "compiler_core/codegen_cuda/nvcc.h"

#include <cxxabi.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/source_build.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

// nvcc names what it keeps after the source: tuner_entry.ptx.
constexpr char kEntry[] = "tuner_entry.cu", kText[] = "tuner_entry.ptx", kCubin[] = "tuner_made.cubin";
constexpr size_t kMostMade = size_t{64} << 20, kMostSymbolsNamed = 8;

// A name that means no function of the source, or several, is refused by the compiler, which says where.
std::string entry_text(const ForeignCode& code) {
  return str("#include \"", code.source, "\"\nnamespace {\n[[maybe_unused]] auto* const tuner_kernel = &",
             code.function, ";\n}\n");
}

std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\t' && c != '\n') out += c;
  return out;
}

// "ns::reduce" of "ns::reduce(float const*, float*)"; a name of C is as it is.
std::string name_of_symbol(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || text == nullptr) return symbol;
  std::string name = text.get();
  // Its parameters are the last parentheses that are in no others.
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) {
      name.resize(at);
      break;
    }
  }
  return without_blanks(name);
}

std::string_view last_part(std::string_view name) {
  const size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

std::string list_of(const std::vector<std::string>& names) {
  if (names.empty()) return "it has none";
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostSymbolsNamed); ++i)
    text += str(i == 0 ? "" : ", ", printable(names[i].substr(0, 200)));
  return names.size() > kMostSymbolsNamed ? text + ", ..." : text;
}

}  // namespace

Result<std::string> symbol_of_kernel(std::string_view name, const std::vector<std::string>& symbols) {
  std::string wanted = without_blanks(name);
  if (wanted.starts_with("::")) wanted.erase(0, 2);
  std::vector<std::string> names, alike;
  std::string only;
  for (const std::string& symbol : symbols) {
    names.push_back(name_of_symbol(symbol));
    if (symbol == wanted || names.back() == wanted) return symbol;
    // One of a namespace without a name, or of one that is used.
    if (last_part(names.back()) != last_part(wanted)) continue;
    alike.push_back(names.back());
    only = symbol;
  }
  if (alike.size() == 1) return only;
  return invalid_config("\"", printable(name), "\" means ", alike.empty() ? "none" : "several",
                        " of its kernels: ", list_of(alike.empty() ? names : alike));
}

Result<cuda::Compiled> compile_by_nvcc(const ForeignCode& code, const Compiler& nvcc,
                                       const std::vector<std::string>& options) {
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-nvcc"));
  RETURN_IF_ERROR(write_source_files(*folder, code));
  RETURN_IF_ERROR(replace_file(folder->file(kEntry), entry_text(code)));
  // Its parts and headers are in the folders beside that of the program.
  ConfinedProgram run{.path = nvcc.path,
                      .words = {nvcc.path},
                      .folder = folder->path(),
                      .readable = {fs::path(nvcc.path).parent_path().parent_path()}};
  run.words.insert(run.words.end(), options.begin(), options.end());
  for (const char* word : {"-I.", "-cubin", "--keep", "--keep-dir", ".", kEntry, "-o", kCubin})
    run.words.emplace_back(word);
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  const std::string said = said_by(end.output, folder->path());
  if (end.timed_out)
    return invalid_config(nvcc.name, " did not end within ", run.deadline.count() / 1000, " s");
  if (end.status != 0)
    return invalid_config(nvcc.name,
                          WIFSIGNALED(end.status) ? " did not end well: " + ending_text(end.status)
                                                  : std::string(" refuses it"),
                          said.empty() ? "" : ":\n", said);
  cuda::Compiled made{.log = end.output};
  ASSIGN_OR_RETURN(made.cubin, read_whole(folder->file(kCubin), kMostMade));
  ASSIGN_OR_RETURN(made.ptx, read_whole(folder->file(kText), kMostMade));
  ASSIGN_OR_RETURN(const std::vector<CubinKernel> kernels, read_cubin(made.cubin));
  std::vector<std::string> symbols;
  for (const CubinKernel& kernel : kernels) symbols.push_back(kernel.name);
  ASSIGN_OR_RETURN(made.symbol, symbol_of_kernel(code.function, symbols));
  return made;
}

}  // namespace tuner
