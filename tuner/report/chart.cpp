#include "tuner/report/chart.h"

#include <array>
#include <cstdio>

#include "compiler_core/base/status.h"
#include "tuner/report/figures.h"

namespace tuner::page {
namespace {

constexpr double kStretched = 1000;  // units of a path along x

std::string print(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}
std::string px(double value) { return print("%.1f", value); }
std::string share(double x) { return print("%.2f%%", 100 * x); }

const char* symbol(Shape shape) {
  return shape == Shape::kTriangle ? "#triangle" : shape == Shape::kCross ? "#cross" : "#diamond";
}

std::string points_text(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points) text += str(text.empty() ? "" : "L", px(kStretched * p.x), " ", px(p.y));
  return text;
}

}  // namespace

Chart::Chart(std::string label, double height, double left, double right)
    : label_(std::move(label)), height_(height), left_(left), right_(right) {}

size_t Chart::add_kind(Kind kind) {
  kinds_.push_back(std::move(kind));
  drawn_.push_back(false);
  return kinds_.size() - 1;
}

void Chart::mark(size_t kind, Point at, const std::string& says, double radius) {
  const Kind& k = kinds_[kind];
  drawn_[kind] = true;
  const Html title = html("<title>", says, "</title>");
  if (k.shape == Shape::kDot || k.shape == Shape::kRing)
    marks_ << "<circle class='m " << k.css << "' cx='" << share(at.x) << "' cy='" << px(at.y) << "' r='"
           << px(radius) << "'>" << title << "</circle>\n";
  else
    marks_ << "<use class='m " << k.css << "' href='" << std::string(symbol(k.shape)) << "' x='"
           << share(at.x) << "' y='" << px(at.y) << "'>" << title << "</use>\n";
}

void Chart::line(size_t kind, Point from, Point to) {
  drawn_[kind] = true;
  lines_ << "<line class='" << kinds_[kind].css << "' x1='" << share(from.x) << "' y1='" << px(from.y)
         << "' x2='" << share(to.x) << "' y2='" << px(to.y) << "'/>\n";
}

void Chart::bar(size_t kind, Point from, Point to) {
  lines_ << "<line class='bar " << kinds_[kind].css << "' x1='" << share(from.x) << "' y1='" << px(from.y)
         << "' x2='" << share(to.x) << "' y2='" << px(to.y) << "'/>\n";
}

void Chart::path(size_t kind, const std::vector<Point>& points) {
  if (points.empty()) return;
  drawn_[kind] = true;
  paths_ << "<path class='" << kinds_[kind].css << "' d='M" << points_text(points) << "'/>\n";
}

void Chart::band(size_t kind, const std::vector<Point>& upper, const std::vector<Point>& lower) {
  if (upper.empty()) return;
  drawn_[kind] = true;
  paths_ << "<path class='" << kinds_[kind].css << "' d='M" << points_text(upper) << "L"
         << points_text({lower.rbegin(), lower.rend()}) << "Z'/>\n";
}

void Chart::words(Point at, double dx, const char* anchor, const std::string& text, const char* css) {
  back_ << "<text class='" << std::string(css) << "' x='" << share(at.x) << "' dx='" << px(dx) << "' y='"
        << px(at.y) << "' text-anchor='" << std::string(anchor) << "'>" << text << "</text>\n";
}

void Chart::grid(Point from, Point to) {
  back_ << "<line class='grid-line' x1='" << share(from.x) << "' y1='" << px(from.y) << "' x2='"
        << share(to.x) << "' y2='" << px(to.y) << "'/>\n";
}

void Chart::side_words(const std::string& text) {
  back_ << "<text transform='rotate(-90)' x='" << px(-height_ / 2) << "' y='" << px(12 - left_)
        << "' text-anchor='middle'>" << text << "</text>\n";
}

Html Chart::swatch(const Kind& k) const {
  Html out("<svg width='20' height='12' aria-hidden='true'>");
  const std::string css = k.css;
  switch (k.shape) {
    case Shape::kDot:
    case Shape::kRing:
      out << "<circle class='" << css << "' cx='10' cy='6' r='4'/>";
      break;
    case Shape::kLine:
    case Shape::kDashedLine:
      out << "<path class='" << css << "' d='M0 6H20'/>";
      break;
    case Shape::kBand:
      out << "<path class='" << css << "' d='M0 0H20V12H0Z'/>";
      break;
    default:
      out << "<use class='" << css << "' href='" << std::string(symbol(k.shape)) << "' x='10' y='6'/>";
  }
  return out << "</svg>";
}

Html Chart::code() const {
  Html legend;
  for (size_t i = 0; i < kinds_.size(); ++i)
    if (drawn_[i])
      legend << "<li data-kind='" << kinds_[i].css << "'>" << swatch(kinds_[i]) << kinds_[i].says << "</li>";
  Html out;
  if (!legend.empty()) out << "<ul class='legend'>" << legend << "</ul>";
  out << "<div class='plot' style='margin:8px " << px(right_) << "px 0 " << px(left_)
      << "px'><svg class='chart'" << (rows_ ? Html(" data-rows") : Html()) << " height='" << px(height_)
      << "' role='group' aria-label='" << label_ << "'>\n"
      << back_;
  if (!paths_.empty())
    out << "<svg width='100%' height='" << px(height_) << "' viewBox='0 0 " << px(kStretched) << " "
        << px(height_) << "' preserveAspectRatio='none'>" << paths_ << "</svg>\n";
  return out << lines_ << marks_ << "</svg></div>";
}

Html shapes() {
  return Html(
      "<svg width='0' height='0' class='away' aria-hidden='true'><defs>"
      "<path id='triangle' d='M0 -4L4 3H-4Z'/>"
      "<path id='cross' d='M-3 -3L3 3M3 -3L-3 3'/>"
      "<path id='diamond' d='M0 -7L6 0L0 7L-6 0Z'/>"
      "</defs></svg>\n");
}

}  // namespace tuner::page
