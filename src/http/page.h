// The page that people see at /: the files of web/, built into the program as one archive (web/tools/bundle.mjs):
//
//     one line of JSON: [{"path": "/", "type": "text/html", "etag": "…", "size": n, "gzip": n}, …]
//     for each file, in that order, its bytes and then the same compressed by gzip
//
// The page needs no key: it holds nothing that is secret, and a browser that opens it cannot send one. What the page
// asks for does. Immutable after construction, so any thread may call.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider {

std::string_view EmbeddedPage();  // the archive; empty if the page was not built

struct PageFile {
  std::string type, etag;
  std::string_view bytes, gzip;  // gzip is empty if compression does not help
};

class Page {
 public:
  // `archive` must outlive this object. An empty one gives a page without files.
  static Result<Page> Read(std::string_view archive);

  bool empty() const { return files_.empty(); }
  const PageFile* Find(const std::string& path) const;  // null if there is none
  const std::map<std::string, PageFile>& files() const { return files_; }

 private:
  std::map<std::string, PageFile> files_;
};

// Headers that every file of the page is sent with: nothing is loaded from elsewhere, no inline code, no framing.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace outrider
