#include "download/model_download.h"

#include <common.h>
#include <download.h>
#include <fmt/format.h>
#include <log.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "download/sha256.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLarge = 256'000'000;  // bytes that take a while

// One line for all files: rewritten in place on a terminal, else a line of the log for each tenth of a large download.
class Progress : public common_download_callback {
 public:
  void on_start(const common_download_progress& file) override {
    if (!file.cached) LogInfo("downloading {}, {:.1f} MB", file.url, static_cast<double>(file.total) / 1e6);
    Update(file);
  }
  void on_update(const common_download_progress& file) override { Update(file); }
  void on_done(const common_download_progress&, bool) override {
    const std::lock_guard lock(mutex_);
    if (terminal_ && !files_.empty()) fmt::print(stderr, "\r\033[K");
  }

 private:
  void Update(const common_download_progress& file) {
    const std::lock_guard lock(mutex_);
    files_[file.url] = {file.downloaded, file.total};
    size_t have = 0, all = 0;
    for (const auto& [url, bytes] : files_) {
      have += bytes.first;
      all += bytes.second;
    }
    if (all == 0) return;
    const int tenths = static_cast<int>(10 * have / all);
    if (terminal_) {
      fmt::print(stderr, "\r{:3} % of {:.1f} MB\033[K", 100 * have / all, static_cast<double>(all) / 1e6);
      std::fflush(stderr);
    } else if (tenths > tenths_ && all >= kLarge) {
      LogInfo("downloaded {} % of {:.1f} MB", 10 * tenths, static_cast<double>(all) / 1e6);
    }
    tenths_ = tenths;
  }

  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::mutex mutex_;
  std::map<std::string, std::pair<size_t, size_t>> files_;  // bytes that are here, and all, by address
  int tenths_ = 0;
};

// The hub names the SHA-256 of large files; small ones have an identifier of Git's, which is not looked at.
bool HasSha256(const hf_cache::hf_file& file) {
  return file.oid.size() == 64;
}

Status Check(const hf_cache::hf_file& file) {
  const auto sum = Sha256OfFile(file.local_path);
  if (!sum.ok()) return sum.status();
  if (*sum == file.oid) return {};
  std::error_code error;
  fs::remove(file.local_path, error);
  return InvalidArgument(fmt::format(
      "'{}' of {} arrived damaged (its SHA-256 is not the one that the hub names) and was removed; try again",
      file.path, file.repo_id));
}

std::string Hint(const ModelSource& source) {
  return source.offline ? "; --offline uses only what was downloaded before"
                        : "; check its name, the network, and --hf-token if it is not public";
}

Result<std::string> FromRepository(const ModelSource& source) {
  common_params_model model;
  model.hf_repo = source.repo;
  model.hf_file = source.file;
  Progress progress;
  common_download_opts options;
  options.bearer_token = source.token;
  options.offline = source.offline;
  options.callback = &progress;
  const common_download_hf_plan plan = common_download_get_hf_plan(model, options);
  if (!plan.preset.path.empty()) {
    return InvalidArgument(fmt::format("'{}' has presets for several models, which is not supported", source.repo));
  }
  if (plan.model_files.empty()) {
    return InvalidArgument(fmt::format("no model of '{}'{} was found at {}{}", source.repo,
                                       source.file.empty() ? "" : " named " + source.file, common_get_model_endpoint(),
                                       Hint(source)));
  }
  std::vector<common_download_task> tasks;
  std::vector<hf_cache::hf_file> fresh;
  for (const hf_cache::hf_file& file : plan.model_files) {
    if (source.offline) continue;
    tasks.emplace_back(file, options);
    if (HasSha256(file) && !fs::exists(file.local_path)) fresh.push_back(file);
  }
  common_download_run_tasks(tasks);
  for (const hf_cache::hf_file& file : fresh) {
    if (Status status = Check(file); !status.ok()) return status;
  }
  std::string path;
  for (const hf_cache::hf_file& file : plan.model_files) {
    const std::string final_path = hf_cache::finalize_file(file);
    if (file.path == plan.primary.path) path = final_path;
  }
  return path;
}

Result<std::string> FromUrl(const ModelSource& source) {
  const fs::path folder =
      source.path.empty() ? fs::path(fs_get_cache_directory()) : fs::path(source.path).parent_path();
  Progress progress;
  std::vector<common_download_task> tasks;
  for (const std::string& url : common_download_get_all_parts(source.url)) {
    common_download_task task;
    task.url = url;
    const std::string name = url.substr(0, url.find_first_of("?#"));
    task.local_path = (folder / name.substr(name.rfind('/') + 1)).string();
    task.opts.bearer_token = source.token;
    task.opts.offline = source.offline;
    task.opts.callback = &progress;
    tasks.push_back(std::move(task));
  }
  if (tasks.size() == 1 && !source.path.empty()) tasks.front().local_path = source.path;
  if (source.offline && !fs::exists(tasks.front().local_path)) {
    return InvalidArgument(fmt::format("'{}' was not downloaded before{}", source.url, Hint(source)));
  }
  common_download_run_tasks(tasks);
  return tasks.front().local_path;
}

}  // namespace

Result<std::string> DownloadModel(const ModelSource& source) {
  common_log_set_verbosity_thold(LOG_LEVEL_OUTPUT);  // what goes wrong is told once, by us
  try {
    return source.repo.empty() ? FromUrl(source) : FromRepository(source);
  } catch (const std::exception& error) {
    std::string what = error.what();
    while (!what.empty() && what.back() == '\n') what.pop_back();
    return InvalidArgument(fmt::format("the model cannot be downloaded: {}", what));
  }
}

std::vector<std::string> CachedModels() {
  std::vector<std::string> names;
  try {
    for (const common_cached_model_info& model : common_list_cached_models()) names.push_back(model.to_string());
  } catch (const std::exception& error) {
    LogError("the cache cannot be read: {}", error.what());
  }
  return names;
}

}  // namespace outrider
