#include "api/attachments.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/base64.h"
#include "api/fields.h"
#include "api/turn_input.h"
#include "base/request_budget.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

constexpr const char* kNoAddresses =
    "must be a data: URL with the file itself in base64: this server fetches nothing for a request, and reads no files";

bool IsLetterEqual(char a, char b) {
  return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
}

bool BeginsWith(std::string_view text, std::string_view lower_case) {
  return text.size() >= lower_case.size() && std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                                                        [](char b, char a) { return IsLetterEqual(a, b); });
}

std::string_view TypePrefix(MediaKind kind) {
  return kind == MediaKind::kImage ? "image/" : "audio/";
}

Result<std::string> BytesOf(std::string_view base64, const std::string& field) {
  std::optional<std::string> bytes = DecodeBase64(base64);
  if (!bytes) return InvalidArgument("is not base64", field);
  if (bytes->empty()) return InvalidArgument("is an empty file", field);
  return std::move(*bytes);
}

// {"type": "image_url", "image_url": {"url": …}}; some clients leave the object out.
Result<std::string> ReadImagePart(const Json& part, const std::string& field) {
  const FieldReader fields(part, field + ".");
  const Json& image = fields.At("image_url");
  if (!image.is_object()) return ReadDataUrl(image, MediaKind::kImage, field + ".image_url");
  return ReadDataUrl(FieldReader(image).At("url"), MediaKind::kImage, field + ".image_url.url");
}

// {"type": "input_audio", "input_audio": {"data": base64, "format": "wav"}}
Result<std::string> ReadAudioPart(const Json& part, const std::string& field) {
  const Json& audio = FieldReader(part).At("input_audio");
  if (!audio.is_object()) return InvalidArgument("must be an object with data and format", field + ".input_audio");
  return ReadBase64(FieldReader(audio).At("data"), field + ".input_audio.data");
}

Status AttachPart(Json* part, const std::string& field, std::vector<Attachment>* attachments) {
  if (!part->is_object()) return {};
  const Json& type = FieldReader(*part).At("type");
  if (type == "media_marker") {
    return InvalidArgument("is not for clients; send an image_url or input_audio part", field + ".type");
  }
  if (type != "image_url" && type != "input_audio") return {};
  const MediaKind kind = type == "image_url" ? MediaKind::kImage : MediaKind::kAudio;
  Result<std::string> bytes = kind == MediaKind::kImage ? ReadImagePart(*part, field) : ReadAudioPart(*part, field);
  const Result<std::string> marker = Attach(std::move(bytes), kind, field, attachments);
  if (!marker.ok()) return marker.status();
  *part = {{"type", "media_marker"}, {"text", *marker}};
  return {};
}

}  // namespace

Result<std::string> ReadBase64(const Json& text, const std::string& field) {
  if (!text.is_string()) return InvalidArgument("must be a string with the file in base64", field);
  return BytesOf(text.get_ref<const std::string&>(), field);
}

Result<std::string> ReadDataUrl(const Json& url, MediaKind kind, const std::string& field) {
  if (!url.is_string()) return InvalidArgument("must be a string", field);
  std::string_view text = url.get_ref<const std::string&>();
  if (!BeginsWith(text, "data:")) return InvalidArgument(kNoAddresses, field);
  const size_t comma = text.find(',');
  const std::string_view head = text.substr(0, comma);
  constexpr std::string_view kBase64 = ";base64";
  if (comma == text.npos || head.size() < kBase64.size() ||
      !BeginsWith(head.substr(head.size() - kBase64.size()), kBase64)) {
    return InvalidArgument(fmt::format("must be like \"data:{}…;base64,…\"", TypePrefix(kind)), field);
  }
  if (!BeginsWith(head.substr(5), TypePrefix(kind))) {
    return InvalidArgument(fmt::format("must have a type that begins with {}", TypePrefix(kind)), field);
  }
  return BytesOf(text.substr(comma + 1), field);
}

Result<std::string> Attach(Result<std::string> bytes, MediaKind kind, const std::string& field,
                           std::vector<Attachment>* attachments) {
  if (!bytes.ok()) return bytes.status();
  if (attachments->size() == kMaxAttachments) {
    return InvalidArgument(fmt::format("is one file too many: a request may have {}", kMaxAttachments), field);
  }
  const std::string marker = MakeId("<__media_") + "__>";
  attachments->push_back({kind, marker, std::make_shared<const std::string>(std::move(*bytes)), field});
  return marker;
}

Status AttachParts(Json* messages, std::vector<Attachment>* attachments) {
  for (size_t i = 0; i < messages->size(); ++i) {
    Json& message = (*messages)[i];
    if (!message.is_object() || !message.contains("content") || !message["content"].is_array()) continue;
    Json& parts = message["content"];
    for (size_t k = 0; k < parts.size(); ++k) {
      const std::string field = ElementField(ElementField("messages", i) + ".content", k);
      if (const Status status = AttachPart(&parts[k], field, attachments); !status.ok()) return status;
    }
  }
  return {};
}

bool BeginsWithFile(std::string_view text, const std::vector<Attachment>& attachments) {
  return std::any_of(attachments.begin(), attachments.end(),
                     [&](const Attachment& file) { return text.starts_with(file.marker); });
}

bool EndsWithFile(std::string_view text, const std::vector<Attachment>& attachments) {
  return std::any_of(attachments.begin(), attachments.end(),
                     [&](const Attachment& file) { return text.ends_with(file.marker); });
}

std::string WithPublicMarkers(std::string text, const std::vector<Attachment>& attachments) {
  for (const Attachment& file : attachments) {
    const size_t at = text.find(file.marker);
    if (at != text.npos) text.replace(at, file.marker.size(), kPublicMarker);
  }
  return text;
}

}  // namespace outrider
