// A report in the page that was built for it. Only two places of the page are filled in: its title
// and the report, which the page's own script reads as data.
#include <string_view>

#include "lab/page_frame.h"
#include "lab/report.h"
#include "lab/report_json.h"
#include "lab/shown_text.h"

namespace weir::lab {
namespace {

constexpr std::string_view kTitleMark = "@WEIR_TITLE@";
constexpr std::string_view kReportMark = "@WEIR_REPORT@";

std::string EscapedHtml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string ReportPage(const Report& report) {
  const std::string_view frame = PageFrame();
  // Both are there, in this order: a test sees to it.
  const std::size_t title = frame.find(kTitleMark);
  const std::size_t data = frame.find(kReportMark, title);
  std::string page;
  page += frame.substr(0, title);
  page += EscapedHtml(ShownText(report.title));
  page += frame.substr(title + kTitleMark.size(), data - title - kTitleMark.size());
  page += ReportJson(report);
  page += frame.substr(data + kReportMark.size());
  return page;
}

}  // namespace weir::lab
