// Files in requests: pictures and sounds, which a client sends with the conversation. Each stands in the text as a
// marker that nobody can guess, until the text is tokenised (PrepareText).
//
// Files come as bytes, in data: URLs or plain base64. What else protocols have, addresses of files elsewhere, is
// refused: a client could make this server fetch from its own network, or read its files.
#pragma once

#include <string>
#include <string_view>

#include "api/protocol.h"
#include "base/json.h"
#include "base/media_kind.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

// What clients write in a prompt where a file of "multimodal_data" belongs.
inline constexpr std::string_view kPublicMarker = "<__media__>";

// The bytes of "data:image/png;base64,…". `field` is named in errors.
Result<std::string> ReadDataUrl(const Json& url, MediaKind kind, const std::string& field);
Result<std::string> ReadBase64(const Json& text, const std::string& field);

// Adds the file to the conversation; its marker comes back. `bytes` may be an error, which is passed on.
Result<std::string> Attach(Result<std::string> bytes, MediaKind kind, const std::string& field,
                           std::vector<Attachment>* attachments);

// Attaches the files of OpenAI's messages, and puts their markers in the place of the parts that had them.
Status AttachParts(Json* messages, std::vector<Attachment>* attachments);

// Whether `text` begins or ends with a file. Nothing is put between a text and a file.
bool BeginsWithFile(std::string_view text, const std::vector<Attachment>& attachments);
bool EndsWithFile(std::string_view text, const std::vector<Attachment>& attachments);

// The text with the marker that clients know instead of ours.
std::string WithPublicMarkers(std::string text, const std::vector<Attachment>& attachments);

}  // namespace outrider
