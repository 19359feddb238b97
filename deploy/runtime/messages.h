// Messages of the library: one line each, each once.
#pragma once

#include <functional>
#include <string>

namespace tuner::runtime {

using MessageSink = std::function<void(const std::string& line)>;

// Gives `line` to the sink, unless something was said about `subject` before in the life of this process. A
// null sink is stderr: "tuner: LINE". Any thread.
void say_once(const std::string& subject, const std::string& line, const MessageSink& sink);

}  // namespace tuner::runtime
