#include "compiler_core/host_cuda/kernel_text.h"

#include <cctype>
#include <optional>
#include <string_view>

#include "compiler_core/host_cuda/printed_ptx.h"

namespace tuner {
namespace {

constexpr std::string_view kShared = "__shared__", kBlanks = " \t\r\n";

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A word of a text: [begin, end).
struct Word {
  size_t begin = 0, end = 0;
};
Word word_before(std::string_view text, size_t place) {
  while (place > 0 && kBlanks.find(text[place - 1]) != std::string_view::npos) --place;
  Word word{place, place};
  while (word.begin > 0 && is_of_word(text[word.begin - 1])) --word.begin;
  return word;
}
Word word_behind(std::string_view text, size_t place) {
  while (place < text.size() && kBlanks.find(text[place]) != std::string_view::npos) ++place;
  Word word{place, place};
  while (word.end < text.size() && is_of_word(text[word.end])) ++word.end;
  return word;
}
std::string_view text_of(std::string_view text, Word word) {
  return text.substr(word.begin, word.end - word.begin);
}

// The name of an array without a size, if one is declared from `place` on: `float name[];`
std::optional<Word> unsized_array(std::string_view whole, size_t place) {
  constexpr size_t kLongest = 1000;  // of a declaration; texts of strangers are read in one pass
  const std::string_view text = whole.substr(0, place + kLongest);
  const size_t bracket = text.find_first_of(";[", place);
  if (bracket == std::string_view::npos || text[bracket] == ';') return std::nullopt;
  const size_t close = text.find_first_not_of(kBlanks, bracket + 1);
  if (close == std::string_view::npos || text[close] != ']') return std::nullopt;
  const size_t end = text.find_first_not_of(kBlanks, close + 1);
  const Word name = word_before(text, bracket);
  if (end == std::string_view::npos || text[end] != ';' || name.begin == name.end || name.begin < place)
    return std::nullopt;
  return name;
}

void blank(std::string& text, Word word) {
  for (size_t i = word.begin; i < word.end; ++i) text[i] = ' ';
}

}  // namespace

std::string for_host_compiler(const std::string& text) {
  std::string made = text;
  for (size_t at = made.find(kShared); at != std::string::npos; at = made.find(kShared, at + 1)) {
    const Word shared{at, at + kShared.size()};
    if ((at > 0 && is_of_word(made[at - 1])) || (shared.end < made.size() && is_of_word(made[shared.end])))
      continue;
    Word before = word_before(made, at);
    while (text_of(made, before) == "volatile" || text_of(made, before) == "const")
      before = word_before(made, before.begin);
    // `static` is in the macro __shared__ already.
    if (text_of(made, before) == "static") blank(made, before);
    if (const Word behind = word_behind(made, shared.end); text_of(made, behind) == "static")
      blank(made, behind);
    if (text_of(made, before) != "extern") continue;
    const std::optional<Word> name = unsized_array(made, shared.end);
    if (!name) continue;
    blank(made, before);
    blank(made, shared);
    made.insert(made.find(']', name->end) + 1, " = host_cuda::DynamicShared()");
    made.insert(name->end, ")");
    made.insert(name->begin, "(&");
  }
  return made;
}

std::string operand_file_name(size_t argument) { return str("tuner_operand_", argument); }

bool uses_units(const HostCudaKernel& kernel) {
  for (const ForeignCode::File& file : kernel.files)
    if (has_host_calls(file.text)) return true;
  return false;
}

std::string host_program_text(const HostCudaKernel& kernel) {
  std::string call, before, after;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const HostCudaArgument& a = kernel.arguments[i];
    call += i == 0 ? "" : ", ";
    if (!a.is_buffer()) {
      call += str("(", a.type, ")(", a.value, ")");
      continue;
    }
    call += str("(", a.type, ")tuner_args[", i, "]");
    before +=
        str("  tuner_args[", i, "] = host_cuda::buffer(\"", a.name, "\", ", a.bytes(), ", ", a.element_bytes,
            ", ", is_given(a.role) ? str("\"", operand_file_name(i), "\"") : std::string("nullptr"),
            is_given(a.role) && !is_result(a.role) ? ", true);\n" : ", false);\n");
    if (is_result(a.role))
      after += str("  host_cuda::keep(tuner_args[", i, "], \"", operand_file_name(i), "\");\n");
  }
  const auto triple = [](const std::array<int64_t, 3>& a) {
    return str("{", a[0], ", ", a[1], ", ", a[2], "}");
  };
  const char* const units = uses_units(kernel) ? "#include <tuner_host_cuda/units.h>\n" : "";
  return str("#include <tuner_host_cuda/device.h>\n", units, "#include \"", kernel.source,
             "\"\nstatic void* tuner_args[", kernel.arguments.size() + 1, "];\nstatic void tuner_body() { ",
             kernel.function, "(", call, "); }\nint main() {\n", before,
             "  const unsigned tuner_grid[3] = ", triple(kernel.grid),
             ", tuner_block[3] = ", triple(kernel.block),
             ";\n  if (!host_cuda::launch(tuner_grid, tuner_block, ", kernel.shared_bytes,
             ", tuner_body)) host_cuda::finish(false);\n", after, "  host_cuda::finish(true);\n}\n");
}

}  // namespace tuner
