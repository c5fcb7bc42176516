// What the page needs of the server besides the API: its files, and the stream of snapshots for its dashboard.
#pragma once

#include <cpp-httplib/httplib.h>

#include <memory>

#include "http/live_feed.h"
#include "http/page.h"

namespace outrider {

// Answers with a file of the page: compressed where the client understands that, or only "not modified".
void SendPageFile(const PageFile& file, const httplib::Request& request, httplib::Response& response);

// Whether the client is a browser that opens a page, rather than a program.
bool WantsHtml(const httplib::Request& request);

// GET /live: a server-sent event with a snapshot, again and again, until the client goes away or the server stops.
// `place` is the client's place among the watchers.
void SendLive(LiveFeed& feed, std::shared_ptr<void> place, httplib::Response& response);

}  // namespace outrider
