// PageRoutes: what the page needs of the server besides the API: GET / for browsers, its files, and GET /live, the
// stream of snapshots for its dashboard.
//
// Thread-safe after AddTo. Stop ends the streams; the object must outlive the server whose routes it added.
#pragma once

#include <cpp-httplib/httplib.h>

#include <functional>
#include <string>

#include "http/live_feed.h"
#include "http/page.h"
#include "http/server.h"

namespace outrider {

class PageRoutes {
 public:
  using AddGet = std::function<void(const std::string& path, httplib::Server::Handler handler)>;
  using ViewerOf = std::function<Viewer(const httplib::Request&)>;

  // `enabled`: whether people get a page; /live is there without it too.
  PageRoutes(bool enabled, Services services);

  // `welcome`: what programs get at /. `viewer_of`: who looks at the dashboard.
  void AddTo(const AddGet& get, std::string welcome, ViewerOf viewer_of);

  // Whether the path needs no key. `accept` is the request's header of that name: at / it tells browsers and programs
  // apart.
  bool IsOpen(const std::string& path, const std::string& accept) const;

  void Stop() { live_.Stop(); }

 private:
  std::string MakeSnapshot(const Viewer& viewer) const;

  const bool enabled_;
  const Services services_;
  Page page_;
  LiveFeed live_;
};

}  // namespace outrider
