#include "http/page_routes.h"

#include <string>

namespace outrider {

void SendPageFile(const PageFile& file, const httplib::Request& request, httplib::Response& response) {
  response.set_header("ETag", file.etag);
  response.set_header("Cache-Control", "no-cache");  // may be kept, but must be asked for: a new server has a new page
  response.set_header("Vary", "Accept, Accept-Encoding");
  response.set_header("Content-Security-Policy", std::string(kPagePolicy));
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  if (request.get_header_value("If-None-Match") == file.etag) {
    response.status = 304;
    return;
  }
  const bool compressed =
      !file.gzip.empty() && request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos;
  const std::string_view bytes = compressed ? file.gzip : file.bytes;
  if (compressed) response.set_header("Content-Encoding", "gzip");
  response.set_content(bytes.data(), bytes.size(), file.type);
}

bool WantsHtml(const httplib::Request& request) {
  return request.get_header_value("Accept").find("text/html") != std::string::npos;
}

void SendLive(LiveFeed& feed, std::shared_ptr<void> place, httplib::Response& response) {
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");
  response.set_chunked_content_provider(
      "text/event-stream", [&feed, place = std::move(place), first = true](size_t, httplib::DataSink& sink) mutable {
        if (!first && !feed.WaitForNext()) {
          sink.done();
          return true;
        }
        first = false;
        const std::string event = "data: " + feed.Snapshot() + "\n\n";
        return sink.is_writable() && sink.write(event.data(), event.size());
      });
}

}  // namespace outrider
