// From a text with files to the tokens and rows of a prompt.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/prepare.h"

namespace outrider {
namespace {

struct FilePlace {
  size_t at;
  const Attachment* file;
};

// Where the files are in the text, in its order.
Result<std::vector<FilePlace>> FindFiles(const std::string& text, const std::vector<Attachment>& attachments) {
  std::vector<FilePlace> places;
  for (const Attachment& file : attachments) {
    const size_t at = text.find(file.marker);
    if (at == text.npos)
      return InvalidArgument("does not get into the prompt: the chat template leaves it out", file.field);
    places.push_back({at, &file});
  }
  std::sort(places.begin(), places.end(), [](const FilePlace& a, const FilePlace& b) { return a.at < b.at; });
  return places;
}

Status AppendFile(const Attachment& file, const ApiContext& context, GenerationRequest* request) {
  const char* what = file.kind == MediaKind::kImage ? "a picture" : "a sound";
  if (context.media == nullptr) {
    return InvalidArgument(
        fmt::format("is {}, but this model takes text only: the server was started without --mmproj", what),
        file.field);
  }
  if (!context.media->Reads(file.kind)) {
    return InvalidArgument(fmt::format("is {}, which the projector (--mmproj) does not read", what), file.field);
  }
  const auto pieces = context.media->Read(file.bytes, file.kind, request->owner);
  if (!pieces.ok()) return Status(pieces.status().code(), pieces.status().message(), file.field);
  for (const MediaPiece& piece : *pieces) {
    request->prompt.insert(request->prompt.end(), piece.tokens.begin(), piece.tokens.end());
    if (piece.rows == nullptr) continue;
    request->media.push_back({static_cast<Pos>(request->prompt.size()), piece.rows, file.field});
    for (Pos row = 0; row < piece.rows->count(); ++row) {
      request->prompt.push_back(StandIn(piece.rows->id(), row, context.tokenizer.vocabulary_size()));
    }
  }
  return {};
}

}  // namespace

Status PreparePrompt(const std::string& text, bool add_bos, const std::vector<Attachment>& attachments,
                     const ApiContext& context, const char* field, GenerationRequest* request) {
  const Result<std::vector<FilePlace>> places = FindFiles(text, attachments);
  if (!places.ok()) return places.status();
  request->prompt.clear();
  request->media.clear();
  size_t done = 0;
  const auto append_text = [&](size_t end) -> Status {
    const size_t bytes = end - done;
    if (const Status status = CheckTextFits(request->prompt.size(), bytes, context, field); !status.ok()) return status;
    const bool first = done == 0;
    if (bytes == 0 && !(first && add_bos)) return {};
    const std::vector<Token> tokens =
        context.tokenizer.Tokenize(std::string_view(text).substr(done, bytes), first && add_bos, SpecialTokens::kParse);
    request->prompt.insert(request->prompt.end(), tokens.begin(), tokens.end());
    return {};
  };
  for (const FilePlace& place : *places) {
    if (const Status status = append_text(place.at); !status.ok()) return status;
    if (const Status status = AppendFile(*place.file, context, request); !status.ok()) return status;
    done = place.at + place.file->marker.size();
  }
  if (const Status status = append_text(text.size()); !status.ok()) return status;
  return CheckPromptFits(request->prompt.size(), context, field);
}

Status HoldPictures(const ApiContext& context, ParsedRequest* request) {
  std::set<const MediaRows*> all;  // several answers to one prompt share its pictures
  Pos rows = 0;
  const auto count = [&](const GenerationRequest& one) {
    for (const MediaSpan& span : one.media) {
      if (all.insert(span.rows.get()).second) rows += span.rows->count();
    }
  };
  count(request->generation);
  for (const GenerationRequest& other : request->more) count(other);
  if (rows == 0) return {};
  auto hold = context.media->Hold(request->generation.owner, rows);
  if (!hold.ok()) return hold.status();
  request->generation.media_hold = *hold;
  for (GenerationRequest& other : request->more) other.media_hold = *hold;
  return {};
}

}  // namespace outrider
