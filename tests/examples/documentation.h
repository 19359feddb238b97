// README.md and docs/*.md as the test reads them: fenced blocks, the commands in them, links, and files that
// are named.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::testing {

// ```language name
struct Block {
  std::string language, name, text;
  int line = 0;  // of the opening fence, from 1
};

struct Document {
  std::string path;  // from the top folder
  std::vector<Block> blocks;
  std::string prose;  // all lines outside of blocks
};

inline Document parse_document(std::string path, std::string_view text) {
  Document document{.path = std::move(path)};
  std::istringstream lines{std::string(text)};
  Block* open = nullptr;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      if (open != nullptr) {
        open = nullptr;
        continue;
      }
      std::istringstream words(line.substr(3));
      Block block{.line = number};
      words >> block.language >> block.name;
      document.blocks.push_back(block);
      open = &document.blocks.back();
    } else {
      (open != nullptr ? open->text : document.prose) += line + "\n";
    }
  }
  return document;
}

inline Document read_document(const std::filesystem::path& top, const std::string& path) {
  std::ifstream in(top / path, std::ios::binary);
  return parse_document(path, std::string{std::istreambuf_iterator<char>(in), {}});
}

// README.md, then the pages of docs/ by name.
inline std::vector<Document> documentation(const std::filesystem::path& top) {
  std::vector<std::string> pages;
  for (const auto& entry : std::filesystem::directory_iterator(top / "docs"))
    if (entry.path().extension() == ".md") pages.push_back("docs/" + entry.path().filename().string());
  std::ranges::sort(pages);
  pages.insert(pages.begin(), "README.md");
  std::vector<Document> documents;
  for (const std::string& page : pages) documents.push_back(read_document(top, page));
  return documents;
}

// The commands of a ```sh block: its lines without comments ("  # ..." at the end of a line, or a line that
// begins with
// #).
inline std::vector<std::string> commands_of(const Block& block) {
  std::vector<std::string> commands;
  std::istringstream lines(block.text);
  for (std::string line; std::getline(lines, line);) {
    if (const size_t comment = line.find(" #"); comment != std::string::npos) line.resize(comment);
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') commands.push_back(line);
  }
  return commands;
}

// Targets of [text](target) that are files: without those on the web and without "#heading".
inline std::vector<std::string> relative_links(const Document& document) {
  std::vector<std::string> links;
  const std::regex link(R"(\]\(([^)\s]+)\))");
  for (std::sregex_iterator it(document.prose.begin(), document.prose.end(), link), end; it != end; ++it) {
    std::string target = (*it)[1];
    target.resize(std::min(target.find('#'), target.size()));
    if (!target.empty() && target.find("://") == std::string::npos) links.push_back(target);
  }
  return links;
}

// Paths in `backticks` that begin with a folder of the repository: `deploy/run.sh ARGS...` names
// deploy/run.sh.
inline std::vector<std::string> named_files(const Document& document) {
  std::vector<std::string> files;
  const std::regex named(
      R"(`((?:compiler_core|db|deploy|docs|examples|measure_server|proto|templates|tests|tuner)/[^`\s]*))");
  for (std::sregex_iterator it(document.prose.begin(), document.prose.end(), named), end; it != end; ++it)
    files.push_back((*it)[1]);
  return files;
}

}  // namespace tuner::testing
