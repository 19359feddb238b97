#include "tuner/judge/code_check.h"

#include <algorithm>
#include <vector>

#include "compiler_core/base/printable.h"
#include "tuner/judge/allowed_calls.h"

namespace tuner {
namespace {

// Instructions that ask the system or the clock, or change what the machine does for others.
bool is_forbidden(std::string_view word) {
  static const NameSet kWords = names_in(
      "syscall sysenter sysret sysexit int int3 into int1 rdtsc rdtscp rdpmc rdfsbase wrfsbase "
      "rdgsbase wrgsbase swapgs hlt in out insb outsb clflush clflushopt clwb cldemote wbinvd "
      "wbnoinvd invd invlpg monitor mwait monitorx mwaitx umonitor umwait tpause xbegin xabort "
      "xend wrpkru rdpkru xsetbv ldmxcsr vldmxcsr fxrstor fxrstor64 xrstor xrstor64 xrstors "
      "fldenv frstor lgdt lidt wrmsr rdmsr vmcall vmmcall vmfunc senduipi stui clui ptwrite "
      "bound svc hvc smc brk msr eret wfe wfi sevl dc ic tlbi at");
  return kWords.contains(word);
}
// These come from compilers, too, where numbers of the x87 unit become integers.
bool is_forbidden_by_hand(std::string_view word) {
  static const NameSet kWords =
      names_in("fldcw fninit finit fnclex popf popfq std sti cli lcall ljmp lret iret iretq");
  return kWords.contains(word);
}

bool is_data(std::string_view word) {
  static const NameSet kWords = names_in(
      ".byte .value .short .hword .word .long .int .quad .xword .octa .2byte .4byte .8byte "
      ".ascii .asciz .string .zero .skip .space .fill .float .single .double .dword .string8 "
      ".string16 .string32");
  return kWords.contains(word);
}

// Directives that compilers write. Whatever else stands there was written by hand.
bool is_of_compilers(std::string_view word) {
  static const NameSet kWords = names_in(
      ".file .text .data .bss .section .p2align .align .balign .type .size .globl .global "
      ".local .comm .lcomm .weak .hidden .protected .internal .set .loc .ident .sleb128 "
      ".uleb128 .addrsig .addrsig_sym .popsection .pushsection .previous .arch .cpu .tune "
      ".variant_pcs .weakref .intel_syntax .att_syntax");
  return kWords.contains(word) || word.starts_with(".cfi_") || is_data(word);
}
bool is_fine_by_hand(std::string_view word) {
  static const NameSet kWords = names_in(".p2align .align .balign .intel_syntax .att_syntax");
  return kWords.contains(word);
}

bool of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '$' || c == '%' || c == '@';
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\f\v");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f\v") - first + 1);
}

// The words of a statement: registers keep their %, what is quoted is left out.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && of_word(text[end])) ++end;
    if (end > at) words.push_back(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return words;
}

// What may stand in front of an instruction, in the same statement.
bool is_prefix(std::string_view word) {
  static const NameSet kWords = names_in(
      "rep repe repz repne repnz lock notrack bnd data16 data32 addr16 addr32 wait fwait cs ds "
      "es fs gs ss xacquire xrelease");
  return kWords.contains(word) || word.starts_with("rex");
}
bool is_clock_register(std::string_view word) {
  return word.starts_with("cnt") || word.starts_with("pmccntr") || word.starts_with("pmevcntr");
}

#if defined(__aarch64__)
constexpr std::string_view kComment = "//";  // # begins a number
#else
constexpr std::string_view kComment = "#";
#endif

class Reading {
 public:
  explicit Reading(const CodeRules& rules) : rules_(rules) {}

  std::string read(std::string_view assembly) {
    for (size_t at = 0; at < assembly.size() && why_.empty();) {
      const size_t end = std::min(assembly.find('\n', at), assembly.size());
      line(assembly.substr(at, end - at));
      at = end + 1;
    }
    if (why_.empty() && by_hand_) refuse("its assembly does not end where its compiler ends it");
    return why_;
  }

 private:
  void refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  void line(std::string_view text) {
    const std::string_view plain = trimmed(text);
    // Only compilers write these, once around each piece of a user's.
    if (plain == "#APP" || plain == "//APP") return mark(true);
    if (plain == "#NO_APP" || plain == "//NO_APP") return mark(false);
    if (plain.starts_with("#") || plain.starts_with("//")) return;
    if (by_hand_ && (plain.find("/*") != std::string_view::npos || plain.find_first_of("\"'") != plain.npos))
      return refuse("its inline assembly has quotes or comments within lines, which could hide instructions");
    size_t begin = 0;
    bool quoted = false;
    for (size_t at = 0; at <= plain.size(); ++at) {
      if (at < plain.size() && plain[at] == '"' && (at == 0 || plain[at - 1] != '\\')) quoted = !quoted;
      const bool comment = at < plain.size() && !quoted && plain.substr(at).starts_with(kComment);
      if (at < plain.size() && !comment && (quoted || plain[at] != ';')) continue;
      statement(trimmed(plain.substr(begin, at - begin)));
      begin = at + 1;
      if (comment) break;
    }
  }

  void mark(bool by_hand) {
    if (by_hand == by_hand_) refuse("its assembly has marks of its compiler that its compiler did not write");
    by_hand_ = by_hand;
  }

