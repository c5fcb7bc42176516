// The kinds of files besides text that a request may show to a model.
#pragma once

namespace outrider {

enum class MediaKind { kImage, kAudio };

}  // namespace outrider
