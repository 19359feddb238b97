// The commands of a README: its ```sh blocks, so that what is tested is what is printed.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner::testing {

// All ```sh blocks of `text` that follow the heading line `heading` ("" : from the start) up to the next
// heading of the same level or a higher one, joined. NotFound when the heading or a block is missing.
inline Result<std::string> commands_of(std::string_view text, std::string_view heading) {
  const auto line_at = [&](size_t begin) {
    return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  };
  const auto level = [](std::string_view line) {
    const size_t hashes = std::min(line.find_first_not_of('#'), line.size());
    return hashes < line.size() && line[hashes] == ' ' ? hashes : 0;
  };
  std::string commands;
  bool inside = heading.empty(), in_block = false, in_other_block = false;
  for (size_t begin = 0; begin < text.size(); begin += line_at(begin).size() + 1) {
    const std::string_view line = line_at(begin);
    if (line.starts_with("```")) {
      if (in_block || in_other_block)
        in_block = in_other_block = false;
      else
        (inside && line == "```sh" ? in_block : in_other_block) = true;
      continue;
    }
    if (in_block) commands += str(line, "\n");
    if (in_block || in_other_block || level(line) == 0) continue;
    if (line == heading)
      inside = true;
    else if (inside && !heading.empty() && level(line) <= level(heading))
      inside = false;
  }
  if (commands.empty()) return not_found("no ```sh block below \"", heading, "\"");
  return commands;
}

}  // namespace tuner::testing