  void statement(std::string_view text) {
    while (true) {  // labels
      const size_t colon = text.find(':');
      if (colon == std::string_view::npos || colon == 0 ||
          !std::ranges::all_of(text.substr(0, colon), of_word) || text[0] == '%')
        break;
      label(text.substr(0, colon));
      text = trimmed(text.substr(colon + 1));
    }
    if (text.empty()) return;
    const std::vector<std::string_view> words = words_of(text);
    if (words.empty()) return;
    if (by_hand_ && (text.find('\\') != std::string_view::npos || text.find('=') != std::string_view::npos))
      return refuse("its inline assembly makes up words as it is assembled");
    if (words[0].starts_with(".")) return directive(words, text);
    if (!executable_) return refuse("it has instructions in a section for data");
    if (asks_for_others(text, words))
      return refuse(
          "it looks for what belongs to its loader or its thread, from where all of the process can be "
          "found");
    const auto first = std::ranges::find_if_not(words, is_prefix);
    if (first == words.end()) return;
    const bool clock = *first == "mrs" && std::ranges::any_of(words, is_clock_register);
    if (clock || is_forbidden(*first) || (by_hand_ && is_forbidden_by_hand(*first)))
      refuse(str("it has the instruction ", *first,
                 ", which asks the system or a clock, or changes the processor's modes or caches"));
  }

  // Tables of the loader, and the thread's own block but for what compilers keep there against overruns.
  bool asks_for_others(std::string_view text, const std::vector<std::string_view>& words) const {
    static constexpr std::string_view kTables[] = {"_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__ehdr_start"};
    for (const std::string_view word : words)
      for (const std::string_view table : kTables)
        if (word.starts_with(table)) return true;
    const size_t segment = std::min(text.find("%fs:"), text.find("%gs:"));
    if (segment != std::string_view::npos) return by_hand_ || !text.substr(segment + 4).starts_with("40");
    return words[0] == "mrs" && by_hand_;
  }

  // By hand only places to jump to within.
  void label(std::string_view name) {
    const bool local = name.starts_with(".L") || (name[0] >= '0' && name[0] <= '9');
    if (by_hand_ && !local) refuse(str("its inline assembly defines ", printable(name)));
  }

  void directive(const std::vector<std::string_view>& words, std::string_view text) {
    const std::string_view what = words[0];
    if (by_hand_ && !is_fine_by_hand(what))
      return refuse(str("its inline assembly has ", printable(what), ", which is no instruction"));
    if (!is_of_compilers(what))
      return refuse(str("its assembly has ", printable(what), ", which no compiler writes"));
    if (what == ".text") return enter(".text", "ax");
    if (what == ".data" || what == ".bss") return enter(what, "aw");
    if (what == ".previous" || what == ".popsection") return enter(before_, before_executable_ ? "ax" : "a");
    if (what == ".section" || what == ".pushsection") {
      if (words.size() < 2 || trimmed(text.substr(what.size())).starts_with("\""))
        return refuse("it has a section whose name is in quotes");
      const size_t quote = text.find('"');
      const std::string_view flags =
          quote == std::string_view::npos
              ? ""
              : text.substr(quote + 1, std::min(text.find('"', quote + 1), text.size()) - quote - 1);
      return enter(words[1], flags);
    }
    if ((what == ".globl" || what == ".global" || what == ".weak") && words.size() > 1 &&
        is_name_of_system(words[1]))
      return refuse(str("it defines ", words[1], ", a name of the system's library"));
    if (executable_ && is_data(what) && what != ".zero")
      return refuse("it has data among its instructions, which could be instructions that nobody reads");
    if (in_constructors_ && (what == ".quad" || what == ".xword" || what == ".8byte") && words.size() > 1)
      if (!rules_.cxx || words[1].find("_GLOBAL__sub_I_") != 0)
        refuse(str("its function ", printable(words[1]), " runs when it is loaded, before it is called"));
  }

  void enter(std::string_view name, std::string_view flags) {
    before_ = section_, before_executable_ = executable_;
    section_ = name;
    const bool of_text = name == ".text" || name.starts_with(".text.");
    executable_ = of_text || flags.find('x') != std::string_view::npos;
    if (executable_ && flags.find('w') != std::string_view::npos)
      return refuse(str("its section ", printable(name), " can be written and executed"));
    if (executable_ && !of_text) return refuse(str("it has code in the section ", printable(name)));
    in_constructors_ = name == ".init_array";
    for (const std::string_view other :
         {".init_array.", ".preinit_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini"})
      if (name != ".init_array" && name.starts_with(other))
        return refuse(
            str("it has code that runs before or after its function (section ", printable(name), ")"));
  }

  const CodeRules& rules_;
  std::string why_;
  bool by_hand_ = false;  // between the marks of a user's own assembly
  std::string_view section_ = ".text", before_ = ".text";
  bool executable_ = true, before_executable_ = true, in_constructors_ = false;
};

}  // namespace

std::string why_code_is_refused(std::string_view assembly, const CodeRules& rules) {
  return Reading(rules).read(assembly);
}

std::string why_symbols_are_refused(const DynamicSymbols& symbols, const CodeRules& rules) {
  for (const std::string& name : symbols.exported)
    if (name != rules.entry && !name.starts_with("_ZNSt") && !name.starts_with("_ZNKSt") &&
        !name.starts_with("_ZSt") && !name.starts_with("_ZTI") && !name.starts_with("_ZTS") &&
        !name.starts_with("_ZTV") && !name.starts_with("_ZGVZ") && !name.starts_with("_ZZ"))
      return str("it offers ", printable(name), " to other code");
  for (const std::string& name : symbols.imported)
    if (!may_call(name, rules.threads) || (name == "__cxa_atexit" && !rules.cxx))
      return str("it uses ", printable(name),
                 "; a kernel may use functions of mathematics, memory and sorting, and nothing that asks the "
                 "system");
  return "";
}

}  // namespace tuner
