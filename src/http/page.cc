#include "http/page.h"

#include "base/json.h"

namespace outrider {

Result<Page> Page::Read(std::string_view archive) {
  Page page;
  if (archive.empty()) return page;
  const size_t end = archive.find('\n');
  const auto bad = [] { return Internal("the page that was built into this program is damaged"); };
  if (end == std::string_view::npos) return bad();
  const Result<Json> list = ParseJson(std::string(archive.substr(0, end)));
  if (!list.ok() || !list->is_array()) return bad();
  archive.remove_prefix(end + 1);
  for (const Json& entry : *list) {
    const auto text = [&](const char* name) { return entry.value(name, ""); };
    const auto take = [&](const char* name) {
      const auto size = entry.value(name, size_t{0});
      const std::string_view bytes = archive.substr(0, size);
      archive.remove_prefix(bytes.size());
      return bytes.size() == size ? bytes : std::string_view();
    };
    if (!entry.is_object()) return bad();
    PageFile file{text("type"), text("etag"), {}, {}};
    file.bytes = take("size");
    file.gzip = take("gzip");
    if (file.bytes.empty()) return bad();
    page.files_.emplace(text("path"), std::move(file));
  }
  if (!archive.empty() || !page.Find("/")) return bad();
  return page;
}

const PageFile* Page::Find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace outrider
