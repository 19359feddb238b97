// Messages of the library to people: one line each, each said once.
#pragma once

#include <functional>
#include <string>

namespace tuner::runtime {

using MessageSink = std::function<void(const std::string& line)>;

// Passes `line` to the sink, unless this process already said something about `subject`. A null sink prints
// "tuner: LINE" to stderr. Any thread may call it.
void say_once(const std::string& subject, const std::string& line, const MessageSink& sink);

}  // namespace tuner::runtime
