// What of a C or C++ text counts. The independent witness is the C++ compiler's preprocessor: texts that
// differ in white space and comments alone give the same tokens.
#include "templates/source_kernel/source_text.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(SourceText, WhiteSpaceAndCommentsDoNotCount) {
  const std::string plain =
      "#define F(x) ((x)+1)\nint f(int a,int b){return F(a)- -b/2;}\nconst char*s=\"a  b\";\n";
  const char* const same[] = {
      "#define F(x) ((x) + 1) // adds one\nint f(int a, int b) {\n  return F(a) - -b / 2; /* half "
      "*/\n}\n\nconst char* s = \"a  b\";",
      "// a head\n\n#  define F(x) ((x)\\\n+1)\r\nint f(int a,int b)\r\n{ return F(a)- -b/2; }\nconst char "
      "*s\n=\n\"a  b\";\n\n",
      "/* two\nlines */ #define F(x)((x)+1)\nint f(int/**/a,int b){return F(a)- -b/2;}const char*s=\"a  b\";",
      "#define F(x) ((x)+1)\nin\\\nt f(int a,int b){return F(a)- -b/\\\n2;}\nconst char*s=\"a  b\"; // the "
      "end \\\n goes on",
  };
  for (const char* text : same) EXPECT_EQ(normalized_source(text), normalized_source(plain)) << text;
}

TEST(SourceText, WhatChangesTheMeaningCounts) {
  const std::pair<const char*, const char*> different[] = {
      {"a - -b", "a --b"},
      {"a + +b", "a ++b"},
      {"\"a b\"", "\"a  b\""},
      {"'a'", "'b'"},
      {"\"// no comment\" x", "\"// no comment\" y"},
      {"R\"(a\n b)\"", "R\"(a\nb)\""},
      {"R\"x(/* )\" */ )x\" 1", "R\"x(/* )\" */ )x\" 2"},
      {"#define F(x) x", "#define F (x) x"},
      {"#define A 1\nint b;", "#define A 1 int b;"},
      {"L\"a\"", "L \"a\""},
      {"\"a\"_s", "\"a\" _s"},
      {"int ab", "int a b"},
      {"1'000", "1 000"},
      {"0x1e+2", "0x1e + 3"},
      {"a<<=b", "a<< =b"},
      {"x; // %RANGE% T tile 1:4:1", "x; // %RANGE% T tile 1:8:1"},
      {"x; // %RANGE% T tile 1:4:1", "x;"},
  };
  for (const auto& [a, b] : different)
    EXPECT_NE(normalized_source(a), normalized_source(b)) << a << " and " << b;
}

TEST(SourceText, AnythingIsReadToItsEnd) {
  for (const char* text :
       {"\"open", "'open\nx", "/* open", "R\"(open", "R\"a-name-of-more-than-16-bytes(x)\"", "\\", "// \\",
        "#", "", "\\\n\\\n", "1'", "#include \"", "\xff\xfe", "/", "/\\\n*", "a/\\\n/b\nc"})
    EXPECT_LE(normalized_source(text).size(), 2 * std::string_view(text).size() + 2) << text;
  EXPECT_EQ(normalized_source("a/\\\n/b\nc"), "a c\n");
  EXPECT_EQ(normalized_source(std::string("a\0b", 3)), normalized_source(std::string("a \0 b", 5)));
}

TEST(SourceText, IncludesByQuotesAreFound) {
  const std::vector<SourceInclude> found = quoted_includes(
      "#include <stdio.h>\n"
      "  #  include /* here */ \"a.h\" // \"not.h\"\n"
      "// #include \"comment.h\"\n"
      "/*\n#include \"comment2.h\"\n*/\n"
      "#if 0\n#include \"dir/b.h\"\n#endif\n"
      "const char* s = \"#include \\\"no.h\\\"\";\n"
      "#inc\\\nlude \"c.h\"\n"
      "#include MACRO(\"d.h\")\n"
      "int x; #include \"e.h\"\n");
  std::vector<std::pair<std::string, int>> names;
  for (const SourceInclude& i : found) names.emplace_back(i.name, i.line);
  EXPECT_EQ(names, (std::vector<std::pair<std::string, int>>{{"a.h", 2}, {"dir/b.h", 8}, {"c.h", 12}}));
}

}  // namespace
}  // namespace tuner
