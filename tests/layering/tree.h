// The sources of the tree as text: what the tests of this folder read.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <vector>

namespace tuner::tree {

namespace fs = std::filesystem;

// Folders of the product.
inline const std::vector<std::string> kProgram = {"compiler_core",  "templates", "db",    "proto",
                                                  "measure_server", "tuner",     "deploy"};

struct SourceFile {
  std::string path;  // relative to the tree
  std::vector<std::string> lines;
};

// All files below these folders with one of these extensions (".h"), in no particular order.
inline std::vector<SourceFile> read_files(const std::vector<std::string>& folders,
                                          const std::vector<std::string>& extensions) {
  const fs::path root = TUNER_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (std::find(extensions.begin(), extensions.end(), extension) == extensions.end()) continue;
      SourceFile& file = files.emplace_back();
      file.path = fs::relative(entry.path(), root).string();
      std::ifstream in(entry.path());
      for (std::string text; std::getline(in, text);) file.lines.push_back(text);
    }
  }
  return files;
}

struct Include {
  std::string file, included;
  int line;
};

inline std::vector<Include> includes_of_the_tree() {
  const std::regex include(R"(^\s*#\s*include\s*[<"]([^">]+)[">])");
  std::vector<Include> found;
  for (const SourceFile& file : read_files(kProgram, {".h", ".cpp", ".c"}))
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (std::smatch match; std::regex_search(file.lines[i], match, include))
        found.push_back({file.path, match[1].str(), static_cast<int>(i) + 1});
  return found;
}

// Whether `included` is a header of ours.
inline bool is_ours(const Include& i) { return fs::exists(fs::path(TUNER_SOURCE_DIR) / i.included); }

}  // namespace tuner::tree
