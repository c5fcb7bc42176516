// What `outrider check` decodes: prose, code, JSON and a question, so that every kind of drafter finds something.
#pragma once

#include <array>

namespace outrider {

inline constexpr std::array kCheckTexts = {
    "The lighthouse keeper climbed the stairs every evening at dusk, lit the lamp, and wrote the weather into the log. "
    "One night in November the storm was so strong that",
    "def area(width, height):\n    if width < 0 or height < 0:\n        raise ValueError(\"lengths must not be "
    "negative\")\n    return width * height\n\ndef volume(width, height, depth):\n    if width < 0",
    "[{\"name\": \"oak\", \"kind\": \"tree\"}, {\"name\": \"fir\", \"kind\": \"tree\"}, {\"name\": \"elm\", \"kind\": "
    "\"tree\"}, {\"name\":",
    "Question: A train leaves at nine and travels three hours at eighty kilometres per hour. How far does it get? "
    "Answer, step by step:",
};

}  // namespace outrider
