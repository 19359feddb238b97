// Parts of the dashboard without a server: the file that leads a browser to a link, the files of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/temporary_folder.h"
#include "tuner/dashboard/open_browser.h"
#include "tuner/dashboard/page_files.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using dashboard::OpenedPage;
using dashboard::PageFiles;
using ::testing::HasSubstr;

constexpr char kLink[] = "http://127.0.0.1:7071/#token=tuner_secret";

// A variable of the environment for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr)
      unsetenv(name_);
    else
      setenv(name_, value, 1);
  }
  const char* name_;
  std::optional<std::string> before_;
};

class OpenBrowser : public ::testing::Test {
 protected:
  // Says its words in a file.
  std::string opener() const {
    const std::string program = folder_.file("opener");
    std::ofstream(program) << "#!/bin/sh\nprintf '%s|' \"$@\" >" << folder_.file("words") << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }
  std::string read(const std::string& path) const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TemporaryFolder folder_;
  const std::string runtime_ = folder_.path().string();
  Variable display_{"DISPLAY", nullptr}, wayland_{"WAYLAND_DISPLAY", nullptr},
      xdg_{"XDG_RUNTIME_DIR", runtime_.c_str()};
};

// Other users of this machine see the words of programs, and must not read the file.
TEST_F(OpenBrowser, ALinkIsInAFileOfThisUserAloneAndInNoWords) {
  for (const char* screen : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const Variable there(screen, ":0");
    std::string file;
    {
      const Result<OpenedPage> opened = OpenedPage::open(kLink, opener());
      ASSERT_TRUE(opened.is_ok()) << opened.message();
      const std::string words = read(folder_.file("words"));
      EXPECT_THAT(words, ::testing::Not(HasSubstr("secret")));
      file = words.substr(0, words.find('|'));
      EXPECT_EQ(fs::path(file).parent_path(), folder_.path()) << words;
      struct stat made {};
      ASSERT_EQ(stat(file.c_str(), &made), 0);
      EXPECT_EQ(made.st_mode & 0777U, 0600U);
      EXPECT_THAT(read(file), HasSubstr(std::string("content=\"0;url=") + kLink + "\""));
      const OpenedPage moved = OpenedPage::open(kLink, opener()).value();
      EXPECT_TRUE(fs::exists(file)) << "each has a file of its own";
    }
    EXPECT_FALSE(fs::exists(file)) << "it lives as long as the page";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path()))
      EXPECT_NE(entry.path().extension(), ".html") << entry.path();
  }
}

TEST_F(OpenBrowser, WithoutADesktopNothingIsOpened) {
  EXPECT_EQ(OpenedPage::open(kLink, opener()).status().code(), StatusCode::kNotFound);
  const Variable there("DISPLAY", ":0");
  EXPECT_EQ(OpenedPage::open(kLink, folder_.file("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(read(folder_.file("words")), "") << "it was not called";
}

TEST(PageFiles, AreBoundedInNumberAndSize) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("index.html")) << "page";
  for (int i = 1; i < 64; ++i) std::ofstream(folder.file("f" + std::to_string(i) + ".js")) << "x";
  std::ofstream(folder.file("notes.md")) << "no file of a page";
  fs::create_directory(folder.file("more.js"));
  ASSERT_TRUE(PageFiles::read(folder.path().string()).is_ok()) << "64 files";
  std::ofstream(folder.file("f64.js")) << "x";
  const auto more = PageFiles::read(folder.path().string());
  EXPECT_EQ(more.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.message()), HasSubstr("at most 64 files"));
  fs::remove(folder.file("f64.js"));
  // 8 MiB together, not each.
  for (const char* name : {"f1.js", "f2.js"}) std::ofstream(folder.file(name)) << std::string(5 << 20, 'x');
  EXPECT_FALSE(PageFiles::read(folder.path().string()).is_ok());
  fs::remove(folder.file("f2.js"));
  EXPECT_TRUE(PageFiles::read(folder.path().string()).is_ok());
}

TEST(PageFiles, WhereTheyAreIsGivenOrBesideTheProgram) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("index.html")) << "mine";
  {
    const Variable given("TUNER_DASHBOARD_PAGE", folder.path().c_str());
    const PageFiles page = PageFiles::of_this_program();
    EXPECT_TRUE(page.is_built());
    ASSERT_NE(page.find("/"), nullptr);
    EXPECT_EQ(page.find("/")->bytes, "mine");
    EXPECT_EQ(page.find("/index.html")->type, "text/html; charset=utf-8");
  }
  fs::remove(folder.file("index.html"));
  const Variable given("TUNER_DASHBOARD_PAGE", folder.path().c_str());
  const PageFiles none = PageFiles::of_this_program();
  if (none.is_built()) return;  // a page is beside this program
  EXPECT_THAT(none.find("/")->bytes, HasSubstr("The Debian package <b>tuner</b> brings it"));
}

}  // namespace
}  // namespace tuner
