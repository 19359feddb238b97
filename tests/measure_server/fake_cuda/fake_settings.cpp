#include "tests/measure_server/fake_cuda/fake_settings.h"

#include <cstdio>
#include <cstdlib>

namespace fake_cuda {

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}
int number(const char* name, int otherwise) {
  const char* value = setting(name);
  return value != nullptr ? std::atoi(value) : otherwise;
}

void make_file(const char* path) {
  if (std::FILE* mark = std::fopen(path, "w")) (void)std::fclose(mark);
}
void note(const char* name, const std::string& line) {
  const char* path = setting(name);
  if (std::FILE* log = path != nullptr ? std::fopen(path, "a") : nullptr; log != nullptr) {
    (void)std::fputs((line + "\n").c_str(), log);
    (void)std::fclose(log);
  }
}

}  // namespace fake_cuda
