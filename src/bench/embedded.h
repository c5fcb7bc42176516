// Files that are built into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace outrider {

std::string_view EmbeddedPrompts();     // text/prompts.jsonl
std::string_view EmbeddedProse();       // text/prose.txt
std::string_view EmbeddedReportPage();  // page/report.html
std::string_view EmbeddedPlots();       // page/plots.js
std::string_view EmbeddedVega();        // the plotting library; empty if it was missing when this was built

}  // namespace outrider
