// Words of PTX that a judged kernel may have: whatever is not listed is refused.
#pragma once

#include <string_view>

namespace tuner {

// "ld.global.f32" -> "ld"
std::string_view ptx_opcode(std::string_view instruction);

// Instructions that compute, move data of a launch, or order its threads. Not those that stop or delay a
// launch, start another one, tell the host, use textures, or change what caches hold for others.
bool may_have_ptx_instruction(std::string_view opcode);
// "%tid.x": what says where a thread is. Not clocks, nor what tells launches or multiprocessors apart.
bool may_read_ptx_register(std::string_view name);
// Special registers as a whole: names that PTX gives a meaning, listed or not.
bool is_special_ptx_register(std::string_view name);
// Words of declarations that begin with a dot: spaces, types, bounds of launches.
bool may_have_ptx_directive(std::string_view word);

}  // namespace tuner
