#include "tuner/report/report_page.h"

#include <string_view>

#include "compiler_core/base/status.h"
#include "report/page.h"

namespace tuner {
namespace {

// JSON inside a script element: '<' could end the element or begin a comment, and is never needed outside
// strings.
std::string inside_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string as_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void replace(std::string& page, std::string_view mark, const std::string& by) {
  const size_t at = page.find(mark);
  CHECK(at != std::string::npos) << "page.html has no " << mark;
  page.replace(at, mark.size(), by);
}

}  // namespace

std::string report_page(const nlohmann::ordered_json& facts) {
  std::string page = kReportPage;
  const auto job = facts.find("job");
  // The facts last: they may hold the other mark.
  replace(page, "@TITLE@",
          as_text("Tuning report: job " + (job != facts.end() ? job->get<std::string>() : "")));
  replace(page, "@FACTS@",
          inside_script(facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
  return page;
}

}  // namespace tuner
