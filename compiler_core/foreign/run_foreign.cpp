#include "compiler_core/foreign/run_foreign.h"

#include <sys/wait.h>
#include <unistd.h>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

std::string operand_file(size_t argument) { return str("tuner_operand_", argument); }

// A main() behind the entry: operands from files, one call, outputs to files. It needs no more of C than both
// languages have.
std::string main_program(const Program& program) {
  std::string text = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* tuner_buffer(size_t bytes) {
  char* const p = (char*)malloc(bytes + 128);
  char* const aligned = p + (64 - (uintptr_t)p % 64);
  if (p == NULL) exit(101);
  memset(aligned, 0xFF, bytes);
  return aligned;
}
static void tuner_file(const char* name, const char* mode, void* p, size_t bytes) {
  FILE* const f = fopen(name, mode);
  if (f == NULL || (mode[0] == 'r' ? fread(p, 1, bytes, f) : fwrite(p, 1, bytes, f)) != bytes || fclose(f) != 0) exit(102);
}
int main(void) {
)";
  text += str("  void* tuner_args[", program.args.size(), "];\n");
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    text += str("  tuner_args[", i, "] = tuner_buffer(", arg->bytes(), ");\n");
    if (is_given(arg->role))
      text +=
          str("  tuner_file(\"", operand_file(i), "\", \"rb\", tuner_args[", i, "], ", arg->bytes(), ");\n");
  }
  text += str("  if (", program.name, "(tuner_args, NULL) != 0) exit(103);\n");
  for (size_t i = 0; i < program.args.size(); ++i)
    if (is_result(program.args[i]->role))
      text += str("  tuner_file(\"", operand_file(i), "\", \"wb\", tuner_args[", i, "], ",
                  program.args[i]->bytes(), ");\n");
  return text + "  return 0;\n}\n";
}

}  // namespace

Result<std::vector<std::string>> run_foreign(const Program& program, const std::vector<std::string>& given,
                                             const ForeignRun& asked) {
  ASSIGN_OR_RETURN(const ForeignProgram made, compile_foreign_program(program, main_program(program)));
  int64_t bytes = 0;
  size_t next = 0;
  for (size_t i = 0; i < program.args.size(); ++i) {
    bytes += program.args[i]->bytes();
    if (is_given(program.args[i]->role))
      RETURN_IF_ERROR(replace_file(made.folder->file(operand_file(i)), given.at(next++)));
  }
  ConfinedProgram run{.path = made.path,
                      .words = {"reference"},
                      .folder = made.folder->path(),
                      .deadline = asked.deadline,
                      .untrusted = true};
  run.environment = {str("OMP_NUM_THREADS=", asked.threads)};
  run.memory_bytes += 2 * bytes;
  run.file_bytes += bytes;
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  const std::string printed =
      end.output.empty() ? "" : "; it printed: " + said_by(end.output, made.folder->path());
  if (end.timed_out)
    return invalid_config(program.foreign->function, " did not end within ", asked.deadline.count() / 1000,
                          " s", printed);
  if (end.status != 0)
    return invalid_config(program.foreign->function, " did not end well: ", ending_text(end.status), printed);
  std::vector<std::string> answers;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_result(arg->role)) continue;
    ASSIGN_OR_RETURN(std::string answer,
                     read_whole(made.folder->file(operand_file(i)), static_cast<size_t>(arg->bytes()) + 1));
    if (std::ssize(answer) != arg->bytes())
      return invalid_config(program.foreign->function, " left ", answer.size(), " bytes of ", arg->name,
                            ", expected ", arg->bytes());
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<std::vector<std::vector<double>>> answers_by(const Program& program, const BroughtAnswer& brought,
                                                    const AnswerRun& run) {
  std::vector<std::string> ran;
  std::vector<std::vector<double>> answers;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_result(arg->role)) continue;
    std::string bytes;
    if (std::optional<Result<std::string>> there = brought(i)) {
      ASSIGN_OR_RETURN(bytes, *std::move(there));
    } else {
      if (ran.empty()) {
        ASSIGN_OR_RETURN(ran, run());
      }
      bytes = std::move(ran.at(answers.size()));
    }
    answers.push_back(load_elements(bytes.data(), arg->elements(), arg->dtype));
  }
  return answers;
}

Result<std::vector<std::vector<double>>> foreign_answers(const Program& program,
                                                         const std::vector<std::string>& given,
                                                         const ForeignRun& run,
                                                         const BroughtAnswer& brought) {
  return answers_by(program, brought, [&] { return run_foreign(program, given, run); });
}

}  // namespace tuner
