// Which functions a judged kernel may call, and which names it may not define.
#pragma once

#include <set>
#include <string_view>

namespace tuner {

using NameSet = std::set<std::string_view>;
// The words of a text, which blanks separate and which outlives the set.
NameSet names_in(std::string_view text);

// True for what computing needs: functions of libm, of memory and strings, sorting, the runtimes of C, C++
// and OpenMP. Not for clocks, files, processes, signals, printing, and whatever else asks the system for
// something. `threads`: of the target; with several a kernel may start threads of its own.
bool may_call(std::string_view name, int threads);

// True for names that the C library has for clocks, memory, files, processes and the like. Who defines one
// of them hopes that somebody else calls it.
bool is_name_of_system(std::string_view name);

}  // namespace tuner
