#include "deploy/runtime/say_once.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace tuner::runtime {

void say_once(const std::string& subject, const std::string& line, const MessageSink& sink) {
  static std::mutex* const mutex =
      new std::mutex;  // never destroyed: threads may speak while the process ends
  static std::set<std::string>* const said = new std::set<std::string>;
  {
    const std::lock_guard lock(*mutex);
    if (!said->insert(subject).second) return;
  }
  if (sink) return sink(line);
  std::fprintf(stderr, "tuner: %s\n", line.c_str());
}

}  // namespace tuner::runtime
