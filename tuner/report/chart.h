// A chart as SVG that needs no script. It stretches with the page: positions along x are shares of the width,
// heights are pixels. Letters and marks keep their size on a narrow screen.
//
// A mark's <title> tells what it stands for. Browsers show it, screen readers read it, and page.js makes a
// tooltip of it, which arrow keys reach, too. The legend lists the kinds that were drawn, and no others.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/report/html.h"

namespace tuner::page {

enum class Shape { kDot, kRing, kTriangle, kCross, kDiamond, kLine, kDashedLine, kBand };

// `css`: its class in page.css, which gives the colour.
struct Kind {
  Shape shape = Shape::kDot;
  std::string css, says;
};

struct Point {
  double x = 0, y = 0;  // x: share of the width, 0 to 1; y: pixels from the top
};

class Chart {
 public:
  // `label` names the chart for people who do not see it. Margins in pixels: where the scale of y and what
  // stands to the right find room.
  Chart(std::string label, double height, double left, double right);

  // Kinds come in the order of the legend.
  size_t add_kind(Kind kind);

  // A mark tells `says`, lines divided by line feeds. `radius`: of a dot or ring.
  void mark(size_t kind, Point at, const std::string& says, double radius = 3);
  void line(size_t kind, Point from, Point to);
  void bar(size_t kind, Point from, Point to);  // a broad line in the kind's colour, below its marks
  // Lines through the points, and the area between two of them, whose x ascend. They are below all marks.
  void path(size_t kind, const std::vector<Point>& points);
  void band(size_t kind, const std::vector<Point>& upper, const std::vector<Point>& lower);

  // Words and lines of the scale; `anchor`: start, middle or end; `dx` pixels to the right of `at`.
  void words(Point at, double dx, const char* anchor, const std::string& text, const char* css = "");
  void grid(Point from, Point to);
  // Words that run up the left side.
  void side_words(const std::string& text);

  // Marks lie in rows: the pointer chooses one by its height alone.
  void in_rows() { rows_ = true; }
  Html code() const;

 private:
  Html swatch(const Kind& kind) const;

  std::string label_;
  double height_, left_, right_;
  bool rows_ = false;
  std::vector<Kind> kinds_;
  std::vector<bool> drawn_;
  Html back_, paths_, lines_, marks_;
};

// The shapes that marks use; once in a page.
Html shapes();

// The charts of a task. A part that its records do not tell is a sentence.
Html convergence_chart(const nlohmann::ordered_json& task);
Html race_chart(const nlohmann::ordered_json& race);
Html roofline_chart(const nlohmann::ordered_json& task);

}  // namespace tuner::page
