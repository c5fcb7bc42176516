#include "apps/fetch_models.h"

#include "download/model_download.h"

namespace outrider {

Status FetchModels(ServeOptions& options) {
  const DownloadFlags& flags = options.download;
  if (!flags.repo.empty() || !flags.url.empty()) {
    auto path = DownloadModel({.repo = flags.repo,
                               .file = flags.file,
                               .url = flags.url,
                               .path = options.model.path,
                               .token = flags.token,
                               .offline = flags.offline});
    if (!path.ok()) return path.status();
    options.model.path = *path;
  }
  if (!flags.media_url.empty()) {
    auto path = DownloadModel({.repo = "",
                               .file = "",
                               .url = flags.media_url,
                               .path = options.media.path,
                               .token = flags.token,
                               .offline = flags.offline});
    if (!path.ok()) return path.status();
    options.media.path = *path;
  }
  std::string& draft = options.speculation.draft_model.path;
  if (!flags.draft_repo.empty()) {
    auto path = DownloadModel({.repo = flags.draft_repo,
                               .file = draft,
                               .url = "",
                               .path = "",
                               .token = flags.token,
                               .offline = flags.offline});
    if (!path.ok()) return path.status();
    draft = *path;
  }
  return {};
}

}  // namespace outrider
