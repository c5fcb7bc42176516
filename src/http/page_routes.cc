#include "http/page_routes.h"

#include <memory>

#include "api/live.h"
#include "base/log.h"

namespace outrider {
namespace {

using httplib::Request;
using httplib::Response;

// For browsers, if the program was built without the page.
constexpr const char* kNoPage =
    "Outrider is running, but its page was not built (./run builds it if Node.js is there). The API works.\n\n";

bool WantsHtml(const std::string& accept) {
  return accept.find("text/html") != std::string::npos;
}

// Answers with a file of the page: compressed where the client understands that, or only "not modified".
void SendFile(const PageFile& file, const Request& request, Response& response) {
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

// A server-sent event with a snapshot, again and again, until the client goes away or the server stops. `place` is the
// client's place among the watchers.
void SendLive(LiveFeed& feed, Viewer viewer, std::shared_ptr<void> place, Response& response) {
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");
  response.set_chunked_content_provider("text/event-stream",
                                        [&feed, viewer = std::move(viewer), place = std::move(place), first = true](
                                            size_t, httplib::DataSink& sink) mutable {
                                          if (!first && !feed.WaitForNext()) {
                                            sink.done();
                                            return true;
                                          }
                                          first = false;
                                          const std::string event = "data: " + feed.Snapshot(viewer) + "\n\n";
                                          return sink.is_writable() && sink.write(event.data(), event.size());
                                        });
}

}  // namespace

PageRoutes::PageRoutes(bool enabled, Services services)
    : enabled_(enabled), services_(services), live_([this](const Viewer& viewer) { return MakeSnapshot(viewer); }) {
  if (!enabled_) return;
  if (auto embedded = Page::Read(EmbeddedPage()); embedded.ok()) {
    page_ = std::move(*embedded);
  } else {
    LogError("{}", embedded.status().message());
  }
}

std::string PageRoutes::MakeSnapshot(const Viewer& viewer) const {
  Scheduler& scheduler = services_.scheduler;
  LiveState state;
  state.costs = scheduler.Costs();
  state.stats = scheduler.Stats();
  state.slots = scheduler.Slots();
  if (services_.draft_servers) state.draft_servers = services_.draft_servers();
  state.memory = ReadMemoryUse();
  return DumpJson(LiveJson(state, viewer, services_.api, services_.info));
}

void PageRoutes::AddTo(const AddGet& get, std::string welcome, ViewerOf viewer_of) {
  get("/", [this, welcome = std::move(welcome)](const Request& request, Response& response) {
    const bool html = enabled_ && WantsHtml(request.get_header_value("Accept"));
    if (html && !page_.empty()) return SendFile(*page_.Find("/"), request, response);
    response.set_content((html ? kNoPage : "") + welcome, "text/plain");
  });
  for (const auto& [path, file] : page_.files()) {
    if (path == "/") continue;
    get(path, [&file](const Request& request, Response& response) { SendFile(file, request, response); });
  }
  get("/live", [this, viewer_of = std::move(viewer_of)](const Request& request, Response& response) {
    if (std::shared_ptr<void> place = live_.Enter()) {
      return SendLive(live_, viewer_of(request), std::move(place), response);
    }
    const Status full(StatusCode::kResourceExhausted, "too many dashboards are open; close one");
    response.status = HttpStatus(full.code());
    response.set_content(DumpJson(OpenAiError(full)) + "\n", "application/json");
  });
}

bool PageRoutes::IsOpen(const std::string& path, const std::string& accept) const {
  return page_.Find(path) != nullptr && (path != "/" || WantsHtml(accept));
}

}  // namespace outrider
