#include "tuner/judge/ptx_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "compiler_core/base/printable.h"
#include "compiler_core/base/status.h"
#include "tuner/judge/ptx_text.h"
#include "tuner/judge/ptx_words.h"

namespace tuner {
namespace {

// What an address may come from, as bits.
enum Origin : uint8_t { kNothing = 0, kBuffer = 1, kOwnSpace = 2, kModule = 4 };

using Words = std::vector<std::string_view>;

bool is_name(std::string_view word) {
  return !word.empty() && word[0] != '"' && word[0] != '.' && !(word[0] >= '0' && word[0] <= '9') &&
         (word.size() > 1 || (word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z'));
}

// An instruction, taken apart.
struct Instruction {
  std::string_view name, opcode;
  Words results, sources;  // names; sources without those in brackets
  Words addresses;         // the first name in each pair of brackets; empty: there is none

  bool has(std::string_view modifier) const {
    for (size_t at = name.find('.'); at != std::string_view::npos; at = name.find('.', at + 1))
      if (name.substr(at, modifier.size()) == modifier &&
          (at + modifier.size() == name.size() || name[at + modifier.size()] == '.' ||
           name[at + modifier.size()] == ':'))
        return true;
    return false;
  }
  bool writes_memory() const {
    return opcode == "st" || opcode == "atom" || opcode == "red" || opcode == "cp" || opcode == "stmatrix" ||
           opcode == "mbarrier";
  }
  bool has_result() const {
    return opcode != "st" && opcode != "red" && opcode != "cp" && opcode != "stmatrix" && opcode != "bar" &&
           opcode != "barrier" && opcode != "bra" && opcode != "brx" && opcode != "prefetch" &&
           opcode != "prefetchu" && !(opcode == "wgmma" && name.find(".mma_async") == std::string_view::npos);
  }
  // Its result is what lay in memory.
  bool loads() const { return opcode == "ld" || opcode == "ldu" || opcode == "atom" || opcode == "ldmatrix"; }
  // Global memory, by its name or by an address that says which space it is in.
  bool is_global() const {
    return has(".global") || !(has(".shared") || has(".local") || has(".param") || has(".const"));
  }
};

Instruction taken_apart(const Words& words) {
  size_t at = 0;
  if (words[0] == "@") at = words.size() > 1 && words[1] == "!" ? 3 : 2;  // its condition
  Instruction made;
  if (at >= words.size()) return made;
  made.name = words[at++];
  made.opcode = ptx_opcode(made.name);
  bool first = made.has_result(), in_brackets = false, wants_base = false;
  int braces = 0;
  for (; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "[") {
      in_brackets = wants_base = true;
      made.addresses.emplace_back();
    } else if (word == "]") {
      in_brackets = false;
    } else if (word == "{" || word == "}") {
      braces += word == "{" ? 1 : -1;
    } else if (word == "," && braces == 0 && !in_brackets) {
      first = false;
    } else if (is_name(word)) {
      if (in_brackets && wants_base)
        made.addresses.back() = word;
      else if (!in_brackets)
        (first ? made.results : made.sources).push_back(word);
      wants_base = false;
    }
  }
  return made;
}

class PtxReading {
 public:
  PtxReading(const PtxStatements& statements, const PtxRules& rules) : rules_(rules) {
    why_ = statements.problem;
    for (const PtxStatement& s : statements.list)
      if (why_.empty()) s.first().starts_with(".") ? declaration(s) : instruction(s);
  }

  std::string read() {
    if (why_.empty() && !functions_.contains(rules_.kernel))
      refuse(str("its PTX does not have the kernel ", printable(rules_.kernel)));
    if (why_.empty()) calls();
    if (why_.empty()) {
      follow();
      for (const Instruction& i : instructions_)
        if (why_.empty()) memory(i);
    }
    return why_;
  }

 private:
  void refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  // --- declarations ---

  void declaration(const PtxStatement& s) {
    for (const std::string_view word : s.words)
      if (word.starts_with(".") && !may_have_ptx_directive(word))
        return refuse(str("its PTX has ", printable(word), ", which no kernel needs"));
    if (s.first() == ".pragma" && (s.words.size() != 2 || s.words[1] != "\"nounroll\""))
      return refuse("its PTX has a pragma that is not \"nounroll\"");
    if (s.first() == ".version" || s.first() == ".target" || s.first() == ".address_size") {
      if (!instructions_.empty()) refuse(str("its PTX has ", s.first(), " among its instructions"));
      return;
    }
    if (s.has(".entry") || s.has(".func")) return function(s);
    if (s.has(".extern") && !s.has(".shared")) return refuse("it uses a variable of other code");
    if (s.first() == ".reg") return;
    variable(s);
  }

  void function(const PtxStatement& s) {
    const std::string_view name = name_of_function(s);
    if (s.is_head) functions_.insert(name);
    // Parameters have their place in the name: kernel_param_0.
    for (const std::string_view word : s.words)
      if (is_name(word) && word != name) {
        const size_t end = word.rfind("_param_");
        const bool numbered = s.has(".entry") && name == rules_.kernel && end != std::string_view::npos;
        const size_t place = numbered ? number(word.substr(end + 7)) : SIZE_MAX;
        const bool plain = numbered && place < rules_.is_buffer.size() && !rules_.is_buffer[place];
        variables_[word] = plain ? kNothing : kBuffer;
      }
  }
  static size_t number(std::string_view text) {
    size_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > 10'000) return SIZE_MAX;
      value = 10 * value + static_cast<size_t>(c - '0');
    }
    return text.empty() ? SIZE_MAX : value;
  }
  // Of a function with results it stands behind their parentheses.
  static std::string_view name_of_function(const PtxStatement& s) {
    int depth = 0;
    std::string_view name;
    for (const std::string_view word : s.words) {
      depth += word == "(" ? 1 : word == ")" ? -1 : 0;
      if (depth == 0 && is_name(word) && name.empty()) name = word;
    }
    return name;
  }

  void variable(const PtxStatement& s) {
    const bool module = s.has(".global");
    const auto equals = std::ranges::find(s.words, "=");
    for (auto at = equals; at != s.words.end(); ++at)
      if (is_name(*at)) return refuse("it has a variable that begins as an address");
    for (auto at = s.words.begin(); at != equals; ++at)
      if (is_name(*at)) {
        variables_[*at] = s.has(".param") ? kBuffer : module ? kModule : kOwnSpace;
        if (module) module_variables_.insert(*at);
      }
  }

  // --- instructions ---

  void instruction(const PtxStatement& s) {
    Instruction made = taken_apart(s.words);
    if (!may_have_ptx_instruction(made.opcode))
      return refuse(str("it has the instruction ", printable(made.name),
                        "; a kernel may have those that compute, move its data and order its threads"));
    if (made.has(".mmio")) return refuse("it has an instruction for what is no memory (.mmio)");
    for (const std::string_view word : s.words)
      if (is_special_ptx_register(word) && !may_read_ptx_register(word))
        return refuse(
            str("it reads ", printable(word), ", which says when, where or in which launch it runs"));
    instructions_.push_back(std::move(made));
  }

  void calls() {
    for (const Instruction& i : instructions_) {
      if (i.opcode != "call") continue;
      // call (results), function, (parameters): the results are variables, the function is none.
      bool known = false;
      for (const Words* words : {&i.results, &i.sources})
        for (const std::string_view name : *words)
          if (functions_.contains(name))
            known = true;
          else if (!variables_.contains(name))
            return refuse(str("it calls ", printable(name), ", which is not a function of its own"));
      if (!known) refuse("it calls a function that its text does not name");
    }
  }

  // --- where addresses come from ---

  uint8_t origin(std::string_view name) const {
    if (const auto found = origins_.find(name); found != origins_.end()) return found->second;
    const auto variable = variables_.find(name);
    return variable == variables_.end() ? uint8_t{kNothing} : variable->second;
  }
  uint8_t result_of(const Instruction& i) const {
    if (i.opcode == "setp" || i.opcode == "call") return kNothing;
    if (i.loads()) {
      if (i.has(".param") && !i.addresses.empty()) return origin(i.addresses.front()) & ~kModule;
      // An address that lay in a thread's or a block's own memory: nobody knows which one.
      return i.has(".local") || i.has(".shared") || (i.opcode == "ld" && came_from_own(i)) ? kBuffer
                                                                                           : kNothing;
    }
    uint8_t all = kNothing;
    for (const Words* words : {&i.sources, &i.addresses})
      for (const std::string_view name : *words) all |= origin(name);
    return all;
  }
  bool came_from_own(const Instruction& i) const {
    return !i.has(".global") && !i.addresses.empty() && (origin(i.addresses.front()) & kOwnSpace) != 0;
  }
  void follow() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Instruction& i : instructions_) {
        const uint8_t made = result_of(i);
        if (made == kNothing) continue;
        for (const std::string_view name : i.results) {
          uint8_t& kept = origins_[name];
          changed = changed || (kept | made) != kept;
          kept |= made;
        }
      }
    }
  }

  void memory(const Instruction& i) {
    const std::string_view base = i.addresses.empty() ? std::string_view() : i.addresses.front();
    if (i.writes_memory() && (origin(base) & kModule) != 0)
      return refuse("it writes to a variable of its module, which keeps what it holds until the next launch" +
                    of_variable(base));
    if (i.opcode == "st" || i.opcode == "atom")
      for (const std::string_view value : i.sources)
        if ((origin(value) & kModule) != 0)
          return refuse("it keeps the address of a variable of its module, or hands it on" +
                        of_variable(value));
    const bool follows =
        i.opcode == "ld" || i.opcode == "ldu" || i.opcode == "st" || i.opcode == "atom" || i.opcode == "red";
    if (follows && i.is_global() && origin(base) == kNothing)
      refuse(str("it ", i.opcode == "ld" || i.opcode == "ldu" ? "reads" : "writes",
                 " memory at an address that comes from none of its parameters"));
  }
  std::string of_variable(std::string_view name) const {
    if (!module_variables_.contains(name) && module_variables_.size() != 1) return "";
    return str(": ", printable(module_variables_.contains(name) ? name : *module_variables_.begin()));
  }

  const PtxRules& rules_;
  std::string why_;
  std::vector<Instruction> instructions_;
  std::set<std::string_view> functions_, module_variables_;
  std::map<std::string_view, uint8_t> variables_, origins_;
};

}  // namespace

std::string why_ptx_is_refused(std::string_view ptx, const PtxRules& rules) {
  const PtxStatements statements = read_ptx(ptx);
  return PtxReading(statements, rules).read();
}

}  // namespace tuner
