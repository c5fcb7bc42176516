#include "api/adapters.h"

#include <fmt/format.h>

#include <limits>

#include "api/fields.h"

namespace outrider {
namespace {

constexpr double kMaxScale = 1000;  // far beyond what an adapter is trained for

}  // namespace

std::vector<uint64_t> AdapterList::Fingerprints() const {
  std::vector<uint64_t> fingerprints;
  for (const AdapterInfo& adapter : adapters_) fingerprints.push_back(adapter.fingerprint);
  return fingerprints;
}

AdapterSet AdapterList::Defaults() const {
  const std::lock_guard lock(mutex_);
  return AdaptersOf(scales_);
}

Json AdapterList::Describe() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (size_t i = 0; i < adapters_.size(); ++i) {
    list.push_back({{"id", i},
                    {"path", adapters_[i].path},
                    {"scale", scales_[i]},
                    {"task_name", adapters_[i].task_name},
                    {"prompt_prefix", adapters_[i].prompt_prefix}});
  }
  return list;
}

Result<Json> AdapterList::SetDefaults(const Json& body) {
  if (!body.is_array()) return InvalidArgument("the body must be a list of {\"id\": …, \"scale\": …}");
  auto scales = ReadScales(body);
  if (!scales.ok()) return scales.status();
  const std::lock_guard lock(mutex_);
  scales_ = std::move(*scales);
  return Json{{"success", true}};
}

Result<AdapterSet> AdapterList::Read(const Json& list) const {
  if (list.is_null() || (list.is_array() && list.empty())) return Defaults();
  auto scales = ReadScales(list);
  if (!scales.ok()) return scales.status();
  return AdaptersOf(*scales);
}

Result<std::vector<float>> AdapterList::ReadScales(const Json& list) const {
  const auto wrong = [](const std::string& why) { return InvalidArgument(why, "lora"); };
  if (!list.is_array()) return wrong("must be a list of {\"id\": …, \"scale\": …}");
  std::vector<float> scales(adapters_.size());
  std::vector<bool> named(adapters_.size());
  for (const Json& entry : list) {
    if (!entry.is_object()) return wrong("must be a list of {\"id\": …, \"scale\": …}");
    FieldReader fields(entry, "lora.");
    int id = -1;
    float scale = 0;
    fields.Int("id", 0, std::numeric_limits<int>::max(), &id);
    fields.Float("scale", -kMaxScale, kMaxScale, &scale);
    if (!fields.status().ok()) return fields.status();
    if (id < 0) return wrong("every entry needs an id");
    const auto place = static_cast<size_t>(id);
    if (place >= adapters_.size()) {
      return wrong(adapters_.empty()
                       ? "this server has no adapters; start it with --lora FILE"
                       : fmt::format("adapter {} does not exist; the ids are 0 to {} (GET /lora-adapters)", id,
                                     adapters_.size() - 1));
    }
    if (named[place]) return wrong(fmt::format("adapter {} is named twice", id));
    named[place] = true;
    scales[place] = scale;
  }
  return scales;
}

}  // namespace outrider
